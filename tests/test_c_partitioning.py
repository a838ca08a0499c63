"""Loops split into their borders and what lies between: by text, and by what they compute."""

from __future__ import annotations

import re
import textwrap
from collections.abc import Callable

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from loop_ir import Kernel, interpret, kernel_text, parse_kernel, partition_rows, verify
from loop_ir import partition_loops as partition
from random_examples import examples


def row(statement: str, n: int = 40, kind: str = "parallel") -> Kernel:
    """Returns a kernel that runs a statement at each element of a row."""
    return parse_kernel(f"""kernel k(a: float32[{n}]) -> (b) {{
      buffer b: float32[{n}]
      {kind} i in 0 .. {n} {{ {statement} }}
    }}""")


def image(statement: str, n: int = 40, m: int = 50) -> Kernel:
    """Returns a kernel that runs a statement at each element of an image."""
    return parse_kernel(f"""kernel k(a: float32[{n}, {m}]) -> (b) {{
      buffer b: float32[{n}, {m}]
      parallel i in 0 .. {n} {{ parallel j in 0 .. {m} {{ {statement} }} }}
    }}""")


def checked(kernel: Kernel, split: Callable[[Kernel], Kernel] = partition) -> Kernel:
    """Returns the kernel with its loops split, which must be legal and mean the same."""
    after = split(kernel)
    verify(after)
    inputs = [
        np.arange(np.prod(b.shape), dtype=b.dtype).reshape(b.shape) for b in kernel.parameters
    ]
    for got, want in zip(interpret(after, inputs), interpret(kernel, inputs), strict=True):
        np.testing.assert_array_equal(got, want)
    return after


def body_of(kernel: Kernel) -> str:
    return textwrap.dedent("\n".join(kernel_text(kernel).splitlines()[2:-1]))


def test_between_the_borders_no_condition_is_left() -> None:
    kernel = image("if ((0 <= (i - 1)) && ((j + 2) < 50)) { b[i, j] = a[i - 1, j + 2] }")
    assert body_of(checked(kernel)) == textwrap.dedent("""\
        parallel i_1 in 1 .. 40 {
          parallel j_1 in 0 .. 48 {
            b[i_1, j_1] = a[i_1 - 1, j_1 + 2]
          }
        }""")


def test_the_iterations_at_the_borders_keep_what_they_do() -> None:
    kernel = row("b[i] = ((2 <= i) ? a[i - 2] : 0.5:float32) + ((i < 37) ? a[i + 3] : 2.5:float32)")
    assert body_of(checked(kernel)) == textwrap.dedent("""\
        parallel i in 0 .. 2 {
          b[i] = 0.5:float32 + a[i + 3]
        }
        parallel i_1 in 2 .. 37 {
          b[i_1] = a[i_1 - 2] + a[i_1 + 3]
        }
        parallel i_2 in 37 .. 40 {
          b[i_2] = a[i_2 - 2] + 2.5:float32
        }""")


@pytest.mark.parametrize(
    ("at", "between"),
    [
        ("(i + 39) % 40", "i_1 - 1"),
        ("(i + 1) % 40", "i + 1"),
        ("max(i - 1, 0)", "i_1 - 1"),
        ("min(i + 2, 39)", "i + 2"),
        ("((i == 0) ? 3 : (i - 1))", "i_1 - 1"),
        ("((39 - i) + 39) % 40", "38 - i"),
    ],
)
def test_an_index_that_turns_at_a_border_is_plain_between(at: str, between: str) -> None:
    text = body_of(checked(row(f"b[i] = a[{at}]")))
    # Indented, so in a loop.
    assert re.search(rf"  b\[i(_1)?\] = a\[{re.escape(between)}\]", text)


