"""Raised kernels as JAX functions: what they compute, and what XLA gets to see."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

import jax
import numpy as np
import pytest
from conftest import ROOT
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from jax.test_util import check_grads
from loop_agreement import assert_agree
from loop_corpus import BY_NAME, CORPUS, specialised
from loop_idioms import idioms
from loop_ir import Kernel, TooComplex, interpret, parse_kernel, to_raised
from loop_ir import build_jax as build
from loop_kernels.case import Case
from loop_patterns import patterns
from loop_strategies import WIDE_DTYPES, kernels
from loop_strategies import Case as Random
from quick_cases import one_in
from random_examples import examples, on_random
from tvm_corpus import TVM_CORPUS, specialised_tvm

pytestmark = pytest.mark.usefixtures("as_users_compile")


@pytest.fixture(autouse=True)
def x64() -> Any:
    """All dtypes of the IR, without touching JAX's global flag."""
    with jax.enable_x64(True):
        yield


def run(kernel: Kernel, inputs: Sequence[np.ndarray]) -> list[np.ndarray]:
    """Returns what a kernel computes as one compiled JAX function."""
    return [np.asarray(array) for array in jax.jit(build(kernel))(*inputs)]


# Values.


@pytest.mark.parametrize("case", one_in(3, CORPUS), ids=lambda case: case.name)
def test_kernels_of_the_corpus(case: Case) -> None:
    inputs = case.inputs(np.random.default_rng(0), 8)
    kernel = to_raised(specialised(case, inputs))
    outputs = run(kernel, inputs)
    case.check(inputs, outputs)
    assert_agree(kernel, inputs, interpret(kernel, inputs), outputs)


@pytest.mark.parametrize("case", one_in(3, TVM_CORPUS), ids=lambda case: case.name)
def test_kernels_of_the_tvm_corpus(case: Case) -> None:
    inputs = case.inputs(np.random.default_rng(0), 8)
    case.check(inputs, run(to_raised(specialised_tvm(case, inputs)), inputs))


@on_random(kernels(WIDE_DTYPES), quick=10, thorough=400)
def test_random_kernels(case: Random) -> None:
    with jax.enable_x64(True):
        try:
            raised = to_raised(case.kernel)
        except TooComplex:
            assume(False)
        expected = interpret(case.kernel, case.inputs)
        assert_agree(case.kernel, case.inputs, expected, run(raised, case.inputs))


@on_random(patterns(), quick=6, thorough=200)
def test_random_patterns(case: Random) -> None:
    with jax.enable_x64(True):
        expected = interpret(case.kernel, case.inputs)
        assert_agree(case.kernel, case.inputs, expected, run(to_raised(case.kernel), case.inputs))


@on_random(idioms(), quick=5, thorough=300)
def test_random_idioms(case: Random) -> None:
    with jax.enable_x64(True):
        expected = interpret(case.kernel, case.inputs)
        assert_agree(case.kernel, case.inputs, expected, run(to_raised(case.kernel), case.inputs))


@on_random(kernels(), quick=6, thorough=400)
def test_random_kernels_that_are_not_distributed(case: Random) -> None:
    expected = interpret(case.kernel, case.inputs)
    assert_agree(case.kernel, case.inputs, expected, run(case.kernel, case.inputs))


def test_elements_with_gaps_between_them_in_a_row_that_moves() -> None:
    text = """kernel red_black(d: float32[7, 9]) -> (d) {
      serial t in 1 .. 6 {
        serial red in 0 .. 4 { d[t, (red * 2) + 1] = d[t - 1, red * 2] + d[t, red * 2] }
        serial black in 1 .. 4 { d[t, black * 2] = d[t, black * 2] + d[t, (black * 2) - 1] }
      }
    }"""
    d = np.random.default_rng(0).integers(-9, 9, (7, 9)).astype("float32")
    kernel = parse_kernel(text)
    np.testing.assert_array_equal(run(to_raised(kernel), [d])[0], interpret(kernel, [d])[0])


