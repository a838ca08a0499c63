"""Which array operation each nest of loops becomes, from the text of the loops."""

from __future__ import annotations

from collections.abc import Sequence

import jax
import numpy as np
import pytest
from loop_agreement import assert_agree
from loop_ir import (
    Contract,
    Convolve,
    Kernel,
    Loop,
    Select,
    Step,
    body_text,
    build_jax,
    describe,
    expand_carried,
    interpret,
    parse_kernel,
    raise_kernel,
    rewrite_conditional_reductions,
    steps_text,
    to_raised,
    verify,
)


def kernel_of(parameters: str, results: str, body: str) -> Kernel:
    """Returns a kernel; `results` declare its buffers."""
    names = ", ".join(result.split(":")[0] for result in results.split("; "))
    declared = "\n".join(f"buffer {result}" for result in results.split("; "))
    kernel = parse_kernel(f"kernel k({parameters}) -> ({names}) {{\n{declared}\n{body}\n}}")
    verify(kernel)
    return kernel


def steps_of(parameters: str, results: str, body: str) -> tuple[Step, ...]:
    """Returns the steps of a kernel as a front end would write it."""
    return raise_kernel(to_raised(kernel_of(parameters, results, body)))


def loops(*heads: str, body: str) -> str:
    """Returns nested serial loops: ``i 4`` is i in 0 .. 4, ``i 1 4`` is i in 1 .. 4."""
    for head in reversed(heads):
        var, *bounds = head.split()
        begin, end = bounds if len(bounds) == 2 else ("0", bounds[0])
        body = f"serial {var} in {begin} .. {end} {{ {body} }}"
    return body


MATMUL = loops("i 5", "j 6", "k 7", body="c[i, j] = c[i, j] + (a[i, k] * b[k, j])")

