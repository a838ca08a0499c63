"""Sums of several iterations in tiles of registers: by text, and by what they compute."""

from __future__ import annotations

import re
from itertools import starmap
from typing import Any
from unittest import mock

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from loop_ir import (
    PASSES_TO_C,
    Kernel,
    order_along_memory,
    parse_kernel,
    run_passes,
    tile_products,
    write_out_windows,
)
from quick_cases import in_turn
from random_examples import examples
from test_c_arrangement import arranged, arranged_apart, body_of, marked

pytestmark = pytest.mark.usefixtures("avx")

# A product, and what a row does before and after it.
ROWS = """kernel rows(a: {dtype}[24, 24], b: {dtype}[24, 24], c: {dtype}[24, 24]) -> (b, c) {{
  serial i in {rows} {{
    {before}
    serial k in ({first}) .. ({end}) {{
      serial j in ({begin}) .. ({columns}) {{
        {target} = {target} {sign} ({left} * {right})
      }}
    }}
    {after}
  }}
}}"""
ROW = {
    "dtype": "float64", "rows": "0 .. 24", "first": "0", "end": "24", "begin": "0",
    "columns": "24", "target": "c[i, j]", "sign": "+", "left": "a[i, k]", "right": "b[k, j]",
    "before": "", "after": "",
}  # fmt: skip


def rows(**parts: str) -> Kernel:
    return marked(ROWS.format(**{**ROW, **parts}))


def is_tiled(kernel: Kernel) -> bool:
    return arranged_apart(tile_products, kernel) is not kernel


def test_sums_of_rows_share_what_they_fetch() -> None:
    text = body_of(arranged_apart(tile_products, rows()))
    assert "local c_parts: float64[6, 24]" in text
    assert "parallel i_block in 0 .. 4 {" in text
    assert "parallel j_block in 0 .. 3 {" in text
    adding = [line for line in text.splitlines() if "tile" in line and " = tile" in line]
    in_registers = [line for line in adding if "_parts" not in line]
    assert len(in_registers) == 12
    assert sum("b[k, (j_block * 8) + lane]" in line for line in in_registers) == 6


def test_rows_that_fill_no_block_are_a_smaller_one() -> None:
    text = body_of(arranged_apart(tile_products, rows(rows="0 .. 16")))
    assert "parallel i_block in 0 .. 2 {" in text
    assert "local c_parts_1: float64[4, 24]" in text
    alone = body_of(arranged_apart(tile_products, rows(rows="0 .. 13")))
    assert "local c_parts_1" not in alone
    assert "c[12, j_1] = c[12, j_1] + (a[12, k_1] * b[k_1, j_1])" in alone


@pytest.mark.parametrize(("count", "rows_of_a_tile"), [(16, [8]), (18, [6]), (20, [6, 2])])
def test_with_more_registers_rows_that_leave_no_rest_are_a_tile(
    count: int, rows_of_a_tile: list[int]
) -> None:
    with mock.patch("msops._base.processor.vector_bytes", return_value=64):
        text = body_of(arranged_apart(tile_products, rows(rows=f"0 .. {count}")))
    assert [
        int(n) for n in re.findall(r"local c_parts\w*: float64\[(\d+), ", text)
    ] == rows_of_a_tile


def test_columns_that_fill_no_tile_are_those_of_another_tile() -> None:
    text = body_of(arranged_apart(tile_products, rows(begin="3", columns="22")))
    assert text.count("local tile") == 12 + 6
    assert "parallel j in" not in text.partition("parallel i in")[0]


TERMS = [("0", "24"), ("i + 1", "24"), ("0", "i"), ("23 - i", "24"), ("0", "23 - i")]
COLUMNS = [("3", "22"), ("0", "i"), ("23 - i", "24")]


@pytest.mark.parametrize(
    ("first", "end", "begin", "columns"),
    in_turn(starmap(pytest.param, TERMS), starmap(pytest.param, COLUMNS)),
)
def test_rows_add_the_terms_of_their_own(first: str, end: str, begin: str, columns: str) -> None:
    assert is_tiled(
        rows(rows="1 .. 24", first=first, end=end, begin=begin, columns=columns, sign="-")
    )


@pytest.mark.parametrize("target", ["c[i, (k % 2) + j]", "c[k // 12, i + j]"])
def test_terms_of_several_sums_stay(target: str) -> None:
    assert not is_tiled(rows(rows="0 .. 8", columns="16", target=target))


