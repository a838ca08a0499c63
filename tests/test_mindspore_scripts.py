"""Scripts that both libraries run: what MindSpore printed is what msops prints.

``scripts/*.out`` is the output of MindSpore 2.7.2; that of extension_* is 2.10.0's. With
MSOPS_TEST_MINDSPORE naming a Python that has it, the slow test runs MindSpore again, on kernels
built with our header.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from conftest import ROOT
from quick_cases import one_in

from msops import get_include

SCRIPTS = ROOT / "tests" / "scripts"
NAMES = sorted(path.stem for path in SCRIPTS.glob("*.py"))


def run(command: list[str], folder: Path, **environment: str) -> str:
    done = subprocess.run(
        command,
        cwd=folder,
        env={**os.environ, **environment},
        capture_output=True,
        text=True,
        timeout=240,
        check=False,
    )
    assert done.returncode == 0, done.stderr[-4000:]
    return done.stdout


@pytest.mark.parametrize("name", one_in(6, NAMES))
def test_script_prints_what_mindspore_printed(name: str) -> None:
    command = [sys.executable, "-m", "msops", "run", "--device", "CPU", f"{name}.py"]
    path = os.pathsep.join([str(ROOT), os.environ.get("PYTHONPATH", "")]).strip(os.pathsep)
    assert run(command, SCRIPTS, PYTHONPATH=path) == (SCRIPTS / f"{name}.out").read_text()


@pytest.mark.slow
@pytest.mark.parametrize("name", NAMES)
def test_recorded_output_is_mindspores(name: str, tmp_path: Path) -> None:
    python = os.environ.get("MSOPS_TEST_MINDSPORE")
    if not python:
        pytest.skip("MSOPS_TEST_MINDSPORE names no Python with MindSpore")
    for path in SCRIPTS.iterdir():
        if path.is_file():
            shutil.copy(path, tmp_path)
    printed = run(
        [python, f"{name}.py"],
        tmp_path,
        CPLUS_INCLUDE_PATH=get_include(),
        GLOG_v="3",
        PYTHONPATH="",
    )
    assert printed == (SCRIPTS / f"{name}.out").read_text()
