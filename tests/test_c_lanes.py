"""Rows in lanes that branch, end early or work on arrays: by text, and by what their C computes."""

from __future__ import annotations

import re
import textwrap
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from loop_ir import (
    PASSES_TO_C,
    Kernel,
    interpret,
    kernel_text,
    parse_kernel,
    put_rows_in_lanes,
    run_passes,
)
from loop_native import build_together, call, printed
from random_examples import examples
from test_c_arrangement import arranged_apart, body_of, exact_inputs

ROWS = """kernel rows(a: int32[{n}], x: float64[{n}], c: float64[40]) -> (b, y) {{
  buffer b: int32[{n}]
  buffer y: float64[{n}]
  parallel i in 0 .. {n} {{
    local s: int32[] {{ local z: float64[] {{ local stopped: bool[] {{
      s[] = a[i]
      z[] = x[i]
      serial k in 0 .. {trips} {{
        {step}
      }}
      b[i] = s[]
      y[i] = z[]
    }} }} }}
  }}
}}"""
GENERATOR = "s[] = (48271 * (s[] % 44488)) - (3399 * (s[] // 44488))"


def rows(step: str = GENERATOR, n: int = 64, trips: int = 9) -> Kernel:
    return parse_kernel(ROWS.format(step=step, n=n, trips=trips))


def in_lanes(kernel: Kernel) -> str:
    """Returns the text of the loop of rows in lanes."""
    lines = body_of(arranged_apart(put_rows_in_lanes, kernel)).splitlines()
    first = next(at for at, line in enumerate(lines) if line.strip().startswith("serial k"))
    indent = lines[first][: lines[first].index("serial")]
    return textwrap.dedent("\n".join(lines[first : lines.index(indent + "}", first) + 1]))


def test_rows_of_integers_go_into_lanes() -> None:
    text = body_of(arranged_apart(put_rows_in_lanes, rows()))
    assert "local s: int32[32] {" in text
    assert "s[lane_1] = (48271 * (s[lane_1] % 44488)) - (3399 * (s[lane_1] // 44488))" in text


@pytest.mark.parametrize(
    ("n", "loops", "sizes"),
    [
        (31, ["i in 0 .. 31"], []),
        (32, ["i_block in 0 .. 2"], [16]),
        (63, ["i_block in 0 .. 3"], [16, 15]),
        (71, ["i_block in 0 .. 2", "i in 64 .. 71"], [32]),
        (72, ["i_block in 0 .. 2"], [32, 8]),
        (96, ["i_block in 0 .. 3"], [32]),
    ],
)
def test_rows_that_fill_no_group_are_one_if_they_are_enough(
    n: int, loops: list[str], sizes: list[int]
) -> None:
    text = body_of(arranged_apart(put_rows_in_lanes, rows(n=n)))
    assert re.findall(r"^parallel (.*) {", text, re.MULTILINE) == loops
    assert re.findall(r"local s\w*: int32\[(\d+)\]", text) == list(map(str, sizes))


def test_both_branches_of_a_condition_are_in_the_lanes() -> None:
    step = "if (z[] < 0.5:float64) { s[] = s[] + 1 } else { z[] = z[] / 4.0:float64 s[] = s[] - k }"
    assert (
        in_lanes(rows(step))
        == """\
serial k in 0 .. 9 {
  parallel lane_1 in 0 .. 32 {
    if (z[lane_1] < 0.5:float64) {
      s[lane_1] = s[lane_1] + 1
    } else {
      z[lane_1] = z[lane_1] / 4.0:float64
      s[lane_1] = s[lane_1] - k
    }
  }
}"""
    )


def test_a_condition_that_is_the_same_for_all_rows_goes_around_the_lanes() -> None:
    step = "s[] = s[] * 5\nif ((k % 2) == 0) { s[] = s[] // 3 }"
    assert (
        in_lanes(rows(step))
        == """\
serial k in 0 .. 9 {
  parallel lane_1 in 0 .. 32 {
    s[lane_1] = s[lane_1] * 5
  }
  if ((k % 2) == 0) {
    parallel lane_2 in 0 .. 32 {
      s[lane_2] = s[lane_2] // 3
    }
  }
}"""
    )


