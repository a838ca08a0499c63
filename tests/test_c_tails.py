"""The last iterations of short loops in whole vectors: by text, and by what they compute."""

from __future__ import annotations

import dataclasses
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from loop_ir import Kernel, fill_last_vectors, mark_loops, parse_kernel
from random_examples import examples
from test_c_arrangement import arranged_apart, body_of

from msops._base import processor

ROW = """kernel row(a: {dtype}[9, 80], n: int32[80]) -> (b) {{
  buffer b: {dtype}[9, 80]
  parallel i in 1 .. 8 {{
    parallel j in {begin} .. {end} {{
      local t: {dtype}[] {{
        t[] = ((a[i - 1, j] + a[i, j]) + (a[i + 1, j] + a[i, j + 1])) * a[i, j - 1]
        b[i, j] = (({first} * t[]) + t[]) - (t[] * a[i, j])
        {after}
      }}
    }}
  }}
}}"""
PARTS = {
    "dtype": "float32", "begin": "1", "end": "61", "first": "a[i, j]", "after": "",
}  # fmt: skip


@pytest.fixture(params=[16, 32, 64])
def lanes(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> int:
    """The elements of a vector of float32, of three kinds of processors."""
    monkeypatch.setattr(processor, "vector_bytes", lambda: request.param)
    return int(request.param) // 4


def row(**parts: Any) -> Kernel:
    return mark_loops(parse_kernel(ROW.format(**{**PARTS, **parts})))


def loops_of(kernel: Kernel) -> list[str]:
    """Returns the bounds of the loops over j and its blocks."""
    lines = body_of(arranged_apart(fill_last_vectors, kernel)).splitlines()
    return [
        line.split(" in ")[1].removesuffix(" {")
        for line in lines
        if " j" in line and " in " in line
    ]


def in_blocks(count: int, lanes: int, last: int) -> list[str]:
    """Returns the bounds of the loops over blocks of iterations from 1 on, and in them."""
    begin = f"min((j_block * {lanes}) + 1, {last})"
    return [f"0 .. {count}", f"{begin} .. ({begin} + {lanes}) @vector(simd)"]


def test_the_last_vector_overlaps_the_one_before(lanes: int) -> None:
    # Of 60 iterations 12 are left of 16 lanes: eight fill a vector of half the size, four do not.
    of_60 = {16: in_blocks(4, 16, 45), 8: ["1 .. 61"], 4: ["1 .. 61"]}
    of_63 = {16: in_blocks(4, 16, 48), 8: in_blocks(8, 8, 56), 4: ["1 .. 64"]}
    assert loops_of(row()) == of_60[lanes]
    assert loops_of(row(end=64)) == of_63[lanes]


@pytest.mark.parametrize(("dtype", "lanes"), [("int32", 16), ("float64", 8), ("int64", 8)])
def test_elements_of_any_dtype_fill_vectors(
    dtype: str, lanes: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(processor, "vector_bytes", lambda: 64)
    assert loops_of(row(dtype=dtype, end=64)) == in_blocks(64 // lanes, lanes, 64 - lanes)


def test_much_work_is_written_once(monkeypatch: pytest.MonkeyPatch) -> None:
    # A compiler would write it for a whole vector, for half of one and for an iteration.
    monkeypatch.setattr(processor, "vector_bytes", lambda: 64)
    work = "sin(sin(sin(sin(sin(sin(sin(sin(a[i, j]))))))))"
    assert loops_of(row(end=73, first="sin(a[i, j])")) == ["1 .. 73"]
    assert loops_of(row(end=73, first=work)) == in_blocks(5, 16, 57)
    assert loops_of(row(end=65, first=work)) == ["1 .. 65"]


@pytest.mark.parametrize(
    "parts",
    [
        {"end": 65},
        {"end": 66},
        {"end": 20},
        {"end": 16},
        {"end": "(i + 54)"},
        {"first": "b[i, j]"},
        {"dtype": "float64", "first": "float64(n[j])", "end": 64},
    ],
    ids=["no rest", "one alone", "too much again", "less than a vector", "a length that varies",
         "it reads its stores", "elements of two sizes"],
)  # fmt: skip
def test_loops_stay_that_gain_nothing(
    parts: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(processor, "vector_bytes", lambda: 64)
    kernel = row(**parts)
    assert fill_last_vectors(kernel) is kernel


def test_short_work_stays(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(processor, "vector_bytes", lambda: 64)
    kernel = row()
    assert fill_last_vectors(kernel) is not kernel
    short = ROW.replace("((a[i - 1, j] + a[i, j]) + (a[i + 1, j] + a[i, j + 1])) *", "")
    short = short.replace("(({first} * t[]) + t[]) - (t[] * a[i, j])", "t[] + a[i, j]")
    kernel = mark_loops(parse_kernel(short.format(**PARTS)))
    assert fill_last_vectors(kernel) is kernel


def test_one_thread_writes_an_element(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(processor, "vector_bytes", lambda: 64)
    kernel = row()
    (rows,) = kernel.body
    (columns,) = rows.body
    shared = dataclasses.replace(rows, body=(dataclasses.replace(columns, grain=9),))
    kernel = dataclasses.replace(kernel, body=(shared,))
    assert fill_last_vectors(kernel) is kernel


def test_accesses_that_keep_their_order_stay(monkeypatch: pytest.MonkeyPatch) -> None:
    # gcc would store the neighbours of each pair together, past the third element.
    monkeypatch.setattr(processor, "vector_bytes", lambda: 64)
    text = """kernel pairs(a: float32[60], k: int32[1]) -> (b) {
  buffer b: float32[60, 4]
  parallel i in 0 .. 60 {
    b[i, 0] = ((a[i] * a[i]) * (a[i] * a[i])) + a[i]
    b[i, PAST] = ((a[i] * a[i]) + a[i]) * 2.0:float32
    b[i, 1] = ((a[i] * a[i]) * (a[i] + a[i])) + a[i]
  }
}"""
    apart = mark_loops(parse_kernel(text.replace("PAST", "2")))
    assert fill_last_vectors(apart) is not apart
    perhaps_one = mark_loops(parse_kernel(text.replace("PAST", "k[0]")))
    assert fill_last_vectors(perhaps_one) is perhaps_one


@settings(max_examples=examples(40), deadline=None)
@given(
    end=st.integers(10, 79),
    begin=st.integers(1, 3),
    after=st.sampled_from(["", "t[] = t[] + 1.0:float32 b[i, j] = b[i, j]", "b[i, j] = t[]"]),
)
def test_loops_in_whole_vectors_mean_the_same(**parts: Any) -> None:
    arranged_apart(fill_last_vectors, row(**parts))
