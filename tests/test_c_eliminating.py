"""Sums over earlier elements as updates of the later ones: by text, and by what they compute."""

from __future__ import annotations

import textwrap
from unittest import mock

import pytest
from loop_ir import Kernel, order_along_memory, parse_kernel
from loop_ir import update_later_elements as update
from test_c_arrangement import arranged_apart, body_of

ROWS = """kernel rows(a: float64[20, 20], c: float64[40], n: int32[1]) -> (a) {{
  serial i in 0 .. 20 {{
    serial j in {begin} .. {end} {{
      local w: {dtype}[] {{
        w[] = {start}
        reduction k in {first} .. {past} {{
          w[] = w[] - ({factor} * {term})
        }}
        {last}
      }}
    }}
  }}
}}"""
ROW = {
    "begin": "0",
    "end": "i",
    "dtype": "float64",
    "start": "a[i, j]",
    "first": "0",
    "past": "j",
    "factor": "a[i, k]",
    "term": "a[k, j]",
    "last": "a[i, j] = w[] / a[j, j]",
}
SOLVED = """kernel solved(u: float64[20, 20], b: float64[20]) -> (x) {{
  buffer x: float64[20]
  serial i in 0 .. 20 {{
    local w: float64[] {{
      w[] = b[{at}]
      reduction k in ({first}) .. {past} {{
        w[] = w[] - (u[{term}] * x[k])
      }}
      x[{at}] = w[] / u[{at}, {at}]
    }}
  }}
}}"""
COLUMNS = """kernel columns(a: float64[20, 30]) -> (a) {{
  serial i in 0 .. 20 {{
    parallel j in i .. {end} {{
      local w: float64[] {{
        w[] = {start}
        reduction k in 0 .. i {{
          w[] = w[] + ({factor} * a[k, j])
        }}
        a[i, j] = w[] * 2.0:float64
      }}
    }}
  }}
}}"""


def in_pairs(kernel: Kernel) -> Kernel:
    """Returns the kernel with two elements that update the later ones together."""
    with mock.patch("msops._loops.to_c.order.eliminating._GROUP", 2):
        return arranged_apart(update, kernel)


def test_elements_of_a_row_update_those_after_them() -> None:
    assert body_of(in_pairs(parse_kernel(ROWS.format(**ROW)))) == textwrap.dedent("""\
        serial i in 0 .. 20 {
          serial j_group in 0 .. (i // 2) {
            a[i, j_group * 2] = a[i, j_group * 2] / a[j_group * 2, j_group * 2]
            a[i, (j_group * 2) + 1] = FIRST
            a[i, (j_group * 2) + 1] = a[i, (j_group * 2) + 1] / SECOND
            parallel j_2 in ((j_group * 2) + 2) .. i {
              a[i, j_2] = (a[i, j_2] - TERM) - NEXT
            }
          }
          serial j in ((i // 2) * 2) .. i {
            a[i, j] = a[i, j] / a[j, j]
            parallel j_2_1 in (j + 1) .. i {
              a[i, j_2_1] = a[i, j_2_1] - (a[i, j] * a[j, j_2_1])
            }
          }
        }""").replace(
        "FIRST",
        "a[i, (j_group * 2) + 1] - (a[i, j_group * 2] * a[j_group * 2, (j_group * 2) + 1])",
    ).replace("SECOND", "a[(j_group * 2) + 1, (j_group * 2) + 1]").replace(
        "TERM", "(a[i, j_group * 2] * a[j_group * 2, j_2])"
    ).replace("NEXT", "(a[i, (j_group * 2) + 1] * a[(j_group * 2) + 1, j_2])")  # fmt: skip


def test_a_sum_that_is_in_its_element_is_changed_alike() -> None:
    text = """kernel rows(a: float64[20, 20]) -> (a) {
      serial i in 0 .. 20 {
        serial j in 0 .. i {
          reduction k in 0 .. j { a[i, j] = a[i, j] - (a[i, k] * a[k, j]) }
          a[i, j] = a[i, j] / a[j, j]
        }
      }
    }"""
    got = body_of(arranged_apart(update, parse_kernel(text)))
    assert got == body_of(update(parse_kernel(ROWS.format(**ROW))))