PATTERNS = {
    "elementwise": ("a: float32[5]", "c: float32[5]", loops("i 5", body="c[i] = exp(a[i])"),
                    ["loop i (line 3): elementwise"]),
    "triangular domain": (
        "a: float32[6, 6]", "c: float32[6, 6]",
        "serial i in 0 .. 6 { serial j in 0 .. i { c[i, j] = a[i, j] } }",
        ["loops i, j (line 3): elementwise, masked"]),
    "guard that is a box": (
        "a: float32[8]", "c: float32[8]",
        loops("i 8", body="if ((i > 0) && (i != 7)) { c[i] = a[i - 1] + a[i + 1] }"),
        ["loop i (line 3): elementwise"]),
    "sum": ("a: float32[5, 6]", "c: float32[5]",
            loops("i 5", "j 6", body="c[i] = c[i] + a[i, j]"),
            ["loops i, j (line 3): sum, reduction over j"]),
    "difference": ("a: float32[5, 6]", "c: float32[5]",
                   loops("i 5", "j 6", body="c[i] = c[i] - a[i, j]"),
                   ["loops i, j (line 3): sum, reduction over j"]),
    "matrix product": ("a: float32[5, 7], b: float32[7, 6]", "c: float32[5, 6]", MATMUL,
                       ["loops i, j, k (line 3): contraction, dot_general"]),
    "matrix vector": ("a: float32[5, 7], b: float32[7]", "c: float32[5]",
                      loops("i 5", "k 7", body="c[i] = c[i] + (a[i, k] * b[k])"),
                      ["loops i, k (line 3): contraction, dot_general"]),
    "row by row is no matrix product": (
        "a: float32[5, 7], b: float32[5, 7]", "c: float32[5]",
        loops("i 5", "k 7", body="c[i] = c[i] + (a[i, k] * b[i, k])"),
        ["loops i, k (line 3): sum, reduction over k"]),
    "scaled product of three": (
        "a: float32[5, 7], s: float32[7], b: float32[7, 6]", "c: float32[5, 6]",
        loops("i 5", "j 6", "k 7", body="c[i, j] = c[i, j] - ((a[i, k] * s[k]) * b[k, j])"),
        ["loops i, j, k (line 3): contraction, dot_general"]),
    "convolution": (
        "a: float32[3, 9, 9], w: float32[4, 3, 2, 2]", "c: float32[4, 4, 7]",
        loops("o 4", "y 4", "x 7", "i 3", "p 2", "q 2",
              body="c[o, y, x] = c[o, y, x] + (a[i, (2 * y) + p, x + (2 * q)] * w[o, i, p, q])"),
        ["loops o, y, x, i, p, q (line 3): convolution of 2 dimensions"]),
    "pooling": (
        "a: float32[9, 9]", "c: float32[8, 7]",
        loops("y 8", "x 7", "p 2", "q 3", body="c[y, x] = max(c[y, x], a[y + p, x + q])"),
        ["loops y, x, p, q (line 3): maximum over windows, reduce_window"]),
    "gather": ("a: float32[5], n: int32[7]", "c: float32[7]",
               loops("i 7", body="c[i] = a[n[i]]"), ["loop i (line 3): gather"]),
    "scatter": ("a: float32[7], n: int32[7]", "c: float32[5]",
                loops("i 7", body="c[n[i]] = c[n[i]] + a[i]"), ["loop i (line 3): sum, scatter"]),
    "cumulative sum": (
        "a: float32[9]", "c: float32[9]",
        "c[0] = a[0]\n" + loops("i 1 9", body="c[i] = c[i - 1] + a[i]"),
        ["store to c (line 3): elementwise", "loop i (line 4): cumulative sum along i"]),
    "backwards": (
        "a: float32[9]", "c: float32[9]",
        loops("i 9", body="c[8 - i] = ((i == 0) ? 0.0:float32 : c[9 - i]) + a[8 - i]"),
        ["loop i (line 3): cumulative sum along i"]),
    "choice around the whole": (
        "a: float32[9]", "c: float32[9]",
        loops("i 9", body="c[i] = ((i == 0) ? a[0] : max(c[i - 1], a[i]))"),
        ["store to c (line 3): elementwise", "loop i (line 3): cumulative maximum along i"]),
    "linear recurrence": (
        "a: float32[4, 9], b: float32[9]", "c: float32[4, 9]",
        loops("i 4", "t 1 9", body="c[i, t] = (b[t] * c[i, t - 1]) - (a[i, t] / 2.0:float32)"),
        ["loops t, i (line 3): linear recurrence along t, associative_scan"]),
    "carried scalar": (
        "a: float32[9]", "c: float32[9]",
        "local s: float32[] { " + loops("i 9", body="s[] = s[] + a[i] c[i] = s[]") + " }",
        ["loop i (line 3): cumulative sum along i", "loop i_1 (line 3): elementwise",
         "store to s: elementwise"]),
    "order-bound": (
        "a: float32[9]", "c: float32[9]",
        loops("i 1 9", body="c[i] = sin(c[i - 1]) + a[i]"),
        ["not raised well: loop i (line 3) is order-bound, 8 steps one by one",
         "  store to c (line 3): elementwise"]),
    "few time steps": (
        "a: float32[2000]", "b: float32[2000]; c: float32[2000]",
        loops("t 3", body=loops("i 1999", body="b[i] = a[i] + c[i + 1]")
              + loops("j 2000", body="c[j] = b[j]")),
        ["not raised well: loop t (line 4) is order-bound, 3 steps one by one",
         "  loop i (line 4): elementwise", "  loop j (line 4): elementwise"]),
    "data as bounds": (
        "n: int32[1]", "c: int32[]", "serial i in 0 .. n[0] { c[] = c[] + i }",
        ["not raised well: loop i (line 3) is order-bound, a number of steps one by one",
         "  store to c (line 3): elementwise"]),
}  # fmt: skip


@pytest.mark.parametrize("name", PATTERNS)
def test_what_loops_become(name: str) -> None:
    parameters, results, body, expected = PATTERNS[name]
    assert list(describe(steps_of(parameters, results, body))) == expected


