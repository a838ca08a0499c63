"""Ops in programs that XLA divides over devices: what a rule allows stays local, the rest is told.

One process with eight CPU devices makes all checks of on_eight_devices.py; each is a test here.
"""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

SCRIPT = Path(__file__).with_name("on_eight_devices.py")
KINDS = ("aot", "pyfunc", "aicpu", "akg_native", "hybrid_native", "akg_raised", "tbe")
NAMES = [
    f"{check} {kind} {mesh}"
    for kind in KINDS
    for mesh in ("auto", "explicit")
    for check in ("forward", "gradient", "batched", "mapped_by_hand")
] + [f"unruled {kind} {mesh}" for kind in KINDS[:3] for mesh in ("auto", "explicit")]
NAMES += re.findall(r'^@check\("(.*)"\)$', SCRIPT.read_text(), re.MULTILINE)


def environment(**more: str) -> dict[str, str]:
    return {
        **os.environ,
        "JAX_PLATFORMS": "cpu",
        "XLA_FLAGS": "--xla_force_host_platform_device_count=8",
        "PYTHONPATH": os.pathsep.join(filter(None, sys.path)),
        **more,
    }


@pytest.fixture(scope="module")
def errors() -> dict[str, str]:
    """What each check says is wrong."""
    done = subprocess.run(
        [sys.executable, str(SCRIPT)],
        env=environment(),
        capture_output=True,
        text=True,
        timeout=400,
        check=False,
    )
    assert done.returncode == 0, done.stderr[-4000:]
    lines = map(json.loads, done.stdout.splitlines())
    return {line["name"]: line["error"] for line in lines}


@pytest.mark.parametrize("name", NAMES)
def test_on_eight_devices(name: str, errors: dict[str, str]) -> None:
    assert not errors[name], errors[name]


def test_every_check_is_a_test(errors: dict[str, str]) -> None:
    assert sorted(errors) == sorted(NAMES)
