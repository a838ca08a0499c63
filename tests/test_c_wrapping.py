"""Positions that wrap around, by a branch: by text, and by what they compute."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from loop_ir import Kernel, branch_at_borders, interpret, parse_kernel
from loop_native import build_together, call, shipped
from random_examples import examples
from test_c_arrangement import arranged
from test_c_carrying import lines_of

STREAM = """kernel stream(a: float32[12, 9], c: int32[12]) -> (b) {{
  buffer b: float32[12, 9]
  serial x in 0 .. 9 {{
    serial k in 0 .. 12 {{
      local n: int32[] {{
        n[] = {remainder}
        {store}
      }}
    }}
  }}
}}"""
REMAINDER = "((int32(x) + c[k]) + 9) % 9"


def stream(remainder: str = REMAINDER, store: str = "b[k, n[]] = a[k, x]") -> Kernel:
    return parse_kernel(STREAM.format(remainder=remainder, store=store))


@pytest.mark.parametrize(
    "remainder", [REMAINDER, "((9 + c[k]) + int32(x)) % 9", "(c[k] + int32(x)) % 9"]
)
def test_a_position_inside_is_no_remainder(remainder: str) -> None:
    lines = lines_of(arranged(branch_at_borders, stream(remainder=remainder)))
    (line,) = [line for line in lines if line.startswith("n[] =")]
    assert line.count("% 9") == 1
    assert " ? " in line
    assert " : " in line


@pytest.mark.parametrize(
    ("remainder", "store"),
    [
        (REMAINDER, "b[k, x] = a[k, n[]]"),
        ("((int32(x) + c[k]) + 5) % 9", "b[k, n[]] = a[k, x]"),
        ("((int32(x) + c[k]) + 18) % 9", "b[k, n[]] = a[k, x]"),
        ("(c[k] + 9) % 9", "b[k, n[]] = a[k, x]"),
        ("(((int32(x) * 5) + c[k]) + 9) % 9", "b[k, n[]] = a[k, x]"),
        ("((int32(x) + c[k]) + c[0]) % c[1]", "b[k, n[]] = a[k, x]"),
    ],
    ids=["only read there", "less than a size", "two sizes", "of data alone", "a hash", "of data"],
)
def test_others_stay(remainder: str, store: str) -> None:
    kernel = stream(remainder=remainder, store=store)
    assert branch_at_borders(kernel) is kernel


@settings(max_examples=examples(60), deadline=None)
@given(
    remainder=st.sampled_from(
        [
            REMAINDER,
            "(int32(x) + c[k]) % 9",
            "((((int32(k) * 65536) * 65536) + int32(x)) + (c[k] + 9)) % 9",
            "((int32(x) - c[k]) + 9) % 9",
            "(((int32(x) + c[k]) + c[3]) + 9) % 9",
        ]
    ),
    far=st.sampled_from([1, 9, 30, 2**31 - 1]),
    seed=st.integers(0, 99),
)
def test_any_distance_means_the_same(remainder: str, far: int, seed: int) -> None:
    rng = np.random.default_rng(seed)
    distances = rng.integers(-far - 1, far + 1, 12).astype("int32")
    inputs = [rng.standard_normal((12, 9)).astype("float32"), distances]
    kernel = stream(remainder)
    after = branch_at_borders(kernel)
    assert after is not kernel
    for got, expected in zip(interpret(after, inputs), interpret(kernel, inputs), strict=True):
        np.testing.assert_array_equal(got, expected)


def test_c_computes_what_the_interpreter_does(tmp_path: Path) -> None:
    cases = []
    for far in (1, 9, 40, 2**31 - 1):
        rng = np.random.default_rng(far)
        distances = rng.integers(-far - 1, far + 1, 12).astype("int32")
        cases.append([rng.standard_normal((12, 9)).astype("float32"), distances])
    after, source = shipped(stream(), 0)
    assert " ? " in "\n".join(lines_of(after))
    library = build_together(tmp_path, [source])
    for inputs in cases:
        (got,) = call(library, after, source, inputs)
        np.testing.assert_array_equal(got, interpret(stream(), inputs)[0])