CARRIED = {
    "under a guard": "local s: float32[] { serial i in 0 .. 9 { if (i < 5) { s[] = s[] + a[i] } "
    "c[i] = s[] } t[0] = s[] }",
    "one element, another is read": "serial i in 0 .. 9 { t[1] = t[1] + a[i] c[i] = t[2] }",
    "one element": "serial i in 0 .. 9 { t[1] = t[1] + a[i] c[i] = t[1] }",
    "some elements": "serial i in 0 .. 9 { serial r in 1 .. 3 { t[r] = t[r] + a[i] "
    "d[r, i] = t[r] } c[i] = t[2] + t[1] }",
    "some elements, another is read": "serial i in 0 .. 9 { serial r in 1 .. 3 { "
    "t[r] = t[r] + a[i] d[r, i] = t[r] } c[i] = t[0] }",
    "fewer and fewer": "serial i in 0 .. 3 { serial r in i .. 3 { t[r] = t[r] + a[i] "
    "d[r, i] = t[r] } }",
    "all elements": "serial i in 0 .. 9 { serial r in 0 .. 3 { t[r] = t[r] + a[i] "
    "d[r, i] = t[r] } }",
}


@pytest.mark.parametrize("body", CARRIED.values(), ids=CARRIED)
def test_elements_that_a_loop_carries_along(body: str) -> None:
    text = f"""kernel k(a: float32[9], t: float32[3]) -> (c, t, d) {{
      buffer c: float32[9]
      buffer d: float32[3, 9]
      {body}
    }}"""
    kernel, raised = parse_kernel(text), to_raised(parse_kernel(text))
    inputs = [np.arange(1, 10, dtype="float32"), np.float32([10, 20, 30])]
    for want, got in zip(interpret(kernel, inputs), run(raised, inputs), strict=True):
        np.testing.assert_array_equal(got, want)


# Conditions whose sums wrap.

WRAPPING = {
    "under a condition": "serial i in 0 .. 16 { if ((i + 2147483640) < 0) { b[i] = a[i] } }",
    "under its opposite": "serial i in 0 .. 16 { if (!((i + 2147483640) < 0)) { b[i] = a[i] } }",
    "another operator": "serial i in 0 .. 16 { if ((i + 2147483640) != -2147483648) { "
    "b[i] = a[i] } }",
    "wrapped before it is widened": "serial i in 0 .. 16 { if (int64(i + 2147483640) < 0:int64) { "
    "b[i] = a[i] } }",
    "a choice": "serial i in 0 .. 16 { b[i] = ((i + 2147483640) < 0) ? a[i - 8] : a[i] }",
    "a choice of where a scan begins": "serial i in 1 .. 16 { "
    "b[i] = (((i + 2147483640) < 0) ? a[0] : b[i - 1]) + a[i] }",
}  # fmt: skip


@pytest.mark.parametrize("body", WRAPPING.values(), ids=WRAPPING)
def test_a_condition_compares_what_its_sums_wrap_to(body: str) -> None:
    kernel = parse_kernel(f"kernel k(a: float32[16]) -> (b) {{ buffer b: float32[16] {body} }}")
    inputs = [np.arange(1, 17, dtype="float32")]
    (want,) = interpret(kernel, inputs)
    np.testing.assert_array_equal(run(to_raised(kernel), inputs)[0], want)


# Where what is left out is not finite.


@pytest.mark.parametrize("bad", [np.inf, np.nan])
def test_what_a_masked_product_leaves_out_does_not_count(bad: float) -> None:
    text = """kernel k(a: float32[4, 4], b: float32[4, 3]) -> (c) {
      buffer c: float32[4, 3]
      serial i in 0 .. 4 { serial j in 0 .. 3 { serial k in 0 .. (i + 1) {
        c[i, j] = c[i, j] + (a[i, k] * b[k, j]) } } }
    }"""
    a, b = np.ones((4, 4), "float32"), np.ones((4, 3), "float32")
    kernel = parse_kernel(text)
    for _ in range(2):
        np.testing.assert_array_equal(
            run(to_raised(kernel), [a, b])[0], interpret(kernel, [a, b])[0]
        )
        b[3] = bad


