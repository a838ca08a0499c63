"""Sums whose length is data, in groups of lanes: by text, and by what their C computes."""

from __future__ import annotations

import re
import subprocess
import sys
import textwrap
from pathlib import Path

import numpy as np
import pytest
from loop_ir import (
    PASSES_TO_C,
    Kernel,
    interpret,
    kernel_text,
    parse_kernel,
    run_passes,
    sum_in_variables,
    sum_under_masks,
    version_loops_over_data,
)
from loop_native import build_together, call, printed
from test_c_arrangement import arranged_apart, body_of

from msops._base import processor

pytestmark = pytest.mark.usefixtures("masks")

# Rows of a sparse matrix, `first[i] .. first[i + 1]` of its elements.
ROWS = """kernel rows(first: {index}[7], value: {dtype}[{size}], at: {index}[{size}], x: {dtype}[9])
  -> (y) {{
  buffer y: {dtype}[6]
  parallel i in 0 .. 6 {{
    reduction k in {begin} .. {end} {{
      {update}
    }}
  }}
}}"""
PARTS = {
    "dtype": "float32", "index": "int32", "size": "40", "begin": "first[i]", "end": "first[i + 1]",
    "update": "y[i] = y[i] + (value[k] * x[at[k]])",
}  # fmt: skip


@pytest.fixture
def masks(monkeypatch: pytest.MonkeyPatch) -> None:
    """Makes this a processor that loads only some lanes of a vector."""
    monkeypatch.setattr(processor, "vector_bytes", lambda: 64)


def rows(**parts: str) -> Kernel:
    kernel = parse_kernel(ROWS.format(**{**PARTS, **parts}))
    return version_loops_over_data(sum_in_variables(kernel))


def test_a_group_fills_a_vector_or_masks_lanes() -> None:
    text = body_of(arranged_apart(sum_under_masks, rows()))
    lines = text.partition("reduction k_group in ")[2].partition("local part_1")[0].splitlines()
    assert textwrap.dedent("\n".join(lines[1:-1])).startswith(
        """\
  local factor_1: float32[8] {
    local factor: float32[8] {
      if (((int64(first[i]) + (int64(k_group) * 8:int64)) + 7:int64) < int64(first[i + 1])) {
        parallel lane in 0 .. 8 {
          factor[lane] = value[within({at} + int64(lane), 0, 39)]
          factor_1[lane] = x[at[within({at} + int64(lane), 0, 39)]]
        }
      } else {
        if (({at} + 7:int64) <= 39:int64) {
          parallel lane_1 in 0 .. 8 {
            factor[lane_1] = ({on}) ? value[{k}] : 0.0:float32
            factor_1[lane_1] = ({on}) ? x[at[{k}]] : 0.0:float32
          }
        } else {
          parallel lane_2 in 0 .. 8 {
            if (({at} + int64(lane_2)) < int64(first[i + 1])) {
              factor[lane_2] = value[within({at} + int64(lane_2), 0, 39)]
              factor_1[lane_2] = x[at[within({at} + int64(lane_2), 0, 39)]]
            } else {
              factor[lane_2] = 0.0:float32
              factor_1[lane_2] = 0.0:float32
            }
          }
        }
      }
      parallel lane_3 in 0 .. 8 {
        part[lane_3] = part[lane_3] + (factor[lane_3] * factor_1[lane_3])
      }
    }
  }
""".replace("{on}", "({at} + int64(lane_1)) < int64(first[i + 1])")
        .replace("{k}", "within({at} + int64(lane_1), 0, 39)")
        .replace("{at}", "(int64(first[i]) + (int64(k_group) * 8:int64))")
    )


def test_elements_that_go_backwards_end_at_the_first_one() -> None:
    text = body_of(arranged_apart(sum_under_masks, rows(update="y[i] = y[i] + value[39 - k]")))
    assert "+ 7:int64)) >= 0:int64) {" in text