ROUNDS = """kernel rounds(a: int32[64, 4], n: int32[1]) -> (b) {{
  buffer b: int32[64]
  parallel i in 0 .. 64 {{
    local s: int32[4] {{
      local at: int32[] {{ local next: int32[] {{
        {first}
        serial k in 0 .. 20 {{
          at[] = {at}
          {step}
          next[] = {next}
          s[at[]] = ((48271 * (s[at[]] % 44488)) - (3399 * (s[next[]] // 44488))) + k
        }}
        b[i] = s[0]
      }} }}
    }}
  }}
}}"""
ROUND = {
    "first": "s[0] = a[i, 0] s[3] = 5", "at": "k % 4", "step": "if ((k % 3) == 1) { at[] = 2 }",
    "next": "3 - at[]",
}  # fmt: skip


def test_a_variable_that_holds_the_same_in_all_rows_is_one_variable() -> None:
    text = in_lanes(parse_kernel(ROUNDS.format(**ROUND)))
    assert (
        text
        == """\
serial k in 0 .. 20 {
  at[] = k % 4
  if ((k % 3) == 1) {
    at[] = 2
  }
  next[] = 3 - at[]
  parallel lane_1 in 0 .. 32 {
    s[at[], lane_1] = ((48271 * (s[at[], lane_1] % 44488)) - (3399 * (s[next[], lane_1] // 44488))) + k
  }
}"""  # noqa: E501
    )


@pytest.mark.parametrize(
    "parts",
    [
        {"at": "(i + k) % 4"},
        {"at": "a[i, 0] % 4"},
        {"step": "if (a[i, 0] > 1) { at[] = 2 }"},
        {"step": "reduction l in 0 .. 2 { at[] = max(at[], s[l] % 4) }"},
        {"first": "s[0] = a[i, 0] at[] = a[i, 0]", "at": "at[] % 4"},
    ],
    ids=["the row", "an element", "a condition", "a loop", "its own value"],
)
def test_a_variable_that_rows_disagree_on_has_an_element_for_each(parts: dict[str, str]) -> None:
    text = in_lanes(parse_kernel(ROUNDS.format(**{**ROUND, **parts})))
    assert "at[lane_" in text
    assert "next[lane_" in text


@pytest.mark.parametrize(
    "parts",
    [
        {"step": "s[at[]] = s[at[]] + 1 at[] = 3 - at[]"},
        {"next": "(a[i, 0] + at[]) % 4"},
        {"first": "s[3] = 5", "step": "s[a[i, 0] % 4] = k"},
    ],
    ids=["it changes between", "another one differs", "an array at an index of the row"],
)
def test_what_rows_share_stays_in_order(parts: dict[str, str]) -> None:
    text = in_lanes(parse_kernel(ROUNDS.format(**{**ROUND, **parts})))
    assert "at[lane_" not in text


def test_rows_that_all_have_stopped_take_no_more_steps() -> None:
    step = """if (!(stopped[])) {
      if (abs(z[]) < 1.0:float64) { stopped[] = true } else { z[] = z[] / 2.0:float64 }
    }"""
    kernel = rows(step)
    expected = """\
serial k in 0 .. 9 {
  if (left[] > 0) {
    parallel lane_1 in 0 .. 32 {
      if (!(stopped[lane_1])) {
        if (abs(z[lane_1]) < 1.0:float64) {
          stopped[lane_1] = true
        } else {
          z[lane_1] = z[lane_1] / 2.0:float64
        }
      }
    }
    left[] = 0
    reduction lane_2 in 0 .. 32 {
      left[] = left[] + (!(stopped[lane_2]) ? 1 : 0)
    }
  }
}"""
    assert in_lanes(kernel) == expected


def test_lanes_that_are_off_store_what_they_hold() -> None:
    # A load of what was stored under a mask would wait for memory.
    kernel = rows("if (s[] > 3) { s[] = s[] // 3 z[] = z[] / 3.0:float64 }")
    half = parse_kernel(kernel_text(kernel).replace("float64", "float16"))
    for each in (kernel, half):
        text = printed(run_passes(each, PASSES_TO_C), 0).text
        assert "ms_on_1 ? " in text
        assert "ms_put_" not in text


def test_rows_of_which_every_step_picks_an_element_stay() -> None:
    few = rows("s[] = (((a[s[] % 64] // 7) * 3) % 11) + k")
    assert put_rows_in_lanes(few) is not few
    many = rows("s[] = a[s[] % 64] + a[(s[] + 1) % 64]")
    assert put_rows_in_lanes(many) is many


