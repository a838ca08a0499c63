"""Mathematical functions in generated C, in the vector library where a loop runs in vectors."""

from __future__ import annotations

import ctypes.util
import platform
import re
import subprocess
from pathlib import Path

import pytest
from loop_ir import FLAGS, GCC_FLAGS, parse_kernel
from loop_native import prepared, printed

needs_vector_library = pytest.mark.skipif(
    platform.machine() != "x86_64" or not ctypes.util.find_library("mvec"),
    reason="there is no vector library",
)

ROTATION = """kernel rotation(x: float64[1000], a: float64[1000]) -> (y) {{
  buffer y: float64[1000]
  {kind} i in 1 .. 1000 {{
    y[i] = (x[i] * cos({angle})) - sin({angle})
  }}
}}"""


def called(folder: Path, text: str) -> set[str]:
    """Returns the functions that the code of a kernel calls, as gcc makes it."""
    source = folder / "kernel.c"
    source.write_text(printed(prepared(parse_kernel(text))).text)
    command = ["gcc", "-O3", *FLAGS, *GCC_FLAGS, "-S", "-fPIC", "-o", "-", str(source)]
    assembly = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    return set(re.findall(r"(?:call|jmp)\s+(\w+)", assembly))


def in_vectors(found: set[str]) -> set[str]:
    """Returns the functions of the vector library among those that code calls."""
    return {re.sub(r"^_ZGV\w+_", "", name) for name in found if name.startswith("_ZGV")}


@needs_vector_library
def test_the_sine_and_the_cosine_of_a_value_are_those_of_the_vector_library(tmp_path):
    found = called(tmp_path, ROTATION.format(kind="parallel", angle="a[i]"))
    assert "sincos" not in found
    assert in_vectors(found) == {"sin", "cos"}


def test_outside_vectors_they_are_computed_together(tmp_path):
    found = called(tmp_path, ROTATION.format(kind="serial", angle="y[i - 1]"))
    assert "sincos" in found
