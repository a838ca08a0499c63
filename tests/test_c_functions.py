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

from msops._base import processor

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
    source = folder / "kernel.cc"
    source.write_text(printed(prepared(parse_kernel(text))).text)
    command = ["g++", "-O3", *FLAGS, *GCC_FLAGS, "-S", "-fPIC", "-o", "-", str(source)]
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


CHOSEN = """kernel chosen(x: {dtype}[1000], a: {dtype}[1000], at: int32[1000]) -> (y) {{
  buffer y: {dtype}[1000]
  {kind} i in 1 .. 1000 {{
    y[i] = (x[i] > 1.0:{dtype}) ? ((x[i] < 2.0:{dtype}) ? {value} : a[i]) : x[i]
  }}
}}"""


@needs_vector_library
@pytest.mark.parametrize(
    ("value", "dtype", "found"),
    [
        ("(log(a[i]) * 3.0:float64)", "float64", {"log"}),
        ("pow(a[i], x[i])", "float64", {"pow"}),
        ("(1.0:float64 / (1.0:float64 + exp(a[i])))", "float64", {"exp"}),
        ("fmod(a[i], x[i])", "float64", set()),
        ("log(a[at[i]])", "float64", {"log"}),
        ("(sin(a[i]) + exp(a[i]))", "float32", {"sinf"}),
    ],
)
def test_functions_in_choices_are_those_of_the_vector_library(
    tmp_path: Path, value: str, dtype: str, found: set[str]
) -> None:
    text = CHOSEN.format(value=value, dtype=dtype, kind="parallel")
    assert in_vectors(called(tmp_path, text)) == found


BRANCH = """kernel branch(x: float64[1000], a: float64[1000]) -> (y, z) {{
  buffer y: float64[1000]
  buffer z: float64[1000]
  parallel i in 0 .. 1000 {{
    if (x[i] > 1.0:float64) {{
      local t: float64[] {{
        t[] = {value}
        y[i] = t[] * t[]
        z[i] = t[]
      }}
    }} else {{
      y[i] = a[i]
    }}
  }}
}}"""


@needs_vector_library
@pytest.mark.parametrize(
    ("value", "found"),
    [
        ("exp(a[i])", {"exp"}),
        ("sin(a[i]) * 2.0:float64", {"sin"}),
        ("atan2(a[i], x[i]) + tan(a[i])", {"atan2", "tan"}),
        ("log(a[i])", {"log"}),
        ("acosh(a[i])", {"acosh"}),
    ],
)
def test_functions_under_conditions_are_those_of_the_vector_library(
    tmp_path: Path, value: str, found: set[str]
) -> None:
    assert in_vectors(called(tmp_path, BRANCH.format(value=value))) == found


def test_lanes_that_do_not_use_a_function_compute_it_of_another_number(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The vector library computes NaN, infinities and numbers out of range lane by lane."""
    monkeypatch.setattr(processor, "vector_bytes", lambda: 64)

    def text(value: str, dtype: str = "float64", kind: str = "parallel") -> str:
        kernel = parse_kernel(CHOSEN.format(value=value, dtype=dtype, kind=kind))
        return printed(prepared(kernel)).text

    x, a = (f"*(const ms_memory_double_8*)&{name}[i]" for name in "xa")
    chosen = f"({x} > 1.0) & ({x} < 2.0)"
    safe = f"? {a} : ms_vector_double_8{{}} + 0.5)"
    assert f"ms_log_8(({chosen}) {safe}" in text("log(a[i])")
    later = f"ms_log_8(({chosen} & (~({a} < 3.0))) {safe}"
    assert later in text("((a[i] < 3.0:float64) ? a[i] : log(a[i]))")
    # They have instructions, our own code or no vectors.
    assert f"({x} < 2.0) ? ms_sqrt_f64_8({a}) : {a}" in text("sqrt(a[i])")
    assert "ms_log_f32_16(*(const ms_memory_float_16*)&a[i])" in text("log(a[i])", "float32")
    assert "? fmod(a[i], x[i]) : " in text("fmod(a[i], x[i])")
    serial = text("log(y[i - 1])", kind="serial")
    assert "? log(carried) : " in serial
    assert "no-tree-sink" not in serial