def test_what_a_mask_leaves_out_of_all_factors_does_not_count() -> None:
    text = """kernel k(a: float32[5, 7], b: float32[7, 6], m: bool[7]) -> (c) {
      buffer c: float32[5, 6]
      serial i in 0 .. 5 { serial j in 0 .. 6 { serial k in 0 .. 7 { if (m[k]) {
        c[i, j] = c[i, j] + (a[i, k] * b[k, j]) } } } }
    }"""
    a, b = np.full((5, 7), np.nan, "float32"), np.full((7, 6), np.inf, "float32")
    a[:, 3], b[3] = 2.0, 3.0
    (got,) = run(to_raised(parse_kernel(text)), [a, b, np.arange(7) == 3])
    np.testing.assert_array_equal(got, np.full((5, 6), 6.0, "float32"))


PADDED = """kernel k(a: float32[6], w: float32[3]) -> (c) {
  buffer c: float32[6]
  serial y in 0 .. 6 { serial k in 0 .. 3 {
    if ((((y + k) - 1) >= 0) && (((y + k) - 1) < 6)) {
      c[y] = c[y] + (a[(y + k) - 1] * w[k]) } } }
}"""


def test_what_a_padded_convolution_leaves_out_does_not_count() -> None:
    a, w = np.arange(6, dtype="float32"), np.ones(3, "float32")
    kernel = parse_kernel(PADDED)
    for _ in range(2):
        np.testing.assert_array_equal(
            run(to_raised(kernel), [a, w])[0], interpret(kernel, [a, w])[0]
        )
        w[0] = np.inf


def test_nor_does_it_in_a_gradient() -> None:
    a, w = np.arange(6, dtype="float32"), np.array([np.inf, 2, 3], "float32")
    slopes = np.arange(6, dtype="float32")
    _, pull_back = jax.vjp(build(to_raised(parse_kernel(PADDED))), a, w)
    of_a, of_w = np.zeros(6, "float32"), np.zeros(3, "float32")
    for y, k in np.ndindex(6, 3):
        if 0 <= y + k - 1 < 6:
            of_a[y + k - 1] += slopes[y] * w[k]
            of_w[k] += slopes[y] * a[y + k - 1]
    for got, want in zip(pull_back([slopes]), (of_a, of_w), strict=True):
        np.testing.assert_array_equal(got, want)


@pytest.mark.parametrize("target", ["c[i]", "c[0]"], ids=["an element", "a sum"])
def test_a_factor_that_a_condition_excludes_has_no_gradient(target: str) -> None:
    text = f"""kernel k(a: float32[4], w: float32[4], m: float32[4]) -> (c) {{
      buffer c: float32[4]
      serial i in 0 .. 4 {{ if (m[i] > 0.0:float32) {{
        {target} = {target} + (a[i] * w[i]) }} }}
    }}"""
    a, w = np.array([1, 2, np.inf, 4], "float32"), np.array([5, np.nan, 6, 7], "float32")
    m = np.array([1, 0, -1, 1], "float32")
    _, pull_back = jax.vjp(build(to_raised(parse_kernel(text))), a, w, m)
    of_a, of_w, _ = pull_back([np.ones(4, "float32")])
    np.testing.assert_array_equal(of_a, [5, 0, 0, 7])
    np.testing.assert_array_equal(of_w, [1, 0, 0, 4])


MASKED_PRODUCT = """kernel k(a: float32[64, 96], w: float32[96, 48]) -> (c) {
  buffer c: float32[64, 48]
  serial y in 0 .. 64 { serial z in 0 .. 48 { serial k in 0 .. 96 {
    if (((y + k) % 3) == 0) {
      c[y, z] = c[y, z] + (a[y, k] * w[k, z]) } } } }
}"""
PADDED_IMAGES = """kernel k(a: float32[8, 64], w: float32[6, 8, 3]) -> (c) {
  buffer c: float32[6, 64]
  serial o in 0 .. 6 { serial y in 0 .. 64 { serial i in 0 .. 8 { serial k in 0 .. 3 {
    if ((((y + k) - 1) >= 0) && (((y + k) - 1) < 64)) {
      c[o, y] = c[o, y] + (a[i, (y + k) - 1] * w[o, i, k]) } } } } }
}"""


