"""Device memory for workspaces and temporaries, on an XLA that has little of it."""

from __future__ import annotations

import subprocess
from pathlib import Path

import jax
import pytest
from conftest import ROOT

NATIVE = ROOT / "xla_kernels" / "src"


@pytest.fixture(scope="module")
def program(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("device_memory") / "allocate"
    sources = (NATIVE / "device_memory.cc", NATIVE / "message.cc")
    command = ("g++", "-std=c++17", "-O0", "-Wall", "-Wextra", f"-I{NATIVE}")
    include = ("-isystem", jax.ffi.include_dir())
    main = ROOT / "tests" / "device_memory" / "allocate.cc"
    subprocess.run((*command, *include, main, *sources, "-o", path), check=True)
    return path


def allocate(program: Path, size_bytes: int, alignment: int) -> str:
    command = (program, str(size_bytes), str(alignment))
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout


@pytest.mark.parametrize("alignment", [16, 64, 256])
@pytest.mark.parametrize("size_bytes", [1, 256, 3000])
def test_memory_is_aligned_beyond_what_xla_promises(
    program: Path, size_bytes: int, alignment: int
) -> None:
    assert allocate(program, size_bytes, alignment) == "0 1\nfreed 1\n"


@pytest.mark.parametrize("size_bytes", [4097, 2**64 - 1])
def test_too_little_memory_is_an_error_that_says_how_much(program: Path, size_bytes: int) -> None:
    assert allocate(program, size_bytes, 64) == (
        f"Custom 'f': no device memory for workspaces of {size_bytes} bytes.\n"
        "Ask for less, or leave XLA more memory to allocate from.\n"
    )