@pytest.mark.parametrize(
    ("at", "first", "past", "term", "updated"),
    [
        ("i", "0", "i", "k, i",
         "x[i_2] = (x[i_2] - (u[i_group * 2, i_2] * x[i_group * 2]))"
         " - (u[(i_group * 2) + 1, i_2] * x[(i_group * 2) + 1])"),
        ("19 - i", "20 - i", "20", "k, 19 - i",
         "x[19 - i_2] = (x[19 - i_2] - (u[19 - (i_group * 2), 19 - i_2] * x[19 - (i_group * 2)]))"
         " - (u[18 - (i_group * 2), 19 - i_2] * x[18 - (i_group * 2)])"),
    ],
    ids=["forwards", "backwards"],
)  # fmt: skip
def test_a_system_is_solved_by_columns(
    at: str, first: str, past: str, term: str, updated: str
) -> None:
    kernel = parse_kernel(SOLVED.format(at=at, first=first, past=past, term=term))
    assert updated in body_of(in_pairs(kernel))
    start = at.replace("i", "i_3")
    assert f"parallel i_3 in 0 .. 20 {{\n  x[{start}] = b[{start}]" in body_of(in_pairs(kernel))


@pytest.mark.parametrize("group", [1, 3, 4, 7, 21])
def test_groups_of_any_size_mean_the_same(group: int) -> None:
    parts = {"at": "19 - i", "first": "20 - i", "past": "20", "term": "k, 19 - i"}
    with mock.patch("msops._loops.to_c.order.eliminating._GROUP", group):
        for text in (ROWS.format(**ROW), SOLVED.format(**parts)):
            kernel = parse_kernel(text)
            assert arranged_apart(update, kernel) is not kernel


def test_rows_of_a_matrix_are_summed_where_memory_has_them_in_order() -> None:
    for at, first, past in (("i", "0", "i"), ("19 - i", "20 - i", "20")):
        text = SOLVED.format(at=at, first=first, past=past, term=f"{at}, k")
        assert update(parse_kernel(text)) == parse_kernel(text)


def test_elements_that_do_not_wait_get_their_terms_row_by_row() -> None:
    kernel = parse_kernel(COLUMNS.format(end="30", start="a[i, j] + 1.0:float64", factor="a[i, k]"))
    after = arranged_apart(lambda kernel: order_along_memory(update(kernel)), kernel)
    assert body_of(after) == textwrap.dedent("""\
        serial i in 0 .. 20 {
          parallel j in i .. 30 {
            a[i, j] = a[i, j] + 1.0:float64
          }
          reduction k in 0 .. i {
            parallel j_1 in i .. 30 {
              a[i, j_1] = a[i, j_1] + (a[i, k] * a[k, j_1])
            }
          }
          parallel j_2 in i .. 30 {
            a[i, j_2] = a[i, j_2] * 2.0:float64
          }
        }""")


def test_elements_that_do_not_wait_stay_if_their_sums_read_them() -> None:
    for factor, end in (
        ("a[i, j]", "30"),
        ("a[i, j + 0]", "30"),
        ("a[i, k]", "min(int32(a[0, 0]), 30)"),
    ):
        kernel = parse_kernel(COLUMNS.format(end=end, start="0.0:float64", factor=factor))
        assert update(kernel) is kernel


