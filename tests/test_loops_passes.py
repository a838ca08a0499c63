"""Passes of the loop compiler keep what a kernel computes."""
# Loop kernels use names that mean something only inside them.
# ruff: noqa: F821

from __future__ import annotations

import contextlib
import random
from collections.abc import Sequence

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from loop_agreement import assert_agree
from loop_corpus import CORPUS, specialised
from loop_corpus import Case as CorpusCase
from loop_ir import (
    COMPARISONS,
    PASSES_COMMON,
    PASSES_TO_C,
    PASSES_TO_CUDA,
    PASSES_TO_JAX,
    Binary,
    Buffer,
    Const,
    Expr,
    For,
    Kernel,
    Kinds,
    Pass,
    Select,
    Stmt,
    Store,
    TooComplex,
    Var,
    analyse,
    interpret,
    kernel_text,
    pipeline,
    simplified,
    verify,
)
from loop_strategies import Case, kernels
from random_examples import examples

from msops import Custom

few = settings(max_examples=examples(100), deadline=None, suppress_health_check=list(HealthCheck))


@few
@given(kernels())
def test_passes_keep_what_a_kernel_computes(case: Case) -> None:
    check_passes(case.kernel, case.inputs)


@pytest.mark.parametrize("case", CORPUS, ids=lambda case: case.name)
def test_passes_keep_what_the_corpus_computes(case: CorpusCase) -> None:
    inputs = case.inputs(np.random.default_rng(0), 5)
    check_passes(specialised(case, inputs), inputs)


def check_passes(kernel: Kernel, inputs: Sequence[np.ndarray]) -> None:
    """Runs each stage of the pipelines, loops that may run in any order in a drawn one."""
    expected = interpret(kernel, inputs)
    common = check_each(kernel, PASSES_COMMON, inputs, expected)
    analyse_only = (("analyse", lambda k: analyse(k).kernel),)
    marked = check_each(common, analyse_only, inputs, expected)
    check_each(marked, PASSES_TO_C, inputs, expected)
    check_each(marked, PASSES_TO_CUDA, inputs, expected)
    with contextlib.suppress(TooComplex):
        check_each(common, PASSES_TO_JAX, inputs, expected)
    normalised = pipeline.passes_to_gradient(None)[:2]
    check_each(common, normalised, inputs, expected)


def check_each(
    kernel: Kernel,
    passes: Sequence[tuple[str, Pass]],
    inputs: Sequence[np.ndarray],
    expected: Sequence[np.ndarray],
) -> Kernel:
    for name, change in passes:
        changed = change(kernel)
        if changed != kernel:
            verify(changed)
            got = interpret(changed, inputs, shuffle=random.Random(0))
            try:
                assert_agree(changed, inputs, expected, got)
            except AssertionError as error:
                raise AssertionError(f"{name}:\n{kernel_text(kernel)}") from error
        kernel = changed
    return kernel


def running_product(x):
    y = output_tensor(x.shape, x.dtype)
    for i in range(x.shape[0]):
        y[i] = x[i] if i == 0 else y[i - 1] * x[i]
    return y


def test_every_pass_of_every_way_out_is_shown(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("MSOPS_DEBUG", "ir")
    x = jnp.ones((3, 5), jnp.float32)
    for lower in ("xla", "native"):
        op = Custom(running_product, func_type="akg", compile_attrs={"lower": lower})
        jax.grad(lambda x, op=op: op(x).sum())(x[0])
        jax.vmap(op)(x)
    op.lower_text(x[0], stage="cuda")
    lines = capsys.readouterr().err.splitlines()
    shown = [line.removeprefix("-- ") for line in lines if line.startswith("-- ")]
    assert "privatise: unchanged" in shown
    assert "distribute" in shown
    assert "raise" in shown
    names = [name.partition(":")[0] for name in shown]
    lists = ("PASSES_COMMON", "PASSES_TO_JAX", "PASSES_TO_CUDA", "STAGES_TO_C")
    ways = [getattr(pipeline, name) for name in lists]
    ways.append(pipeline.passes_to_mark(Kinds({}, (), ())))
    ways.append(pipeline.passes_to_gradient(None))
    ways.append(pipeline.passes_to_batch((3,), ((True,),)))
    assert len(ways) >= 5
    for passes in ways:
        wanted = [name for name, _ in passes]
        starts = range(len(names) - len(wanted) + 1)
        assert any(names[n : n + len(wanted)] == wanted for n in starts), wanted


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


@settings(max_examples=examples(300), deadline=None)
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
