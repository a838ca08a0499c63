"""Elements at positions that are data, gathered in any case: by text, and what is computed."""

from __future__ import annotations

import ctypes
import functools
import re
from pathlib import Path
from unittest import mock

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from loop_ir import (
    PASSES_TO_C,
    CSource,
    Kernel,
    gather_guarded_elements,
    interpret,
    parse_kernel,
    prove_indices,
    run_passes,
)
from loop_native import build_together, call, printed, shipped
from random_examples import examples
from test_c_arrangement import arranged
from test_c_carrying import lines_of

from msops._base import processor

pytestmark = pytest.mark.usefixtures("avx")

WARP = """kernel warp(a: {dtype}[8, 20], p: {position}[12], q: {position}[12], z: int32[12],
  n: int32[12]) -> (y) {{
  buffer y: {dtype}[3, 12]
  parallel i in 0 .. 3 {{
    {loop} j in 0 .. 12 {{
      local r: int32[] {{ local c: int32[] {{
        {row}
        c[] = int32(q[j])
        {body}
      }} }}
    }}
  }}
}}"""
PARTS = {
    "dtype": "float32", "position": "float32", "loop": "parallel",
    "row": "r[] = int32(p[j]) + z[j]",
}  # fmt: skip
INSIDE = "((r[] >= 0) && (r[] < 8)) && ((c[] >= 0) && (c[] < 20))"
CHOSEN = "((r[] >= 0) & (r[] < 8)) & ((c[] >= 0) & (c[] < 20))"
NEAREST = "a[min(max(r[], 0), 7), min(max(c[], 0), 19)]"


def warp(body: str, **parts: str) -> Kernel:
    return prove_indices(parse_kernel(WARP.format(body=body, **{**PARTS, **parts})))


def changed(kernel: Kernel) -> list[str]:
    return lines_of(arranged(gather_guarded_elements, kernel))


def test_an_element_under_a_condition_is_gathered_and_chosen() -> None:
    lines = changed(warp(f"if ({INSIDE}) {{ y[i, j] = a[r[], c[]] }}"))
    assert f"y[i, j] = ({CHOSEN}) ? {NEAREST} : y[i, j]" in lines
    assert not any(line.startswith("if") for line in lines)


def test_the_other_branch_is_chosen_where_the_condition_fails() -> None:
    lines = changed(warp(f"if ({INSIDE}) {{ y[i, j] = a[r[], c[]] }} else {{ y[i, j] = p[j] }}"))
    assert f"y[i, j] = !({CHOSEN}) ? p[j] : y[i, j]" in lines


def test_a_choice_of_elements_needs_no_branch() -> None:
    lines = changed(warp(f"y[i, j] = p[j] + (({INSIDE}) ? a[r[], c[]] : 2.0:float32)"))
    assert f"y[i, j] = p[j] + (({CHOSEN}) ? {NEAREST} : 2.0:float32)" in lines


def test_variables_of_a_branch_are_set_in_any_case() -> None:
    body = f"""if ({INSIDE}) {{
      local v: float32[] {{ v[] = a[r[], c[]] * 2.0:float32 y[i, j] = v[] }}
    }}"""
    lines = changed(warp(body))
    assert f"v[] = {NEAREST} * 2.0:float32" in lines
    assert f"y[i, j] = ({CHOSEN}) ? v[] : y[i, j]" in lines


def test_an_index_of_which_nothing_is_known_is_clamped_when_it_is_printed() -> None:
    # The sum may wrap, and then the condition holds.
    body = "if ((c[] + 1) < 20) { local v: float32[] { v[] = a[3, c[] + 1] y[i, j] = v[] } }"
    assert "v[] = ((c[] + 1) < 20) ? a[3, c[] + 1] : v[]" in changed(warp(body))


COLOURS = """kernel colours(a: float32[8, 3], p: int32[12], n: int32[1]) -> (y) {{
  buffer y: float32[12, 3]
  parallel j in 0 .. 12 {{
    local r: int32[] {{
      r[] = p[j] * 2
      {more}
      if ((r[] >= 0) && (r[] < 8)) {{
        y[j, 0] = a[r[], 0]
        y[j, 1] = a[r[], 1]
        y[j, 2] = a[r[], 2]
      }}
    }}
  }}
}}"""