def test_a_mask_on_a_summed_axis_moves_into_a_factor() -> None:
    body = "serial i in 0 .. 5 { serial j in 0 .. 6 { serial k in 0 .. i { "
    body += "c[i, j] = c[i, j] + (a[i, k] * b[k, j]) } } }"
    (step,) = steps_of("a: float32[5, 7], b: float32[7, 6]", "c: float32[5, 6]", body)
    assert isinstance(step, Contract)
    assert not step.nest.mask
    assert step.fallback is not None
    assert step.fallback.nest.mask
    (whole,) = steps_of("a: int32[5, 7], b: int32[7, 6]", "c: int32[5, 6]",
                        body)  # fmt: skip
    assert isinstance(whole, Contract)
    assert whole.fallback is None


def test_a_mask_that_all_factors_can_have_leaves_nothing_to_check() -> None:
    body = loops("i 5", "j 6", "k 7", body="if (m[k]) { c[i, j] = c[i, j] + (a[i, k] * b[k, j]) }")
    (step,) = steps_of("a: float32[5, 7], b: float32[7, 6], m: bool[7]", "c: float32[5, 6]", body)
    assert isinstance(step, Contract)
    assert all(isinstance(factor, Select) for factor in step.factors)
    assert step.fallback is None


def test_padding_of_a_convolution_may_be_a_guard() -> None:
    body = loops("y 8", "k 3", body=(
        "if ((((y + k) - 1) >= 0) && (((y + k) - 1) < 8)) "
        "{ c[y] = c[y] + (a[(y + k) - 1] * w[k]) }"))  # fmt: skip
    (step,) = steps_of("a: float32[8], w: float32[3]", "c: float32[8]", body)
    assert isinstance(step, Convolve)
    assert step.fallback is not None


def test_bounds_that_move_with_a_loop_that_stays_are_a_hull() -> None:
    steps = steps_of(
        "a: float32[7, 7]", "c: float32[7]",
        "serial i in 0 .. 7 { serial j in 0 .. i { c[i] = c[i] + (a[i, j] * c[j]) } }",
    )  # fmt: skip
    (loop,) = (step for step in steps if isinstance(step, Loop))
    assert loop.axis is not None
    assert loop.axis.extent == 7
    assert not loop.is_hull


# Conditional reductions.

REDUCTIONS = {
    "if a[i] > m: m = a[i]": (
        "serial i in 0 .. 9 { if (a[i] > m[]) { m[] = a[i] } }",
        ["m[] = (a[i] > m[]) ? a[i] : m[]"]),
    "m = a[i] if m >= a[i] else m": (
        "serial i in 0 .. 9 { m[] = ((m[] >= a[i]) ? a[i] : m[]) }",
        ["m[] = (a[i] <= m[]) ? a[i] : m[]"]),
    "under a guard": (
        "serial i in 0 .. 9 { if ((n[i] > 0) && (a[i] > m[])) { m[] = a[i] } }",
        ["if (n[i] > 0) {", "m[] = (a[i] > m[]) ? a[i] : m[]"]),
    "whole numbers": (
        "serial i in 0 .. 9 { if (n[i] < p[]) { p[] = n[i] } }", ["p[] = min(p[], n[i])"]),
    "a choice that keeps the element": (
        "serial i in 0 .. 9 { m[] = ((n[i] > 0) ? (m[] + a[i]) : m[]) }",
        ["if (n[i] > 0) {", "m[] = m[] + a[i]"]),
    "a chain": (
        "serial i in 0 .. 9 { m[] = (m[] + a[i]) - sin(a[i]) }",
        ["m[] = m[] + (a[i] - sin(a[i]))"]),
    "reads what it replaces": (
        "serial i in 0 .. 9 { if ((m[] * a[i]) > m[]) { m[] = m[] * a[i] } }",
        ["if ((m[] * a[i]) > m[]) {", "m[] = m[] * a[i]"]),
}  # fmt: skip