@pytest.mark.parametrize("text", [MASKED_PRODUCT, PADDED_IMAGES], ids=["product", "convolution"])
def test_a_gradient_keeps_no_terms_that_are_not_computed(text: str) -> None:
    kernel = parse_kernel(text)
    function = build(to_raised(kernel))
    inputs = [jax.ShapeDtypeStruct(b.shape, b.dtype) for b in kernel.parameters]

    def gradient(*arrays: jax.Array) -> Any:
        results, pull_back = jax.vjp(lambda *primals: function(*primals), *arrays)
        return pull_back(results)

    equations = jax.make_jaxpr(gradient)(*inputs).eqns
    kept = [e.outvars for e in equations if e.primitive.name == "cond"]
    assert kept
    assert all(part.aval.size <= 64 * 96 for parts in kept for part in parts)


@pytest.mark.parametrize("op", ["|", "&", "^", "*", "+"])
def test_elements_with_gaps_between_them_are_combined_by_any_operation(op: str) -> None:
    text = f"""kernel k(a: int32[4, 2, 3]) -> (c) {{
      buffer c: int32[4, 2, 5]
      serial x in 0 .. 4 {{ serial y in 0 .. 2 {{ c[x, y, y] = 6 }} }}
      serial i in 0 .. 4 {{ serial j in 0 .. 2 {{ serial k in 0 .. 3 {{
        c[i, j, j] = c[i, j, j] {op} a[i, j, k] }} }} }}
    }}"""
    a = np.random.default_rng(0).integers(-9, 9, (4, 2, 3), "int32")
    kernel = parse_kernel(text)
    np.testing.assert_array_equal(run(to_raised(kernel), [a])[0], interpret(kernel, [a])[0])


@st.composite
def parts_of_rows(draw: st.DrawFn) -> str:
    """Draws stores to parts of the rows of a vector, or of rows of rows."""
    index, reach, step, loops = str(draw(st.integers(-4, 12))), 1, 1, []
    extents = [draw(st.integers(1, 4)) for _ in range(draw(st.integers(2, 3)))]
    for n, extent in enumerate(extents):
        step = reach + draw(st.integers(0, 3))
        index = f"({index}) + (i{n} * {step})"
        reach = step * extent
        loops.append(f"serial i{n} in 0 .. {extent} {{")
    # Mostly whole rows.
    size = max(1, reach + step * draw(st.integers(-1, 1)) + draw(st.sampled_from([0, 0, 0, 1])))
    op = draw(st.sampled_from(["", "+", "*"]))
    old = f"c[j, {index}] {op} " if op else ""
    guard = draw(st.sampled_from(["", "if (i0 < 2) {", "if (a[i1] > 0) {"]))
    return f"""kernel k(a: int32[5], c: int32[2, {size}]) -> (c) {{
      serial j in 0 .. 2 {{ {" ".join(loops)} {guard}
        c[j, {index}] = {old}(a[i0] + (a[i{len(extents) - 1}] * 3))
      {"}" if guard else ""} {"}" * len(loops)} }}
    }}"""


@given(text=parts_of_rows())
@settings(max_examples=examples(60), deadline=None)
def test_parts_of_rows_are_stored_to(text: str) -> None:
    kernel = parse_kernel(text)
    rng = np.random.default_rng(0)
    inputs = [rng.integers(-9, 9, b.shape, "int32") for b in kernel.parameters]
    for got, want in zip(run(to_raised(kernel), inputs), interpret(kernel, inputs), strict=True):
        np.testing.assert_array_equal(got, want)


