"""Indices of parameters, checked ahead: by text, and by what the loops and their C compute."""

from __future__ import annotations

import random
import re
import textwrap
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from loop_ir import (
    PASSES_TO_C,
    Kernel,
    check_indices_ahead,
    interpret,
    kernel_text,
    parse_kernel,
    run_passes,
    verify,
)
from loop_native import build_together, call, printed
from random_examples import examples
from test_c_arrangement import body_of

PICKED = """kernel picked(at: {dtype}[400], to: int32[400], x: float32[400]) -> (y, z) {{
  buffer y: float32[7, 8]
  buffer z: float32[9]
  {kind} i in 0 .. {trips} {{
    {statement}
  }}
}}"""
ADD = "z[at[i]] = z[at[i]] + x[i]"


def picked(
    statement: str = ADD, kind: str = "reduction", dtype: str = "int32", trips: int = 400
) -> Kernel:
    text = PICKED.format(statement=statement, kind=kind, dtype=dtype, trips=trips)
    return parse_kernel(text)


def test_a_loop_whose_indices_are_checked_has_no_guards() -> None:
    assert body_of(check_indices_ahead(picked())) == textwrap.dedent("""\
        buffer y: float32[7, 8]
        buffer z: float32[9]
        local wrong: int32[] {
          reduction e in 0 .. 400 {
            wrong[] = wrong[] + (((at[e] < 0) || (at[e] > 8)) ? 1 : 0)
          }
          if (wrong[] == 0) @usual {
            reduction i in 0 .. 400 {
              z[within(at[i], 0, 8)] = z[within(at[i], 0, 8)] + x[i]
            }
          } else {
            reduction i_1 in 0 .. 400 {
              z[at[i_1]] = z[at[i_1]] + x[i_1]
            }
          }
        }""")


def test_arrays_with_axes_are_checked_in_one_loop() -> None:
    text = kernel_text(
        check_indices_ahead(
            parse_kernel("""
        kernel counts(at: int32[90, 3, 4], x: float32[90]) -> (z) {
          buffer z: float32[3, 4, 9]
          serial i in 0 .. 90 {
            serial j in 0 .. 3 {
              parallel k in 0 .. 4 { z[j, k, at[i, j, k]] = z[j, k, at[i, j, k]] + x[i] }
            }
          }
        }""")
        )
    )
    assert "reduction e in 0 .. 1080 {" in text
    assert "at[e // 12, (e // 4) % 3, e % 4] > 8" in text
    # Without guards, compilers would make vectors of stores to elements apart.
    assert text.count("serial k in 0 .. 4") == 1
    assert text.count("parallel k_1 in 0 .. 4") == 1


def test_only_the_inner_loop_is_in_order() -> None:
    text = kernel_text(
        check_indices_ahead(
            parse_kernel("""
        kernel counts(at: int32[90, 9]) -> (z) {
          buffer z: int32[90, 9, 5]
          parallel i in 0 .. 90 {
            parallel j in 0 .. 9 {
              local k: int32[] { k[] = at[i, j]  z[i, j, k[]] = z[i, j, k[]] + 1 }
            }
          }
        }""")
        )
    )
    fast, slow = text.split("} else {")
    assert "parallel i in" in fast
    assert "serial j in" in fast
    assert "parallel j_1 in" in slow


def test_the_outermost_loop_stays_parallel_for_threads() -> None:
    text = kernel_text(
        check_indices_ahead(
            parse_kernel("""kernel marks(at: int32[90]) -> (z) {
      buffer z: int32[90, 5]
      parallel i in 0 .. 90 { z[i, at[i]] = 1 }
    }""")
        )
    )
    assert text.count("parallel i") == 2


def test_loops_that_pick_whole_rows_stay_parallel() -> None:
    text = kernel_text(
        check_indices_ahead(
            parse_kernel("""
        kernel rows(at: int32[90], x: float32[90, 40]) -> (z) {
          buffer z: float32[9, 40]
          serial i in 0 .. 90 {
            parallel k in 0 .. 40 { z[at[i], k] = z[at[i], k] + x[i, k] }
          }
        }""")
        )
    )
    assert "z[within(at[i], 0, 8), k]" in text
    assert text.count("parallel k") == 2


# What stores add, and what the check asks of `at`.
CHECKED = {
    "z[at[i] + 2] = z[at[i] + 2] + x[i]": "((at[e] < -2) || (at[e] > 6))",
    "z[at[i] - 2] = x[i]": "((at[e] < 2) || (at[e] > 10))",
    "z[at[i]] = x[i] y[at[i], 3] = x[i]": "((at[e] < 0) || (at[e] > 6))",
    "y[at[i], to[i]] = y[at[i], to[i]] + x[i]": "((at[e] < 0) || (at[e] > 6))",
    "y[at[i], at[399 - i]] = x[i]": "((at[e] < 0) || (at[e] > 6))",
    "z[at[i]] = x[to[i]]": "((to[e_1] < 0) || (to[e_1] > 399))",
    "local k: int32[] { k[] = at[i] z[k[]] = z[k[]] + x[i] }": "((at[e] < 0) || (at[e] > 8))",
    "local k: int32[] { if (x[i] > x[0]) { k[] = at[i] } z[k[]] = x[i] }": "(at[e] > 8))",
    "local k: int32[] { k[] = at[i]  z[k[] + 1] = x[i] }": "((at[e] < -1) || (at[e] > 7))",
    "if (x[i] > x[0]) { z[at[i]] = x[i] }": "((at[e] < 0) || (at[e] > 8))",
    "z[int64(at[i])] = x[i]": "((at[e] < 0) || (at[e] > 8))",
}


