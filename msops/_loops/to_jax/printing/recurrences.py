"""Scans along an axis: cumulative operations and first-order linear recurrences."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial

import numpy as np
from jax import lax

from msops._loops.ir.nodes import Binary, Const, Expr, Load, Unary
from msops._loops.ir.walk import loads, operands
from msops._loops.to_jax.printing import operations
from msops._loops.to_jax.printing.environment import Environment
from msops._loops.to_jax.printing.evaluate import evaluate
from msops._loops.to_jax.printing.reductions import FOUND_BY, with_signs, zero_keys
from msops._loops.to_jax.printing.values import Array, Value, constant, in_float32
from msops._loops.to_jax.raising.steps import Accumulate, Recur

_CUMULATIVE = {"add": lax.cumsum, "mul": lax.cumprod, "min": lax.cummin, "max": lax.cummax}


def accumulate(step: Accumulate, env: Environment) -> Value:
    """Returns every partial result along the axis."""
    axes = env.order
    array = env.spread(evaluate(step.value, env), axes)
    first = env.spread(evaluate(step.initial, env), _without(axes, step.axis))
    position = axes.index(step.axis)
    sums = in_float32(partial(_CUMULATIVE[step.op], axis=position), array)
    if step.keeps:
        iterations = step.nest.iterations
        sums = with_signs(Value(sums, axes), partial(_keys, step), iterations, env).array
    initial = lax.broadcast_in_dim(first, array.shape, _others(array.ndim, position))
    combine = operations.binary(step.stored_op, str(array.dtype))
    return Value(combine(initial, sums), axes)


def _keys(step: Accumulate, env: Environment) -> Value:
    value = Value(env.spread(evaluate(step.value, env), env.order), env.order)
    keys = zero_keys(value, [step.axis], step.keeps, env)
    along = env.order.index(step.axis)
    return Value(_CUMULATIVE[FOUND_BY[step.keeps]](keys.array, axis=along), env.order)


def recur(step: Recur, env: Environment) -> Value:
    """Returns h for every position of the axis, where h_i = a_i h_{i-1} + b_i."""
    axes = env.order
    position = axes.index(step.axis)
    factor, addend, *parts = (
        env.spread(evaluate(expr, env), axes)
        for expr in (step.coefficient, step.addend, *_parts(step.value, step.before))
    )
    first = env.spread(evaluate(step.initial, env), _without(axes, step.axis))
    product = lax.platform_dependent(
        *env.vary((first, factor, addend, *parts)),
        cpu=lambda first, _, __, *parts: _one_by_one(step, first, parts, env),
        default=lambda first, factor, addend, *_: _by_halves(factor, addend, first, position),
    )
    return Value(product, axes)


def _parts(expr: Expr, before: Load) -> tuple[Expr, ...]:
    """Returns the largest parts of an expression in which a load is not, except for constants."""
    if isinstance(expr, Const) or expr == before:
        return ()
    if before not in loads(expr):
        return (expr,)
    return tuple(part for operand in operands(expr) for part in _parts(operand, before))


def _one_by_one(step: Recur, first: Array, parts: Sequence[Array], env: Environment) -> Array:
    """A CPU has no use for parallelism that costs passes over memory.

    So it evaluates the kernel's own expression: with distributed products, digits are lost where
    terms cancel, and infinite terms make NaN.
    """
    position = env.order.index(step.axis)
    permutation = (position, *_others(first.ndim + 1, position))
    names, axes = _parts(step.value, step.before), _without(env.order, step.axis)

    def iterate(before: Array, now: Sequence[Array]) -> tuple[Array, Array]:
        known = {step.before: before, **dict(zip(names, now, strict=True))}
        values = {expr: Value(array, axes) for expr, array in known.items()}
        result = _evaluated(step.value, values, env).array
        return result, result

    moved = [lax.transpose(x, permutation) for x in parts]
    _, stacked = lax.scan(iterate, first, moved, length=env.extents[step.axis])
    return lax.transpose(stacked, np.argsort(permutation))


def _evaluated(expr: Expr, known: Mapping[Expr, Value], env: Environment) -> Value:
    """Returns the value of an expression of known ones."""
    if expr in known:
        return known[expr]
    if isinstance(expr, Const):
        return Value(constant(expr.value, expr.dtype), ())
    values = [_evaluated(operand, known, env) for operand in operands(expr)]
    if isinstance(expr, Unary):
        return env.compute(expr.op, operations.unary(expr.op), *values)
    assert isinstance(expr, Binary)
    return env.compute(expr.op, operations.binary(expr.op, expr.dtype), *values)


def _by_halves(factor: Array, addend: Array, first: Array, position: int) -> Array:
    """Composition of affine functions associates (Blelloch 1990)."""

    def compose(one: tuple[Array, Array], other: tuple[Array, Array]) -> tuple[Array, Array]:
        return lax.mul(one[0], other[0]), lax.add(lax.mul(other[0], one[1]), other[1])

    product, total = lax.associative_scan(compose, (factor, addend), axis=position)
    initial = lax.broadcast_in_dim(first, product.shape, _others(product.ndim, position))
    return lax.add(lax.mul(product, initial), total)


def _without(axes: tuple[str, ...], axis: str) -> tuple[str, ...]:
    return tuple(other for other in axes if other != axis)


def _others(ndim: int, position: int) -> tuple[int, ...]:
    return tuple(i for i in range(ndim) if i != position)