@pytest.mark.parametrize(
    ("step", "trips"),
    [
        (GENERATOR, "(i % 40)"),
        (GENERATOR, "a[0]"),
        (f"{GENERATOR} serial l in 0 .. (i % 3) {{ z[] = z[] / c[l] }}", "9"),
        (f"{GENERATOR} if (s[] > 3) {{ serial l in 0 .. 2 {{ z[] = z[] / c[l] }} }}", "9"),
    ],
    ids=["rows of other lengths", "of data", "loops of other lengths", "a branch with a loop"],
)  # fmt: skip
def test_rows_that_do_not_take_the_same_steps_stay(step: str, trips: str) -> None:
    kernel = parse_kernel(ROWS.format(step=step, n=64, trips=trips))
    assert put_rows_in_lanes(kernel) is kernel


def test_rows_with_sums_that_have_more_digits_in_variables_stay() -> None:
    text = ROWS.format(step="reduction l in 0 .. 4 { z[] = z[] + c[l] }", n=64, trips=9)
    kernel, half = parse_kernel(text), parse_kernel(text.replace("float64", "float16"))
    assert put_rows_in_lanes(kernel) is not kernel
    assert put_rows_in_lanes(half) is half


# Sums over points that lie apart, as of forces between bodies.
POINTS = """kernel points(p: float64[{n}, 2], q: float64[{trips}, {columns}]) -> (b) {{
  buffer b: float64[{n}]
  parallel i in 0 .. {n} {{
    reduction j in 0 .. {trips} {{
      b[i] = b[i] + (({picked} - p[i, 0]) * p[i, 1])
    }}
  }}
}}"""
POINT = {"n": 64, "trips": 9, "columns": 2, "picked": "q[j, 1]"}


def points(**parts: object) -> Kernel:
    return parse_kernel(POINTS.format(**{**POINT, **parts}))


def test_sums_of_rows_over_elements_apart_add_in_the_lanes_of_rows() -> None:
    text = body_of(arranged_apart(put_rows_in_lanes, points()))
    assert "local sum: float64[32] {" in text
    assert "sum[lane_2] = sum[lane_2] + ((q[j, 1] - copy[lane_2]) * copy_1[lane_2])" in text


@pytest.mark.parametrize(
    "parts",
    [{"columns": 1, "picked": "q[j, 0]"}, {"trips": 7}, {"n": 16},
     {"trips": 64, "columns": 128, "picked": "exp(q[i, j * 2])"}],
    ids=["neighbours", "few terms", "few rows", "terms of one row each"],
)  # fmt: skip
def test_sums_of_rows_that_gain_nothing_from_lanes_stay(parts: dict[str, object]) -> None:
    kernel = points(**parts)
    assert put_rows_in_lanes(kernel) is kernel


# Rows one after another, as in decision trees.
TREES = """kernel trees(
  x: float64[{n}, {columns}], at: int32[4, 20], c: float64[4, 20]
) -> (b, e) {{
  buffer b: float64[{n}]
  buffer e: float64[{n}, 4]
  parallel i in 0 .. {n} {{
    {kind} t in {first} .. {trees} {{
      local node: int32[] {{
        serial k in 0 .. 6 {{
          node[] = (({picked}) < c[t, node[]]) ? (at[t, node[]] + 2) : (at[t, node[]] + 3)
        }}
        {last}
      }}
    }}
  }}
}}"""
TREE = {
    "n": 64, "columns": 5, "kind": "reduction", "first": "0", "trees": 4,
    "picked": "x[i, node[] % 5] + x[i, (node[] + 1) % 5]", "last": "b[i] = b[i] + c[t, node[]]",
}  # fmt: skip


def trees(**parts: object) -> Kernel:
    return parse_kernel(TREES.format(**{**TREE, **parts}))


