"""Loops that step over the iterations that do nothing: by text, and by what they compute."""

from __future__ import annotations

import textwrap
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from loop_ir import Kernel, interpret, parse_kernel, step_over_iterations
from loop_native import build_together, call, shipped
from test_c_arrangement import arranged_apart, body_of

CHECKERED = """kernel checkered(a: float64[{rows}, {n}], r: float64[{rows}, {n}]) -> (a) {{
  serial c in {colours} {{
    parallel i in 0 .. {rows} {{
      parallel j in {begin} .. {end} {{
        if (({position} % {step}) == {rest}) {{ {body} }}
      }}
    }}
  }}
}}"""
STENCIL = "a[i, j] = (a[i, j - 1] + a[i, j + 1]) * r[i, j]"
GUARDED = "if (a[i, j] < r[i, j]) { a[i, j] = a[i, j - 1] + a[i, j + 1] }"
PARTS = {
    "rows": 5, "n": 12, "colours": "0 .. 2", "begin": 1, "end": 11, "position": "(i + j)",
    "step": 2, "rest": "c", "body": STENCIL,
}  # fmt: skip


def checkered(**parts: Any) -> Kernel:
    return parse_kernel(CHECKERED.format(**{**PARTS, **parts}))


def text_of(kernel: Kernel) -> str:
    return body_of(arranged_apart(step_over_iterations, kernel))


def test_only_the_iterations_run_that_do_something() -> None:
    first = "(((c - i) + 1) % 2) + (j * 2)"
    assert text_of(checkered()).replace(first, "first") == textwrap.dedent("""\
        serial c in 0 .. 2 {
          parallel i in 0 .. 5 {
            parallel j in 0 .. 5 {
              a[i, (first) + 1] = (a[i, first] + a[i, (first) + 2]) * r[i, (first) + 1]
            }
          }
        }""")


@pytest.mark.parametrize("n", [4, 5, 6, 12, 13])
@pytest.mark.parametrize("step", [2, 3, 5])
@pytest.mark.parametrize("position", ["(i + j)", "(j - i)", "((2 * i) + j)", "(j + 7)"])
def test_the_last_iteration_may_be_any(n: int, step: int, position: str) -> None:
    kernel = checkered(n=n, end=n - 1, step=step, colours=f"0 .. {step}", position=position)
    assert "if (" not in text_of(kernel)


def test_a_store_under_a_condition_that_reads_the_element_is_always_made() -> None:
    text = text_of(checkered(body=GUARDED))
    assert "if (" not in text
    assert " ? " in text


def test_it_stays_under_a_condition_if_that_reads_another_element() -> None:
    # The element may be one that another iteration writes.
    assert "if (" in text_of(checkered(body=GUARDED.replace("a[i, j] <", "a[i, j - 1] <")))


def test_it_stays_under_a_condition_that_tells_whether_the_element_exists() -> None:
    guarded = GUARDED.replace("if (a[i, j] < r[i, j])", "if ((i < 4) && (a[i, j] < r[i, j]))")
    assert "if (" in text_of(checkered(body=guarded))
    chosen = GUARDED.replace(
        "if (a[i, j] < r[i, j])", "if (((i < 4) ? a[i, j] : r[i, j]) < 2.0:float64)"
    )
    assert "if (" in text_of(checkered(body=chosen))


@pytest.mark.parametrize(
    "parts",
    [
        {"body": STENCIL.replace("j - 1", "j + 1")},
        {"body": STENCIL.replace("a[i, j - 1]", "r[i, j - 1]")},
        {"position": "(i + (2 * j))", "colours": "0 .. 1"},
        {"position": "(i - j)"},
        {"rest": "(c + 1)"},
        {"rest": "int32(r[i, 0])", "colours": "0 .. 1"},
        {"rest": "(j // 11)"},
        {"position": "int64(i + j)", "step": "2:int64", "rest": "int64(c)"},
        {"end": "int32(r[i, 0])"},
    ],
    ids=[
        "later elements",
        "another array",
        "twice as far",
        "backwards",
        "no remainder",
        "data",
        "another in each iteration",
        "in 64 bits",
        "data as bounds",
    ],
)
def test_others_stay(parts: dict[str, Any]) -> None:
    kernel = checkered(**parts)
    assert step_over_iterations(kernel) is kernel


def test_stores_stay_under_conditions_where_an_author_claims_that_loops_are_parallel() -> None:
    text = CHECKERED.replace(
        "parallel j in {begin} .. {end}", "parallel j in {begin} .. {end} @parallel"
    )
    kernel = parse_kernel(text.format(**{**PARTS, "body": GUARDED}))
    assert "if (a[" in text_of(kernel)


def test_c_computes_the_same(tmp_path: Path) -> None:
    kernels = [
        checkered(body=body, step=step, colours=f"0 .. {step}", rows=9, n=n, end=n - 1)
        for body in (STENCIL, GUARDED)
        for step, n in ((2, 40), (2, 41), (3, 50))
    ]
    made = [shipped(kernel, number) for number, kernel in enumerate(kernels)]
    library = build_together(tmp_path, [source for _, source in made])
    rng = np.random.default_rng(0)
    for kernel, (ready, source) in zip(kernels, made, strict=True):
        assert any("% " in line or "& 1" in line for line in source.text.splitlines())
        inputs = [rng.uniform(size=buffer.shape) for buffer in kernel.parameters]
        for got, want in zip(
            call(library, ready, source, inputs), interpret(kernel, inputs), strict=True
        ):
            np.testing.assert_array_equal(got, want)