@pytest.mark.parametrize(
    ("size", "is_scattered"), [(64, False), (66, True)], ids=["rows", "a part of a row"]
)
def test_a_part_of_each_row_is_not_scattered(size: int, is_scattered: bool) -> None:
    text = f"""kernel butterfly(a: float32[{size}]) -> (a) {{
      serial b in 0 .. 8 {{ serial k in 0 .. 4 {{
        a[((b * 8) + k) + 4] = a[(b * 8) + k] * 2.0:float32 }} }}
    }}"""
    function = build(to_raised(parse_kernel(text)))
    lowered = jax.jit(function).lower(np.ones(size, "float32"))
    assert ("scatter" in lowered.as_text()) is is_scattered


def test_parts_of_parts_of_rows_are_not_scattered() -> None:
    text = """kernel parts(a: float32[2400]) -> (a) {
      serial b in 0 .. 12 { serial k in 0 .. 10 { serial l in 0 .. 9 {
        a[(((b * 200) + (k * 10)) + l) + 100] = float32(k) } } }
    }"""
    function = build(to_raised(parse_kernel(text)))
    assert "scatter" not in jax.jit(function).lower(np.ones(2400, "float32")).as_text()


def test_parts_of_rows_that_move() -> None:
    text = """kernel parts(a: int32[216], d: int32[1]) -> (a, d) {
      serial t in 0 .. 13 {
        d[0] = d[0] + a[0]
        serial b in 0 .. 9 { serial l in 0 .. 11 {
          a[((b * 24) + l) + t] = a[((b * 24) + l) + t] + d[0] } }
      }
    }"""
    kernel = parse_kernel(text)
    inputs = [np.arange(216, dtype="int32"), np.int32([1])]
    for got, want in zip(run(to_raised(kernel), inputs), interpret(kernel, inputs), strict=True):
        np.testing.assert_array_equal(got, want)


def test_a_product_on_a_diagonal_has_reverse_mode() -> None:
    text = """kernel k(a: float64[4, 2, 3], b: float64[4, 2, 2]) -> (b) {
      serial i in 0 .. 4 { serial j in 0 .. 2 { serial k in 0 .. 3 {
        b[i, j, j] = b[i, j, j] * a[i, j, k] } } }
    }"""
    function = build(to_raised(parse_kernel(text)))
    generator = np.random.default_rng(0)
    inputs = [generator.uniform(0.5, 2, shape) for shape in ((4, 2, 3), (4, 2, 2))]
    check_grads(lambda a, b: function(a, b)[0], inputs, order=1, modes=["fwd", "rev"])


# What XLA gets.

PROGRAMS = {
    "matmul": ("dot(", ("gather(", "select(", "while(")),
    "batched_matmul": ("dot(", ("gather(", "select(", "while(")),
    "conv2d_3x3": ("convolution(", ("gather(", "while(")),
    "transpose": ("transpose(", ("gather(", "while(", "scatter(")),
    "stencil_5": ("concatenate(", ("gather(", "while(", "scatter(", "dynamic")),
    "stencil_3": ("slice(", ("gather(", "while(", "scatter(", "dynamic")),
    "reverse": ("reverse(", ("gather(", "while(", "scatter(")),
    "row_sum": ("reduce(", ("gather(", "while(", "select(", "dynamic")),
    # A choice keeps XLA from multiplying by reciprocals instead of dividing.
    "softmax_row": ("reduce(", ("gather(", "while(", "dynamic-update")),
    "layer_norm": ("reduce(", ("gather(", "while(", "dynamic-update")),
    "gather_rows": ("gather(", ("while(", "scatter(")),
    "scatter_add": ("scatter(", ("gather(",)),
    "lu": ("while(", ("gather(", "scatter(")),
}


@pytest.mark.parametrize("name", PROGRAMS)
def test_what_is_in_the_program(name: str) -> None:
    wanted, unwanted = PROGRAMS[name]
    inputs = BY_NAME[name].inputs(np.random.default_rng(0), 32)
    function = build(to_raised(specialised(BY_NAME[name], inputs)))
    lowered = jax.jit(function).lower(*inputs).compiler_ir("hlo")
    assert lowered is not None
    text = lowered.as_hlo_text()
    assert wanted in text
    assert [word for word in unwanted if word in text] == []


