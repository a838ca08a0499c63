"""Ops on several devices: shard_map keeps them local, gradients are summed where they must be."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

SCRIPT = Path(__file__).with_name("on_four_devices.py")


@pytest.mark.slow
def test_ops_on_four_devices() -> None:
    environment = {
        **os.environ,
        "XLA_FLAGS": "--xla_force_host_platform_device_count=4",
        "PYTHONPATH": os.pathsep.join(filter(None, sys.path)),
    }
    done = subprocess.run(
        [sys.executable, str(SCRIPT)],
        env=environment,
        capture_output=True,
        text=True,
        timeout=240,
        check=False,
    )
    assert done.returncode == 0, done.stderr[-4000:]
    parts = ["aot", "pyfunc", "loops", "tbe", "effects", "trees"]
    assert done.stdout.splitlines() == [f"{part} ok" for part in parts]
