"""Rows in lanes that branch or end early: by text, and by what their C computes."""

from __future__ import annotations

import re
import textwrap
from pathlib import Path

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


def test_both_branches_of_a_condition_become_choices() -> None:
    step = "if (z[] < 0.5:float64) { s[] = s[] + 1 } else { z[] = z[] / 4.0:float64 s[] = s[] - k }"
    assert (
        in_lanes(rows(step))
        == """\
serial k in 0 .. 9 {
  parallel lane_1 in 0 .. 32 {
    local chosen: bool[] {
      chosen[] = z[lane_1] < 0.5:float64
      s[lane_1] = chosen[] ? (s[lane_1] + 1) : s[lane_1]
      z[lane_1] = chosen[] ? z[lane_1] : (z[lane_1] / 4.0:float64)
      s[lane_1] = chosen[] ? s[lane_1] : (s[lane_1] - k)
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


def test_rows_that_all_have_stopped_take_no_more_steps() -> None:
    step = """if (!(stopped[])) {
      if (abs(z[]) < 1.0:float64) { stopped[] = true } else { z[] = z[] / 2.0:float64 }
    }"""
    kernel = rows(step)
    expected = """\
serial k in 0 .. 9 {
  if (left[] > 0) {
    parallel lane_1 in 0 .. 32 {
      local chosen_1: bool[] {
        chosen_1[] = stopped[lane_1] == 0
        local chosen: bool[] {
          chosen[] = abs(z[lane_1]) < 1.0:float64
          stopped[lane_1] = (chosen_1[] ? (chosen[] ? true : (stopped[lane_1] != 0)) : (stopped[lane_1] != 0)) ? 1 : 0
          z[lane_1] = chosen_1[] ? (chosen[] ? z[lane_1] : (z[lane_1] / 2.0:float64)) : z[lane_1]
        }
      }
    }
    left[] = 0
    reduction lane_2 in 0 .. 32 {
      left[] = left[] + ((stopped[lane_2] == 0) ? 1 : 0)
    }
  }
}"""  # noqa: E501
    assert in_lanes(kernel) == expected
    # A compiler finds no vectors where flags have one byte and numbers eight.
    text = kernel_text(run_passes(rows(step, trips=40), PASSES_TO_C))
    assert "local stopped: int32[32] {" in text
    assert "serial k in 0 .. 40 @ends_early {" in text


def test_rows_of_which_every_step_picks_an_element_stay() -> None:
    few = rows("s[] = (((a[s[] % 64] // 7) * 3) % 11) + k")
    assert put_rows_in_lanes(few) is not few
    many = rows("s[] = a[s[] % 64] + a[(s[] + 1) % 64]")
    assert put_rows_in_lanes(many) is many


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
    arranged = [run_passes(kernel, PASSES_TO_C) for kernel in kernels]
    sources = [printed(kernel, number) for number, kernel in enumerate(arranged)]
    assert all("lane < " in source.text for source in sources)
    library = build_together(tmp_path, sources)
    for kernel, after, source in zip(kernels, arranged, sources, strict=True):
        inputs = exact_inputs(kernel)
        for got, want in zip(
            call(library, after, source, inputs), interpret(kernel, inputs), strict=True
        ):
            np.testing.assert_array_equal(got, want, err_msg=kernel_text(kernel))
