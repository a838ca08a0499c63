"""Elements at fixed places, in variables while a loop changes them."""

from __future__ import annotations

import re
import textwrap

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from loop_ir import For, Kernel, keep_in_variables, kernel_text, put_rows_in_lanes
from random_examples import examples
from test_c_arrangement import arranged, arranged_apart, body_of, marked

# The largest of each row, with its place; every part may be another one.
LARGEST = """kernel largest(x: float32[20, 8], n: int32[20], y: float32[20, 8]) -> (y) {{
  serial i in 0 .. 20 {{
    {before}
    serial j in {trips} {{
      if (x[i, j] > y[{at}]) {{ y[{at}] = x[i, j] }}
      {beside}
    }}
  }}
}}"""
PARTS = {"before": "y[i, 0] = 0.0:float32", "trips": "0 .. 8", "at": "i, 0", "beside": ""}


def largest(**parts: str) -> Kernel:
    return marked(LARGEST.format(**{**PARTS, **parts}))


def test_an_element_that_a_loop_changes_is_stored_after_it() -> None:
    assert body_of(arranged_apart(keep_in_variables, largest())) == textwrap.dedent("""\
        parallel i in 0 .. 20 {
          y[i, 0] = 0.0:float32
          local kept: float32[] {
            kept[] = y[i, 0]
            serial j in 0 .. 8 {
              if (x[i, j] > kept[]) {
                kept[] = x[i, j]
              }
            }
            y[i, 0] = kept[]
          }
        }""")


def test_rows_that_change_it_go_into_lanes() -> None:
    text = LARGEST.format(**PARTS).replace("x: float32[20, 8]", "x: float32[8, 64]")
    kernel = marked(text.replace("20", "64").replace("x[i, j]", "x[j, i]"))
    text = kernel_text(arranged(put_rows_in_lanes, kernel))
    assert re.search(r"if \(x\[j, .* \+ (lane_\d)\] > kept\[\1\]\)", text)


@pytest.mark.parametrize(
    ("parts", "kept"),
    [
        ({"beside": "y[i, 1] = y[i, 1] * y[i, 0]"}, 2),
        # What is stored alone, as the place of the largest, is no choice at every step.
        ({"beside": "y[i, 1] = y[i, 0]"}, 1),
        ({"beside": "y[i, j + 1] = y[i, 0]", "trips": "0 .. 7"}, 1),
        ({"beside": "y[i, j] = y[i, 0]"}, 0),
        # The last load is clamped to the element.
        ({"at": "i, 7", "beside": "y[i, 1] = y[i, j + 8]"}, 0),
        ({"beside": "y[i, 1] = y[i, n[i]]"}, 0),
        # Elements that may not exist.
        ({"at": "i, i"}, 0),
        ({"at": "i, n[i]"}, 0),
        ({"at": "i, j"}, 0),
        # One element for each iteration of a loop.
        ({"at": "i, j % 8"}, 0),
        ({"beside": "serial k in 0 .. 3 { y[i, (k % 2) + 1] = y[i, 7] * x[i, k] }"}, 1),
        # What runs side by side shares no variable.
        ({"beside": "parallel k in 0 .. 3 { y[i, k + 1] = y[i, 0] * x[i, k] }"}, 0),
        # A loop inside changes the element, too.
        ({"beside": "serial k in 0 .. 3 { y[i, 0] = y[i, 0] * x[i, k] }"}, 1),
        ({"beside": "serial k in 0 .. 3 { y[i, k] = y[i, 0] * x[i, k] }"}, 0),
    ],
)
def test_an_element_stays_where_another_access_may_be_of_it(
    parts: dict[str, str], kept: int
) -> None:
    text = body_of(arranged_apart(keep_in_variables, largest(**parts)))
    assert text.count("local kept") == kept


def test_a_sum_inside_is_kept_first() -> None:
    beside = "reduction k in 0 .. 8 { y[i, 1] = y[i, 1] + x[i, k] }"
    text = body_of(arranged_apart(keep_in_variables, largest(beside=beside)))
    assert text.count("local kept") == 2
    assert "sum[] = sum[] + x[i, k]" in text


def test_an_element_of_no_iteration_is_not_touched() -> None:
    text = body_of(arranged_apart(keep_in_variables, largest(trips="0 .. n[i]")))
    assert "if (0 < n[i]) {" in text


# Only the rows that hold a positive number store to the one element, which they share.
SHARED = """kernel shared(x: float32[20, 8], y: float32[20]) -> (y) {
  parallel i in 0 .. 20 {
    serial j in 0 .. 8 {
      if (i == 3) { y[5] = (y[5] * x[i, j]) + 1.0:float32 }
    }
  }
}"""


def test_an_element_that_rows_share_stays_under_its_condition() -> None:
    kernel = marked(SHARED)
    (rows,) = kernel.body
    assert isinstance(rows, For)
    assert rows.kind == "parallel"
    assert keep_in_variables(kernel) == kernel


ELEMENTS = st.sampled_from(
    ["i, 0", "i, 1", "i, 7", "0, i % 8", "0, 0", "i, j", "i, 7 - j", "i, k", "i, k % 2", "i, j % 3"]
)
VALUES = st.sampled_from(
    ["x[i, j]", "x[i, k]", "{}", "{} * x[i, j]", "{} + x[i, 0]", "y[i, (j + k) % 8]"]
)
CONDITIONS = st.sampled_from(["", "if (x[i, j] > 1.0:float32)", "if (i < 5)", "if ({} > x[i, k])"])
UPDATES = st.tuples(ELEMENTS, ELEMENTS, VALUES, CONDITIONS)


@settings(max_examples=examples(400), deadline=None)
@given(
    st.lists(UPDATES, min_size=1, max_size=3),
    st.lists(UPDATES, max_size=2),
    st.sampled_from(["0 .. 8", "1 .. 8", "0 .. n[i]", "0 .. 1", "0 .. (i % 8)"]),
)
def test_elements_in_variables_mean_the_same(
    outside: list[tuple[str, ...]], inside: list[tuple[str, ...]], trips: str
) -> None:
    def text(updates: list[tuple[str, ...]]) -> str:
        lines = []
        for at, other, value, condition in updates:
            load = f"y[{other}]"
            store = f"y[{at}] = {value.format(load)}"
            lines.append(f"{condition.format(load)} {{ {store} }}" if condition else store)
        return " ".join(lines)

    first = re.sub(r"\bk\b", "0", text(outside))
    inner = f"serial k in 0 .. 3 {{ {text(inside)} }}" if inside else ""
    kernel = marked(f"""kernel random(x: float32[20, 8], n: int32[20], y: float32[20, 8]) -> (y) {{
      serial i in 0 .. 20 {{ serial j in {trips} {{ {first} {inner} }} }}
    }}""")
    arranged_apart(keep_in_variables, kernel)
