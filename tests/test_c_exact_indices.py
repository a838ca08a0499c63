"""Indices that conditions keep in range, as exact sums: by text, and what is computed."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from loop_ir import (
    Kernel,
    interpret,
    name_compared_indices,
    parse_kernel,
    prove_indices,
    write_exact_indices,
)
from loop_native import build_together, call, shipped
from random_examples import examples
from test_c_arrangement import arranged
from test_c_carrying import lines_of

MOVED = """kernel moved(a: int32[8, 20], d: int32[3], e: int32[3]) -> (y) {{
  buffer y: int32[8, 20]
  parallel i in 0 .. 8 {{
    parallel j in 0 .. 20 {{
      {body}
    }}
  }}
}}"""
INSIDE = "((r[] >= 0) && (r[] < 8)) && ((c[] >= 0) && (c[] < 20))"
NAMED = f"""local r: int32[] {{{{ local c: int32[] {{{{
        r[] = i + d[1]
        c[] = {{column}}
        if ({INSIDE}) {{{{ y[i, j] = a[r[], {{index}}] }}}}
      }}}} }}}}"""


def moved(column: str = "j + e[2]", index: str = "c[]") -> Kernel:
    return parse_kernel(MOVED.format(body=NAMED.format(column=column, index=index)))


@pytest.mark.parametrize(
    ("column", "exact"),
    [
        ("j + e[2]", "int64(j) + int64(e[2])"),
        ("e[1] - j", "int64(e[1]) - int64(j)"),
        ("(2 * j) + (e[0] + 7)", "(int64(j) * 2:int64) + (int64(e[0]) + 7:int64)"),
    ],
)
def test_an_index_under_its_condition_is_an_exact_sum(column: str, exact: str) -> None:
    kernel = prove_indices(moved(column))
    assert f"y[i, j] = a[within(r[], 0, 7), within({exact}, 0, 19)]" in lines_of(
        arranged(write_exact_indices, kernel)
    )


@pytest.mark.parametrize(
    ("column", "index"),
    [
        ("j * e[2]", "c[]"),
        ("y[i, 0] + j", "c[]"),
        ("(j * 65536) * 65536", "c[]"),
        ("(e[0] + 2147483647) + j", "c[]"),
        ("(e[0] - 2147483647) - j", "c[]"),
        ("j + e[2]", "c[] + 1"),
    ],
    ids=[
        "a product",
        "what changes",
        "no sum",
        "may be too great",
        "may be too small",
        "not in range",
    ],
)
def test_indices_that_stay(column: str, index: str) -> None:
    kernel = prove_indices(moved(column, index))
    assert write_exact_indices(kernel) is kernel


COMPARED = f"""if ({INSIDE}) {{ y[i, j] = a[r[], c[]] }}"""


def unnamed(text: str = COMPARED, row: str = "(i + d[1])", column: str = "(j + e[2])") -> Kernel:
    return parse_kernel(MOVED.format(body=text.replace("r[]", row).replace("c[]", column)))


def test_sums_that_conditions_compare_have_names() -> None:
    lines = lines_of(name_compared_indices(unnamed()))
    assert {"at[] = i + d[1]", "at_1[] = j + e[2]"} <= set(lines)
    assert "y[i, j] = a[at[], at_1[]]" in lines
    choice = f"y[i, j] = ({INSIDE}) ? a[r[], c[]] : 7"
    lines = lines_of(name_compared_indices(unnamed(choice)))
    assert any("? a[at[], at_1[]] : 7" in line for line in lines)


@pytest.mark.parametrize(
    "kernel",
    [
        unnamed(row="d[1]", column="e[2]"),
        unnamed(row="(i + 1)", column="(j - 1)"),
        unnamed(row="(i + d[i])", column="(j + e[j])"),
        unnamed("y[i, j] = (c[] > 0) ? a[i, r[]] : 7"),
        unnamed(row="(i + y[i, j])", column="(j + y[i, j])"),
    ],
    ids=["elements", "of loops", "may not exist", "another", "what changes"],
)
def test_sums_that_have_none(kernel: Kernel) -> None:
    assert name_compared_indices(kernel) == kernel


distances = st.one_of(
    st.integers(-21, 21), st.sampled_from([2**31 - 1, -(2**31), 2**31 - 20, -(2**31) + 3])
)


@given(
    distance=st.lists(distances, min_size=6, max_size=6),
    column=st.sampled_from(["j + e[2]", "e[1] - j", "(2 * j) + (e[0] + 7)", "(j + e[0]) - d[2]"]),
)
@settings(max_examples=examples(40), deadline=None)
def test_exact_sums_are_the_same_indices(distance: list[int], column: str) -> None:
    a = np.arange(1, 161, dtype=np.int32).reshape(8, 20)
    d, e = np.array(distance, np.int32).reshape(2, 3)
    for kernel in (moved(column), unnamed(column=f"({column})")):
        after = write_exact_indices(prove_indices(name_compared_indices(kernel)))
        assert after != kernel
        (want,), (got,) = (interpret(k, [a, d, e]) for k in (kernel, after))
        np.testing.assert_array_equal(got, want)


def test_c_reads_the_elements_that_the_interpreter_does(tmp_path: Path) -> None:
    a = np.random.default_rng(0).integers(0, 99, (8, 20), np.int32)
    limit = 2**31 - 1
    tables = [[0, 2, 5], [limit, -9, -limit], [1, -7, limit - 20]]
    cases = [
        (kernel, [a, np.array(d, np.int32), np.array(e, np.int32)])
        for kernel in (moved(), unnamed(), moved("e[1] - j"))
        for d in tables
        for e in tables
    ]
    sources = [shipped(kernel, number) for number, (kernel, _) in enumerate(cases)]
    library = build_together(tmp_path, [source for _, source in sources], ("-O3",))
    for (kernel, inputs), (arranged_kernel, source) in zip(cases, sources, strict=True):
        (got,) = call(library, arranged_kernel, source, inputs)
        np.testing.assert_array_equal(got, interpret(kernel, inputs)[0])
    assert "(j + (int64_t)e[2])" in sources[0][1].text
