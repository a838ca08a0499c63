"""Clamped neighbours at distances that are data, as neighbours: by text, and what is computed."""

from __future__ import annotations

from pathlib import Path
from unittest import mock

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from loop_ir import Kernel, interpret, load_clamped_neighbours, parse_kernel
from loop_native import build_together, call, shipped
from random_examples import examples
from test_c_arrangement import arranged_apart
from test_c_carrying import lines_of

from msops._base import processor

pytestmark = pytest.mark.usefixtures("avx")

ROWS = """kernel rows(a: {dtype}[8, {size}], d: {whole}[3], e: {whole}[20], n: int8[8]) -> (y) {{
  buffer y: {dtype}[8, 20]
  parallel i in 0 .. 8 {{
    {kind} j in {begin} .. 20 {{
      {before}
      y[i, j] = a[{row}, {column}] {after}
    }}
  }}
}}"""
PARTS = {
    "dtype": "int32", "size": "20", "whole": "int32", "kind": "parallel", "begin": "0",
    "before": "", "row": "min(max(i + d[0], 0), 7)", "column": "min(max(j + d[1], 0), 19)",
    "after": "",
}  # fmt: skip


def rows(**parts: str) -> Kernel:
    return parse_kernel(ROWS.format(**{**PARTS, **parts}))


@pytest.mark.parametrize(
    ("column", "position"),
    [
        ("min(max(j + d[1], 0), 19)", "j + d[1]"),
        ("max(min((d[2] + j) - 3, 19), 0)", "(d[2] + j) - 3"),
        ("int64(min(max(j + d[i % 3], 0), 19))", "j + d[i % 3]"),
    ],
)
def test_a_neighbour_is_read_between_the_borders(column: str, position: str) -> None:
    lines = lines_of(arranged_apart(load_clamped_neighbours, rows(column=column)))
    row = PARTS["row"]
    for line in (
        f"first[] = a[{row}, 0]",
        f"last[] = a[{row}, 19]",
        f"at[] = {position}",
        "near[] = (at[] < 0) ? first[] : last[]",
        "if ((0 <= at[]) && (at[] < 20)) {",
        f"near[] = a[{row}, at[]]",
        "y[i, j] = near[]",
    ):
        assert line in lines


@pytest.mark.parametrize(
    "parts",
    [
        {"column": "min(max(j + 2, 0), 19)"},
        {"column": "min(max(j + e[j], 0), 19)"},
        {"column": "min(max((2 * j) + d[1], 0), 19)"},
        {"column": "min(max(j * d[1], 0), 19)"},
        {"column": "min(max(j + d[1], 0), 18)"},
        {"column": "uint8(min(max(j + d[1], 0), 999))", "size": "1000"},
        {"column": "min(max(j + d[1], 1), 19)"},
        {"column": "min(max(j + d[i], 0), 19)"},
        {"row": "i + d[0]"},
        {"row": "min(max(j + d[0], 0), 7)"},
        {"row": "min(max(d[i], 0), 7)"},
        {"before": "y[i, j] = 1", "column": "min(max(j + y[i, j], 0), 19)"},
        {"kind": "serial", "after": "+ y[i, 3]"},
        {"dtype": "int16"},
        {"before": "if (e[j] > 0) { y[i, j] = a[ROW, COLUMN] }"},
    ],
    ids=["a number", "data of each", "every second one", "a product", "before the last one",
         "one that may wrap",
         "after the first one", "a distance that may not exist", "a row that may not exist",
         "a row of each", "a row picked by what may not exist", "what changes", "in an order",
         "two bytes", "under a condition"],
)  # fmt: skip
def test_others_stay(parts: dict[str, str]) -> None:
    before = parts.get("before", "").replace("ROW", PARTS["row"]).replace("COLUMN", PARTS["column"])
    kernel = rows(**{**parts, "before": before})
    assert load_clamped_neighbours(kernel) is kernel


def test_arrays_that_the_loop_stores_stay() -> None:
    kernel = parse_kernel("""kernel own(a: int32[20], d: int32[3]) -> (a) {
      parallel j in 0 .. 20 { a[j] = a[min(max(j + d[0], 0), 19)] }
    }""")
    assert load_clamped_neighbours(kernel) is kernel


def test_processors_without_masks_gather_on() -> None:
    kernel = rows()
    with mock.patch.object(processor, "vector_bytes", return_value=16):
        assert load_clamped_neighbours(kernel) is kernel


COLUMNS = (
    PARTS["column"],
    "max(min((d[2] + j) - 3, 19), 0)",
    "int64(min(max(j + d[i % 3], 0), 19))",
)
distances = st.one_of(
    st.integers(-21, 21), st.sampled_from([2**31 - 1, -(2**31), 2**31 - 20, -(2**31) + 3])
)


def inputs_of(dtype: str, whole: str, distance: list[int]) -> list[np.ndarray]:
    a = np.arange(1, 161).reshape(8, 20).astype(dtype)
    e = np.arange(20).astype(whole)
    return [a, np.array(distance, whole), e, np.ones(8, np.int8)]


@given(
    distance=st.lists(distances, min_size=3, max_size=3),
    column=st.sampled_from(COLUMNS),
    begin=st.integers(0, 20).map(str),
)
@settings(max_examples=examples(40), deadline=None)
def test_the_elements_are_the_same(distance: list[int], column: str, begin: str) -> None:
    kernel = rows(column=column, begin=begin)
    after = load_clamped_neighbours(kernel)
    assert after is not kernel
    inputs = inputs_of("int32", "int32", distance)
    (want,) = interpret(kernel, inputs)
    (got,) = interpret(after, inputs, check_bounds=True)
    np.testing.assert_array_equal(got, want)


def test_c_reads_the_elements_that_the_interpreter_does(tmp_path: Path) -> None:
    limit, most = 2**31 - 1, 2**63 - 1
    tables = {
        "int32": [[0, 2, 5], [limit, -9, -limit - 1], [1, -7, limit - 20]],
        "int64": [[0, -3, 5], [most, -9, -most - 1], [1, most - 20, 2**32]],
        "uint64": [[0, 3, 5], [2**64 - 2, 2**63, 9], [1, 2**64 - 20, 2**32]],
        "uint32": [[0, 3, 5], [2**32 - 2, 2**31, 9]],
    }
    cases = [
        (
            rows(
                dtype=dtype,
                whole=whole,
                row=PARTS["row"].replace("i +", f"{whole}(i) +").replace("0,", f"0:{whole},"),
                column=f"min(max({whole}(j) + d[1], 0:{whole}), 19:{whole})",
            ),
            inputs,
        )
        for dtype in ("int32", "float64")
        for whole, lists in tables.items()
        for inputs in (inputs_of(dtype, whole, [*distance]) for distance in lists)
    ]
    sources = [shipped(kernel, number) for number, (kernel, _) in enumerate(cases)]
    library = build_together(tmp_path, [source for _, source in sources], ("-O3",))
    for (kernel, inputs), (after, source) in zip(cases, sources, strict=True):
        (got,) = call(library, after, source, inputs)
        np.testing.assert_array_equal(got, interpret(kernel, inputs)[0])
    assert "(j + (int64_t)d[1])" in sources[0][1].text
