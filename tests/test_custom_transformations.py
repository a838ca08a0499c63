"""Every op of the table, under every transformation, against numpy and finite differences."""

from __future__ import annotations

import functools
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import optax
import pytest
from custom_ops import CASES, Case
from jax.experimental.jet import jet
from quick_cases import one_in

from msops.errors import GradientTypeError

each_case = pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
# Other attributes, numbers of outputs and rules of gradients pass through the same code of a
# transformation: what every one of them computes, each_case shows. An AICPU kernel is called as an
# aot one is.
KINDS = ("aot", "pyfunc_scalar_and_array", "akg_raised", "akg_native", "tbe_two_outputs")
OF_KINDS = [case for case in CASES if case.name in KINDS]
OTHERS = [pytest.param(case, marks=pytest.mark.slow) for case in CASES if case.name not in KINDS]


def every_fourth_case(first: int) -> pytest.MarkDecorator:
    """Parametrizes with all ops; one test runs a quarter of them quickly, the next others."""
    return pytest.mark.parametrize("case", one_in(4, CASES, first), ids=lambda case: case.name)


def kind_in_turn(turn: int) -> pytest.MarkDecorator:
    """Parametrizes with all ops; one test runs the first of KINDS quickly, the next the second."""
    cases = [*one_in(len(KINDS), OF_KINDS, turn), *OTHERS]
    return pytest.mark.parametrize("case", cases, ids=lambda case: case.name)


def assert_same(got: Any, expected: Any) -> None:
    """Compares structure, dtypes and values (float32 rounding allowed)."""
    assert isinstance(got, tuple) == isinstance(expected, tuple)
    pairs = zip(jax.tree.leaves(got), jax.tree.leaves(expected), strict=True)
    for value, wanted in pairs:
        assert isinstance(value, jax.Array)
        assert value.dtype == np.asarray(wanted).dtype
        np.testing.assert_allclose(value, wanted, rtol=1e-5, atol=1e-6)


def weighted_sum(result: Any) -> Any:
    """A scalar that depends on every element of every output with its own weight."""
    leaves = [leaf.ravel() for leaf in jax.tree.leaves(result)]
    flat = jnp.concatenate(leaves)
    return flat @ jnp.linspace(0.5, 1.5, flat.size)


@each_case
def test_eager_and_jit_give_what_numpy_gives(case: Case) -> None:
    op, inputs = case.make(), case.inputs()
    expected = case.numpy(*map(np.asarray, inputs))
    assert_same(op(*inputs), expected)
    assert_same(op(*map(np.asarray, inputs)), expected)
    assert_same(jax.jit(op)(*inputs), expected)


@kind_in_turn(0)
def test_op_runs_with_jit_disabled(case: Case) -> None:
    op, inputs = case.make(), case.inputs()
    expected = case.numpy(*map(np.asarray, inputs))
    slope = jax.grad(lambda *xs: weighted_sum(op(*xs)))(*inputs)
    with jax.disable_jit():
        assert_same(op(*inputs), expected)
        assert_same(jax.jit(op)(*inputs), expected)
        assert_same(jax.grad(lambda *xs: weighted_sum(op(*xs)))(*inputs), slope)


@kind_in_turn(1)
def test_no_call_moves_data_where_a_transfer_guard_forbids_it(case: Case) -> None:
    op, inputs = case.make(), case.inputs()
    batch = [jnp.stack([x, x + 1]) for x in inputs]
    cotangent = jax.tree.map(jnp.ones_like, op(*inputs))
    fresh = case.make()
    with jax.transfer_guard("disallow"):
        for function in (fresh, jax.jit(fresh)):
            function(*inputs)
            jax.vmap(function)(*batch)
        # Eagerly, rules of differentiation move their constants, as all of jax.numpy does.
        jax.jit(lambda dout, *xs: jax.vjp(fresh, *xs)[1](dout))(cotangent, *inputs)


@each_case
def test_jet_is_refused_in_words_of_ours(case: Case) -> None:
    op, inputs = case.make(), case.inputs()
    series = [[jnp.ones_like(x)] for x in inputs]
    for function in (op, jax.jit(op)):
        with pytest.raises(GradientTypeError, match=r"^Custom '.*jet is applied to it"):
            jet(function, inputs, series)


@kind_in_turn(2)
def test_sequential_vmap_gives_what_one_call_per_element_gives(case: Case) -> None:
    op, inputs = case.make(), case.inputs()
    batch = [jnp.stack([x, 2 * x]) for x in inputs]
    rows = [case.numpy(*(np.asarray(x[i]) for x in batch)) for i in range(2)]
    expected = jax.tree.map(lambda *parts: np.stack(parts), *rows)
    assert_same(jax.vmap(jax.custom_batching.sequential_vmap(op))(*batch), expected)


@each_case
def test_jaxpr_shows_one_primitive_of_its_own_name(case: Case) -> None:
    op, inputs = case.make(), case.inputs()
    text = str(jax.make_jaxpr(op)(*inputs))
    assert text.count("custom_vjp_call") == case.has_bprop
    assert sum(line.count("operator=") for line in text.splitlines()) == 1
    assert "= custom_" in text


@every_fourth_case(0)
def test_vmap_gives_what_one_call_per_element_gives(case: Case) -> None:
    op = case.make()
    inputs = [jnp.stack([x, x + 1, 2 * x]) for x in case.inputs()]
    rows = [case.numpy(*(np.asarray(x[i]) for x in inputs)) for i in range(3)]
    expected = jax.tree.map(lambda *parts: np.stack(parts), *rows)
    assert_same(jax.vmap(op)(*inputs), expected)
    assert_same(jax.jit(jax.vmap(op))(*inputs), expected)
    moved = [jnp.moveaxis(x, 0, -1) for x in inputs]
    assert_same(jax.vmap(op, in_axes=-1)(*moved), expected)