def test_a_term_that_is_no_product_is_computed_for_all_lanes() -> None:
    kernel = rows(update="y[i] = y[i] - (value[k] + x[at[k]])")
    text = body_of(arranged_apart(sum_under_masks, kernel))
    assert "term[lane] = value[" in text
    assert "part[lane_3] = part[lane_3] - term[lane_3]" in text


def test_fewer_lanes_hold_twice_as_wide_elements() -> None:
    text = body_of(arranged_apart(sum_under_masks, rows(dtype="float64")))
    assert "local part_2: float64[2] {" in text


@pytest.mark.parametrize(
    "parts",
    [
        {"begin": "0", "end": "40"},
        {"begin": "0", "end": "20", "update": "y[i] = y[i] + value[first[i] + k]"},
        {"size": "15"},
        {"dtype": "int32"},
        {"update": "y[i] = max(y[i], value[k])"},
        {"update": "y[i] = y[i] + x[at[k]] y[i] = y[i] + value[k]"},
        {"update": "y[i] = y[i] + float32(k)"},
        {"update": "if ((at[k] < 3)) { y[i] = y[i] + value[k] }"},
    ],
    ids=[
        "known bounds", "known length", "few elements", "integers", "an extreme", "two updates",
        "bounds that may be far apart", "a condition",
    ],
)  # fmt: skip
def test_other_sums_stay(parts: dict[str, str]) -> None:
    kernel = rows(**parts)
    assert sum_under_masks(kernel) is kernel


@pytest.mark.parametrize(("element", "stays"), [("w[k, 1]", True), ("w[2, k]", False)])
def test_sums_of_columns_stay(element: str, stays: bool) -> None:
    kernel = parse_kernel(f"""kernel columns(first: int32[7], w: float32[40, 40]) -> (y) {{
      buffer y: float32[6]
      parallel i in 0 .. 6 {{
        reduction k in first[i] .. first[i + 1] {{ y[i] = y[i] + (w[3, k] * {element}) }}
      }}
    }}""")
    prepared = version_loops_over_data(sum_in_variables(kernel))
    assert (sum_under_masks(prepared) is prepared) == stays


def test_sums_of_what_the_rows_before_store_stay() -> None:
    text = ROWS.format(**PARTS).replace("parallel i", "serial i")
    solver = text.replace("x[at[k]]", "y[at[k]]").replace("y[i] = y[i] +", "y[i] = y[i] -")
    for kernel, stays in ((text, False), (solver, True)):
        prepared = version_loops_over_data(sum_in_variables(parse_kernel(kernel)))
        assert (sum_under_masks(prepared) is prepared) == stays


def test_sums_in_arrays_stay() -> None:
    kernel = version_loops_over_data(parse_kernel(ROWS.format(**PARTS)))
    assert sum_under_masks(kernel) is kernel


def test_all_lanes_are_off_where_the_difference_of_the_bounds_wraps() -> None:
    kernel = parse_kernel(
        """kernel one(first: int32[2], value: float32[40]) -> (y) {
  buffer y: float32[1]
  local sum: float32[] {
    reduction k in first[0] .. first[1] {
      sum[] = sum[] + value[k]
    }
    y[0] = sum[]
  }
}"""
    )
    after = sum_under_masks(version_loops_over_data(kernel))
    assert "k_group" in kernel_text(after)
    inputs = [np.array([2**31 - 1, 20 - 2**31], "int32"), np.ones(40, "float32")]
    np.testing.assert_array_equal(interpret(after, inputs, check_bounds=True)[0], 0)


