"""The last iterations of short loops in whole vectors: by text, and by what they compute."""

from __future__ import annotations

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
    """Returns the bounds of the loops over j."""
    lines = body_of(arranged_apart(fill_last_vectors, kernel)).splitlines()
    return [
        line.split(" in ")[1].removesuffix(" {")
        for line in lines
        if " j" in line and " in " in line
    ]


def test_the_last_vector_overlaps_the_one_before(lanes: int) -> None:
    # Of 60 iterations 12 are left of 16 lanes: eight fill a vector of half the size, four do not.
    of_60 = {16: ["1 .. 49", "45 .. 61"], 8: ["1 .. 61"], 4: ["1 .. 61"]}
    of_59 = {16: ["1 .. 49", "44 .. 60"], 8: ["1 .. 57", "52 .. 60"], 4: ["1 .. 60"]}
    assert loops_of(row()) == of_60[lanes]
    assert loops_of(row(end=60)) == of_59[lanes]


@pytest.mark.parametrize(
    "parts",
    [
        {"end": 65},
        {"end": 66},
        {"end": 20},
        {"end": "(i + 54)"},
        {"first": "b[i, j]"},
        {"dtype": "int32"},
        {"first": "float32(n[j])", "after": "b[i, j] = t[]"},
    ],
    ids=["no rest", "one alone", "too much again", "a length that varies", "it reads its stores",
         "integers", "integers beside floats"],
)  # fmt: skip
def test_loops_stay_that_gain_nothing(
    parts: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(processor, "vector_bytes", lambda: 64)
    kernel = row(**parts)
    assert fill_last_vectors(kernel) is kernel


def test_short_work_stays() -> None:
    text = ROW.replace("((a[i - 1, j] + a[i, j]) + (a[i + 1, j] + a[i, j + 1])) *", "")
    kernel = mark_loops(parse_kernel(text.format(**PARTS)))
    assert fill_last_vectors(kernel) is kernel


@settings(max_examples=examples(40), deadline=None)
@given(
    end=st.integers(40, 79),
    begin=st.integers(1, 3),
    after=st.sampled_from(["", "t[] = t[] + 1.0:float32 b[i, j] = b[i, j]", "b[i, j] = t[]"]),
)
def test_loops_in_whole_vectors_mean_the_same(**parts: Any) -> None:
    arranged_apart(fill_last_vectors, row(**parts))