def test_a_convolution_is_outside_of_branches() -> None:
    # Inside of one, XLA calls no library.
    function = build(to_raised(parse_kernel(PADDED)))
    program = jax.make_jaxpr(function)(np.ones(6, "float32"), np.ones(3, "float32"))
    names = [equation.primitive.name for equation in program.eqns]
    assert "conv_general_dilated" in names
    assert "cond" in names


BOX = """kernel k(a: float32[6, 5, 7], b: float32[6, 5, 7]) -> ({name}) {{
  buffer c: float32[6, 5, 7]
  serial i in {i} {{ serial j in {j} {{ serial k in {k} {{
    {name}[i, j, k] = a[i, j, k] * 2.0:float32 }} }} }}
}}"""


@pytest.mark.parametrize("name", ["b", "c"])
@pytest.mark.parametrize(
    ("box", "is_whole"),
    [
        (("0 .. 6", "0 .. 5", "0 .. 7"), True),
        (("1 .. 5", "1 .. 4", "1 .. 6"), True),
        (("0 .. 5", "2 .. 5", "0 .. 7"), True),
        (("2 .. 6", "0 .. 5", "3 .. 4"), False),
        (("2 .. 3", "0 .. 5", "3 .. 6"), False),
    ],
)
def test_a_box_is_written_among_the_elements_around_it(
    name: str, box: tuple[str, str, str], is_whole: bool
) -> None:
    kernel = parse_kernel(BOX.format(name=name, i=box[0], j=box[1], k=box[2]))
    rng = np.random.default_rng(0)
    inputs = [rng.normal(size=(6, 5, 7)).astype("float32") for _ in "ab"]
    function = build(to_raised(kernel))
    np.testing.assert_array_equal(function(*inputs)[0], interpret(kernel, inputs)[0])
    words = {eqn.primitive.name for eqn in jax.make_jaxpr(function)(*inputs).eqns}
    # A small part of an array is written in place, as XLA does in loops.
    assert ("dynamic_update_slice" in words) is (name == "b" and not is_whole)


def test_flat_indices_are_reshapes() -> None:
    text = """kernel k(a: float32[24]) -> (c) {
      buffer c: float32[24]
      serial i in 0 .. 4 { serial j in 0 .. 6 { c[(j * 4) + i] = a[(i * 6) + j] } }
    }"""
    function = build(to_raised(parse_kernel(text)))
    x = np.arange(24, dtype="float32")
    np.testing.assert_array_equal(function(x)[0], x.reshape(4, 6).T.ravel())
    words = {eqn.primitive.name for eqn in jax.make_jaxpr(function)(x).eqns}
    assert words <= {"reshape", "transpose", "convert_element_type", "copy"}


def test_an_infinite_factor_does_not_meet_the_zeros_of_a_mask() -> None:
    text = """kernel k(a: float32[5, 7], b: float32[7, 6], m: bool[7]) -> (c) {
      buffer c: float32[5, 6]
      serial i in 0 .. 5 { serial j in 0 .. 6 { serial k in 0 .. 7 { if (m[k]) {
        c[i, j] = c[i, j] + ((a[i, k] * b[k, j]) * inf:float32) } } } }
    }"""
    kernel = to_raised(parse_kernel(text))
    for wanted, expected in ((3, np.inf), (9, 0.0)):
        inputs = [np.ones((5, 7), "float32"), np.ones((7, 6), "float32"), np.arange(7) == wanted]
        (got,) = run(kernel, inputs)
        np.testing.assert_array_equal(got, np.full((5, 6), expected, "float32"))


def test_equal_indices_and_divisions_of_naturals_are_one_operation() -> None:
    text = """kernel k(a: float32[5], b: float32[5]) -> (c) {
      buffer c: float32[9]
      serial i in 0 .. 9 { c[i] = a[(i * i) % 5] + b[(i * i) % 5] }
    }"""
    kernel = parse_kernel(text)
    inputs = [np.arange(5, dtype="float32"), np.ones(5, "float32")]
    words = [eqn.primitive.name for eqn in jax.make_jaxpr(build(to_raised(kernel)))(*inputs).eqns]
    assert words.count("rem") == 1
    assert "select_n" not in words
    assert_agree(kernel, inputs, interpret(kernel, inputs), run(to_raised(kernel), inputs))


