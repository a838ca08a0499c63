"""Factors that are copied so that vectors run over an outer loop: by text, and by results."""

from __future__ import annotations

import re
import textwrap
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from unittest import mock

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from loop_ir import (
    PASSES_TO_C,
    Kernel,
    c_transposing,
    interpret,
    kernel_text,
    parse_kernel,
    run_passes,
    transpose_factors,
)
from loop_native import build_together, call, shipped
from quick_cases import in_turn
from random_examples import examples
from test_c_arrangement import arranged_apart, body_of, exact_inputs

# A convolution over channels, along one axis.
ROW = """kernel row(a: {dtype}[{c}, {n}], k: {dtype}[{channels}, {c}, 3], m: int32[4]) -> (b) {{
  buffer b: {dtype}[{channels}, {positions}]
  parallel o in 0 .. {channels} {{
    parallel i in 0 .. {positions} {{
      local s: {dtype}[] {{
        reduction c in 0 .. {c} {{
          reduction p in {bounds} {{ {term} }}
        }}
        b[o, i] = s[]
      }}
    }}
  }}
}}"""
ADDED = "s[] = s[] + (a[c, {at}] * {factor})"
PARTS = {
    "c": 8, "n": 80, "positions": 38, "channels": 16, "dtype": "float32", "term": ADDED,
    "at": "(2 * i) + p", "factor": "k[o, c, p]", "bounds": "0 .. 3",
}  # fmt: skip

# One along two axes.
IMAGE = """kernel image(a: {dtype}[{c}, {h}, {w}], k: {dtype}[{channels}, {c}, 3, 3]) -> (b) {{
  buffer b: {dtype}[{channels}, {rows}, {columns}]
  parallel {loops[0]} {{ parallel {loops[1]} {{ parallel {loops[2]} {{ {body} }} }} }}
}}"""
LOOPS = ("o in 0 .. {channels}", "i in 0 .. {rows}", "j in 0 .. {columns}")
IN_LOCAL = """local s: {dtype}[] {{
  reduction c in 0 .. {c} {{ reduction p in 0 .. 3 {{ reduction q in 0 .. 3 {{ {term} }} }} }}
  b[o, i, j] = s[] + 1.0:{dtype}
}}"""
IN_PLACE = """reduction c in 0 .. {c} {{
  reduction p in 0 .. 3 {{ reduction q in 0 .. 3 {{ {term} }} }}
}}"""
AT = ("((({step} * i) + p) - {before})", "((({step} * j) + q) - {before})")
INSIDE = f"(((0 <= {AT[0]}) && ({AT[0]} < {{h}})) && ((0 <= {AT[1]}) && ({AT[1]} < {{w}})))"
ELEMENT = f"a[c, {AT[0]}, {AT[1]}]"


def row(**parts: Any) -> Kernel:
    parts = {**PARTS, **parts}
    parts["term"] = parts["term"].format(**parts)
    return parse_kernel(ROW.format(**parts))


