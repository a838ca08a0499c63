"""Sums that leave the loops around them for products of matrices: by text, and by their meaning."""

from __future__ import annotations

import random
import re
import textwrap
from collections.abc import Iterator
from contextlib import ExitStack
from unittest import mock

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from loop_ir import (
    Kernel,
    block_rows,
    defer_sums,
    interpret,
    mark_loops,
    parse_kernel,
    tile_products,
)
from random_examples import examples
from test_c_arrangement import Change, arranged_apart, body_of

ROOM = "msops._loops.to_c"

# A state h that each step changes, and a sum over all steps, which nothing in the loop reads.
RECURRENT = """kernel k(x: float64[48, 24], w: float64[24, 32]) -> (u, h) {{
  buffer u: float64[24, 32]
  buffer h: float64[24]
  serial t in {steps} {{
    local d: float64[32] {{
      serial j in 0 .. 32 {{ d[j] = w[0, j] - x[t, j % 24] }}
      serial i in 0 .. 24 {{
        serial j_1 in 0 .. 32 {{
          u[i, j_1] = {sum}
        }}
      }}
      {after}
      serial i_1 in 0 .. 24 {{ h[i_1] = x[t, i_1] - h[i_1] }}
    }}
  }}
}}"""
STEPS = {"steps": "0 .. 48", "sum": "u[i, j_1] + (d[j_1] * h[i])", "after": ""}


def recurrent(**parts: str) -> Kernel:
    return mark_loops(parse_kernel(RECURRENT.format(**{**STEPS, **parts})))


@pytest.fixture
def anything() -> Iterator[None]:
    """Small sums, and those that no tiles are made of, leave loops, too, in small blocks."""
    with ExitStack() as stack:
        for module in ("reduce.deferring", "order.row_blocks"):
            stack.enter_context(
                mock.patch(f"{ROOM}.{module}.products_of", return_value=[mock.Mock()])
            )
            stack.enter_context(mock.patch(f"{ROOM}.{module}._FEWEST_ROWS", 2))
            stack.enter_context(mock.patch(f"{ROOM}.{module}._MOST_BYTES", 280))
        yield


def assert_means_the_same(change: Change, kernel: Kernel) -> None:
    """Asserts that a kernel computes the same after a pass, also with its loops shuffled."""
    after = arranged_apart(change, kernel)
    rng = np.random.default_rng(1)
    inputs = [rng.integers(-2, 3, b.shape).astype(b.dtype) for b in kernel.parameters]
    shuffled = interpret(after, inputs, shuffle=random.Random(0))
    for got, want in zip(shuffled, interpret(kernel, inputs), strict=True):
        np.testing.assert_array_equal(got, want)


def test_a_sum_over_steps_is_a_product_after_them() -> None:
    after = arranged_apart(defer_sums, recurrent())
    assert body_of(after) == textwrap.dedent("""\
        buffer u: float64[24, 32]
        buffer h: float64[24]
        local h_rows: float64[48, 24] {
          local d_rows: float64[48, 32] {
            serial t in 0 .. 48 {
              local d: float64[32] {
                parallel j in 0 .. 32 {
                  d[j] = w[0, j] - x[t, j % 24]
                }
                parallel j_1 in 0 .. 32 {
                  d_rows[t, j_1] = d[j_1]
                }
                parallel i in 0 .. 24 {
                  h_rows[t, i] = h[i]
                }
                parallel i_1 in 0 .. 24 {
                  h[i_1] = x[t, i_1] - h[i_1]
                }
              }
            }
            parallel i_2 in 0 .. 24 {
              reduction t_row in 0 .. 48 {
                parallel j_1_1 in 0 .. 32 {
                  u[i_2, j_1_1] = u[i_2, j_1_1] + (d_rows[t_row, j_1_1] * h_rows[t_row, i_2])
                }
              }
            }
          }
        }""")
    assert arranged_apart(tile_products, after) is not after


def test_steps_run_in_blocks_whose_rows_fit_a_cache() -> None:
    limits = {"_MOST_BYTES": 40 * (24 + 32) * 8, "_FEWEST_ROWS": 16}
    with mock.patch.multiple(f"{ROOM}.reduce.deferring", **limits):
        halves = body_of(arranged_apart(defer_sums, recurrent()))
        uneven = body_of(arranged_apart(defer_sums, recurrent(steps="1 .. 48")))
    for text in (halves, uneven):
        assert "serial t_block in 0 .. 2 {\n  local h_rows: float64[24, 24] {" in text
    assert "serial t in 0 .. 24 {" in halves
    assert "serial t in 0 .. min(24, 47 - (t_block * 24)) {" in uneven