@pytest.mark.parametrize("statement", CHECKED)
def test_checks_ask_what_all_accesses_need(statement: str) -> None:
    text = kernel_text(check_indices_ahead(picked(statement, "serial")))
    assert CHECKED[statement] in text
    fast = text[text.index("if (wrong") : text.index("} else")]
    assert not re.findall(r"\b[xyz]\[(?:int64\()?(?:at|to|k)\[", fast)
    assert not re.findall(r", to\[", fast)


def test_an_array_of_bytes_is_checked_for_what_it_may_hold() -> None:
    text = kernel_text(check_indices_ahead(picked(dtype="uint8")))
    assert "wrong[] = wrong[] + ((at[e] > 8:uint8) ? 1 : 0)" in text
    text = kernel_text(check_indices_ahead(picked("z[int32(at[i]) + 2] = x[i]", dtype="uint8")))
    assert "wrong[] = wrong[] + ((at[e] > 6:uint8) ? 1 : 0)" in text


def test_variables_hold_what_is_checked() -> None:
    statement = "local k: int32[] { k[] = at[i]  z[k[]] = x[i]  y[0, 0] = z[max(k[], 3)] }"
    text = kernel_text(check_indices_ahead(picked(statement, "serial")))
    version, _, guarded = text.partition("} else {")
    assert "k[] = within(at[i], 0, 8)" in version
    assert "k_1[] = at[i_1]" in guarded
    beside = "local k: int32[] { k[] = at[i] + 1  z[at[i] + 1] = x[i]  y[0, 0] = z[max(k[], 3)] }"
    text = kernel_text(check_indices_ahead(picked(beside, "serial")))
    assert "k[] = within(at[i] + 1, 0, 8)" in text


@pytest.mark.parametrize(
    "kernel",
    [
        picked("z[i % 9] = z[at[i]]"),
        picked("z[at[i] * 2] = x[i]"),
        picked("z[int8(at[i])] = x[i]"),
        picked("z[at[i]] = x[i]  at[i] = 3", "serial"),
        picked("z[int32(x[i])] = x[i]", "serial"),
        picked("local k: int32[] { k[] = to[i] * 2  z[k[]] = x[i]  k[] = at[i] }", "serial"),
        picked("local k: int32[] { k[] = at[i]  z[k[] - 1] = x[i] }", "serial"),
        picked("local k: int32[] { k[] = at[i] + 1  z[k[]] = x[i] }", "serial"),
        picked("local k: int32[] { k[] = k[] + 1  z[k[]] = x[i] }", "serial"),
        picked(trips=20),
        picked("z[int32(at[i]) - 300] = x[i]", dtype="uint8"),
        parse_kernel("""kernel around(at: int32[400], x: float32[400]) -> (z) {
          buffer z: float32[9]
          serial t in 0 .. 9 { serial i in 0 .. 400 { z[at[i]] = x[i] } at[0] = 3 }
        }"""),
        parse_kernel("""kernel bytes(at: uint8[400], x: float32[400]) -> (z) {
          buffer z: float32[256]
          serial i in 0 .. 400 { z[at[i]] = x[i] }
        }"""),
        parse_kernel("""kernel long(at: int32[2000000], x: float32[9]) -> (z) {
          buffer z: float32[9]
          serial i in 0 .. 2000000 { z[at[i]] = x[at[i]] }
        }"""),
    ],
    ids=["loads", "product", "wraps", "changes", "of a float", "stored twice", "zero at first",
         "one at first", "a counter", "few", "never", "changes around", "any byte",
         "beyond caches"],
)  # fmt: skip
def test_loops_that_keep_their_guards(kernel: Kernel) -> None:
    assert check_indices_ahead(kernel) is kernel


@settings(max_examples=examples(100), deadline=None)
@given(
    st.sampled_from([ADD, *CHECKED]),
    st.sampled_from([(0, 6), (-2, 6), (2, 10), (0, 8), (-3, 12), (-(2**31), 2**31 - 1)]),
    st.randoms(use_true_random=False),
)
def test_both_versions_mean_the_loop(
    statement: str, interval: tuple[int, int], draw: random.Random
) -> None:
    kernel = picked(statement, "serial")
    after = check_indices_ahead(kernel)
    verify(after)
    at, to = (
        np.array([draw.randint(*bounds) for _ in range(400)], "int32")
        for bounds in (interval, draw.choice([(0, 7), (0, 400), (-5, 5)]))
    )
    inputs = [at, to, np.array([draw.randint(-9, 9) for _ in range(400)], "float32")]
    for got, want in zip(interpret(after, inputs), interpret(kernel, inputs), strict=True):
        np.testing.assert_array_equal(got, want)


def test_c_of_checked_loops_computes_what_the_interpreter_does(tmp_path: Path) -> None:
    kernels = [picked(statement, "serial") for statement in (ADD, *CHECKED)]
    arranged = [run_passes(kernel, PASSES_TO_C) for kernel in kernels]
    sources = [printed(kernel, number) for number, kernel in enumerate(arranged)]
    assert all("wrong == 0" in source.text for source in sources)
    library = build_together(tmp_path, sources)
    rng = np.random.default_rng(1)
    for low, high in ((0, 6), (2, 6), (-2, 6), (-9, 12), (-(2**31), 2**31 - 1)):
        for kernel, after, source in zip(kernels, arranged, sources, strict=True):
            at, to = (rng.integers(low, high, 400, dtype="int32") for _ in range(2))
            inputs = [at, to, rng.integers(-9, 9, 400).astype("float32")]
            for got, want in zip(
                call(library, after, source, inputs), interpret(kernel, inputs), strict=True
            ):
                np.testing.assert_array_equal(got, want, err_msg=kernel_text(kernel))