def image(
    body: str = IN_LOCAL, order: str = "oij", value: str = ELEMENT, guard: str = "", **parts: Any
) -> Kernel:
    defaults = {
        "c": 4,
        "h": 15,
        "w": 15,
        "channels": 16,
        "step": 2,
        "before": 1,
        "dtype": "float32",
    }
    parts = {**defaults, **parts}
    parts["rows"], parts["columns"] = (-(-parts[side] // parts["step"]) for side in "hw")
    target = "s[]" if body == IN_LOCAL else "b[o, i, j]"
    term = f"{target} = {target} + ({value} * k[o, c, p, q])"
    term = f"if ({guard}) {{{{ {term} }}}}" if guard else term
    parts["loops"] = [LOOPS["oij".index(loop)].format(**parts) for loop in order]
    parts["term"] = term.format(**parts)
    return parse_kernel(IMAGE.format(body=body.format(**parts), **parts))


@pytest.fixture
def eager() -> Iterator[None]:
    """Small kernels are changed, too."""
    small: Any = {"_FEWEST_COLUMNS": 2, "FEWEST_READS": 1, "_FEWEST_IN_TILES": 1}
    with mock.patch.multiple(c_transposing, FEWEST_WAITING=1, **small):
        yield


def test_vectors_run_over_channels() -> None:
    text = body_of(arranged_apart(transpose_factors, row()))
    assert text == textwrap.dedent("""\
        buffer b: float32[16, 38]
        local k_columns: float32[8, 3, 16] {
          parallel k_1 in 0 .. 8 {
            parallel k_2 in 0 .. 3 {
              parallel k_0 in 0 .. 16 {
                k_columns[k_1, k_2, k_0] = k[k_0, k_1, k_2]
              }
            }
          }
          parallel i in 0 .. 38 {
            local s: float32[16] {
              reduction c in 0 .. 8 {
                reduction p in 0 .. 3 {
                  parallel o in 0 .. 16 {
                    s[o] = s[o] + (a[c, (i * 2) + p] * k_columns[c, p, o])
                  }
                }
              }
              parallel o_1 in 0 .. 16 {
                b[o_1, i] = s[o_1]
              }
            }
          }
        }""")


def test_conditions_stay_around_the_vectors() -> None:
    text = body_of(arranged_apart(transpose_factors, image(guard=INSIDE)))
    condition, loop = text.index("if ("), text.index("parallel o in")
    assert condition < loop < text.index("s[o] = s[o] + ")


@pytest.mark.parametrize(("order", "body"), in_turn(["oij", "ioj", "ijo"], [IN_LOCAL, IN_PLACE]))
def test_loops_in_any_order_and_sums_of_elements_do(body: str, order: str) -> None:
    text = body_of(arranged_apart(transpose_factors, image(body, order, guard=INSIDE)))
    assert re.findall(r"parallel (\w) in", text) == ["i", "j", "o"]
    assert "k_columns[c, p, q, o" in text


def test_sums_may_be_of_every_second_element() -> None:
    text = kernel_text(image(IN_PLACE, guard=INSIDE)).replace(
        "float32[16, 8, 8]", "float32[16, 15, 8]"
    )
    kernel = parse_kernel(text.replace("b[o, i, j]", "b[o, i * 2, j]"))
    assert "k_columns" in body_of(arranged_apart(transpose_factors, kernel))
    meeting = parse_kernel(text.replace("b[o, i, j]", "b[o, i + j, 0]"))
    assert transpose_factors(meeting) is meeting


def test_two_loads_share_a_copy() -> None:
    term = "s[] = s[] + ((a[c, 2 * i] * k[o, c, p]) * k[o, c, 2 - p])"
    text = body_of(arranged_apart(transpose_factors, row(term=term)))
    assert text.count("local k_columns") == 1
    assert "k_columns[c, p, o]) * k_columns[c, 2 - p, o]" in text


def test_a_factor_that_a_step_does_not_change_is_copied_once() -> None:
    inner = row()
    lines = body_of(inner).splitlines()
    kernel = parse_kernel(
        f"""kernel row(a: float32[8, 80], k: float32[16, 8, 3], m: int32[4]) -> (b) {{
          {lines[0]}
          serial t in 0 .. 3 {{ {" ".join(lines[1:])} }}
        }}""".replace("= s[]\n", "= s[]")
    )
    text = body_of(arranged_apart(transpose_factors, kernel))
    assert text.index("k_columns[k_1, k_2, k_0] =") < text.index("serial t")


def test_many_channels_go_in_blocks() -> None:
    text = body_of(transpose_factors(row(channels=1500)))
    assert "local s: float32[1024]" in text
    assert "o_block in 0 .. 2" in text


def test_windows_without_a_condition_do() -> None:
    # Their products of few neighbours fill no vectors.
    kernel = image(before=0, h=81, w=81, c=16)
    text = body_of(transpose_factors(parse_kernel(kernel_text(kernel).replace("41", "39"))))
    assert "k_columns[c, p, q, o" in text


@pytest.mark.parametrize(
    "parts",
    [
        {"channels": 15},
        {"c": 5},
        {"positions": 31},
        {"dtype": "int32"},
        {"dtype": "float16"},
        {"at": "(i + p)"},
        {"factor": "k[(2 * o) % 16, c, p]"},
        {"at": "(i + o)"},
        {"term": "if (o != p) {{ " + ADDED + " }}"},
        {"term": "if (m[0] != p) {{ " + ADDED + " }}"},
        {"bounds": "m[0] .. 3"},
        {"term": "s[] = s[] * (a[c, {at}] * {factor})"},
        {"term": ADDED + " b[o, i] = b[o, i] + a[c, p]"},
    ],
    ids=["few channels", "short sums", "few reads", "integers", "float16",
         "rows that share vectors", "channels apart", "no element in common",
         "a condition on channels",
         "data in a condition", "data in a bound", "a product", "two sums"],
)  # fmt: skip
def test_others_stay(parts: dict[str, Any]) -> None:
    kernel = row(**parts)
    assert transpose_factors(kernel) is kernel


@pytest.mark.usefixtures("eager")
@settings(max_examples=examples(60), deadline=None)
@given(
    body=st.sampled_from([IN_LOCAL, IN_PLACE]),
    order=st.permutations("oij").map("".join),
    value=st.sampled_from([ELEMENT, f"({INSIDE} ? {ELEMENT} : 0.0:{{dtype}})",
                           "a[c, min(max({at[0]}, 0), {h} - 1), min(q, {w} - 1)]"]),
    h=st.integers(1, 9), w=st.integers(1, 9), step=st.integers(1, 3), before=st.integers(0, 2),
    channels=st.integers(1, 5), c=st.integers(1, 3), dtype=st.sampled_from(["float32", "float64"]),
)  # fmt: skip
def test_columns_mean_the_same(value: str, **parts: Any) -> None:
    at = [each.format(**parts) for each in AT]
    value = value.replace("{at[0]}", at[0])
    arranged_apart(transpose_factors, image(value=value, guard=INSIDE, **parts))


@pytest.mark.usefixtures("avx")
def test_a_padded_convolution_with_a_step_runs_in_tiles() -> None:
    text = body_of(run_passes(image(guard=INSIDE, h=32, w=32, c=16), PASSES_TO_C))
    assert "tile" in text
    # Rows that are side by side in memory are stored when all of them are complete.
    assert re.search(
        r"parallel o_\w+ in 0 .. 16 .*{\n *parallel j_\w+ in 1 .. 16 .*{\n *b\[o", text
    )


C_CASES: list[dict[str, Any]] = [
    {"h": 9, "w": 9}, {"h": 28, "w": 26, "c": 5, "channels": 19}, {"h": 31, "w": 40, "step": 3},
    {"h": 14, "w": 14, "step": 1, "channels": 33}, {"h": 7, "w": 7, "step": 1, "c": 16},
    {"h": 20, "w": 21, "order": "ijo", "dtype": "float64"}, {"h": 30, "w": 17, "body": IN_PLACE},
    {"h": 5, "w": 130, "step": 1, "before": 0, "c": 5}, {"h": 12, "w": 64, "channels": 40},
    {"h": 16, "w": 16, "c": 0}, {"h": 0, "w": 16},
]  # fmt: skip


def test_c_computes_the_same(tmp_path: Path) -> None:
    kernels = [image(guard=INSIDE, **parts) for parts in C_CASES]
    made = [shipped(kernel, number) for number, kernel in enumerate(kernels)]
    library = build_together(tmp_path, [source for _, source in made])
    for kernel, (after, source) in zip(kernels, made, strict=True):
        inputs = exact_inputs(kernel)
        got_all = call(library, after, source, inputs)
        for got, want in zip(got_all, interpret(kernel, inputs), strict=True):
            np.testing.assert_array_equal(got, want)
