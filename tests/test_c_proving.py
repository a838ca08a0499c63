"""Indices that variables hold: which are proven, and that they are in range."""

from __future__ import annotations

import textwrap

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from loop_ir import Kernel, interpret, kernel_text, parse_kernel, prove_indices
from loop_native import shipped
from random_examples import examples
from test_c_arrangement import body_of, exact_inputs

SORT = """kernel sort(x: float32[24], y: float32[24]) -> (y) {
  serial k in 0 .. 24 {
    local j: int32[] {
      j[] = k
      serial step in 0 .. k {
        if ((j[] > 0) && (y[j[] - 1] > x[k])) {
          y[j[]] = y[j[] - 1]
          j[] = j[] - 1
        }
      }
      y[j[]] = x[k]
    }
  }
}"""


def test_a_variable_that_goes_down_to_zero_is_an_index() -> None:
    assert body_of(prove_indices(parse_kernel(SORT))) == textwrap.dedent("""\
        serial k in 0 .. 24 {
          local j: int32[] {
            j[] = k
            serial step in 0 .. k {
              if ((j[] > 0) && (y[within(j[] - 1, 0, 23)] > x[k])) {
                y[within(j[], 0, 23)] = y[within(j[] - 1, 0, 23)]
                j[] = j[] - 1
              }
            }
            y[within(j[], 0, 23)] = x[k]
          }
        }""")


PICKED = """kernel picked(a: int32[40], n: int32[64]) -> (y) {
  buffer y: int32[64]
  parallel i in 0 .. 64 {
    local k: int32[] {
      k[] = n[i] - 7
      y[i] = ((k[] >= 0) && (k[] < 40)) ? a[k[]] : 5
    }
  }
}"""


def test_nothing_is_read_before_its_condition_is_known_to_hold() -> None:
    text = shipped(parse_kernel(SORT), 0)[1].text
    assert "if ((j > 0) && (y[((int64_t)j - 1)] > x[k])) {" in text
    assert "? a[(int64_t)k] : 5;" in shipped(parse_kernel(PICKED), 0)[1].text


WALK = """kernel walk(a: int32[9], b: int32[9], n: int32[9]) -> (y) {{
  buffer y: int32[9]
  serial i in 0 .. 9 {{
    local j: int32[] {{ local k: int32[] {{
      {statements}
    }} }}
  }}
}}"""


def walk(statements: str) -> Kernel:
    return parse_kernel(WALK.format(statements=statements))


SURE = {
    "a search": """k[] = 9
      serial s in 0 .. 4 {
        if (j[] < k[]) {
          if (a[(j[] + k[]) // 2] < n[i]) { j[] = ((j[] + k[]) // 2) + 1 }
          else { k[] = (j[] + k[]) // 2 }
        }
      }""",
    "two pointers": """serial s in 0 .. 18 {
        if ((j[] < 9) && (k[] < 9)) {
          if (a[j[]] < b[k[]]) { y[j[]] = a[j[]] j[] = j[] + 1 } else { k[] = k[] + 1 }
        }
      }""",
    "a sum of variables": """serial s in 0 .. 9 {
        if ((k[] < (9 - i)) && (a[k[]] == a[i + k[]])) { k[] = k[] + 1 }
      }""",
    "a stack": """serial s in 0 .. 30 {
        if (n[s % 9] > 3) { if (k[] < 9) { y[k[]] = s k[] = k[] + 1 } }
        else { if (k[] > 0) { k[] = k[] - 1 j[] = j[] + y[k[]] } }
      }""",
    "a choice": "serial s in 0 .. 9 { k[] = (k[] < 8) ? (k[] + 1) : k[]  y[k[]] = s }",
    "the other branch": "k[] = n[i] if ((k[] < 0) || (k[] >= 9)) { j[] = 1 } else { y[k[]] = 1 }",
    "both branches": "if (n[i] > 2) { k[] = 3 } else { k[] = 8 } y[k[]] = 1",
    "the right of a disjunction": """k[] = n[i]
      if (((k[] < 0) || (k[] > 8)) || (a[k[]] > 1)) { j[] = 1 }""",
    "bounds": "k[] = min(max(n[i], 0), 9) serial s in k[] .. 9 { y[k[] + (s - k[])] = a[k[]] }",
}
UNSURE = {
    "one past": "k[] = min(max(n[i], 0), 9) y[k[]] = 1",
    "no limit": "serial s in 0 .. 9 { if (a[s] > 1) { k[] = k[] + 1 } } y[k[]] = 1",
    "after its condition": "if (k[] < 9) { k[] = k[] + n[i] y[k[]] = 1 }",
    "another variable": "k[] = n[i] if ((k[] >= 0) && (j[] < 9)) { y[k[]] = 1 }",
    "what comes later": "k[] = n[i] y[k[]] = 1 if ((k[] < 0) || (k[] >= 9)) { k[] = 0 }",
    "an earlier iteration": """serial s in 0 .. 9 {
        y[k[]] = s
        k[] = n[s]
      }""",
    "an earlier condition": """k[] = n[i]
      if ((k[] >= 0) && (k[] < 9)) { serial s in 0 .. 9 { y[k[]] = 1 k[] = k[] + 1 } }""",
    "the left of a conjunction": """k[] = n[i]
      if ((a[k[]] > 1) && ((k[] >= 0) && (k[] < 9))) { j[] = 1 }""",
    "a condition on what it held": """k[] = n[i]
      if (((k[] >= 0) && (k[] < 9)) && ((k[] + i) < 9)) { k[] = k[] + 1 y[k[] + i] = 1 }""",
    "after its branch": """k[] = n[i]
      if ((k[] >= 0) && (k[] < 9)) {
        if ((k[] + i) < 9) { j[] = 1 }
        y[k[] + i] = 1
      }""",
    "a bound that moves": """k[] = min(max(n[i], 0), 9)
      serial s in k[] .. 9 { y[k[]] = 1 k[] = min(max(k[] + 3, 0), 20) }""",
    "an element that is stored": """k[] = n[i]
      if ((0:int64 <= (int64(k[]) + int64(y[0]))) && ((int64(k[]) + int64(y[0])) < 9:int64)) {
        y[0] = 50
        y[int64(k[]) + int64(y[0])] = 1
      }""",
    "a part that wraps": """k[] = n[i]
      if ((k[] >= 0) && (k[] < 2)) {
        y[int64(k[] + 2147483647) - 2147483640:int64] = 1
      }""",
    "a sum that wraps": """k[] = n[i]
      if ((k[] >= 0) && ((k[] + 2147483640) < 9)) { y[k[]] = 1 }""",
}