def test_rows_whose_terms_have_no_iteration_in_common_add_their_own() -> None:
    assert is_tiled(rows(rows="0 .. 16", first="i", end="i + 8"))


BEFORE = "serial m in 0 .. 24 { b[i, m] = c[i, m] }"
# Each row needs those below it as they were, or those above it as they are now.
IN_ORDER = """kernel in_order(a: float64[24, 24], b: float64[24, 24]) -> (b) {{
  serial i in 0 .. 24 {{
    serial j in 0 .. 24 {{
      serial k in {terms} {{
        b[i, j] = b[i, j] - (a[i, k] * b[k, j])
      }}
      b[i, j] = b[i, j] * 2.0:float64
    }}
  }}
}}"""


@pytest.mark.parametrize("terms", ["(i + 1) .. 24", "0 .. i"])
def test_an_order_that_terms_in_common_do_not_need_is_kept(terms: str) -> None:
    kernel = order_along_memory(marked(IN_ORDER.format(terms=terms)))
    text = body_of(arranged_apart(tile_products, kernel))
    assert "serial i_block in 0 .. 4 {" in text


def test_terms_of_an_order_that_the_rows_before_write_are_not_read_early() -> None:
    assert is_tiled(rows(before=BEFORE, end="i"))
    kernel = order_along_memory(marked(IN_ORDER.format(terms="0 .. (i + 1)")))
    assert tile_products(kernel) is kernel


@pytest.mark.parametrize(
    "parts",
    [
        {"before": BEFORE, "end": "i + 1"},
        {"before": BEFORE, "first": "i"},
        {"before": "b[i // 2, 0] = c[i, i]", "end": "i"},
        {"before": "a[i, 0] = c[i, 0]"},
        {"after": "b[0, 0] = c[i, i]"},
        {"after": "b[23 - i, 0] = c[i, i]", "end": "i"},
    ],
)
def test_rows_that_write_what_later_terms_read_stay(parts: dict[str, str]) -> None:
    assert not is_tiled(rows(**parts))


@pytest.mark.parametrize(
    "parts",
    [
        {"dtype": "int32"},
        {"rows": "0 .. 3"},
        {"end": "7"},
        {"columns": "1"},
        {"right": "b[j, k]"},
        {"left": "a[k, j]"},
        {"right": "b[k, i]"},
        {"target": "c[j, i]"},
        {"rows": "0 .. 24", "left": "exp(a[i, k])"},
        {"begin": "k"},
        {"columns": "24 - k"},
    ],
    ids=["integers", "few rows", "few terms", "few columns", "strided", "nothing of a row",
         "nothing shared", "strided target", "functions", "columns that begin at the term",
         "columns that end at the term"],
)  # fmt: skip
def test_sums_that_gain_nothing_in_tiles_stay(parts: dict[str, str]) -> None:
    assert not is_tiled(rows(**parts))


def test_a_local_of_the_loop_is_not_read_before_it() -> None:
    kernel = marked("""kernel inner(a: float32[24, 24], b: float32[24, 24]) -> (c) {
      buffer c: float32[24, 24]
      serial i in 0 .. 24 {
        local s: float32[24] {
          serial k in 0 .. 24 { s[k] = a[i, k] * 2.0:float32 }
          serial k_1 in 0 .. 24 {
            serial j in 0 .. 24 { c[i, j] = c[i, j] + (s[k_1] * b[k_1, j]) }
          }
        }
      }
    }""")
    assert not is_tiled(kernel)


PLAIN = """kernel plain(a: float32[16, {k}], b: float32[{k}, 96]) -> (c) {{
  buffer c: float32[16, 96]
  serial i in 0 .. 16 {{
    serial j in 0 .. 96 {{
      serial k in 0 .. {k} {{
        c[i, j] = c[i, j] + (a[i, k] * b[k, j])
      }}
    }}
  }}
}}"""


@pytest.mark.parametrize(("terms", "is_long"), [(15, False), (16, True), (200, True)])
def test_a_product_with_long_sums_is_no_window(terms: int, is_long: bool) -> None:
    kernel = marked(PLAIN.format(k=terms))
    written = arranged(write_out_windows, kernel)
    assert ("reduction k in" in body_of(written)) is is_long
    text = body_of(run_passes(kernel, PASSES_TO_C))
    assert ("local c_parts" in text) is is_long