def test_rows_one_after_another_go_into_lanes() -> None:
    assert body_of(arranged_apart(put_rows_in_lanes, trees())) == textwrap.dedent("""\
        buffer b: float64[64]
        buffer e: float64[64, 4]
        parallel i_block in 0 .. 2 {
          reduction t in 0 .. 4 {
            local node: int32[32] {
              serial k in 0 .. 6 {
                parallel lane in 0 .. 32 {
                  node[lane] = ((x[(i_block * 32) + lane, node[lane] % 5] + x[(i_block * 32) + lane, (node[lane] + 1) % 5]) < c[t, node[lane]]) ? (at[t, node[lane]] + 2) : (at[t, node[lane]] + 3)
                }
              }
              parallel lane_1 in 0 .. 32 {
                b[(i_block * 32) + lane_1] = b[(i_block * 32) + lane_1] + c[t, node[lane_1]]
              }
            }
          }
        }""")  # noqa: E501


@pytest.mark.parametrize(
    "parts",
    [
        {"trees": 1},
        {"first": "(i % 2)"},
        {"kind": "parallel", "last": "e[i, t] = c[t, node[]]"},
        {"columns": 200},
    ],
    ids=["few steps", "other bounds", "side by side", "far apart"],
)
def test_rows_one_after_another_that_gain_nothing_stay(parts: dict[str, object]) -> None:
    kernel = trees(**parts)
    assert put_rows_in_lanes(kernel) is kernel


STEPS = (
    GENERATOR,
    "s[] = (s[] * 7) ^ (k << 3)",
    "z[] = (z[] * 0.5:float64) + c[k]",
    "z[] = c[k] - (z[] / (c[k] + 3.0:float64))",
    "if (s[] <= 0) { s[] = s[] + 77 }",
    "if ((z[] > 1.0:float64) && (s[] > 0)) { z[] = z[] - 2.0:float64 } else { s[] = -(s[]) }",
    "if (z[] < c[k]) { local t: float64[] { t[] = z[] z[] = c[k] s[] = s[] + int32(t[]) } }",
    "if (s[] > 3) { if (z[] > 0.0:float64) { s[] = 1 } else { z[] = 5.0:float64 } }",
    "if (s[] > 3) { y[i] = z[] s[] = s[] - 1 } else { b[i] = b[i] + 1 }",
    "if ((k % 3) == 1) { s[] = s[] - 1 } else { z[] = z[] + 1.0:float64 }",
    "if ((i % 3) == (k % 3)) { s[] = s[] - 5 }",
    "if (s[] > 3) { if ((k % 2) == 0) { z[] = z[] * 0.5:float64 } else { s[] = s[] + 4 } }",
    "if (k < s[]) { stopped[] = true z[] = z[] + c[k] }",
    "serial l in 0 .. k { z[] = (z[] * 0.25:float64) - c[l] }",
    "if ((s[] >= 0) && (s[] < 9)) { z[] = z[] + c[s[]] }",
)  # fmt: skip


@settings(max_examples=examples(60), deadline=None)
@given(
    steps=st.lists(st.sampled_from(STEPS), min_size=1, max_size=4),
    stops=st.sampled_from(["", "!(stopped[])", "s[] > -9", "(s[] != 4) && !(stopped[])"]),
    n=st.integers(32, 75),
)
def test_rows_in_lanes_do_what_they_did(steps: list[str], stops: str, n: int) -> None:
    step = "\n".join(steps)
    kernel = rows(f"if ({stops}) {{ {step} }}" if stops else step, n, 8)
    arranged_apart(put_rows_in_lanes, kernel)


def test_c_of_rows_in_lanes_computes_what_the_interpreter_does(tmp_path: Path) -> None:
    stops = ("!(stopped[])", "s[] > -9")
    plain = [step for step in STEPS if "serial" not in step]
    steps = (*STEPS, *(f"if ({stop}) {{ {step} }}" for stop in stops for step in plain))
    kernels = [rows(step, n, 40) for step in steps for n in (32, 75)]
    kernels += [points(n=n) for n in (32, 75)]
    kernels += [trees(n=n, kind=kind) for n in (32, 75) for kind in ("reduction", "serial")]
    arranged = [run_passes(kernel, PASSES_TO_C) for kernel in kernels]
    sources = [printed(kernel, number) for number, kernel in enumerate(arranged)]
    assert all("int64_t lane = " in source.text for source in sources)
    library = build_together(tmp_path, sources)
    for kernel, after, source in zip(kernels, arranged, sources, strict=True):
        inputs = exact_inputs(kernel)
        for got, want in zip(
            call(library, after, source, inputs), interpret(kernel, inputs), strict=True
        ):
            np.testing.assert_array_equal(got, want, err_msg=kernel_text(kernel))


