"""Elements at one of two distances: by text, and what is computed."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from loop_ir import (
    Kernel,
    choose_elements,
    interpret,
    parse_kernel,
)
from loop_native import build_together, call, shipped
from random_examples import examples
from test_c_arrangement import arranged
from test_c_carrying import lines_of

CHOSEN = """kernel chosen(u: float32[9, 40], v: float32[9, 40], d: int32[9]) -> (y) {{
  buffer y: float32[9, 40]
  parallel i in 1 .. 8 {{
    {kind} j in 1 .. 39 {{
      local s: int32[] {{
        {first}
        {then}
        y[i, j] = u[{row}, {column}] {more}
      }}
    }}
  }}
}}"""
CHOICE = "s[] = (v[i, j] > 0.0:float32) ? -1 : 1"
CHOSEN_PARTS = {
    "kind": "parallel", "first": CHOICE, "then": "", "row": "i", "column": "j + s[]", "more": "",
}  # fmt: skip


def chosen(**parts: str) -> Kernel:
    return parse_kernel(CHOSEN.format(**{**CHOSEN_PARTS, **parts}))


TEST = "v[i, j] > 0.0:float32"
UNDER = f"if ({TEST}) {{{{ s[] = {{}} }}}}"


@pytest.mark.parametrize(
    ("parts", "element"),
    [
        ({}, "(s[] == -1) ? u[i, j - 1] : u[i, j + 1]"),
        (
            {"first": "s[] = 1", "then": UNDER.format(-1)},
            "(s[] == 1) ? u[i, j + 1] : u[i, j - 1]",
        ),
        ({"first": UNDER.format(1)}, "(s[] == 0) ? u[i, j] : u[i, j + 1]"),
        (
            {"first": f"s[] = ({TEST}) ? (j - 1) : j", "column": "s[] + 1"},
            "(s[] == (j - 1)) ? u[i, j] : u[i, j + 1]",
        ),
        (
            {"first": "", "column": f"({TEST}) ? (j - 1) : (j + 1)"},
            f"({TEST}) ? u[i, j - 1] : u[i, j + 1]",
        ),
        (
            {"row": "i + s[]"},
            "(s[] == -1) ? u[i - 1, j - 1] : u[i + 1, j + 1]",
        ),
    ],
    ids=["a choice", "set again", "zero at first", "columns", "no variable", "two axes"],
)  # fmt: skip
def test_both_elements_are_read(parts: dict[str, str], element: str) -> None:
    lines = lines_of(arranged(choose_elements, chosen(**parts)))
    assert any(f"y[i, j] = {element}" in line for line in lines), lines


def test_two_variables_choose_among_four_elements() -> None:
    column = f"j + (({TEST}) ? -1 : 1)"
    lines = lines_of(arranged(choose_elements, chosen(row="i + s[]", column=column)))
    (line,) = (line for line in lines if line.startswith("y[i, j]"))
    assert all(f"u[i {a} 1, j {b} 1]" in line for a in "+-" for b in "+-")


@pytest.mark.parametrize(
    "parts",
    [
        {"kind": "serial"},
        {"then": "if (v[i, j] > 9.0:float32) { s[] = 0 }"},
        {"then": "s[] = d[i]"},
        {"then": "s[] = s[] + 1"},
        {"first": "s[] = (v[i, j] > 0.0:float32) ? -2 : 1"},
        {"more": "+ v[i, d[s[] + 3]]"},
        {"first": "s[] = (d[s[] + 2] > 0) ? -1 : 1"},
        {"first": f"s[] = ({TEST}) ? (d[i] % 2) : 1"},
    ],
    ids=["in order", "three", "data", "a sum", "outside", "a pick", "zero is read", "or data"],
)
def test_elements_that_are_picked(parts: dict[str, str]) -> None:
    kernel = chosen(**parts)
    assert choose_elements(kernel) is kernel


@given(
    seed=st.integers(0, 2**32 - 1),
    parts=st.fixed_dictionaries(
        {
            "first": st.sampled_from(
                [CHOICE, "s[] = 1", UNDER.format(1), f"s[] = ({TEST}) ? 0 : 1", ""]
            ),
            "then": st.sampled_from(["", UNDER.format(-1), UNDER.format(0)]),
            "row": st.sampled_from(["i", "i + s[]", "i - s[]"]),
            "column": st.sampled_from(["j + s[]", f"j + (({TEST}) ? s[] : 1)", "j - s[]"]),
        }
    ),
)
@settings(max_examples=examples(40), deadline=None)
def test_choices_are_the_elements_that_were_picked(seed: int, parts: dict[str, str]) -> None:
    rng = np.random.default_rng(seed)
    inputs = [rng.standard_normal((9, 40)).astype("float32") for _ in "uv"]
    inputs.append(np.zeros(9, np.int32))
    kernel = chosen(**parts)
    (want,), (got,) = (interpret(k, inputs) for k in (kernel, choose_elements(kernel)))
    np.testing.assert_array_equal(got, want)


def test_c_chooses_the_elements_that_the_interpreter_does(tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    inputs = [rng.standard_normal((9, 40)).astype("float32") for _ in "uv"]
    inputs.append(np.zeros(9, np.int32))
    kernels = [chosen(), chosen(row="i + s[]"), chosen(first=UNDER.format(1))]
    sources = [shipped(kernel, number) for number, kernel in enumerate(kernels)]
    library = build_together(tmp_path, [source for _, source in sources], ("-O3",))
    for kernel, (arranged_kernel, source) in zip(kernels, sources, strict=True):
        (got,) = call(library, arranged_kernel, source, inputs)
        np.testing.assert_array_equal(got, interpret(kernel, inputs)[0])