CHANNELS = """kernel channels(a: float32[{c}, 20, 44], w: float32[{c}, 3, 3]) -> (b) {{
  buffer b: float32[18, 42]
  serial i in 0 .. 18 {{
    serial j in 0 .. 42 {{
      b[i, j] = 0.0:float32
      serial c in 0 .. {c} {{
        serial k in 0 .. 3 {{
          serial l in 0 .. 3 {{
            b[i, j] = b[i, j] + (a[c, i + k, j + l] * w[c, k, l])
          }}
        }}
      }}
    }}
  }}
}}"""


@pytest.mark.parametrize(("channels", "is_tiled"), [(1, False), (2, True), (9, True)])
def test_a_convolution_with_long_sums_goes_into_tiles(channels: int, is_tiled: bool) -> None:
    kernel = marked(CHANNELS.format(c=channels))
    arranged_apart(write_out_windows, kernel)
    text = body_of(arranged(lambda k: run_passes(k, PASSES_TO_C), kernel))
    assert ("local tile" in text) is is_tiled


@settings(max_examples=examples(60), deadline=None)
@given(
    first=st.sampled_from(["0", "i", "i + 1", "23 - i", "3"]),
    end=st.sampled_from(["24", "i", "i + 1", "24 - i", "20"]),
    target=st.sampled_from(["c[i, j]", "b[i, j]", "b[23 - i, j]"]),
    left=st.sampled_from(["a[i, k]", "a[k, i]", "b[i, k]", "b[k, i]", "c[k, i]"]),
    before=st.sampled_from(["", "b[i, i] = c[i, 0]", "b[23 - i, 0] = c[i, 0]"]),
    after=st.sampled_from(["", "c[i, 0] = b[i, i]", "a[23 - i, 0] = b[0, i]"]),
)
def test_tiles_mean_the_same(**parts: str) -> None:
    arranged_apart(tile_products, rows(**parts))


# Products in a loop whose bounds they may have; d is what the loop changes.
PACKED = """kernel packed(a: float64[24, 24], b: float64[24, 24], d: float64[24, 24]) -> (c, d) {{
  buffer c: float64[24, 24]
  serial m in 0 .. 2 {{
    serial i in {rows} {{
      serial k in ({first}) .. ({end}) {{
        serial j in {columns} {{
          c[i, j] = c[i, j] {sign} ({row} * {column})
        }}
      }}
      {after}
    }}
    d[m, m + 1] = c[11, m]
  }}
}}"""
COPIED = {
    "rows": "0 .. 12", "first": "0", "end": "12", "columns": "0 .. 24", "sign": "+",
    "row": "a[i, k]", "column": "b[k, j]", "after": "",
}  # fmt: skip
LIMITS = {"_FEWEST_BYTES": 0, "_FEWEST_ROWS": 12, "_FEWEST_TILES": 1}


def packed(**parts: str) -> str:
    """Returns the text of a product that is packed though it is small."""
    kernel = marked(PACKED.format(**{**COPIED, **parts}))
    with mock.patch.multiple("msops._loops.to_c.order.packing", **LIMITS):
        return body_of(arranged_apart(tile_products, kernel))


@pytest.mark.parametrize(
    ("column", "copy"),
    [
        ("b[k, j]", "panels[j_block, k, lane] = b[k, (j_block * 8) + lane]"),
        ("(b[k, j] - a[m, j])", "b[k, (j_block * 8) + lane] - a[m, (j_block * 8) + lane]"),
        ("d[k, j]", "panels[j_block, k, lane] = d[k, (j_block * 8) + lane]"),
    ],
)
def test_what_all_rows_fetch_is_copied_in_the_order_of_the_tiles(column: str, copy: str) -> None:
    text = packed(column=column)
    assert copy in text.partition("parallel i_block")[0]
    assert "* panels[" in text.partition("parallel i_block")[2]


@pytest.mark.parametrize(
    "parts",
    [
        {"rows": "(m + m) .. 13"},
        {"end": "(i + i) + 2"},
        {"columns": "0 .. (24 - m)"},
        {"column": "d[k, j]", "after": "d[i + 8, 0] = c[i, 0]", "end": "i + 8"},
        {"row": "a[i, k]", "column": "((k < 11) ? b[k + 13, j] : b[i, j])"},
    ],
    ids=["few rows", "terms that no row has", "columns that move", "what rows write", "a choice"],
)
def test_what_rows_do_not_share_is_not_copied(parts: dict[str, str]) -> None:
    text = packed(**parts)
    assert "local tile" in text
    assert "panels" not in text


