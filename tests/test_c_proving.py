"""Indices that variables hold: which are proven, and that they are in range."""

from __future__ import annotations

import textwrap
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from loop_ir import Kernel, interpret, kernel_text, parse_kernel, prove_indices
from loop_native import build_together, call, shipped
from random_examples import examples
from test_c_arrangement import body_of, exact_inputs

from msops._base import processor

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


@pytest.fixture
def no_gathers(monkeypatch: pytest.MonkeyPatch) -> None:
    """Makes this a processor without gathers, for which conditions stay."""
    monkeypatch.setattr(processor, "vector_bytes", lambda: 16)


@pytest.mark.usefixtures("no_gathers")
def test_nothing_is_read_before_its_condition_is_known_to_hold() -> None:
    text = shipped(parse_kernel(SORT), 0)[1].text
    assert "if ((j > 0) && (y[((int64_t)j - 1)] > x[k])) {" in text
    assert "? a[(int64_t)k] : 5;" in shipped(parse_kernel(PICKED), 0)[1].text


WALK = """kernel walk(a: int32[9], b: int32[9], n: int32[9], z: float32[9]) -> (y) {{
  buffer y: int32[9]
  serial i in 0 .. 9 {{
    local j: int32[] {{ local k: int32[] {{ local f: float32[] {{
      {statements}
    }} }} }}
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
    "a float": """f[] = z[i]
      if ((f[] >= 0.0:float32) && (f[] < 9.0:float32)) { k[] = int32(f[]) y[k[]] = 1 }""",
    "a float that is rounded down": """f[] = z[i]
      if ((f[] > -3.5:float32) && (9.0:float32 > f[])) {
        k[] = int32(floor(f[])) if (k[] >= 0) { y[k[]] = a[k[]] }
      }""",
    "a float that was rounded down": """f[] = floor(z[i])
      if ((f[] >= 0.0:float32) && (f[] <= 8.25:float32)) { k[] = int32(f[]) y[k[]] = 1 }""",
    "a float that is in no range": """f[] = z[i]
      if ((f[] < 0.0:float32) || (f[] > 8.0:float32)) { j[] = 1 }
      else { k[] = int32(ceil(f[])) - 1 if (k[] >= 0) { y[k[]] = 1 } }""",
    "a float beside an integer": """f[] = z[i] k[] = min(max(n[i], 0), 8)
      if ((f[] >= 0.0:float32) && (f[] < float32(k[]))) { y[int32(f[])] = a[k[]] }""",
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
    "a float that may be 9": """f[] = z[i]
      if ((f[] >= 0.0:float32) && (f[] <= 9.0:float32)) { k[] = int32(f[]) y[k[]] = 1 }""",
    "a float that is rounded up": """f[] = z[i]
      if ((f[] >= 0.0:float32) && (f[] < 9.0:float32)) { k[] = int32(ceil(f[])) y[k[]] = 1 }""",
    "a float that is rounded": """f[] = z[i]
      if ((f[] >= 0.0:float32) && (f[] < 9.0:float32)) { k[] = int32(round(f[])) y[k[]] = 1 }""",
    "a float that changes": """f[] = z[i]
      if ((f[] >= 0.0:float32) && (f[] < 9.0:float32)) {
        f[] = z[(i + 1) % 9] k[] = int32(f[]) y[k[]] = 1
      }""",
    "a float with a fraction": """f[] = z[i]
      if ((f[] >= 0.0:float32) && (f[] < 9.5:float32)) { k[] = int32(f[]) y[k[]] = 1 }""",
    "a float of no least": """f[] = z[i]
      if (f[] <= 8.0:float32) { k[] = int32(f[]) y[k[]] = 1 }""",
    "a float that is no number": """f[] = z[i]
      if ((f[] < 3.0:float32) || (f[] > 8.0:float32)) { j[] = 1 }
      else { k[] = int32(f[]) y[k[] - 3] = 1 }""",
    "another float that is no number": """f[] = z[i]
      if (f[] < max(z[(i + 1) % 9], 3.0:float32)) { j[] = 1 }
      else { if (f[] <= 8.0:float32) { k[] = int32(f[]) y[k[]] = 1 } }""",
    "what only no number reaches": """f[] = z[i] k[] = int32(f[])
      if ((f[] < 9.0:float32) || (f[] >= 0.0:float32)) { k[] = 3 } else { k[] = 50 }
      y[k[]] = 1""",
    "what only no number chooses": """f[] = z[i]
      k[] = ((f[] < 9.0:float32) || (f[] >= 0.0:float32)) ? 3 : 50
      y[k[]] = 1""",
    "a sum of floats": """f[] = z[i]
      if ((f[] >= 0.0:float32) && (f[] < 8.0:float32)) {
        k[] = int32(f[] + 1.0:float32) y[k[]] = 1
      }""",
    "a sum that wraps": """k[] = n[i]
      if ((k[] >= 0) && ((k[] + 2147483640) < 9)) { y[k[]] = 1 }""",
}


@pytest.mark.parametrize("name", [*SURE, *UNSURE])
def test_what_is_proven(name: str) -> None:
    kernel = walk({**SURE, **UNSURE}[name])
    after = prove_indices(kernel)
    lines = [line for line in kernel_text(after).splitlines() if "[k[]" in line or "[j[]" in line]
    assert ("[within(" in kernel_text(after)) == (name in SURE)
    assert not any(part in line for line in lines for part in ("[k[]]", "[j[]]")) or name in UNSURE
    for seed in range(9):
        compare(kernel, after, np.random.default_rng(seed))


def compare(kernel: Kernel, after: Kernel, rng: np.random.Generator) -> None:
    """Runs both, with the intervals looked at; most numbers are indices, some are far out."""
    inputs = exact_inputs(kernel)
    for array in inputs:
        array[...] = rng.integers(-2, 12, 9)
        array[rng.integers(0, 9)] = rng.choice([-(2**31), 2**31 - 1, 0])
        if array.dtype.kind == "f":
            array += rng.choice([0, 0.5, np.nextafter(np.float32(1), np.float32(0))], 9)
            array[rng.integers(0, 9)] = rng.choice([np.nan, np.inf, -np.inf, 1e30])
    for got, want in zip(interpret(after, inputs), interpret(kernel, inputs), strict=True):
        np.testing.assert_array_equal(got, want)


VALUES = ("k[] + 1", "j[] - 1", "j[] + k[]", "n[i]", "0", "8", "(j[] + k[]) // 2", "a[k[]]", "i",
          "min(k[], 8)", "int32(f[])", "int32(floor(f[]))",
          "int32(ceil(f[]))", "int32(min(f[], 8.0:float32))", "max(j[], 0)",
          "(k[] < 8) ? (k[] + 1) : j[]", "-(k[])")  # fmt: skip
CONDITIONS = ("k[] < 9", "k[] >= 0", "j[] > 0", "j[] < k[]", "(k[] + j[]) < 9", "a[k[]] > 2",
              "(k[] >= 0) && (k[] < 9)", "(j[] <= 0) || (j[] > 8)", "!(k[] == 0)", "j[] <= (8 - i)",
              "(j[] < 9) && (a[j[]] < 4)", "(2 * k[]) < j[]",
              "f[] < 9.0:float32", "(f[] >= 0.0:float32) && (f[] < 8.5:float32)",
              "3.0:float32 < f[]", "(f[] < 0.0:float32) || (f[] > float32(k[]))",
              "floor(f[]) == 4.0:float32",
              "!(f[] < max(z[i], 2.0:float32))",
              "(f[] < 9.0:float32) || (f[] >= 0.0:float32)")  # fmt: skip
STORES = ("y[k[]] = j[]", "y[j[]] = a[k[]]", "y[k[] + i] = a[j[] - 1]", "y[j[] + k[]] = b[i]",
          "y[i] = a[k[] // 2]", "y[int32(f[])] = a[int32(floor(f[])) + 1]")  # fmt: skip
SETS = st.builds("{} = {}".format, st.sampled_from(("k[]", "j[]")), st.sampled_from(VALUES))
FLOATS = ("z[i]", "floor(f[])", "f[] - 1.0:float32", "float32(k[])", "trunc(z[i])")
SETS |= st.builds("f[] = {}".format, st.sampled_from(FLOATS))
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


READS = """kernel reads(a: float32[9, 30], z: float32[40], x: float64[40]) -> (y) {
  buffer y: float32[40]
  parallel i in 0 .. 40 {
    local u: float32[] { local v: float64[] {
      u[] = z[i]
      v[] = x[i]
      if (((u[] >= 0.0:float32) && (u[] <= 8.0:float32))
          && ((v[] > -1.0:float64) && (v[] < 30.0:float64))) {
        local r: int32[] { local c: int64[] {
          r[] = int32(u[])
          c[] = int64(floor(v[]))
          y[i] = ((v[] >= 0.0:float64) ? a[r[], int32(v[])] : 7.0:float32)
          if (c[] >= 0:int64) { y[i] = y[i] + a[r[], c[]] }
        } }
      } else {
        y[i] = -1.0:float32
      }
    } }
  }
}"""


@pytest.mark.usefixtures("no_gathers")
def test_c_reads_the_elements_below_floats(tmp_path: Path) -> None:
    kernel = parse_kernel(READS)
    arranged, source = shipped(kernel, 0)
    assert "whole" in source.text
    assert "saturate" not in source.text
    library = build_together(tmp_path, [source], ("-O3", "-march=native"))
    a, edges = np.arange(270, dtype=np.float32).reshape(9, 30), [np.nan, np.inf, -np.inf, 1e30, 0.0]
    rng = np.random.default_rng(0)
    for _ in range(20):
        z = np.concatenate([rng.uniform(-2, 11, 30), edges, [8, 7.9999995, -0.0, -1, 3e9]])
        x = np.concatenate(
            [rng.uniform(-2, 33, 30), edges, [30, 29.999999999999996, -0.0, -1, 3e9]]
        )
        inputs = [a, rng.permutation(z).astype(np.float32), rng.permutation(x)]
        (got,) = call(library, arranged, source, inputs)
        np.testing.assert_array_equal(got, interpret(kernel, inputs)[0])


@pytest.mark.parametrize("dtype", ["float64", "float16", "bool"])
def test_conversions_that_give_no_integer_stay(dtype: str) -> None:
    kernel = parse_kernel(f"""kernel gathered(at: int32[40], table: float32[7]) -> (y) {{
      buffer y: {dtype}[40]
      parallel i in 0 .. 40 {{
        local k: int32[] {{
          k[] = at[i]
          y[i] = {dtype}(table[k[]] * 2.0:float32)
        }}
      }}
    }}""")
    assert prove_indices(kernel) == kernel