def test_an_element_of_a_branch_is_read_only_in_it() -> None:
    guarded = (
        "if ((0 <= s[]) && (s[] < 40)) {{ local t: float64[] {{ "
        "t[] = c[s[]] z[] = (z[] * t[]) + t[] }} }} "
    )
    text = body_of(arranged_apart(put_rows_in_lanes, rows(guarded.format() + GENERATOR)))
    condition = "if ((0 <= s[lane_1]) && (s[lane_1] < 40)) {"
    before, _, after = text.partition(condition)
    assert "c[s[lane_1]]" not in before
    assert "t[] = c[s[lane_1]]" in after


EDGES = """kernel edges(x: float64[64], c: float64[40]) -> (b) {
  buffer b: int32[64]
  parallel i in 0 .. 64 {
    local s: int32[] { local j: int32[] {
      j[] = 39
      serial k in 0 .. 40 {
        if (x[i] < c[k]) {
          if (x[i] < (c[j[]] / (c[k] + 3.0:float64))) { s[] = s[] + 1 }
        }
        j[] = k
      }
      b[i] = s[]
    } }
  }
}"""


def test_conditions_are_a_part_of_what_rows_compute() -> None:
    text = body_of(arranged_apart(put_rows_in_lanes, parse_kernel(EDGES)))
    assert "if (x[(i_block * 32) + lane] < (c[j[]] / (c[k] + 3.0:float64))) {" in text


CIRCLES = """kernel circles(x: int32[40, 64], dx: int32[16], dy: int32[16]) -> (b) {
  buffer b: int32[40, 64]
  parallel i in 0 .. 40 {
    parallel j in 0 .. 64 {
      local n: int32[] { local p: int32[] { local stopped: bool[] {
        serial k in 0 .. 20 {
          if (!(stopped[])) {
            p[] = x[dy[i % 16], j + dx[k % 16]] - x[i, j]
            if (p[] > 3) { n[] = n[] + 1 } else { n[] = 0 }
            if (n[] >= 2) { stopped[] = true }
          }
        }
        b[i, j] = n[]
      } } }
    }
  }
}"""


def test_rows_that_end_early_go_into_lanes_though_their_loops_are_short() -> None:
    kernel = parse_kernel(CIRCLES)
    arranged = run_passes(kernel, PASSES_TO_C)
    text = kernel_text(arranged)
    assert "if (!(stopped[lane])) {" in text
    rng = np.random.default_rng(0)
    for spread in (1, 90):
        at = rng.integers(0, spread, (2, 16)).astype("int32")
        inputs = [rng.integers(0, 9, (40, 64)).astype("int32"), *at]
        for got, want in zip(interpret(arranged, inputs), interpret(kernel, inputs), strict=True):
            np.testing.assert_array_equal(got, want)


QUARTERS = """kernel quarters(a: uint32[64], n: uint32[8]) -> (b) {{
  buffer b: uint32[64]
  parallel i in 0 .. 64 {{
    local x: uint32[8] {{
      serial k in 0 .. 8 {{ x[k] = n[k] ^ a[i] }}
      serial t in 0 .. {rounds} {{
        {kind} q in 0 .. {trips} {{
          x[q] = x[q] + x[{other}]
          x[{other}] = (x[{other}] ^ x[q]) * 5:uint32
        }}
      }}
      b[i] = x[0] ^ x[5]
    }}
  }}
}}"""


@pytest.mark.parametrize(
    ("kind", "trips", "rounds", "is_in_lanes"),
    [
        ("parallel", "4", 10, True),
        ("serial", "4", 10, True),
        ("parallel", "8", 10, False),
        ("parallel", "min(t + 1, 4)", 10, False),
        ("parallel", "4", 7, False),
    ],
)
def test_short_parallel_loops_are_a_part_of_rows(
    kind: str, trips: str, rounds: int, is_in_lanes: bool
) -> None:
    other = "7 - q" if trips == "8" else "((q + 1) % 4) + 4"
    parts = {"kind": kind, "trips": trips, "rounds": rounds, "other": other}
    kernel = parse_kernel(QUARTERS.format(**parts))
    text = kernel_text(arranged_apart(put_rows_in_lanes, kernel))
    assert ("local x: uint32[8, 32] {" in text) == is_in_lanes


