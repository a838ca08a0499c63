"""Loops around padded windows in pieces: by text, and by what they compute."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from loop_ir import PASSES_TO_C, Kernel, kernel_text, parse_kernel, partition_windows, run_passes
from loop_native import shipped
from random_examples import examples
from test_c_arrangement import arranged_apart, body_of

# A convolution over some channels, along one axis or two.
ROW = """kernel row(a: float64[{c}, {n}], k: float64[{c}, {taps}], m: int32[4]) -> (b) {{
  buffer b: float64[{n}]
  parallel i in 0 .. {n} {{
    reduction c in 0 .. {c} {{ reduction p in {bounds} {{ {term} }} }}
  }}
}}"""
IMAGE = """kernel image(a: float64[{c}, {h}, {w}], k: float64[2, {c}, 3, 3]) -> (b) {{
  buffer b: float64[2, {h}, {w}]
  parallel o in 0 .. 2 {{ parallel i in 0 .. {h} {{ parallel j in 0 .. {w} {{
    reduction c in 0 .. {c} {{ reduction p in {rows} {{ reduction q in {columns} {{ {term} }} }} }}
  }} }} }}
}}"""
ADDED = "b[i] = b[i] + (a[c, {at}] * k[c, p])"
INSIDE = "((0 <= {at}) && ({at} < {n}))"
GUARDED = f"if ({INSIDE}) {{{{ {ADDED} }}}}"
CHOSEN = f"b[i] = b[i] + (({INSIDE} ? a[c, {{at}}] : 0.0:float64) * k[c, p])"
PARTS = {"c": 9, "n": 40, "taps": 5, "bounds": "0 .. 5", "at": "((i + (2 * p)) - 4)"}


def row(term: str = GUARDED, **parts: Any) -> Kernel:
    parts = {**PARTS, **parts}
    return parse_kernel(ROW.format(term=term.format(**parts), **parts))


def loops_of(kernel: Kernel) -> list[str]:
    """Returns the headers of the loops, without the channels; no condition is left in them."""
    lines = body_of(arranged_apart(partition_windows, kernel)).splitlines()
    assert not any("if (" in line or "?" in line for line in lines)
    kept = [line.strip(" {") for line in lines if " in " in line and " c" not in line]
    return [" ".join(word.split("_")[0] for word in line.split()[1:]) for line in kept]


PIECES = [
    "i in 0 .. 2", "p in 2 .. 5", "i in 2 .. 4", "p in 1 .. 5", "i in 4 .. 36", "p in 0 .. 5",
    "i in 36 .. 38", "p in 0 .. 4", "i in 38 .. 40", "p in 0 .. 3",
]  # fmt: skip


def test_each_piece_sums_the_part_of_a_window_that_lies_inside() -> None:
    assert loops_of(row()) == PIECES
    behind = f"if (!(({{at}} < 0)) && ({{at}} < {{n}})) {{{{ {ADDED} }}}}"
    assert loops_of(row(behind)) == PIECES


def test_a_factor_outside_is_zero_in_its_piece() -> None:
    # Such a term is not left out: zero times infinity is NaN.
    text = body_of(arranged_apart(partition_windows, row(CHOSEN)))
    assert "?" not in text
    assert "b[i] = b[i] + (0.0:float64 * k[c, p])" in text


@pytest.mark.parametrize(
    ("bounds", "at"),
    [
        ("max(0, 1 - i) .. min(3, 41 - i)", "((i + p) - 1)"),
        ("max(i - 1, 0) .. min(i + 2, 40)", "p"),
        ("max(0, i - 1) .. min(40, i + 2)", "p"),
    ],
)
def test_bounds_that_move_are_counted_from_zero(bounds: str, at: str) -> None:
    kernel = row(ADDED, bounds=bounds, at=at, taps=40, c=1)
    found = loops_of(kernel)
    assert [loop for loop in found if loop.startswith("i")] == ["i in 1 .. 39"]
    assert "p in 0 .. 3" in found


def test_longer_loops_around_conditions_stay() -> None:
    kernel = row(" ".join([GUARDED] * 12))
    assert partition_windows(kernel) is kernel


LIFE = """kernel life(g: int32[40, 50]) -> (b) {{
  buffer b: int32[40, 50]
  parallel i in 0 .. 40 {{
    parallel j in 0 .. 50 {{
      local s: int32[] {{
        serial r in max(i - 1, 0) .. min(i + 2, 40) {{
          {steps}
        }}
        b[i, j] = s[]
      }}
    }}
  }}
}}"""


@pytest.mark.parametrize(("count", "is_split"), [(3, True), (25, True), (35, False)])
def test_windows_in_order_are_counted_from_zero_too(count: int, is_split: bool) -> None:
    steps = " ".join(f"s[] = (s[] ^ g[r, j]) * {n + 2}" for n in range(count))
    text = body_of(arranged_apart(partition_windows, parse_kernel(LIFE.format(steps=steps))))
    assert [line.strip() for line in text.splitlines() if "serial r" in line] == (
        ["serial r in 0 .. 2 {", "serial r_1 in 0 .. 3 {", "serial r_2 in 38 .. 40 {"]
        if is_split
        else ["serial r in max(i - 1, 0) .. min(i + 2, 40) {"]
    )


FILTER = """kernel filter(a: float64[{n}], d: float64[{n}]) -> (k) {{
  buffer k: float64[3]
  parallel p in 0 .. 3 {{ reduction i in 0 .. {n} {{
    if ((0 <= ((i + p) - 1)) && (((i + p) - 1) < {n})) {{
      k[p] = k[p] + (d[i] * a[(i + p) - 1])
    }}
  }} }}
}}"""


def test_sums_over_the_positions_of_a_window_are_split_where_it_lies_inside() -> None:
    text = body_of(arranged_apart(partition_windows, parse_kernel(FILTER.format(n=40))))
    whole = "reduction i_1 in 1 .. 39 {\n    k[p] = k[p] + (d[i_1] * a[(i_1 + p) - 1])\n  }"
    assert whole in text
    assert text.count("if (") == 2


def test_sums_over_few_positions_stay() -> None:
    kernel = parse_kernel(FILTER.format(n=5))
    assert partition_windows(kernel) is kernel


def test_a_third_of_the_positions_may_be_at_the_border() -> None:
    found = loops_of(row(n=7, taps=3, bounds="0 .. 3", at="((i + p) - 1)", c=16))
    assert [loop for loop in found if loop.startswith("i")] == ["i in 1 .. 6"]
    kernel = row(n=5, taps=3, bounds="0 .. 3", at="((i + p) - 1)", c=16)
    assert partition_windows(kernel) is kernel


def test_loops_around_an_image_are_nests() -> None:
    at = "a[c, (i + p) - 1, (j + q) - 1]"
    rows, columns = "max(0, 1 - i) .. min(3, 21 - i)", "max(0, 1 - j) .. min(3, 25 - j)"
    term = f"b[o, i, j] = b[o, i, j] + ({at} * k[o, c, p, q])"
    kernel = parse_kernel(IMAGE.format(c=4, h=20, w=24, rows=rows, columns=columns, term=term))
    found = loops_of(kernel)
    assert found.count("o in 0 .. 2") == 9
    at = found.index("i in 1 .. 19", found.index("i in 1 .. 19") + 1)
    assert found[at : at + 4] == ["i in 1 .. 19", "j in 1 .. 23", "p in 0 .. 3", "q in 0 .. 3"]


@pytest.mark.parametrize(
    "parts",
    [
        {"c": 6},
        {"n": 10},
        {"taps": 7, "bounds": "0 .. 7", "n": 90},
        {"at": "((i + (2 * p)) - m[0])"},
        {"term": ADDED, "bounds": "max(0, i - 20) .. (i + 1)", "n": 99, "taps": 99, "at": "p"},
        {"term": ADDED, "bounds": "m[0] .. 5"},
    ],
    ids=["short sums", "few positions", "many pieces", "data in a condition", "a long window",
         "data in a bound"],
)  # fmt: skip
def test_other_windows_stay(parts: dict[str, Any]) -> None:
    kernel = row(**parts)
    assert partition_windows(kernel) is kernel


def test_a_long_row_beside_a_condition_keeps_its_bounds() -> None:
    term = "if (2 <= i) {{ " + ADDED + " }}"
    kernel = row(term, bounds="i .. (i + 20)", at="p", n=60, taps=80)
    at = parse_kernel(kernel_text(kernel).replace("[9, 60]", "[9, 80]"))
    assert "p in i .. (i + 20)" in loops_of(at)


@pytest.mark.parametrize("span", ["0 .. 0", "9 .. 3"])
def test_loops_that_never_run_stay(span: str) -> None:
    outer = parse_kernel(kernel_text(row()).replace("i in 0 .. 40", f"i in {span}"))
    arranged_apart(partition_windows, outer)
    inner = parse_kernel(kernel_text(row()).replace("p in 0 .. 5", f"p in {span}"))
    arranged_apart(partition_windows, inner)


def test_a_product_without_a_factor_in_its_piece_is_no_update() -> None:
    kernel = parse_kernel("""kernel row(a: float64[9, 40]) -> (b) {
      buffer b: float64[40]
      parallel i in 0 .. 40 { local s: float64[] {
        reduction c in 0 .. 9 { reduction p in 0 .. 5 {
          s[] = s[] * (((0 <= ((i + p) - 2)) && (((i + p) - 2) < 40))
            ? a[c, (i + p) - 2] : 1.0:float64)
        } }
        b[i] = s[]
      } }
    }""")
    assert "b[" in shipped(kernel, 0)[1].text


def test_a_condition_on_a_loop_around_stays() -> None:
    inside = "(0 <= (((o + i) + p) - 1)) && ((((o + i) + p) - 1) < 20)"
    added = "b[o, i, j] = b[o, i, j] + (a[c, ((o + i) + p) - 1, j] * k[o, c, p, q])"
    term = f"if ({inside}) {{ {added} }}"
    sides = {"rows": "0 .. 3", "columns": "0 .. 3"}
    kernel = parse_kernel(IMAGE.format(c=4, h=20, w=24, term=term, **sides))
    assert partition_windows(kernel) is kernel


@settings(max_examples=examples(60), deadline=None)
@given(
    n=st.integers(12, 40),
    bounds=st.sampled_from(["0 .. 5", "1 .. 4", "max(0, 2 - i) .. min(5, {n} - i)",
                            "max(i - 3, 0) .. min(i + 2, {n})", "m[0] .. 5"]),
    at=st.sampled_from(["((i + (2 * p)) - 4)", "((i - p) + 2)", "((i + p) - 3)", "p",
                        "(((3 * i) + p) - 7)"]),
    term=st.sampled_from([GUARDED, CHOSEN, ADDED.replace("{at}", "min(max({at}, 0), {n} - 1)"),
                          "if ({at} != 3) {{ b[i] = b[i] + k[c, p] }} " + GUARDED]),
)  # fmt: skip
def test_pieces_mean_the_same(n: int, bounds: str, **parts: Any) -> None:
    arranged_apart(partition_windows, row(n=n, bounds=bounds.format(n=n), taps=n, **parts))


def test_a_padded_convolution_runs_in_tiles() -> None:
    at = "a[c, (i + p) - 1, (j + q) - 1]"
    rows, columns = "(1 <= (i + p)) && ((i + p) < 33)", "(1 <= (j + q)) && ((j + q) < 41)"
    term = f"if (({rows}) && ({columns})) {{ b[o, i, j] = b[o, i, j] + ({at} * k[o, c, p, q]) }}"
    text = IMAGE.format(c=16, h=32, w=40, rows="0 .. 3", columns="0 .. 3", term=term)
    assert "tile" in body_of(run_passes(parse_kernel(text), PASSES_TO_C))
