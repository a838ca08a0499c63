"""The ways an op batches: once per element, once with leading axes, or by the author's rule."""

from __future__ import annotations

import functools
import itertools
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from custom_ops import aot, first, loops, multiply, multiply_bprop

from msops import Custom, errors

slow = functools.partial(pytest.param, marks=pytest.mark.slow)

X = jnp.arange(12.0).reshape(3, 4)
Y = jnp.linspace(1, 2, 4)


class Recorder:
    """Multiplies, for any leading axes, and records the shapes it was called with."""

    def __init__(self) -> None:
        self.shapes: list[tuple[tuple[int, ...], ...]] = []

    def __call__(self, x: Any, y: Any) -> Any:
        self.shapes.append((x.shape, y.shape))
        return x * y

    def op(self, **options: Any) -> Custom:
        bprop = lambda x, y, out, dout: (dout * y, dout * x)  # noqa: E731
        return Custom(self, first, first, bprop=bprop, **options)


@pytest.mark.parametrize(
    ("vmap", "shapes"),
    [
        ("sequential", [((4,), (4,))] * 3),
        ("expand_dims", [((3, 4), (1, 4))]),
        ("broadcast_all", [((3, 4), (3, 4))]),
    ],
)
def test_kernel_is_called_as_vmap_says(vmap: str, shapes: list[Any]) -> None:
    kernel = Recorder()
    got = jax.vmap(kernel.op(vmap=vmap), in_axes=(0, None))(X, Y)
    np.testing.assert_allclose(got, X * Y)
    assert kernel.shapes == shapes


@pytest.mark.parametrize("vmap", ["sequential", "expand_dims", "broadcast_all"])
def test_nested_and_differentiated_batches_agree_with_numpy(vmap: str) -> None:
    op = Recorder().op(vmap=vmap)
    outer = jax.vmap(jax.vmap(op, in_axes=(None, 0)), in_axes=(0, None))(X, X)
    np.testing.assert_allclose(outer, X[:, None] * X[None])
    slope = jax.vmap(jax.grad(lambda x, y: op(x, y).sum(), argnums=1), in_axes=(0, None))(X, Y)
    np.testing.assert_allclose(slope, X)
    total = jax.grad(lambda y: jax.vmap(op, in_axes=(0, None))(X, y).sum())(Y)
    np.testing.assert_allclose(total, X.sum(0))
    moved = jax.vmap(op, in_axes=(1, None), out_axes=1)(X.T, Y)
    np.testing.assert_allclose(moved, (X * Y).T)


def multiply_rule(size: int, has: Any, x: Any, y: Any) -> Any:
    return (x if has[0] else x[None]) * (y if has[1] else y[None]), True


AXES = [(0, None), (None, 0), (None, 1), (0, 0)]


@pytest.mark.parametrize(
    ("vmap", "levels", "axes_of_a_level"),
    [
        ("expand_dims", 2, AXES),
        slow("expand_dims", 3, AXES[:2]),
        ("sequential", 2, AXES[:2]),
        slow("broadcast_all", 2, AXES[:2]),
        (multiply_rule, 2, AXES[:2]),
    ],
)
def test_kernel_that_counts_elements_is_right_in_nested_batches(
    vmap: Any, levels: int, axes_of_a_level: Any
) -> None:
    op = aot("MultiplyRepeated", vmap=vmap)
    rng = np.random.default_rng(levels)
    for axes in itertools.product(axes_of_a_level, repeat=levels):
        ours, theirs = op, jnp.multiply
        arrays = [rng.random(4, np.float32) for _ in range(2)]
        # Innermost first: each level gives the arrays that it maps one axis more.
        for size, in_axes in zip((3, 2, 5), axes, strict=False):
            arrays = [
                array if axis is None else np.stack([array + i for i in range(size)], axis)
                for array, axis in zip(arrays, in_axes, strict=True)
            ]
            ours, theirs = (jax.vmap(function, in_axes) for function in (ours, theirs))
        np.testing.assert_allclose(ours(*arrays), theirs(*arrays), rtol=1e-6, err_msg=str(axes))


def test_an_input_has_all_leading_axes_or_none_of_them() -> None:
    kernel = Recorder()
    op = kernel.op(vmap="expand_dims")
    pairs = jax.vmap(jax.vmap(op, in_axes=(None, 0)), in_axes=(0, None))
    np.testing.assert_allclose(pairs(X[:2], X), X[:2, None] * X)
    twice = jax.vmap(jax.vmap(op, in_axes=(0, None)), in_axes=(0, None))
    np.testing.assert_allclose(twice(X[None], Y), X[None] * Y)
    assert kernel.shapes == [((2, 3, 4), (2, 3, 4)), ((1, 3, 4), (1, 1, 4))]