def test_rows_whose_numbers_of_steps_are_data_take_no_more_steps() -> None:
    """Up to 2 ** 27 steps by the dtype of the data, and up to 8 by the data."""
    kernel = parse_kernel("""kernel k(n: int32[5], at: int32[5]) -> (c) {
      buffer c: int32[5, 9]
      serial i in 0 .. 5 {
        local w: int32[] {
          w[] = at[i]
          serial k in 0 .. (n[i] // 16) {
            c[i, w[]] = w[] + 240
            w[] = w[] + 1
          }
        }
      }
    }""")
    for n in ([0, 15, 127, 16, 33], [-9, -1, 0, 1, 15], [-(2**31)] * 5):
        inputs = [np.int32(n), np.int32([0, 3, 1, 2, 8])]
        assert_agree(kernel, inputs, interpret(kernel, inputs), run(to_raised(kernel), inputs))


def test_values_of_indices_stay_in_the_body_that_jax_traces_them_in() -> None:
    text = """kernel k(a: float32[5], n: int32[90]) -> (c) {
      buffer c: float32[5]
      serial t in 0 .. 90 {
        if (n[t] > 1) {
          serial i in 0 .. 5 { c[i] = sin(c[(i + 1) % 5] + a[(t * t) % 5]) }
        } else {
          serial j in 0 .. 5 { c[j] = cos(c[(j + 2) % 5] + a[(t * t) % 5]) }
        }
        c[(t * t) % 5] = c[0] + 1.0:float32
      }
    }"""
    kernel = parse_kernel(text)
    inputs = [np.ones(5, "float32"), np.arange(90, dtype="int32") % 4]
    assert_agree(kernel, inputs, interpret(kernel, inputs), run(to_raised(kernel), inputs))


def test_only_the_environment_enters_bodies_that_jax_traces() -> None:
    folder = ROOT / "msops" / "_loops" / "to_jax" / "printing"
    entries = re.compile(r"lax\.(cond|switch|scan|while_loop|fori_loop|map)\b|jax\.jit\b")
    users = {path.stem for path in folder.glob("*.py") if entries.search(path.read_text())}
    assert users == {"environment", "recurrences"}


def test_conditions_on_floats_are_computed_anew_under_other_conditions() -> None:
    """Where a value does not matter, the logarithm is of another number, for its derivative."""
    text = """kernel k(x: float32[8]) -> (y) {
      buffer y: float32[8]
      serial i in 0 .. 8 {
        y[i] = ((x[i] > 0.0:float32)
                ? ((log(float32(i + 1)) > 1.0:float32) ? 10.0:float32 : 20.0:float32)
                : 50.0:float32)
             + ((log(float32(i + 1)) > 1.0:float32) ? 1.0:float32 : 2.0:float32)
      }
    }"""
    kernel = parse_kernel(text)
    inputs = [np.float32([1, -1] * 4)]
    assert_agree(kernel, inputs, interpret(kernel, inputs), run(to_raised(kernel), inputs))


def test_positions_under_conditions_on_them_are_computed_once() -> None:
    at = "int32(x[i] / z[i])"
    text = f"""kernel k(x: float32[64], z: float32[64], table: float32[5]) -> (y) {{
      buffer y: float32[64]
      serial i in 0 .. 64 {{
        if ({at} >= 0) {{ if ({at} < 5) {{ y[i] = table[{at}] }} }}
      }}
    }}"""
    kernel = parse_kernel(text)
    rng = np.random.default_rng(0)
    inputs = [rng.normal(size=size).astype("float32") * 9 for size in (64, 64, 5)]
    inputs[1][::7] = 0
    function = jax.jit(build(to_raised(kernel)))
    assert_agree(kernel, inputs, interpret(kernel, inputs), function(*inputs))
    assert function.lower(*inputs).compile().as_text().count(" divide(") == 1
    gradient = jax.grad(lambda table: function(*inputs[:2], table)[0].sum())(inputs[2])
    assert np.isfinite(gradient).all()