@pytest.mark.parametrize(("change", "kept"), [("", 1), ("s[] = s[] * 2.0:float64", 2)])
def test_a_value_is_kept_again_once_it_has_changed(change: str, kept: int) -> None:
    kernel = mark_loops(
        parse_kernel(f"""kernel k(x: float64[48, 32], h: float64[24]) -> (u) {{
          buffer u: float64[24, 32]
          serial t in 0 .. 48 {{
            serial j in 0 .. 32 {{
              local s: float64[] {{
                s[] = x[t, j]
                serial i in 0 .. 24 {{ u[i, j] = u[i, j] + (s[] * x[t, i]) }}
                {change}
                serial i_1 in 0 .. 24 {{ u[i_1, j] = u[i_1, j] + (s[] * h[i_1]) }}
              }}
            }}
          }}
        }}""")
    )
    assert body_of(arranged_apart(defer_sums, kernel)).count("local s_rows") == kept


@pytest.mark.parametrize(
    "parts",
    [
        {"after": "serial i_2 in 0 .. 24 { x[t, i_2] = u[i_2, 0] }"},
        {"after": "serial i_2 in 0 .. 24 { u[i_2, 0] = 1.0:float64 }"},
        {"after": "serial i_2 in 0 .. 24 { u[i_2, 0] = max(u[i_2, 0], 1.0:float64) }"},
        {"sum": "u[i, j_1] * (d[j_1] * h[i])"},
        {"sum": "u[i, j_1] + ((x[t, i] > 0.0:float64) ? (d[j_1] * h[i]) : 0.0:float64)"},
        {"steps": "0 .. 31"},
        {"steps": "0 .. 48 @serial"},
    ],
    ids=["it is read", "it is set", "another update", "no sum", "a choice", "few steps",
         "serial by request"],
)  # fmt: skip
def test_sums_stay_that_cannot_leave_or_need_not(parts: dict[str, str]) -> None:
    kernel = recurrent(**parts)
    assert defer_sums(kernel) is kernel


def test_a_value_is_not_kept_where_it_may_not_exist() -> None:
    # The first step has no rows, and no h[-1].
    text = """kernel k(x: float64[48, 48]) -> (u, h) {{
      buffer u: float64[48, 32]
      buffer h: float64[48]
      serial t in 0 .. 48 {{
        local d: float64[32] {{
          serial j in 0 .. 32 {{ d[j] = x[t, j] }}
          serial i in 0 .. t {{
            serial j_1 in 0 .. 32 {{ u[i, j_1] = u[i, j_1] + (d[j_1] * (x[t, i] * h[{at}])) }}
          }}
          h[t] = x[t, 0]
        }}
      }}
    }}"""
    exists, may_not = (mark_loops(parse_kernel(text.format(at=at))) for at in ("t", "t - 1"))
    assert arranged_apart(defer_sums, exists) is not exists
    assert defer_sums(may_not) is may_not


# A row of scores, and sums over rows that count scores from the end, as gradients of attention.
ROWS = """kernel k(x: float64[9, 7], v: float64[9, 5]) -> (u, o, w) {{
  buffer u: float64[9, 5]
  buffer o: float64[9, 5]
  buffer w: float64[9]
  serial i in {rows} {{
    local s: float64[9] {{
      local top: float64[] {{
        serial j in {columns} {{
          local dot: float64[] {{
            dot[] = {start}
            serial d in 0 .. 7 {{ dot[] = dot[] + (x[i, d] * {other}) }}
            s[j] = dot[]
            {beside}
          }}
        }}
        serial e in 0 .. 5 {{
          serial j_1 in {columns} {{
            {target} = {target} + ({term})
          }}
        }}
        {after}
        w[i] = top[]
      }}
    }}
  }}
}}"""


PARTS = {
    "rows": "0 .. 9", "columns": "0 .. (i + 1)", "start": "0.0:float64", "other": "x[j, d]",
    "beside": "top[] = max(top[], s[j])", "target": "u[j_1, e]", "term": "s[j_1] * v[j_1, e]",
    "after": "",
}  # fmt: skip


def marked(**parts: str) -> Kernel:
    return mark_loops(parse_kernel(ROWS.format(**{**PARTS, **parts})))


# The columns of a row, and a column counted from the last one.
BACK = {
    "0 .. (i + 1)": "i - j_1", "0 .. 9": "8 - j_1", "i .. 9": "(i + 8) - j_1", "1 .. i": "i - j_1",
    "0 .. (i - 2)": "(i - 3) - j_1",
}  # fmt: skip
COLUMNS = st.sampled_from([*BACK])
ROWS_OF = st.sampled_from(["0 .. 9", "1 .. 9", "2 .. 7"])