@pytest.mark.parametrize("name", [*SURE, *UNSURE])
def test_what_is_proven(name: str) -> None:
    kernel = walk({**SURE, **UNSURE}[name])
    after = prove_indices(kernel)
    lines = [line for line in kernel_text(after).splitlines() if "[k[]" in line or "[j[]" in line]
    assert (after != kernel) == (name in SURE)
    assert not any(part in line for line in lines for part in ("[k[]]", "[j[]]")) or name in UNSURE
    for seed in range(9):
        compare(kernel, after, np.random.default_rng(seed))


def compare(kernel: Kernel, after: Kernel, rng: np.random.Generator) -> None:
    """Runs both, with the intervals looked at; most numbers are indices, some are far out."""
    inputs = exact_inputs(kernel)
    for array in inputs:
        array[...] = rng.integers(-2, 12, 9)
        array[rng.integers(0, 9)] = rng.choice([-(2**31), 2**31 - 1, 0])
    for got, want in zip(interpret(after, inputs), interpret(kernel, inputs), strict=True):
        np.testing.assert_array_equal(got, want)


VALUES = ("k[] + 1", "j[] - 1", "j[] + k[]", "n[i]", "0", "8", "(j[] + k[]) // 2", "a[k[]]", "i",
          "min(k[], 8)", "max(j[], 0)", "(k[] < 8) ? (k[] + 1) : j[]", "-(k[])")  # fmt: skip
CONDITIONS = ("k[] < 9", "k[] >= 0", "j[] > 0", "j[] < k[]", "(k[] + j[]) < 9", "a[k[]] > 2",
              "(k[] >= 0) && (k[] < 9)", "(j[] <= 0) || (j[] > 8)", "!(k[] == 0)", "j[] <= (8 - i)",
              "(j[] < 9) && (a[j[]] < 4)", "(2 * k[]) < j[]")  # fmt: skip
STORES = ("y[k[]] = j[]", "y[j[]] = a[k[]]", "y[k[] + i] = a[j[] - 1]", "y[j[] + k[]] = b[i]",
          "y[i] = a[k[] // 2]")  # fmt: skip
SETS = st.builds("{} = {}".format, st.sampled_from(("k[]", "j[]")), st.sampled_from(VALUES))
LEAVES = SETS | st.sampled_from(STORES)


def _nested(inner: st.SearchStrategy[str]) -> st.SearchStrategy[str]:
    body = st.lists(inner, min_size=1, max_size=3).map(" ".join)
    condition = st.sampled_from(CONDITIONS)
    return (
        st.builds("if ({}) {{ {} }}".format, condition, body)
        | st.builds("if ({}) {{ {} }} else {{ {} }}".format, condition, body, body)
        | st.builds("serial VAR in 0 .. 4 {{ {} }}".format, body)
        | st.builds("serial VAR in 0 .. k[] {{ if ({}) {{ {} }} }}".format, condition, body)
    )


PROGRAMS = st.lists(st.recursive(LEAVES, _nested, max_leaves=8), min_size=2, max_size=5)


@settings(max_examples=examples(150), deadline=None)
@given(parts=PROGRAMS, seed=st.integers(0, 99))
def test_indices_that_are_proven_are_in_range(parts: list[str], seed: int) -> None:
    pieces = " ".join(parts).split("VAR")
    text = pieces[0] + "".join(f"s{n}{piece}" for n, piece in enumerate(pieces[1:]))
    kernel = walk(text.replace(".. k[]", ".. min(k[], 6)"))
    compare(kernel, prove_indices(kernel), np.random.default_rng(seed))