@pytest.mark.parametrize(
    "kernel",
    [
        row("if (i < 20) { b[i] = a[i] }"),
        row("if ((i % 2) == 0) { b[i] = a[i] }"),
        row("if (1 <= i) { b[i] = a[i] }", n=15),
        row("if (1 <= i) { b[i] = a[i] }", kind="serial"),
        row("if (a[i] < 3.0:float32) { b[i] = a[i] }"),
        row("if (-1 <= i) { b[i] = a[i] }"),
        image("if (i <= j) { b[i, j] = a[i, j] }"),
    ],
    ids=["halves", "a pattern", "short", "in order", "data", "outside", "a triangle"],
)
def test_loops_without_borders_stay(kernel: Kernel) -> None:
    assert partition(kernel) is kernel


def test_the_part_of_a_row_that_asks_for_the_border_is_there_twice_and_the_rest_once() -> None:
    kernel = parse_kernel("""kernel k(a: float32[40, 50]) -> (b) {
      buffer b: float32[40, 50]
      parallel i in 0 .. 40 {
        local t: float32[50] {
          parallel x in 0 .. 50 { if ((0 <= (i - 1)) && (x >= 2)) { t[x] = a[i - 1, x - 2] } }
          parallel j in 0 .. 50 { b[i, j] = t[49 - j] }
        }
      }
    }""")
    assert body_of(checked(kernel)) == textwrap.dedent("""\
        parallel i in 0 .. 40 {
          local t: float32[50] {
            if (i >= 1) {
              parallel x_1 in 2 .. 50 {
                t[x_1] = a[i - 1, x_1 - 2]
              }
            }
            parallel j in 0 .. 50 {
              b[i, j] = t[49 - j]
            }
          }
        }""")


def test_rows_are_not_split_for_an_index_that_the_row_computes_once() -> None:
    kernel = image("b[i, j] = a[max(i - 1, 0), j]")
    assert partition(kernel) is kernel


DISTANCES = """kernel k(a: float32[40, 50]) -> (d) {
  buffer d: float32[40, 50]
  serial i in 0 .. 40 {
    serial j in 0 .. 50 {
      local best: float32[] {
        best[] = a[i, j]
        if (0 < i) { best[] = min(best[], d[i - 1, j]) }
        if (0 < j) { best[] = min(best[], d[i, j - 1]) }
        d[i, j] = best[] + 1.0:float32
      }
    }
  }
}"""


def test_rows_in_order_and_the_loops_around_them_are_split() -> None:
    text = kernel_text(checked(parse_kernel(DISTANCES), partition_rows))
    assert "serial i_1 in 1 .. 40" in text
    assert "serial j_2 in 1 .. 50" in text
    assert "(0 < i" not in text
    # That of the first row stays.
    assert text.count("if (0 < j") == 1


def test_rows_in_order_without_a_border_stay() -> None:
    kernel = row("if (a[i] < 3.0:float32) { b[i] = a[i] }", kind="serial")
    assert partition_rows(kernel) is kernel


OFFSETS = st.integers(-6, 6)
TESTS = st.sampled_from(["<", "<=", ">", ">=", "==", "!="])
SIDES = st.sampled_from(["i + {c}", "{c} - i", "(i * 2) + {c}", "{c} - (i * 3)", "(i * -1) + {c}"])


@st.composite
def border_tests(draw: st.DrawFn) -> str:
    """Draws a statement that acts in another way at some iterations."""
    at = draw(SIDES).format(c=draw(st.integers(-8, 130)))
    bound = draw(st.integers(-4, 130))
    test = f"(({at}) {draw(TESTS)} {bound})"
    index = draw(
        st.sampled_from(
            ["(i + {c}) % 40", "min(i + {c}, 39)", "max(i + {c}, 0)", "(i + {c}) // 40",
             "max(min({c} - i, 39), 0)", "(({c} - i) % 40)", "((i * 3) + {c}) % 200"]
        )
    ).format(c=draw(OFFSETS))  # fmt: skip
    return f"if {test} {{ b[i] = a[{index}] }} else {{ b[i] = ({test} ? a[i] : 7.0:float32) }}"


@settings(max_examples=examples(60), deadline=None)
@given(border_tests(), border_tests())
def test_split_loops_mean_the_same(first: str, second: str) -> None:
    checked(row(f"{first} {second.replace('b[i] =', 'b[i] = b[i] +')}"))
