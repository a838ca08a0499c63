"""Ten minutes of use leave a process as they found it: memory, open files, threads.

SOAK_SECONDS sets another length, for a short check: ``SOAK_SECONDS=60 pytest tests/test_soak.py``.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

SECONDS = float(os.environ.get("SOAK_SECONDS", "600"))
# What an allocator does not give back, and JAX's own tables.
SLACK_BYTES = 48 << 20


@pytest.mark.slow
def test_a_process_holds_no_more_at_the_end(tmp_path: Path) -> None:
    done = subprocess.run(
        [sys.executable, str(Path(__file__).with_name("soak.py")), str(SECONDS), str(tmp_path)],
        env={
            **os.environ,
            "PYTHONPATH": os.pathsep.join(filter(None, sys.path)),
            "MSOPS_CACHE_DIR": str(tmp_path / "cache"),
        },
        capture_output=True,
        text=True,
        timeout=2 * SECONDS + 300,
        check=False,
    )
    assert done.returncode == 0, done.stderr[-4000:]
    report = json.loads(done.stdout.splitlines()[-1])
    early, late = report["early"], report["late"]
    assert late["memory_bytes"] <= early["memory_bytes"] + SLACK_BYTES, report
    assert late["files"] <= early["files"], report
    assert late["threads"] <= early["threads"], report