@pytest.mark.parametrize("name", REDUCTIONS)
def test_conditional_reductions_become_plain_ones(name: str) -> None:
    body, expected = REDUCTIONS[name]
    kernel = kernel_of("a: float32[9], n: int32[9]", "m: float32[]; p: int32[]", body)
    rewritten = rewrite_conditional_reductions(kernel)
    verify(rewritten)
    lines = [line.strip() for line in body_text(rewritten.body).splitlines()]
    assert [line for line in lines[1:] if line != "}"] == expected
    inputs = [special_floats(9), np.arange(9, dtype="int32") % 3 - 1]
    assert_same(kernel, rewritten, inputs)


def special_floats(count: int) -> np.ndarray:
    """Returns floats with ties, infinities and a NaN that is neither first nor last."""
    values = [2.0, -1.0, np.nan, 3.0, 3.0, -np.inf, 0.0, -1.0, 2.0, 3.0]
    return np.resize(np.array(values, "float32"), count)


def assert_same(kernel: Kernel, other: Kernel, inputs: Sequence[np.ndarray]) -> None:
    """Checks by the interpreter that two kernels compute the same."""
    assert_agree(kernel, inputs, interpret(kernel, inputs), interpret(other, inputs))


@pytest.mark.parametrize("sign", [">", ">=", "<", "<="])
@pytest.mark.parametrize("first", [0, 2, 3])
def test_the_place_of_an_extreme_is_the_one_that_the_loop_finds(sign: str, first: int) -> None:
    # From element 2, which is NaN, no comparison holds.
    body = f"m[] = a[{first}] at[] = {first} serial i in 0 .. 19 {{ "
    body += f"if (a[i] {sign} m[]) {{ m[] = a[i] at[] = i twice[] = a[i] * 2.0:float32 }} }}"
    results = "m: float32[]; at: int32[]; twice: float32[]"
    kernel = kernel_of("a: float32[19]", results, body)
    assert_same(kernel, rewrite_conditional_reductions(kernel), [special_floats(19)])
    assert not any(isinstance(step, Loop) for step in raise_kernel(to_raised(kernel)))


@pytest.mark.parametrize("sign", [">", "<="])
def test_a_search_may_look_the_extreme_up(sign: str) -> None:
    body = f"serial i in 1 .. 19 {{ if (a[i] {sign} a[at[]]) {{ at[] = i }} }}"
    kernel = kernel_of("a: float32[19]", "at: int32[]", body)
    assert_same(kernel, rewrite_conditional_reductions(kernel), [special_floats(19)])
    assert not any(isinstance(step, Loop) for step in raise_kernel(to_raised(kernel)))


def test_a_search_that_shares_buffers_with_its_loop_is_left_alone() -> None:
    body = "serial i in 0 .. 9 { if (a[i] > m[]) { m[] = a[i] at[] = i } a[i] = m[] }"
    kernel = parse_kernel(
        f"kernel k(a: float32[9]) -> (a) {{ buffer m: float32[] buffer at: int32[] {body} }}"
    )
    assert rewrite_conditional_reductions(kernel) == kernel


# Carried elements.


def test_carried_elements_are_expanded_only_for_scans() -> None:
    kernel = kernel_of(
        "a: float32[9]", "c: float32[9]; s: float32[]",
        "serial i in 0 .. 9 { s[] = sin(s[]) + a[i] parallel j in 0 .. 1 { c[i] = s[] } }",
    )  # fmt: skip
    assert expand_carried(kernel) == kernel