@pytest.mark.parametrize("vmap", ["expand_dims", "broadcast_all"])
def test_shapes_are_inferred_without_the_added_axes(vmap: str) -> None:
    op = Custom(lambda x: x.sum(-1, keepdims=True), lambda x: [1], first, vmap=vmap)
    np.testing.assert_allclose(jax.vmap(op)(X), X.sum(1, keepdims=True))


def test_authors_rule_is_asked() -> None:
    seen = []

    def rule(axis_size: int, in_batched: Any, x: Any, y: Any) -> Any:
        seen.append((axis_size, in_batched, x.shape, y.shape))
        return x * y, True

    kernel = Recorder()
    got = jax.vmap(kernel.op(vmap=rule), in_axes=(1, None))(X.T, Y)
    np.testing.assert_allclose(got, X * Y)
    assert seen == [(3, [True, False], (3, 4), (4,))]
    assert kernel.shapes == []


def test_rule_may_say_that_a_result_is_not_batched() -> None:
    op = Custom(
        lambda x: (x, np.float32(1)),
        lambda x: (x, ()),
        lambda x: (x, x),
        vmap=lambda size, batched, x: ((x, jnp.float32(1)), (True, False)),
    )
    whole, one = jax.vmap(op, out_axes=(0, None))(X)
    np.testing.assert_allclose(whole, X)
    assert one == 1


@pytest.mark.parametrize(
    ("answer", "family", "problem"),
    [
        (X, errors.ArgumentTypeError, "expected (result, is_batched); got an array"),
        (
            (X, (True, True)),
            errors.ArgumentTypeError,
            "expected is_batched as True or False for each of 1 output(s), in the structure of the "
            "result; got (True, True).",
        ),
        (
            (X[:, :2], True),
            errors.ArgumentValueError,
            "expected results of shapes and dtypes float32[3, 4]; got float32[3, 2].",
        ),
        (
            ((X, X), (True, False)),
            errors.ArgumentValueError,
            "expected results of shapes and dtypes float32[3, 4]; got float32[3, 4], float32[3, "
            "4].",
        ),
    ],
)
def test_wrong_answer_of_a_rule_is_an_error(
    answer: Any, family: type[Exception], problem: str
) -> None:
    op = Custom(np.sin, first, first, vmap=lambda size, batched, x: answer)
    with pytest.raises(family) as caught:
        jax.vmap(op)(X)
    assert str(caught.value).startswith("vmap rule of Custom 'sin': " + problem)


def test_unknown_way_lists_the_known() -> None:
    with pytest.raises(errors.ArgumentValueError) as caught:
        Custom(np.sin, first, first, vmap="parallel")
    assert str(caught.value) == (
        "Custom 'sin': expected vmap to be one of 'sequential', 'expand_dims', 'broadcast_all' or "
        "a function; got 'parallel'.\n"
        "Pass one of these, or rule(axis_size, in_batched, *inputs) -> (result, is_batched)."
    )


@pytest.mark.parametrize(
    ("make", "vmap"),
    [
        (lambda **options: aot("Multiply", **options), "sequential"),
        slow(lambda **options: aot("Multiply", **options), "broadcast_all"),
        (lambda **options: aot("Multiply", **options), lambda size, batched, x, y: (x * y, True)),
        slow(lambda **options: loops(multiply, **options), "sequential"),
        (lambda **options: loops(multiply, **options), "expand_dims"),
        (lambda **options: loops(multiply, "native", **options), "broadcast_all"),
    ],
)
def test_batches_of_gradients_and_gradients_of_batches(make: Any, vmap: Any) -> None:
    op = make(vmap=vmap, bprop=multiply_bprop)

    def everything(f: Any) -> Any:
        loss = lambda x, y: (f(x, y) ** 2).sum()  # noqa: E731
        mapped = jax.vmap(f, in_axes=(0, None))
        return (
            jax.vmap(jax.grad(loss, (0, 1)), in_axes=(0, None))(X, Y),
            jax.grad(lambda x, y: (mapped(x, y) ** 2).sum(), (0, 1))(X, Y),
            jax.vmap(jax.vmap(jax.grad(loss), (None, 0)), (0, None))(X, X),
            jax.grad(lambda x: (jax.vmap(mapped, (None, 0))(x, x) ** 2).sum())(X),
            jax.vmap(lambda x: jax.grad(lambda y: mapped(X, y)[0] @ x)(Y))(X),
        )

    got, expected = jax.jit(lambda: everything(op))(), everything(jnp.multiply)
    for value, wanted in zip(jax.tree.leaves(got), jax.tree.leaves(expected), strict=True):
        np.testing.assert_allclose(value, wanted, rtol=1e-5)
