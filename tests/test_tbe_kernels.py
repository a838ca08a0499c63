"""Kernel files of MindSpore's form: each against numpy, in every way JAX can call it."""

from __future__ import annotations

import re
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import scipy.special
from quick_cases import one_in
from tbe_corpus import CASES, FOLDER
from tbe_ops import kernel_of, op_info

from msops import Custom


@pytest.mark.parametrize("case", one_in(3, CASES), ids=str)
def test_a_kernel_computes_what_it_says_eagerly_and_compiled(case):
    op, inputs = case.op(), case.inputs()
    for call in (op, jax.jit(op)):
        case.check(call(*inputs), inputs)


@pytest.mark.slow
@pytest.mark.parametrize("case", CASES, ids=str)
def test_a_kernel_is_batched(case):
    op = case.op()
    elements = [case.inputs(seed) for seed in range(3)]
    stacked = jax.tree.map(lambda *xs: jnp.stack(xs, -1), *elements)
    results = jax.tree.leaves(jax.jit(jax.vmap(lambda xs: op(*xs), -1))(stacked))
    for index, element in enumerate(elements):
        case.check([result[index] for result in results], element)


@pytest.mark.parametrize("name", ["i0e", "i1e"])
def test_a_scaled_bessel_function_is_scipys_everywhere(name):
    far = np.logspace(-30, 38, 500)
    x = np.concatenate([np.linspace(-60, 60, 4001), far, -far, [0, np.inf]]).astype("f4")
    op = Custom(f"{FOLDER / 'bessel.py'}:bessel_{name}", lambda x: x, lambda x: x, func_type="tbe")
    expected = getattr(scipy.special, name)(x.astype("f8"))
    np.testing.assert_allclose(op(x), expected, rtol=2e-6, atol=2e-7)


def test_a_bessel_function_is_scipys_in_all_its_forms():
    x = np.linspace(0.05, 60, 4001, dtype="f4")
    op = Custom(f"{FOLDER / 'bessel_y1.py'}:bessel_y1", lambda x: x, lambda x: x, func_type="tbe")
    expected = scipy.special.y1(x.astype("f8"))
    np.testing.assert_allclose(op(x), expected, rtol=2e-6, atol=2e-6)


FLOATS = [case for case in CASES if case.differentiable and case.dtype == "float32"]


@pytest.mark.parametrize("case", one_in(3, FLOATS), ids=str)
def test_both_modes_are_the_difference_quotient_of_numpys(case):
    op, inputs = case.op(), case.inputs()
    rng = np.random.default_rng(9)
    flat, tree = jax.tree.flatten(inputs)
    along = [rng.normal(size=x.shape) for x in flat]
    expected = case.expected(inputs)
    weights = [rng.normal(size=value.shape) for value in expected]

    def total(results: Any) -> Any:
        leaves = jax.tree.leaves(results)
        return sum(
            (w.astype("f4") * r).sum()
            for w, r in zip(weights, leaves, strict=True)
            if jnp.issubdtype(r.dtype, jnp.floating)
        )

    def moved(step: float) -> float:
        xs = [np.asarray(x, "f8") + step * v for x, v in zip(flat, along, strict=True)]
        results = case.expected(jax.tree.unflatten(tree, xs))
        return sum(
            float((w * r).sum())
            for w, r in zip(weights, results, strict=True)
            if r.dtype.kind == "f"
        )

    quotient = (moved(1e-5) - moved(-1e-5)) / 2e-5
    directions = jax.tree.unflatten(tree, [jnp.asarray(v, jnp.float32) for v in along])

    @jax.jit
    def derivatives(xs: Any) -> Any:
        one = lambda xs: total(op(*xs))  # noqa: E731
        return jax.grad(one)(xs), jax.jvp(one, (xs,), (directions,))[1]

    gradients, forward = derivatives(inputs)
    parts = [
        np.asarray(g, "f8") * v for g, v in zip(jax.tree.leaves(gradients), along, strict=True)
    ]
    reverse = sum(part.sum() for part in parts)
    size = 1 + sum(np.abs(part).sum() for part in parts)
    assert abs(reverse - quotient) <= 1e-3 * size
    assert abs(float(forward) - quotient) <= 1e-3 * size


def rounded(te: Any, x: Any) -> Any:
    return te.vmuls(te.floor(te.vadds(te.round_to(te.vmuls(x, 4.0), 7.0, -8.0), 0.5)), 0.25)


def rounded_in_jax(x: Any) -> Any:
    return jnp.floor(jnp.clip(x * 4, -8, 7) + 0.5) * 0.25


# Not of a softmax: XLA multiplies jax.numpy's by reciprocals, which a kernel's quotients are not.
@pytest.mark.parametrize(("kernel", "plain"), [(rounded, rounded_in_jax)])
def test_xla_compiles_a_kernel_to_what_it_makes_of_jax_numpy(kernel, plain):
    # So it takes the same time: benchmarks/tbe.py measures it.
    op = Custom(
        kernel_of(kernel, 1), lambda x: x, lambda x: x, func_type="tbe", reg_info=op_info(1)
    )
    x = jnp.ones((64, 32))
    made = [
        sorted(re.findall(r"= (\S+ [a-z-]+)\(", jax.jit(f).lower(x).compile().as_text()))
        for f in (op, plain)
    ]
    assert made[0] == made[1]
    assert len(made[0]) > 5


def test_there_are_enough_kernels():
    assert len({case.entry or case.file for case in CASES}) >= 16
    assert {case.file for case in CASES} == {
        path.stem for path in FOLDER.glob("*.py") if path.stem != "__init__"
    }