@pytest.mark.parametrize("order", ["c[i] = s[] s[] = U", "s[] = U c[i] = s[]"])
@pytest.mark.parametrize("update", ["max(a[i], s[])", "(0.5:float32 * s[]) + a[i]"])
def test_carried_elements_are_read_before_and_after_their_update(order: str, update: str) -> None:
    body = "s[] = 0.25:float32 serial i in 2 .. 9 { " + order.replace("U", update) + " }"
    kernel = kernel_of("a: float32[9]", "c: float32[9]; s: float32[]", body)
    expanded = expand_carried(kernel)
    verify(expanded)
    assert not any(isinstance(step, Loop) for step in raise_kernel(expanded))
    assert_same(kernel, expanded, [np.linspace(-1, 1, 9, dtype="float32")])


@pytest.mark.parametrize(
    ("parameters", "buffers", "body", "axes"),
    [
        ("a: float32[4, 8]", "c: float32[8, 4]", "c[j, i] = a[i, j]", "j, i"),
        ("a: float32[8, 4]", "c: float32[4, 8]", "c[i, j] = a[j, i]", "i, j"),
        ("a: float32[8, 4]", "c: float32[4]", "c[i] = c[i] + a[j, i]", "j, i"),
        ("a: float32[4, 8]", "c: float32[4]", "c[i] = c[i] + a[i, j]", "i, j"),
    ],
    ids=["a map", "another map", "a sum of rows", "a sum of columns"],
)
def test_axes_follow_what_a_map_stores_and_what_else_reads(
    parameters: str, buffers: str, body: str, axes: str
) -> None:
    nest = f"serial i in 0 .. 4 {{ serial j in 0 .. 8 {{ {body} }} }}"
    steps = raise_kernel(to_raised(kernel_of(parameters, buffers, nest)))
    assert steps_text(steps).endswith(f" @axes({axes})")


INT8 = "(int32(a[{a}]) * int32(b[{b}]))"


@pytest.mark.parametrize(
    ("parameters", "result", "body", "is_narrow"),
    [
        ("a: int8[5, 7], b: int8[7, 6]", "c: int32[5, 6]",
         loops("i 5", "j 6", "k 7", body=f"c[i, j] = c[i, j] + {INT8.format(a='i, k', b='k, j')}"),
         True),
        ("a: int8[7, 5], b: int8[6, 7]", "c: int32[5, 6]",
         loops("i 5", "j 6", "k 7", body=f"c[i, j] = c[i, j] - {INT8.format(a='k, i', b='j, k')}"),
         True),
        # Sums of int8 that are not yet products would wrap.
        ("a: int8[5, 7, 300], b: int8[7, 6]", "c: int32[5, 6]",
         loops("i 5", "j 6", "k 7", "l 300",
               body=f"c[i, j] = c[i, j] + {INT8.format(a='i, k, l', b='k, j')}"),
         False),
        ("a: int8[5, 7], b: int8[7, 6]", "c: int8[5, 6]",
         loops("i 5", "j 6", "k 7", body="c[i, j] = c[i, j] + (a[i, k] * b[k, j])"), True),
        ("a: int8[5, 7], b: int16[7, 6]", "c: int32[5, 6]",
         loops("i 5", "j 6", "k 7", body=f"c[i, j] = c[i, j] + {INT8.format(a='i, k', b='k, j')}"),
         False),
    ],
    ids=["rows", "columns", "sums in one factor", "that wraps", "of two dtypes"],
)  # fmt: skip
def test_products_of_int8_are_multiplied_as_they_are(
    parameters: str, result: str, body: str, is_narrow: bool
) -> None:
    kernel = kernel_of(parameters, result, body)
    function = jax.jit(build_jax(to_raised(kernel)))
    rng = np.random.default_rng(0)
    inputs = [rng.integers(-128, 128, b.shape).astype(b.dtype) for b in kernel.parameters]
    for got, want in zip(function(*inputs), interpret(kernel, inputs), strict=True):
        np.testing.assert_array_equal(got, want, strict=True)
    (product,) = [
        line for line in function.lower(*inputs).as_text().splitlines() if "dot_general" in line
    ]
    assert ("xi8>, tensor" in product) is is_narrow