@kind_in_turn(3)
def test_vmap_takes_unbatched_arguments_and_empty_batches(case: Case) -> None:
    op, inputs = case.make(), case.inputs()
    axes = [0] + [None] * (len(inputs) - 1)
    batch = jnp.stack([inputs[0], -inputs[0]])
    rows = [case.numpy(np.asarray(x), *map(np.asarray, inputs[1:])) for x in batch]
    expected = jax.tree.map(lambda *parts: np.stack(parts), *rows)
    assert_same(jax.vmap(op, in_axes=axes)(batch, *inputs[1:]), expected)
    none = jax.vmap(op, in_axes=axes)(batch[:0], *inputs[1:])
    assert jax.tree.map(jnp.shape, none) == jax.tree.map(
        lambda leaf: (0, *leaf.shape[1:]), expected
    )


@every_fourth_case(2)
def test_gradients_agree_with_finite_differences(case: Case) -> None:
    op, inputs = case.make(), case.inputs()
    loss = lambda *xs: weighted_sum(op(*xs))  # noqa: E731
    positions = tuple(range(len(inputs)))
    value, gradients = jax.value_and_grad(loss, positions)(*inputs)
    np.testing.assert_allclose(value, loss(*inputs), rtol=1e-6)

    def exact(*xs: np.ndarray) -> float:
        outputs = jax.tree.leaves(case.numpy(*xs))
        flat = np.concatenate([np.ravel(output) for output in outputs])
        return float(flat @ np.linspace(0.5, 1.5, flat.size))

    wide = [np.asarray(x, np.float64) for x in inputs]
    for position, gradient in enumerate(gradients):
        for index in np.ndindex(wide[position].shape):
            ahead, behind = [x.copy() for x in wide], [x.copy() for x in wide]
            ahead[position][index] += 1e-6
            behind[position][index] -= 1e-6
            slope = (exact(*ahead) - exact(*behind)) / 2e-6
            np.testing.assert_allclose(gradient[index], slope, rtol=1e-4, atol=1e-5)


@kind_in_turn(4)
def test_gradient_is_the_same_under_every_transformation(case: Case) -> None:
    op, inputs = case.make(), case.inputs()
    loss = lambda *xs: weighted_sum(op(*xs))  # noqa: E731
    expected = jax.grad(loss)(*inputs)
    assert_same(jax.jit(jax.grad(loss))(*inputs), expected)
    assert_same(jax.grad(jax.jit(loss))(*inputs), expected)
    assert_same(jax.grad(jax.checkpoint(loss))(*inputs), expected)
    assert_same(jax.jit(jax.grad(jax.checkpoint(loss)))(*inputs), expected)
    batches = [jnp.stack([x, x]) for x in inputs]
    assert_same(jax.vmap(jax.grad(loss))(*batches), jnp.stack([expected, expected]))
    mean = lambda *xs: jax.vmap(loss)(*xs).sum()  # noqa: E731
    assert_same(jax.grad(mean)(*batches), jnp.stack([expected, expected]))


@kind_in_turn(0)
def test_scan_runs_the_op_at_each_step(case: Case) -> None:
    op, inputs = case.make(), case.inputs()

    def body(total: Any, x: Any) -> Any:
        result = op(x, *inputs[1:])
        return total + weighted_sum(result), result

    steps = jnp.stack([inputs[0], inputs[0] * 2])
    _, results = jax.jit(lambda xs: jax.lax.scan(body, 0.0, xs))(steps)
    rows = [case.numpy(np.asarray(x), *map(np.asarray, inputs[1:])) for x in steps]
    assert_same(results, jax.tree.map(lambda *parts: np.stack(parts), *rows))
    slope = jax.grad(lambda xs: jax.lax.scan(body, 0.0, xs)[0])(steps)
    each = jax.vmap(jax.grad(lambda x: weighted_sum(op(x, *inputs[1:]))))(steps)
    assert_same(slope, each)


@kind_in_turn(1)
def test_op_works_in_while_loop_and_cond(case: Case) -> None:
    op, inputs = case.make(), case.inputs()
    expected = op(*inputs)

    def run(n: Any, *xs: Any) -> Any:
        zeros = jax.tree.map(jnp.zeros_like, expected)
        step = lambda state: (state[0] + 1, op(*xs))  # noqa: E731
        return jax.lax.while_loop(lambda state: state[0] < n, step, (0, zeros))[1]

    assert_same(jax.jit(run)(3, *inputs), expected)
    choose = lambda flag, *xs: jax.lax.cond(flag, op, op, *xs)  # noqa: E731
    assert_same(jax.jit(choose)(True, *inputs), expected)


@kind_in_turn(2)
def test_op_trains_in_a_step_with_donated_buffers(case: Case) -> None:
    op, inputs = case.make(), case.inputs()
    optimizer = optax.sgd(1e-2)

    @functools.partial(jax.jit, donate_argnums=(0, 1))
    def step(x: Any, state: Any) -> Any:
        loss = lambda x: (weighted_sum(op(x, *inputs[1:])) - 3.0) ** 2  # noqa: E731
        value, gradient = jax.value_and_grad(loss)(x)
        updates, state = optimizer.update(gradient, state)
        return optax.apply_updates(x, updates), state, value

    x = inputs[0] + 0
    state = optimizer.init(x)
    losses = []
    for _ in range(25):
        x, state, value = step(x, state)
        losses.append(float(value))
    assert losses[-1] < 0.5 * losses[0]
    assert not np.array_equal(x, inputs[0])
