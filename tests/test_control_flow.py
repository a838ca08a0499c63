"""Ops of every func_type inside JAX's control flow, values and derivatives.

References are one call per step outside of control flow, which other files compare with numpy and
with finite differences.
"""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from custom_ops import CASES, Case, first
from quick_cases import one_in
from test_custom_transformations import weighted_sum

from msops import Custom

# One op of each func_type, and of each lowering of loops; the others are slow.
QUICK = ("aot", "aicpu", "pyfunc", "akg_raised", "akg_native", "hybrid_two_outputs", "tbe")
OF_KINDS = [pytest.param(case, id=case.name) for case in CASES if case.name in QUICK]
OTHERS = [
    pytest.param(case, id=case.name, marks=pytest.mark.slow)
    for case in CASES
    if case.name not in QUICK
]


def every_fourth_case(first: int) -> pytest.MarkDecorator:
    """Parametrizes with all ops; one test runs a quarter of QUICK quickly, the next others."""
    return pytest.mark.parametrize("case", [*one_in(4, OF_KINDS, first), *OTHERS])


traced = pytest.mark.parametrize(
    "case", [row for row in (*OF_KINDS, *OTHERS) if not row.values[0].has_bprop]
)


def assert_close(got: Any, expected: Any) -> None:
    for value, wanted in zip(jax.tree.leaves(got), jax.tree.leaves(expected), strict=True):
        np.testing.assert_allclose(value, wanted, rtol=2e-5, atol=1e-5)


def step_of(case: Case) -> tuple[Any, list[Any]]:
    """Returns a function of a number and the inputs, to a number, and inputs."""
    op = case.make()
    return lambda scale, x, *rest: weighted_sum(op(x * scale, *rest)), case.inputs()


def in_numpy(case: Case, scale: float, inputs: list[Any]) -> float:
    x, *rest = map(np.asarray, inputs)
    leaves = jax.tree.leaves(case.numpy(x * np.float32(scale), *rest))
    flat = np.concatenate([np.ravel(leaf) for leaf in leaves])
    return float(flat @ np.linspace(0.5, 1.5, flat.size))


@every_fourth_case(1)
def test_a_loop_runs_as_often_as_its_traced_bound_says(case: Case) -> None:
    step, inputs = step_of(case)

    def total(count: Any, *xs: Any) -> Any:
        body = lambda i, sum_: sum_ + step(1.0 + i, *xs)  # noqa: E731
        return jax.lax.fori_loop(0, count, body, 0.0)

    run = jax.jit(total)
    for count in (0, 3):
        expected = sum(in_numpy(case, 1.0 + i, inputs) for i in range(count))
        assert_close(run(count, *inputs), np.float32(expected))
    # Under vmap the shorter loops wait for the longest.
    counts = jnp.array([2, 0, 1])
    many = jax.jit(jax.vmap(total, (0, *[None] * len(inputs))))(counts, *inputs)
    sums = [sum(in_numpy(case, 1.0 + i, inputs) for i in range(count)) for count in (2, 0, 1)]
    assert_close(many, np.float32(sums))


@every_fourth_case(0)
def test_reverse_mode_goes_through_a_loop_of_known_length(case: Case) -> None:
    step, (x, *rest) = step_of(case)

    def total(x: Any) -> Any:
        return jax.lax.fori_loop(0, 3, lambda i, sum_: sum_ + step(1.0 + i, x, *rest), 0.0)

    slope = jax.grad(step, 1)
    expected = slope(1.0, x, *rest) + slope(2.0, x, *rest) + slope(3.0, x, *rest)
    assert_close(jax.jit(jax.grad(total))(x), expected)


@traced
def test_forward_mode_goes_through_a_loop_of_traced_length(case: Case) -> None:
    step, (x, *rest) = step_of(case)

    def total(count: Any, x: Any) -> Any:
        run = lambda state: (state[0] + 1, state[1] + step(1.0 + state[0], x, *rest))  # noqa: E731
        return jax.lax.while_loop(lambda state: state[0] < count, run, (0, 0.0))[1]

    @jax.jit
    def both(count: Any, x: Any) -> Any:
        return jax.jvp(lambda x: total(count, x), (x,), (jnp.ones_like(x),))

    slope = jax.grad(step, 1)
    expected = (slope(1.0, x, *rest) + slope(2.0, x, *rest)).sum()
    assert_close(both(2, x)[1], expected)


@every_fourth_case(2)
def test_cond_gives_value_and_gradient_of_the_branch_it_takes(case: Case) -> None:
    step, (x, *rest) = step_of(case)

    def choose(flag: Any, x: Any) -> Any:
        return jax.lax.cond(flag, lambda x: step(2.0, x, *rest), lambda x: 3.0 * x.sum(), x)

    run = jax.jit(jax.value_and_grad(choose, 1))
    taken = jax.value_and_grad(step, 1)(2.0, x, *rest)
    left = (3.0 * x.sum(), jnp.full_like(x, 3.0))
    assert_close(run(True, x), taken)
    assert_close(run(False, x), left)
    # Under vmap both branches run, and a choice per element is left of it.
    many = jax.jit(jax.vmap(jax.value_and_grad(choose, 1), (0, None)))
    each = jax.tree.map(lambda *parts: jnp.stack(parts), taken, left)
    assert_close(many(jnp.array([True, False]), x), each)


@every_fourth_case(3)
@pytest.mark.parametrize(
    "policy",
    ["nothing_saveable", pytest.param("everything_saveable", marks=pytest.mark.slow)],
)
def test_checkpointed_steps_of_a_scan_have_the_same_gradient(case: Case, policy: str) -> None:
    step, (x, *rest) = step_of(case)
    policies = jax.checkpoint_policies

    def total(x: Any, is_saved: bool) -> Any:
        def body(sum_: Any, scale: Any) -> Any:
            return sum_ + step(scale, x, *rest), None

        if is_saved:
            body = jax.checkpoint(body, policy=getattr(policies, policy), prevent_cse=False)
        return jax.lax.scan(body, 0.0, jnp.array([1.0, 2.0]))[0]

    slope = jax.grad(step, 1)
    expected = slope(1.0, x, *rest) + slope(2.0, x, *rest)
    assert_close(jax.jit(jax.grad(lambda x: total(x, True)))(x), expected)


def test_a_stateful_op_runs_once_per_iteration_and_in_the_branch_taken_alone() -> None:
    calls: list[float] = []

    def note(x: np.ndarray) -> np.ndarray:
        calls.append(float(x))
        return x

    op = Custom(note, first, first, stateful=True)
    loop = jax.jit(lambda n, x: jax.lax.fori_loop(0, n, lambda i, x: op(x + 1), x))
    assert float(jax.block_until_ready(loop(3, 0.0))) == 3.0
    assert calls == [1.0, 2.0, 3.0]
    calls.clear()
    choose = jax.jit(lambda flag, x: jax.lax.cond(flag, op, lambda x: -op(2 * x), x))
    assert [float(choose(flag, 5.0)) for flag in (True, False)] == [5.0, -10.0]
    assert calls == [5.0, 10.0]