@pytest.mark.usefixtures("anything")
@settings(max_examples=examples(100), deadline=None)
@given(
    rows=ROWS_OF,
    columns=COLUMNS,
    target=st.sampled_from(["u[j_1, e]", "u[8 - j_1, e]", "u[BACK, e]", "o[i, e]"]),
    term=st.sampled_from(
        ["s[j_1] * v[i, e]", "s[BACK] * v[i, e]", "s[8 - j_1] * v[j_1, e]", "s[j_1] - s[e]",
         "s[j_1] * (x[i, e] + top[])", "v[i, e] * v[j_1, e]", "top[] * v[i, e]"]
    ),
    after=st.sampled_from(
        ["", "top[] = top[] * 2.0:float64", "s[0] = 1.0:float64", "x[i, 0] = top[]",
         "serial j_2 in 0 .. 9 { s[j_2] = s[j_2] * 2.0:float64 top[] = top[] + s[j_2] }",
         "v[0, 0] = u[0, 0]"]
    ),
)  # fmt: skip
def test_deferred_sums_mean_the_same(columns: str, **parts: str) -> None:
    parts = {name: text.replace("BACK", BACK[columns]) for name, text in parts.items()}
    assert_means_the_same(defer_sums, marked(columns=columns, **parts))


@pytest.mark.usefixtures("anything")
def test_blocks_of_a_triangle_have_its_terms_alone() -> None:
    assert_means_the_same(defer_sums, marked(term="(s[j_1] + top[]) * v[i, e]"))


@pytest.mark.usefixtures("anything")
@settings(max_examples=examples(60), deadline=None)
@given(
    rows=ROWS_OF,
    columns=COLUMNS,
    beside=st.sampled_from(["top[] = max(top[], s[j])", "top[] = top[] + dot[]", ""]),
    target=st.sampled_from(["o[i, e]", "o[8 - i, e]", "o[i, 4 - e]"]),
    term=st.sampled_from(
        ["s[j_1] * v[j_1, e]", "s[8 - j_1] * v[i, e]", "top[] * v[j_1, e]", "s[j_1] - s[e]"]
    ),
    after=st.sampled_from(
        ["", "o[i, 0] = o[i, 0] + top[]", "top[] = top[] - o[i, 1]",
         "serial j_2 in 0 .. 9 { s[j_2] = s[j_2] * 2.0:float64 top[] = top[] + s[j_2] }"]
    ),
)  # fmt: skip
def test_rows_in_blocks_mean_the_same(**parts: str) -> None:
    assert_means_the_same(block_rows, marked(**parts))


# Each row adds to its sums in steps, as attention by blocks of keys.
STEPWISE = """kernel k(x: float64[36, 7], v: float64[4, 36, 32], z: float64[36]) -> (o, z) {{
  buffer o: float64[36, 32]
  serial i in {rows} {{
    local acc: float64[32] {{
      local m: float64[] {{ local c: float64[] {{
        m[] = x[i, 0]
        serial b in {steps} {{
          local s: float64[36] {{
            serial j in {columns} {{ s[j] = x[i, j % 7] - m[] }}
            {before}
            serial j_1 in {columns} {{
              serial e in 0 .. 32 {{ acc[e] = acc[e] + ({term}) }}
            }}
            m[] = {after}
          }}
        }}
        serial e_1 in 0 .. 32 {{ o[i, e_1] = acc[e_1] - m[] }}
      }} }}
    }}
  }}
}}"""
IN_STEPS = {
    "rows": "0 .. 36", "steps": "0 .. 4", "columns": "0 .. 36", "before": "",
    "term": "s[j_1] * v[b, j_1, e]", "after": "max(m[], s[0])",
}  # fmt: skip


def stepwise(**parts: str) -> Kernel:
    return mark_loops(parse_kernel(STEPWISE.format(**{**IN_STEPS, **parts})))


@pytest.mark.usefixtures("anything")
@pytest.mark.parametrize("change", [defer_sums, block_rows])
@settings(max_examples=examples(20), deadline=None)
@given(
    rows=st.sampled_from(["0 .. 5", "30 .. 36", "2 .. 7"]),
    steps=st.sampled_from(["0 .. 3", "1 .. 4", "1 .. 1"]),
    columns=st.sampled_from(["0 .. 5", "0 .. (i % 4)", "b .. 4"]),
    before=st.sampled_from(
        [
            "",
            "acc[0] = acc[0] * 2.0:float64",
            "z[i] = z[i] + m[]",
            "x[i, 6] = s[1]",
            "c[] = c[] + 1.0:float64 m[] = m[] + c[]",
        ]
    ),
    term=st.sampled_from(
        ["s[j_1] * v[b, j_1, e]", "s[e] * v[b, j_1, e]", "m[] * v[j_1 % 4, b, e]"]
    ),
    after=st.sampled_from(["max(m[], s[0])", "m[] + acc[3]", "z[i]", "s[2]"]),
)
def test_steps_together_mean_the_same(change: Change, **parts: str) -> None:
    assert_means_the_same(change, stepwise(**parts))