# Indices that are scalars, of every width.

WIDE_SCALARS = {
    "uint32": (2**32 - 1, 2**31, 3),
    "int64": (2**32 + 1, -(2**32) + 1, 2**63 - 1, -(2**63), 1),
    "uint64": (2**63 + 2, 2**64 - 1, 2**32 + 1, 2),
}
SCALAR_INDICES = (
    "n[0]",
    "n[0] * 2:{}",
    "n[0] + 1:{}",
    "int32(n[0])",
    "int64(int32(n[0]) * 65536)",
    "int64(int32(n[0])) * 65536:int64",
)


def scalar_index(dtype: str, index: str) -> Kernel:
    return parse_kernel(f"""kernel k(x: float32[4], n: {dtype}[1]) -> (read, written) {{
      buffer read: float32[1]
      buffer written: float32[4]
      read[0] = x[{index.format(dtype)}]
      written[{index.format(dtype)}] = 9.0:float32
    }}""")


@pytest.mark.parametrize("index", SCALAR_INDICES)
@pytest.mark.parametrize("dtype", WIDE_SCALARS)
def test_scalar_indices_beyond_32_bits(dtype: str, index: str) -> None:
    kernel = scalar_index(dtype, index)
    compiled = jax.jit(build(to_raised(kernel)))
    for value in WIDE_SCALARS[dtype]:
        inputs = [np.float32([1, 2, 3, 4]), np.array([value], dtype)]
        for want, got in zip(interpret(kernel, inputs), compiled(*inputs), strict=True):
            np.testing.assert_array_equal(got, want, str(value))


@pytest.mark.parametrize("value", [0, 1, 2, 3, -1, 2**30, 2**31 - 1])
@pytest.mark.parametrize(
    "statement",
    [
        "y[i] = x[((n[0] * 4) * 1073741825) + i]",
        "y[((n[0] * 4) * 1073741825) + i] = x[i]",
        "y[i] = x[(n[0] + 2147483647) + (i + 2147483647)]",
    ],
)
def test_index_sums_wrap_where_their_numbers_are_beyond_32_bits(statement: str, value: int) -> None:
    kernel = parse_kernel(f"""kernel k(x: float32[8], n: int32[1]) -> (y) {{
      buffer y: float32[8]
      serial i in 0 .. 8 {{
        {statement}
      }}
    }}""")
    inputs = [np.arange(1, 9, dtype="float32"), np.array([value], "int32")]
    np.testing.assert_array_equal(run(to_raised(kernel), inputs), interpret(kernel, inputs))


def test_a_uint32_index_with_x64_off() -> None:
    with jax.enable_x64(False):
        inputs = [np.float32([1, 2, 3, 4]), np.uint32([2**32 - 1])]
        read, written = run(to_raised(scalar_index("uint32", "n[0]")), inputs)
    np.testing.assert_array_equal(read, [4])
    np.testing.assert_array_equal(written, np.zeros(4))


def test_a_scalar_cut_into_two_indices_takes_the_nearest_element_of_each_dimension() -> None:
    kernel = parse_kernel("""kernel k(x: float32[3, 4], n: int32[1]) -> (read, written) {
      buffer read: float32[1]
      buffer written: float32[3, 4]
      read[0] = x[n[0] // 4, n[0] % 4]
      written[n[0] // 4, n[0] % 4] = 9.0:float32
    }""")
    compiled = jax.jit(build(to_raised(kernel)))
    for value in (-7, -1, 0, 5, 11, 13, 17):
        inputs = [np.arange(12, dtype="float32").reshape(3, 4), np.int32([value])]
        for want, got in zip(interpret(kernel, inputs), compiled(*inputs), strict=True):
            np.testing.assert_array_equal(got, want, str(value))