def test_the_terms_of_all_rows_are_copied() -> None:
    text = packed(first="i + 1", end="i + 12")
    assert "local panels: float64[3, 22, 8]" in text
    assert "parallel k in 1 .. 23" in text


@pytest.mark.parametrize("row", ["a[k, i]", "(a[i, k] - d[m, i])"])
def test_a_strided_or_computed_factor_of_a_block_is_copied_once(row: str) -> None:
    text = packed(row=row).replace("k_1", "k")
    assert "local strip: float64[12, 6]" in text
    assert f"strip[k, i - (i_block * 6)] = {row.strip('()')}" in text
    assert "strip" not in packed()


@settings(max_examples=examples(24), deadline=None)
@given(
    rows=st.sampled_from(["0 .. 12", "m .. 12", "0 .. (11 - m)", "1 .. 12"]),
    first=st.sampled_from(["0", "i", "m", "12 - i", "i + 1"]),
    end=st.sampled_from(["12", "i", "12 - i", "13 - m", "i + 12"]),
    columns=st.sampled_from(["0 .. 24", "2 .. 24", "m .. (m + 20)", "m .. 24"]),
    sign=st.sampled_from(["+", "-"]),
    row=st.sampled_from(["a[i, k]", "a[k, i]", "(a[i, k] - d[m, i])", "d[k, i]"]),
    column=st.sampled_from(["b[k, j]", "(b[k, j] - a[m, j])", "d[k, j]", "(d[k, j] * a[k, k])"]),
    after=st.sampled_from(["", "d[i, 0] = c[i, 1]", "d[12 - i, i] = c[i, 2]"]),
)
def test_packed_products_mean_the_same(**parts: str) -> None:
    packed(**parts)


# Each column is in a row of memory of its own.
APART = """kernel apart(a: float64[{m}, {k}], b: float64[{n}, {k}]) -> (c) {{
  buffer c: float64[{m}, {n}]
  parallel i in 0 .. {m} {{
    parallel j in {begin} .. {end} {{
      {before}
      reduction k in {first} .. {k} {{
        c[i, j] = c[i, j] + ({left} * {right})
      }}
    }}
  }}
}}"""
FACTORS = {"left": "a[i, k]", "right": "b[j, k]", "before": "", "begin": "0", "first": "0"}


def apart(m: int = 37, n: int = 21, k: int = 9, **parts: str) -> str:
    """Returns the text of a product as C gets it."""
    kernel = parse_kernel(APART.format(m=m, n=n, k=k, **{"end": n, **FACTORS, **parts}))
    return body_of(arranged_apart(lambda k: run_passes(k, PASSES_TO_C), kernel))


def test_columns_apart_are_brought_together_in_panels() -> None:
    text = apart()
    assert "local panels: float64[3, 9, 8]" in text
    assert "panels[j_block, k, lane] = b[(j_block * 8) + lane, k]" in text
    # The last tile has the last eight of 21 columns, and the last block one row.
    assert "panels[2, k_1, lane_1] = b[lane_1 + 13, k_1]" in text
    tiles = text.partition("parallel i_block")[2]
    assert "b[" not in tiles
    assert "a[36, k_" in tiles


def test_a_term_may_be_a_sum_of_two_products() -> None:
    sums = "(a[i, k] + b[j, k])"
    text = apart(left=f"({sums} * (a[i, k] - b[j, k]))", right=f"{sums}")
    assert "local tile: " in text
    assert "local tile: " not in apart(left=f"({sums} * {sums})", right=f"({sums} * {sums})")


def test_rows_of_different_lengths_have_tiles_of_whole_panels() -> None:
    text = apart(m=48, n=48, end="(i + 1)")
    assert "local panels: float64[6, 9, 8]" in text
    # Five more rows than the first of a block may reach one more tile.
    assert "parallel j_block_1 in 0 .. ((((i_block * 3) + 2) // 4) + 1) {" in text
    assert "c[i, j] = c[i, j] + c_parts[i - (i_block * 6), j]" in text


@pytest.mark.parametrize(
    "parts",
    [
        {"right": "(b[j, k] * a[i, j])"},
        {"end": "((i // 2) + 1)"},
        {"begin": "i", "end": "36", "right": "b[j - i, k]"},
        {"first": "i", "right": "b[k - j, 0]"},
    ],
    ids=["loads of its own", "steps of two", "columns that move", "terms that no row has"],
)
def test_rows_of_different_lengths_stay_without_panels(parts: dict[str, Any]) -> None:
    assert "panels" not in apart(**{"m": 36, "n": 36, "k": 36, "end": "(i + 1)", **parts})