def test_a_sum_whose_length_depends_on_its_column_stays_in_its_row() -> None:
    kernel = mark_loops(
        parse_kernel("""kernel k(x: float64[40, 40], w: float64[40, 40]) -> (o) {
          buffer o: float64[40, 40]
          serial i in 0 .. 40 {
            local s: float64[40] {
              serial j in 0 .. 40 { s[j] = x[i, j] + 1.0:float64 }
              serial d in 0 .. 40 {
                serial e in 0 .. d { o[i, d] = o[i, d] + (s[e] * w[e, d]) }
              }
            }
          }
        }""")
    )
    assert block_rows(kernel) is kernel


# A layer between others: the sum of each neuron is a variable.
NEURONS = """kernel k(x: float64[40, 32], w: float64[40, 32], z: float64[40]) -> (o, z) {{
  buffer o: float64[40, 40]
  serial i in 0 .. 40 {{
    local s: float64[32] {{
      serial j in 0 .. 32 {{ s[j] = x[i, j] + 1.0:float64 }}
      serial h in {neurons} {{
        local r: float64[] {{
          r[] = {start}
          serial j_1 in 0 .. 32 {{ r[] = r[] + ({term}) }}
          {after}
          o[i, h] = r[] * r[]
        }}
      }}
    }}
  }}
}}"""


def neurons(**parts: str) -> Kernel:
    given = {
        "neurons": "0 .. 40", "start": "z[h]", "term": "w[h, j_1] * s[j_1]",
        "after": "r[] = max(r[], 0.0:float64)", **parts,
    }  # fmt: skip
    return mark_loops(parse_kernel(NEURONS.format(**given)))


def test_the_sums_of_neurons_are_a_product_of_all_rows() -> None:
    text = body_of(arranged_apart(block_rows, neurons()))
    product = r"(r\[(\w+), (\w+)\]) = \1 \+ \(w\[\3, j_1\] \* s\[\2, j_1\]\)"
    assert re.search(product, text)
    assert "r[i_2, h_2] = max(r[i_2, h_2], 0.0:float64)" in text


def test_rows_are_blocked_without_the_sums_of_neurons_if_these_are_too_many(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    kernel = mark_loops(
        parse_kernel("""kernel k(x: float64[40, 32], w: float64[40, 32]) -> (o, p) {
          buffer o: float64[40, 40]
          buffer p: float64[40, 32]
          serial i in 0 .. 40 {
            local s: float64[32] {
              serial j in 0 .. 32 { s[j] = x[i, j] + 1.0:float64 }
              serial d in 0 .. 32 {
                serial e in 0 .. 32 { p[i, d] = p[i, d] + (s[e] * w[e, d]) }
              }
              serial h in 0 .. 40 {
                local r: float64[] {
                  serial j_1 in 0 .. 32 { r[] = r[] + (w[h, j_1] * s[j_1]) }
                  o[i, h] = r[] * r[]
                }
              }
            }
          }
        }""")
    )
    assert "local r: float64[40, 40]" in body_of(arranged_apart(block_rows, kernel))
    # Of 40 rows of s, but not of those of r.
    monkeypatch.setattr("msops._loops.to_c.order.row_blocks._MOST_BYTES", 40 * 32 * 8)
    alone = body_of(arranged_apart(block_rows, kernel))
    assert "local r: float64[] {" in alone
    assert "local s: float64[40, 32]" in alone


@pytest.mark.usefixtures("anything")
@settings(max_examples=examples(60), deadline=None)
@given(
    neurons=st.sampled_from(["0 .. 40", "3 .. 39", "0 .. (i + 1)", "5 .. 5"]),
    start=st.sampled_from(["z[h]", "0.0:float64", "s[h % 32]"]),
    term=st.sampled_from(["w[h, j_1] * s[j_1]", "w[j_1, h % 32] * s[j_1]", "s[j_1] - r[]"]),
    after=st.sampled_from(
        ["", "r[] = max(r[], 0.0:float64)", "if (r[] < z[h]) { r[] = s[3] }",
         # No sum may grow so large that rounding depends on its order.
         "z[i] = min(max(z[i] + r[], -9.0:float64), 9.0:float64)",
         "s[2] = min(max(s[2] + r[], -9.0:float64), 9.0:float64)",
         "s[h % 32] = min(max(r[], -9.0:float64), 9.0:float64)"]
    ),
)  # fmt: skip
def test_neurons_mean_the_same(**parts: str) -> None:
    assert_means_the_same(block_rows, neurons(**parts))