@pytest.mark.parametrize(("more", "vector"), [("", "ivdep"), ("y[j, n[0] & 1] = 4.0:float32", "")])
def test_a_loop_that_stores_neighbours_gets_its_vectors(more: str, vector: str) -> None:
    # Unless gcc would put the stores into another order.
    kernel = parse_kernel(COLOURS.format(more=more))
    (loop,) = gather_guarded_elements(prove_indices(kernel)).body
    assert loop.vector == vector


@pytest.mark.parametrize(
    ("body", "parts"),
    [
        ("y[i, j] = a[min(max(r[], 0), 7), 2]", {}),
        (f"if ({INSIDE}) {{ y[i, j] = a[r[], c[]] }}", {"loop": "serial"}),
        (f"if ({INSIDE}) {{ y[i, j] = a[r[], c[]] }}", {"dtype": "int16", "position": "int16"}),
        (f"if (({INSIDE}) && (i < j)) {{ y[i, j] = a[r[], c[]] }}", {}),
        (f"if ({INSIDE}) {{ y[i, j] = a[r[], c[]] c[] = 3 }}", {}),
        (f"if ({INSIDE}) {{ y[i, c[]] = a[r[], c[]] }}", {}),
        (f"if ({INSIDE}) {{ y[i, (j * 5) % 12] = a[r[], c[]] }}", {}),
        (f"if ({INSIDE}) {{ y[i, j] = a[r[], c[]] y[i, 3] = y[i, n[0]] }}", {}),
        (f"if (({INSIDE}) && (a[r[], c[]] > 1.0:float32)) {{ y[i, j] = a[r[], c[]] }}", {}),
        ("if (((c[] + 1) < 20) && (a[3, c[] + 1] > q[j])) { y[i, j] = a[2, c[] + 1] }", {}),
        (f"if ({INSIDE}) {{ y[i, j] = float32(c[] // r[]) + a[r[], c[]] }}", {}),
        ("if ((z[2] >= 0) && (z[2] < 8)) { y[i, j] = a[z[2], j] }", {}),
        ("if ((r[] >= 0) && (r[] < 8)) { y[i, j] = a[r[], j] }", {"row": "r[] = z[2]"}),
        (f"if ({INSIDE}) {{ {'y[i, j] = y[i, j] * a[r[], c[]] ' * 65} }}", {}),
    ],
    ids=[
        "no condition", "an order", "elements of two bytes", "a condition of the loops",
        "a condition that changes", "a store to anywhere", "another order",
        "a store to one element", "a condition that reads",
        "a condition that reads what may not exist",
        "a division", "no gather", "one element", "much work",
    ],
)  # fmt: skip
def test_other_loops_stay(body: str, parts: dict[str, str]) -> None:
    kernel = warp(body, **parts)
    assert gather_guarded_elements(kernel) == kernel


def test_iterations_that_are_promised_to_be_apart_store_nothing_more() -> None:
    body = f"if ({INSIDE}) {{ y[i, j] = a[r[], c[]] }}"
    text = WARP.format(body=body, **PARTS)
    promised = prove_indices(
        parse_kernel(text.replace("parallel i in 0 .. 3 {", "parallel i in 0 .. 3 @parallel {"))
    )
    assert gather_guarded_elements(promised) == promised


def test_processors_that_gather_nothing_keep_their_branches() -> None:
    kernel = warp(f"if ({INSIDE}) {{ y[i, j] = a[r[], c[]] }}")
    with mock.patch.object(processor, "vector_bytes", return_value=16):
        assert gather_guarded_elements(kernel) is kernel


