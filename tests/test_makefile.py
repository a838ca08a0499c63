"""What makes the tasks of the Makefile install again."""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path

import pytest
from conftest import ROOT

STAMPS = {".venv": ".venv/stamps/package", ".venv-latest": ".venv-latest/stamp"}


@pytest.fixture
def checkout(tmp_path: Path) -> Path:
    """A checkout whose Pythons only note that they run."""
    for folder in ("msops", "xla_kernels", ".venv/stamps"):
        (tmp_path / folder).mkdir(parents=True)
    for name in ("Makefile", "pyproject.toml", "CMakeLists.txt"):
        shutil.copyfile(ROOT / name, tmp_path / name)
    for name in ("msops/__init__.py", "xla_kernels/module.cc"):
        (tmp_path / name).touch()
    for name in (".venv/stamps/venv", ".venv-latest/bin/python", ".venv/bin/python"):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text('#!/bin/sh\necho "$@" >> ran\n')
        (tmp_path / name).chmod(0o755)
    (tmp_path / ".venv-latest/venv").touch()
    return tmp_path


def installs(checkout: Path, environment: str) -> bool:
    """Returns whether the task installs the package, after which no file is newer than another."""
    ran = checkout / "ran"
    ran.unlink(missing_ok=True)
    subprocess.run(["make", "-s", STAMPS[environment]], cwd=checkout, check=True)
    for path in checkout.rglob("*"):
        os.utime(path, (1e9, 1e9))
    return ran.exists() and "--editable ." in ran.read_text()


@pytest.mark.skipif(not shutil.which("make"), reason="needs make")
@pytest.mark.parametrize("environment", STAMPS)
def test_an_environment_follows_the_checkout(checkout: Path, environment: str) -> None:
    assert installs(checkout, environment)
    assert not installs(checkout, environment)
    for changed in ("pyproject.toml", "xla_kernels/module.cc", "CMakeLists.txt", "msops/_new.py"):
        (checkout / changed).touch()
        assert installs(checkout, environment), changed
        assert not installs(checkout, environment), changed