PERCENTILES = """kernel percentiles(a: int32[64, 99], table: int32[9]) -> (out) {{
  buffer out: int32[64]
  parallel i in 0 .. 64 {{
    local count: int32[40] {{
      serial j in 0 .. {n} {{ {first} }}
      serial b in 1 .. 40 {{
        count[b] = {step}
      }}
      out[i] = count[20]
    }}
  }}
}}"""
LONG = "((count[b] // 3) + ((count[b - 1] // 5) // 7))"
COUNT = "count[a[i, j] + 1] = count[a[i, j] + 1] + 1"
LOOK_UP = "count[j % 40] = count[j % 40] + table[a[i, j] + 1]"


@pytest.mark.parametrize(
    ("n", "first", "step", "is_in_lanes"),
    [
        (99, COUNT, "count[b] + count[b - 1]", False),
        (9, COUNT, "count[b] + count[b - 1]", True),
        (99, COUNT, LONG, True),
        (99, LOOK_UP, "count[b] + count[b - 1]", True),
    ],
    ids=["many picks", "few picks", "long steps", "picks of what rows share"],
)
def test_rows_whose_arrays_are_picked_from_stay_unless_they_compute_more(
    n: int, first: str, step: str, is_in_lanes: bool
) -> None:
    kernel = parse_kernel(PERCENTILES.format(n=n, first=first, step=step))
    text = kernel_text(arranged_apart(put_rows_in_lanes, kernel))
    assert ("local count: int32[40, 32] {" in text) == is_in_lanes


# What rows of a polynomial add to the gradients of its coefficients.
COEFFICIENTS = """kernel sums(x: float32[{n}], c: {dtype}[8], e: float32[80]) -> (c, e, y) {{
  buffer y: float32[{n}]
  reduction i in 0 .. {n} {{
    local t: float32[] {{
      t[] = 1.0:float32
      serial k in 0 .. 8 {{
        {step}
        t[] = t[] * x[i]
      }}
      {after}
      y[i] = t[]
    }}
  }}
}}"""
SHARED = "c[7 - k] = c[7 - k] + t[]"


def coefficients(
    step: str = SHARED, after: str = "", n: int = 64, dtype: str = "float32"
) -> Kernel:
    return parse_kernel(COEFFICIENTS.format(step=step, after=after, n=n, dtype=dtype))


@pytest.mark.parametrize(
    "step",
    [
        SHARED,
        "local u: float32[] { u[] = t[] * 2.0:float32 c[7 - k] = c[7 - k] - u[] }",
        "c[k] = max(c[k], t[])",
        "if (k < 4) { c[k] = c[k] + t[] }",
        "serial l in 0 .. 2 { c[k] = c[k] + (t[] * e[l]) }",
        "c[k] = c[k] + t[] e[0] = e[0] * t[]",
    ],
)
@pytest.mark.parametrize("n", [64, 50, 37])
def test_rows_that_add_to_what_they_share_go_into_lanes(step: str, n: int) -> None:
    text = kernel_text(arranged_apart(put_rows_in_lanes, coefficients(step, n=n)))
    assert re.search(r"reduction (lane_\d+) in 0 .. \d+ \{\s+[ce]\[.*[tu]\[\1\]", text)


@pytest.mark.parametrize(
    ("parts", "why"),
    [
        ({"step": "if (x[i] > 1.0:float32) { c[k] = c[k] + t[] }"}, "a mask"),
        ({"step": "c[k] = c[k] + t[] c[k] = c[k] * t[]"}, "two operations"),
        ({"step": SHARED, "after": "y[i] = c[0]"}, "a load beside"),
        ({"step": "c[(i + k) % 8] = c[(i + k) % 8] + t[]"}, "elements that move"),
        ({"step": "e[i + k] = e[i + k] + t[]"}, "elements that move along"),
        ({"step": "c[k] = t[]"}, "no sum"),
        ({"step": "c[k] = t[] - c[k]"}, "no sum"),
        ({"dtype": "bfloat16", "step": "c[k] = c[k] + bfloat16(t[])"}, "summed in float32"),
        ({"n": 31}, "few rows"),
    ],
)
def test_other_reductions_stay(parts: dict[str, Any], why: str) -> None:
    kernel = coefficients(**parts)
    assert put_rows_in_lanes(kernel) is kernel, why