@pytest.mark.parametrize(
    "parts",
    [
        {"term": "a[j, k]"},
        {"begin": "1"},
        {"first": "1"},
        {"past": "min(j, 5)"},
        {"past": "(j + 1)"},
        {"dtype": "float32", "start": "float32(a[i, j])", "factor": "float32(a[i, k])",
         "term": "float32(a[k, j])", "last": "a[i, j] = float64(w[]) / a[j, j]"},
        {"factor": "a[i, 19]", "last": "a[i, j] = w[] a[i, 19] = w[]"},
        {"last": "a[i, j] = w[] / a[i, j]"},
        {"last": "a[i, j] = w[] / a[i, max(j - 1, 0)]"},
        {"start": "a[i, j] + a[i, max(j - 1, 0)]"},
        {"factor": "a[i, j]"},
        {"factor": "a[i, k + 1]"},
        {"last": "a[i, 0] = w[]"},
        {"last": "a[i, j + 1] = w[]"},
        {"last": "a[i, int64(a[0, 0])] = w[]"},
        {"end": "n[0]"},
        {"factor": "a[i, k + 15]", "start": "a[i, j + 15]", "last": "a[i, j + 15] = w[]"},
        {"term": "c[(j - k) + 9]"},
    ],
    ids=["rows", "a later first element", "a later first term", "fewer terms", "its own term",
         "another dtype", "two elements", "its old value after the sum", "a complete one after it",
         "a complete one before it", "its old value", "an incomplete one", "one element for all",
         "an element of the next", "an element that is data", "a number that is data",
         "elements that do not exist", "terms in the order of memory"],
)  # fmt: skip
def test_sums_stay_whose_elements_are_read_otherwise(parts: dict[str, str]) -> None:
    kernel = parse_kernel(ROWS.format(**ROW | parts))
    assert update(kernel) is kernel


SUM = """reduction k in 0 .. j { x[j] = x[j] - (x[k] * u[k, j]) }
    x[j] = x[j] / u[j, j]"""
IN_ELEMENTS = """kernel rows(a: float64[20, 20], u: float64[20, 20]) -> (a, x) {
  buffer x: float64[40]
  serial j in 0 .. 20 {
    SUM
  }
}""".replace("SUM", SUM)


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("x[j] = x[j] / u[j, j]", "x[j] = x[j] / u[j, j] a[0, j] = x[j]"),
        ("x[j] = x[j] / u[j, j]", "if (0.0:float64 < u[j, j]) { x[j] = x[j] / u[j, j] }"),
        (SUM, "reduction k in 0 .. j { x[(j - k) + 20] = x[(j - k) + 20] - u[k, j] }"),
        ("float64", "float16"),
    ],
    ids=["two arrays", "a condition", "an element for each term", "halves"],
)
def test_elements_stay_that_are_not_completed_by_one_store(old: str, new: str) -> None:
    assert update(parse_kernel(IN_ELEMENTS)) != parse_kernel(IN_ELEMENTS)
    kernel = parse_kernel(IN_ELEMENTS.replace(old, new))
    assert update(kernel) is kernel


def test_sums_stay_that_read_beside_a_row_which_may_be_the_first() -> None:
    text = """kernel rows(a: float64[4, 20], u: float64[20, 20], n: int32[1]) -> (a) {
  serial i in FIRST .. 4 {
    serial j in 0 .. 20 {
      local w: float64[] {
        w[] = a[i, j]
        reduction k in 0 .. j { w[] = w[] + (a[i, k] * u[k, j]) }
        a[i, j] = min(w[], a[i - 1, j])
      }
    }
  }
}"""
    after_another = parse_kernel(text.replace("FIRST", "1"))
    assert arranged_apart(update, after_another) is not after_another
    # Before the first row the nearest element counts: that of the first.
    maybe_first = parse_kernel(text.replace("FIRST", "max(n[0], 0)"))
    assert update(maybe_first) is maybe_first


def test_sums_stay_that_are_stored_to_one_element() -> None:
    kernel = parse_kernel("""kernel last(b: float64[20], u: float64[20, 20]) -> (c) {
  buffer c: float64[20]
  serial j in 0 .. 20 {
    local w: float64[] {
      w[] = b[j]
      reduction k in 0 .. j { w[] = w[] - (u[k, j] * b[k]) }
      c[0] = w[]
    }
  }
}""")
    assert update(kernel) is kernel


def test_an_author_who_asks_for_an_order_gets_it() -> None:
    text = ROWS.format(**ROW).replace("serial j in 0 .. i {", "serial j in 0 .. i @serial {")
    kernel = parse_kernel(text)
    assert update(kernel) is kernel