def test_nothing_past_the_end_of_a_sum_is_read() -> None:
    # What `sum_under_masks` makes: an index in range where the condition holds, and no gather.
    kernel = parse_kernel("""kernel last(first: int32[2], value: float32[9]) -> (y) {
      buffer y: float32[8]
      parallel lane in 0 .. 8 {
        if ((first[0] + lane) < first[1]) {
          y[lane] = value[within(first[0] + lane, 0, 8)]
        }
      }
    }""")
    assert gather_guarded_elements(kernel) is kernel


def test_elements_that_conditions_keep_in_range_are_read_under_them() -> None:
    # Intervals do not know that the remainder is positive there, so nothing clamps the index.
    kernel = parse_kernel("""kernel thirds(a: float32[2]) -> (y) {
      buffer y: float32[99]
      parallel j in 0 .. 99 { y[j] = ((j % 3) > 0) ? a[(j % 3) - 1] : 1.0:float32 }
    }""")
    text = printed(run_passes(kernel, PASSES_TO_C)).text
    assert re.search(r" \? a\[[^;]*\] : 1\.0f;", text)
    assert "clamp" not in text


def test_indices_are_checked_under_their_conditions() -> None:
    kernel = run_passes(parse_kernel(WARP.format(body=BODIES[3], **PARTS)), PASSES_TO_C)
    texts = [printed(kernel, check_bounds=checks).text for checks in (False, True)]
    assert [" ? a[" in text or " ? (a[" in text for text in texts] == [False, True]


BODIES = (
    f"if ({INSIDE}) {{ y[i, j] = a[r[], c[]] }}",
    f"if ({INSIDE}) {{ y[i, j] = a[r[], c[]] }} else {{ y[i, j] = 5.0:float32 }}",
    f"y[i, j] = (({INSIDE}) ? a[r[], c[]] : q[j])",
    """local v: float32[] { v[] = 0.5:float32
      if (((c[] >= 0) && ((c[] + 1) < 20)) && ((r[] < 8) && (r[] > 0))) {
        local s: float32[] {
          s[] = a[r[], c[]] - a[r[] - 1, c[] + 1]
          v[] = v[] + s[]
          if (q[j] > 1.0:float32) { v[] = v[] * 3.0:float32 }
        }
      }
      y[i, j] = v[] }""",
    "if (!((n[j] < 0) || (n[j] >= 20))) { y[i, j] = exp(a[i, n[j]]) }",
)
WHOLE = st.sampled_from([0, 1, -1, 19, 20, 2**31 - 1, -(2**31)])
NUMBERS = st.sampled_from(
    [0.0, -0.0, 1.5, 7.0, 7.99, 19.0, 20.0, -1.0, np.nan, np.inf, -np.inf, 3e9]
)


@given(st.data())
@settings(max_examples=examples(10), deadline=None)
def test_c_computes_what_the_interpreter_does(
    tmp_path_factory: pytest.TempPathFactory, data: st.DataObject
) -> None:
    library, pairs = _built(tmp_path_factory.getbasetemp())
    p, q, z = (
        data.draw(st.lists(each, min_size=12, max_size=12)) for each in (NUMBERS, NUMBERS, WHOLE)
    )
    a = np.random.default_rng(0).standard_normal((8, 20)).astype(np.float32)
    whole = np.array(z, "int32")
    inputs = [a, np.array(p, "float32"), np.array(q, "float32"), whole, whole[::-1].copy()]
    for kernel, (arranged_kernel, source) in pairs:
        (got,) = call(library, arranged_kernel, source, inputs)
        np.testing.assert_allclose(got, interpret(kernel, inputs)[0], rtol=1e-6)


@functools.cache
def _built(folder: Path) -> tuple[ctypes.CDLL, list[tuple[Kernel, tuple[Kernel, CSource]]]]:
    """Returns the library of all bodies, and for each body the kernel and what it became."""
    kernels = [parse_kernel(WARP.format(body=body, **PARTS)) for body in BODIES]
    ready = [shipped(kernel, number) for number, kernel in enumerate(kernels)]
    assert all(" ? " not in source.text.partition("ms_body")[2] for _, source in ready)
    library = build_together(folder, [source for _, source in ready], ("-O3", "-march=native"))
    return library, list(zip(kernels, ready, strict=True))
