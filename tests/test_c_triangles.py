"""Rows that read all rows before them, in blocks: by text, and by what they compute."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from unittest import mock

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from loop_ir import Kernel, block_triangles, c_triangles, interpret, parse_kernel
from loop_native import build_together, call, shipped
from random_examples import examples
from test_c_arrangement import arranged_apart
from test_c_carrying import lines_of

# Cholesky's factorisation, and what makes it another loop.
FACTOR = """kernel factor(a: float64[{n}, {n}], t: int32[{n}]) -> (a, s) {{
  buffer s: float64[{n}]
  buffer last: float64[]
  serial i in {first} .. {last} {{
    {kind} j in {begin} .. {end} {{
      reduction k in 0 .. {length} {{ a[{own}, j] = a[i, j] - (a[i, k] * a[{read}, k]) }}
      a[i, j] = a[i, j] / {by}
    }}
    {after}
  }}
}}"""
PARTS = {
    "n": 18, "first": "0", "kind": "serial", "begin": "0", "end": "i", "length": "j", "own": "i",
    "read": "j", "by": "a[j, j]", "after": "s[i] = a[i, i] - s[i]",
}  # fmt: skip


def factor(**parts: object) -> Kernel:
    parts = {**PARTS, **parts}
    return parse_kernel(FACTOR.format(**{"last": parts["n"], **parts}))


@pytest.fixture
def small_blocks() -> Iterator[None]:
    with mock.patch.multiple(c_triangles, _ROWS=4, FIRST_CACHE_BYTES=0):
        yield


@pytest.mark.usefixtures("small_blocks")
def test_rows_of_a_block_read_the_rows_before_it_together() -> None:
    lines = lines_of(arranged_apart(block_triangles, factor()))
    assert [line for line in lines if line.startswith(("serial", "parallel"))] == [
        "serial i_block in 0 .. 5 {",
        "serial j in 0 .. (i_block * 4) {",
        "parallel i in (i_block * 4) .. min((i_block * 4) + 4, 18) {",
        "serial i_1 in (i_block * 4) .. min((i_block * 4) + 4, 18) {",
        "serial j_1 in (i_block * 4) .. i_1 {",
    ]


@pytest.mark.usefixtures("small_blocks")
@pytest.mark.parametrize(
    "parts",
    [
        {"read": "min(j + 1, 17)"},
        {"after": "s[0] = s[0] + a[i, i]"},
        {"after": "s[17 - i] = a[i, i]"},
        {"after": "last[] = a[i, i] + last[]"},
        {"after": "s[i] = a[min(max(t[i], 0), 17), i]"},
    ],
    ids=["the first row of the block", "a sum over rows", "an element backwards", "a variable",
         "any row of a column of the block"],
)  # fmt: skip
def test_rows_may_do_all_that_the_columns_before_their_block_do_not_touch(
    parts: dict[str, object],
) -> None:
    kernel = factor(**parts)
    after = arranged_apart(block_triangles, kernel)
    assert after is not kernel
    rng = np.random.default_rng(0)
    inputs = [rng.uniform(1, 2, (18, 18)), rng.integers(0, 18, 18).astype(np.int32)]
    for got, expected in zip(interpret(after, inputs), interpret(kernel, inputs), strict=True):
        np.testing.assert_array_equal(got, expected)


def test_what_the_first_cache_holds_stays() -> None:
    small, large = factor(n=60), factor(n=100)
    assert block_triangles(small) is small
    assert block_triangles(large) is not large


@pytest.mark.usefixtures("small_blocks")
@pytest.mark.parametrize(
    "parts",
    [
        {"n": 15},
        {"read": "i"},
        {"read": "(17 - j)"},
        {"read": "t[j]"},
        {"own": "j"},
        {"own": "(17 - i)"},
        {"begin": "min(i, 3)"},
        {"end": "(18 - i)"},
        {"end": "(18 - i)", "first": "1", "read": "0", "by": "2.0:float64"},
        {"end": "min(t[3], i)"},
        {"end": "(i + 1)"},
        {"kind": "parallel"},
        {"after": "s[i] = a[min(i + 1, 17), 0]"},
        {"after": "s[i] = a[t[i], 0]"},
    ],
    ids=["few rows", "no row before", "from the last", "rows that data choose",
         "writes a row before", "writes backwards", "begins later", "ends earlier",
         "ends earlier, and reads the first row", "ends at data", "itself", "no order",
         "the next row at the end", "any row at the end"],
)  # fmt: skip
def test_others_stay(parts: dict[str, object]) -> None:
    kernel = factor(**parts)
    assert block_triangles(kernel) is kernel


@settings(max_examples=examples(60), deadline=None)
@given(
    first=st.sampled_from(["0", "1", "3"]),
    begin=st.sampled_from(["0", "1"]),
    end=st.sampled_from(
        ["i", "(i - 1)", "(i - 3)", "(i // 2)", "((i // 4) * 4)", "min(i, 9)", "(i + 1)"]
    ),
    length=st.sampled_from(["j", "i", "(j + 1)", "18"]),
    read=st.sampled_from(["j", "(j - 1)", "(j // 2)", "max(j - 3, 0)", "(j + 1)", "3"]),
    after=st.sampled_from(
        [
            "s[i] = a[i, i] - s[i]",
            "s[i] = a[i // 2, 3]",
            "a[i, i] = a[i, 0]",
            "s[i] = a[min(max(t[i], 0), 17), i]",
            "a[i, i // 2] = a[i, i]",
            "s[i] = a[min(i + 1, 17), 3]",
            "a[17 - i, 2] = s[17 - i]",
        ]
    ),
    turned=st.booleans(),
)
def test_blocks_mean_the_same(turned: bool, **parts: str) -> None:
    text = FACTOR
    if turned:
        for row, column in (("own", "j"), ("i", "j"), ("i", "k"), ("read", "k")):
            at = f"{{{row}}}" if row in PARTS else row
            text = text.replace(f"a[{at}, {column}]", f"a[{column}, {at}]")
    kernel = parse_kernel(text.format(last=18, **{**PARTS, **parts}))
    with mock.patch.multiple(c_triangles, _ROWS=4, FIRST_CACHE_BYTES=0):
        after = block_triangles(kernel)
    rng = np.random.default_rng(0)
    inputs = [rng.uniform(1, 2, (18, 18)), np.zeros(18, np.int32)]
    with np.errstate(all="ignore"):
        for got, expected in zip(interpret(after, inputs), interpret(kernel, inputs), strict=True):
            np.testing.assert_array_equal(got, expected)


@pytest.mark.parametrize("n", [83, 128])
def test_c_computes_what_the_interpreter_does(tmp_path: Path, n: int) -> None:
    rng = np.random.default_rng(n)
    square = rng.standard_normal((n, n))
    inputs = [square @ square.T + n * np.eye(n), np.zeros(n, np.int32)]
    kernel = factor(n=n)
    after, source = shipped(kernel, 0)
    assert any("i_block" in line for line in lines_of(after))
    library = build_together(tmp_path, [source], ("-O3",))
    for got, expected in zip(
        call(library, after, source, inputs), interpret(kernel, inputs), strict=True
    ):
        np.testing.assert_allclose(got, expected, rtol=1e-11)
