"""Vector steps: the value of a nest, and the buffer it is stored to."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from functools import reduce

import jax
import numpy as np
from jax import lax

from msops._base.dtypes import as_dtype
from msops._loops.ir.operators import is_float
from msops._loops.to_jax.printing.contractions import contract, narrow_factors
from msops._loops.to_jax.printing.environment import Environment
from msops._loops.to_jax.printing.evaluate import evaluate, guarded
from msops._loops.to_jax.printing.recurrences import accumulate, recur
from msops._loops.to_jax.printing.reductions import reduce_expression, reduce_kept
from msops._loops.to_jax.printing.sliding import convolve, pool
from msops._loops.to_jax.printing.stores import covers, store
from msops._loops.to_jax.printing.values import Array, Contents, Uniform, Value, constant
from msops._loops.to_jax.raising.nests import Axis, Nest
from msops._loops.to_jax.raising.steps import (
    Accumulate,
    Contract,
    Convolve,
    Map,
    Pool,
    Recur,
    Reduce,
    VectorStep,
)
from msops._loops.to_jax.raising.views import find_view
from msops._loops.to_jax.raising.windows import Window


def execute(step: VectorStep, env: Environment) -> Contents:
    """Returns what the buffer holds that a step stores to."""
    nest = step.nest
    env = guarded(nest.mask, env.over(nest.ordered_axes))
    match step:
        case Map():
            value = evaluate(nest.store.value, env)
            return _filled(nest, value, env) or store(nest.store, value, None, env)
        case Reduce(op=op, value=value, over=over):
            if step.keeps:
                result = reduce_kept(step, env)
            else:
                result = reduce_expression(op, value, over, env)
            if op == "add":
                result = _added(nest, result, env, is_one=not over)
            if env.mask and set(env.mask.axes) & set(over):
                # Masked terms have entered the result as the neutral element.
                env = dataclasses.replace(env, masks=())
            return store(nest.store, result, step.stored_op, env)
        case Contract() | Convolve():
            result = _product(step, env)
            if step.is_negated:
                result = _added(nest, result, env)
            return store(nest.store, result, "add", env)
        case Pool():
            result = pool(step, env, lambda inner: _over_windows(inner, step.windows))
            if step.op == "add":
                result = _added(nest, result, env)
            return store(nest.store, result, step.stored_op, env)
        case Accumulate():
            return store(nest.store, accumulate(step, env), None, env)
        case Recur():
            return store(nest.store, recur(step, env), None, env)


def _added(nest: Nest, value: Value, env: Environment, is_one: bool = False) -> Value:
    """Returns a sum, or one term, that is not -0 where it is added to zeros: 0 + -0 is 0.

    For XLA a sum of terms that are subtracted is -0, as it negates the sum, and 0 + x is x.

    Args:
      nest: what is stored where.
      value: the sum.
      env: the environment of its axes.
      is_one: it is one term, whose sum with -0 may be -0.
    """
    old = env.contents[nest.store.buffer]
    if not is_float(nest.store.value.dtype):
        return value
    zero = constant(0.0, nest.store.value.dtype)
    if isinstance(old, Uniform):
        if old.value or np.signbit(old.value):
            return value
        if find_view(nest.store.indices, old.shape, env.axis_ranges) is None:
            return value  # It is added to them.
    elif is_one:
        return value
    return env.compute("add", lax.add, value, Value(zero, ()))


def _product(step: Contract | Convolve, env: Environment) -> Value:
    """Returns a sum of products, also where 0 times a factor that is left out would not be 0."""
    if isinstance(step, Convolve):
        return _convolution(step, env)
    values = [evaluate(factor, env) for factor in narrow_factors(step)]
    fallback = step.fallback
    if fallback is None:
        return contract(step, values, env)
    axes = env.ordered(set(env.order) - set(step.over))
    product = env.cond(
        _are_finite(values),
        lambda inner: inner.vary([inner.spread(contract(step, values, inner), axes)]),
        lambda inner: inner.vary([_added_up(fallback, axes, inner)]),
    )
    return Value(product[0], axes)


def _convolution(step: Convolve, env: Environment) -> Value:
    """Returns a sum of products over windows, as `_product` does.

    XLA calls its library for convolutions, except in branches: there one takes 30 times as long. So
    it is outside, and of zeros if a number is not finite: its gradient is then 0, too.
    """
    wide = _over_windows(env, step.windows)
    image, kernel = evaluate(step.image, wide), evaluate(step.filter, env)
    fallback = step.fallback
    if fallback is None:
        return convolve(step, image, kernel, env, wide)
    axes = env.ordered(set(env.order) - set(step.over))
    are_finite = _are_finite([image, kernel])

    def or_zeros(value: Value) -> Value:
        zeros = lax.full_like(value.array, 0)
        return dataclasses.replace(value, array=lax.select(are_finite, value.array, zeros))

    product = convolve(step, or_zeros(image), or_zeros(kernel), env, wide)
    total = env.cond(
        are_finite,
        lambda inner, ready: inner.vary([ready]),
        lambda inner, _: inner.vary([_added_up(fallback, axes, inner)]),
        env.spread(product, axes),
    )
    return Value(total[0], axes)


def _are_finite(values: Sequence[Value]) -> Array:
    return reduce(lax.bitwise_and, [_is_finite(value.array) for value in values])


def _is_finite(array: Array) -> Array:
    """Returns whether all elements are finite: 0 times any other number is NaN.

    XLA takes longer to compile the conjunction of `lax.is_finite`.
    """
    zeros = lax.mul(array, lax.full_like(array, 0))
    return lax.eq(lax.reduce_sum(zeros, range(array.ndim)), lax.full((), 0, array.dtype))


def _added_up(step: Reduce, axes: Sequence[str], env: Environment) -> Array:
    """Returns a sum over axes that are left, one element of the longest other axis at a time.

    All at once, XLA would reserve memory for all terms even where it does not run this: each call
    of the program then starts in memory that the system has yet to give it. A gradient computes the
    terms again.
    """
    longest = max(step.over, key=env.extents.__getitem__)
    rest = [axis for axis in step.over if axis != longest]
    (summed,) = (axis for axis in env.axes if axis.var == longest)
    ranges = {**env.scalar_ranges, longest: summed.interval}
    others = env.over([axis for axis in env.axes if axis is not summed])

    def add(outer: Environment, counter: Array, total: Array) -> Array:
        masked = guarded(step.nest.mask, outer.counting(longest, counter, ranges))
        term = reduce_expression("add", step.value, rest, masked)
        return lax.add(total, masked.spread(term, axes))

    start = lax.full([env.extents[axis] for axis in axes], 0, as_dtype(step.value.dtype).dtype)

    def total() -> Array:
        return others.fori_loop(summed.begin, summed.end, add, *env.vary([start]))

    # Else JAX's gradient would keep the factors of all terms, or zeros as large if this is not run.
    return jax.checkpoint(total)()


def _filled(nest: Nest, value: Value, env: Environment) -> Uniform | None:
    """Returns the buffer if the nest stores one number to all of it."""
    shape = env.contents[nest.store.buffer].shape
    if not isinstance(value.array, np.generic) or env.masks:
        return None
    view = find_view(nest.store.indices, shape, env.axis_ranges)
    if view is None or not covers(view):
        return None
    return Uniform(value.array, shape)


def _over_windows(env: Environment, windows: Sequence[Window]) -> Environment:
    """Returns the environment with the windows' own axes in place of outputs and taps."""
    own = {}
    for window in windows:
        low, high = window.interval(env.axis_ranges)
        own[window.output] = Axis(window.axis, low, high + 1)
    taps = {window.tap for window in windows}
    axes = [own.get(axis.var, axis) for axis in env.axes if axis.var not in taps]
    return env.over(axes)