SCORES = """kernel scores(q: float64[36, 9], k: float64[36, 9]) -> (out) {
  buffer out: float64[36]
  parallel i in 0 .. 36 {
    reduction j in 0 .. (i + 1) {
      local dot: float64[] {
        dot[] = q[i, 0]
        reduction d in 0 .. 9 { dot[] = dot[] + (q[i, d] * k[j, d]) }
        out[i] = max(out[i], dot[])
      }
    }
  }
}"""


def test_sums_in_a_variable_of_rows_of_different_lengths_go_into_tiles() -> None:
    kernel = parse_kernel(SCORES)
    text = body_of(arranged_apart(lambda k: run_passes(k, PASSES_TO_C), kernel))
    assert "_block, d, lane] = k[" in text


@settings(max_examples=examples(40), deadline=None)
@given(
    m=st.integers(32, 39),
    begin=st.sampled_from(["0", "3", "i", "(39 - i)", "(i + 20)"]),
    end=st.sampled_from(["(i + 1)", "(i + 9)", "(60 - i)", "(39 - i)", "i", "(i + 21)"]),
    first=st.sampled_from(["0", "max(0, i - 30)", "(i % 2)"]),
    right=st.sampled_from(["b[j, k]", "(b[j, k] * b[j, 0])", "(b[j, k] - a[0, k])"]),
)
def test_rows_of_different_lengths_mean_the_same(**parts: Any) -> None:
    apart(n=60, k=10, **parts)


@pytest.mark.parametrize(
    "parts",
    [
        {"m": 31},
        {"n": 1},
        {"k": 7},
        {"left": "a[0, k]"},
        {"left": "floor(a[i, k])"},
        {"right": "b[j, i // 5]"},
        {"k": 128, "n": 15},
    ],
    ids=["few rows", "no vector", "few terms", "the same in all rows", "a function",
         "other columns in each row", "few columns of long sums"],
)  # fmt: skip
def test_columns_apart_stay_where_panels_gain_nothing(parts: dict[str, Any]) -> None:
    assert "panels" not in apart(**parts)


def test_an_expression_of_columns_apart_is_copied_once() -> None:
    text = apart(left="(a[i, k] - b[j, k])", right="(a[i, k] - b[j, k])")
    assert text.count("local panels") == 1


@settings(max_examples=examples(40), deadline=None)
@given(
    m=st.integers(30, 40),
    n=st.integers(1, 24),
    k=st.integers(7, 12),
    left=st.sampled_from(["a[i, k]", "(a[i, k] - b[j, k])", "a[i, 0]"]),
    right=st.sampled_from(["b[j, k]", "(b[j, k] * b[j, 0])", "b[j, (k + 1) % 7]"]),
    before=st.sampled_from(["", "c[i, j] = a[i, j % 7]"]),
)
def test_products_of_columns_apart_mean_the_same(**parts: Any) -> None:
    apart(**parts)


BATCH = """kernel batch(a: float64[5, 36, 9], b: float64[21, 9]) -> (c, b) {{
  buffer c: float64[5, 36, 21]
  serial n in 0 .. 5 {{
    parallel i in 0 .. 36 {{
      reduction k in 0 .. 9 {{
        parallel j in 0 .. 21 {{
          c[n, i, j] = c[n, i, j] + (a[n, i, k] * {factor})
        }}
      }}
    }}
    {after}
  }}
}}"""


@pytest.mark.parametrize(
    ("parts", "first"),
    [
        ({}, "local panels: float64[3, 9, 8] {"),
        ({"factor": "(b[j, k] * a[n, 0, 0])"}, "serial n in 0 .. 5 {"),
        ({"after": "b[n, 0] = 1.0:float64"}, "serial n in 0 .. 5 {"),
    ],
    ids=["shared", "an expression of the loop", "written by the loop"],
)
def test_panels_are_filled_before_the_loops_that_do_not_change_them(
    parts: dict[str, str], first: str
) -> None:
    kernel = parse_kernel(BATCH.format(**{"factor": "b[j, k]", "after": "", **parts}))
    text = body_of(arranged_apart(tile_products, kernel))
    assert text.splitlines()[1] == first
    assert text.count("local panels") == 1
