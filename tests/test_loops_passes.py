"""Passes of the loop compiler keep what a kernel computes."""

from __future__ import annotations

import random

import numpy as np
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from loop_agreement import assert_agree
from loop_strategies import Case, kernels

from msops._loops.errors import NotRaised
from msops._loops.interpret import interpret
from msops._loops.intrinsics import COMPARISONS
from msops._loops.ir import Binary, Buffer, Const, Expr, For, Kernel, Select, Stmt, Store, Var
from msops._loops.passes.simplify_expressions import simplified
from msops._loops.pipeline import analyse, to_raised
from msops._loops.verify import verify

few = settings(max_examples=150, deadline=None, suppress_health_check=list(HealthCheck))


@few
@given(kernels())
def test_marked_loops_may_run_in_any_order(case: Case) -> None:
    marked = analyse(case.kernel).kernel
    verify(marked)
    expected = interpret(case.kernel, case.inputs)
    got = interpret(marked, case.inputs, shuffle=random.Random(0))
    assert_agree(case.kernel, case.inputs, expected, got)


@few
@given(kernels())
def test_the_raised_form_computes_the_same(case: Case) -> None:
    try:
        raised = to_raised(case.kernel)
    except NotRaised:
        return
    verify(raised)
    expected = interpret(case.kernel, case.inputs)
    got = interpret(raised, case.inputs, shuffle=random.Random(0))
    assert_agree(case.kernel, case.inputs, expected, got)


VARIABLES = {"i": (0, 4), "j": (-2, 3), "k": (1, 1), "n": (2**31 - 4, 2**31 - 2)}


@st.composite
def index_expressions(draw: st.DrawFn, depth: int = 4) -> Expr:
    """Draws whole numbers without loads; multiples and divisors are often equal."""
    if depth == 0 or draw(st.integers(0, 4)) == 0:
        if draw(st.booleans()):
            return Const(draw(st.sampled_from((-3, -1, 0, 1, 2, 4, 8, 2**30))), "int32")
        return Var(draw(st.sampled_from(sorted(VARIABLES))))
    op = draw(st.sampled_from(("add", "sub", "mul", "floordiv", "mod", "min", "max", "truncmod")))
    left = draw(index_expressions(depth - 1))
    if op in ("mul", "floordiv", "mod") and draw(st.integers(0, 5)):
        right: Expr = Const(draw(st.sampled_from((2, 4, 8))), "int32")
    else:
        right = draw(index_expressions(depth - 1))
    return Binary(op, left, right, "int32")


@settings(max_examples=600, deadline=None)
@given(index_expressions(), index_expressions(depth=2), st.sampled_from(COMPARISONS))
def test_simple_expressions_have_the_same_value(left: Expr, right: Expr, op: str) -> None:
    condition = Binary(op, left, right, "bool")
    for expr in (left, condition, Select(condition, left, right, "int32")):
        np.testing.assert_array_equal(values(simplified(expr, VARIABLES)), values(expr))


def values(expr: Expr) -> np.ndarray:
    """Returns the values of an expression for all values of its variables, by the interpreter."""
    shape = tuple(high - low + 1 for low, high in VARIABLES.values())
    place = tuple(
        Binary("sub", Var(name), Const(low, "int32"), "int32")
        for name, (low, _) in VARIABLES.items()
    )
    body: tuple[Stmt, ...] = (Store("result", place, expr),)
    for name, (low, high) in VARIABLES.items():
        body = (For(name, Const(low, "int32"), Const(high + 1, "int32"), body),)
    kernel = Kernel("values", (), ("result",), (Buffer("result", shape, expr.dtype),), body)
    (array,) = interpret(kernel, [])
    return array


@few
@given(kernels())
def test_unproven_and_unwritten(case: Case) -> None:
    analysis = analyse(case.kernel)
    assert not [f for f in analysis.findings if f.kind == "out of range"]