def test_other_processors_would_branch(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(processor, "vector_bytes", lambda: 32)
    kernel = rows()
    assert sum_under_masks(kernel) is kernel


UPDATES = [
    "y[i] = y[i] + (value[k] * x[at[k]])",
    "y[i] = y[i] - (x[at[k]] * value[k])",
    "y[i] = y[i] + value[k]",
    "y[i] = y[i] + (value[k - 1] * (x[at[k]] - x[i]))",
    "y[i] = y[i] + (value[k] * x[0])",
    "y[i] = y[i] + (value[k] / x[at[k]])",
    "y[i] = y[i] - ((value[k] < x[at[k]]) ? value[k] : {dtype}(k))",
    "y[i] = y[i] + (value[39 - k] * exp2(x[at[39 - k]]))",
]
# Whole groups and less, none, rows that end before they begin, and what is not in the arrays.
FIRSTS = [
    [0, 8, 8, 11, 27, 36, 40],
    [1, 2, 18, 25, 24, 33, 39],
    [40, 0, 40, 3, 5, 4, 20],
    [-3, 8, 41, 0, 17, 400, 2],
    [2**31 - 1, -(2**31), 9 - 2**31, 8 - 2**31, 30 - 2**31, 7 - 2**31, -(2**31)],
]


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_c_adds_up_what_the_interpreter_does(tmp_path: Path, dtype: str) -> None:
    kernels = [
        parse_kernel(ROWS.format(**{**PARTS, **bounds, "dtype": dtype, "update": update}))
        for update in (update.format(dtype=dtype) for update in UPDATES)
        for bounds in ({}, {"begin": "2"}, {"end": "(first[i] + 19)"})
    ]
    arranged = [run_passes(kernel, PASSES_TO_C) for kernel in kernels]
    assert all("_group in 0 .. (((" in kernel_text(kernel) for kernel in arranged)
    sources = [printed(kernel, number) for number, kernel in enumerate(arranged)]
    library = build_together(tmp_path, sources)
    rng = np.random.default_rng(0)
    value, x = (rng.choice([-1, 1, 2, 4, np.inf], n).astype(dtype) for n in (40, 9))
    at = rng.integers(-2, 12, 40).astype("int32")
    for kernel, after, source in zip(kernels, arranged, sources, strict=True):
        for first in FIRSTS:
            inputs = [np.array(first, "int32"), value, at, x]
            (got,) = call(library, after, source, inputs)
            (want,) = interpret(kernel, inputs)
            np.testing.assert_array_equal(got, want, err_msg=kernel_text(kernel))


AT_THE_END = """
import ctypes, mmap
import jax, numpy as np
import msops

def capped(first, count, value, w):
    y = output_tensor((2,), "float32")
    for i in range(2):
        for k in range(min(count[i], 9)):
            y[i] += value[first[i] + k] * w[first[i] + k]
    return y

PAGE = mmap.PAGESIZE
memory = mmap.mmap(-1, 2 * PAGE)
value = np.frombuffer(memory, "float32")[: PAGE // 4]
value[:] = 1
start = ctypes.addressof(ctypes.c_char.from_buffer(memory))
assert ctypes.CDLL(None).mprotect(ctypes.c_void_p(start + PAGE), ctypes.c_size_t(PAGE), 0) == 0
op = msops.Custom(capped, func_type="akg", compile_attrs={"lower": "native"})
given = jax.device_put(value, may_alias=True)
print(given.unsafe_buffer_pointer() == start)
n = len(value)
print(op(np.int32([n - 9, 0, 0]), np.int32([9, 9]), given, np.ones(n, "float32")))
"""


def test_the_number_of_groups_is_hidden_from_gcc() -> None:
    kernel = run_passes(parse_kernel(ROWS.format(**PARTS)), PASSES_TO_C)
    text = printed(kernel, 0).text
    assert re.search(r'__asm__\(""\ : "\+r"\(ms_end_k_group\)\);', text)


def test_nothing_past_the_last_lane_is_read(tmp_path: Path) -> None:
    script = tmp_path / "script.py"
    script.write_text(AT_THE_END)
    run = subprocess.run([sys.executable, script], capture_output=True, text=True)
    assert (run.returncode, run.stdout) == (0, "True\n[9. 9.]\n"), run.stderr
