"""Reductions of expressions over axes."""

from __future__ import annotations

from collections.abc import Sequence

from msops._loops.ir.nodes import Expr
from msops._loops.to_jax.printing import operations
from msops._loops.to_jax.printing.environment import Environment
from msops._loops.to_jax.printing.evaluate import evaluate
from msops._loops.to_jax.printing.shields import repeated
from msops._loops.to_jax.printing.values import Value


def reduce_expression(op: str, expr: Expr, over: Sequence[str], env: Environment) -> Value:
    """Returns the reduction of an expression over axes, where the conditions of `env` hold."""
    value = evaluate(expr, env)
    if env.mask is not None:
        neutral = Value(operations.identity(op, expr.dtype), ())
        value = env.choose(env.mask, value, neutral)
    return reduce_value(op, value, over, env)


def reduce_value(op: str, value: Value, over: Sequence[str], env: Environment) -> Value:
    """Returns the reduction of a value over axes; it may be constant along some."""
    if not over:
        return value
    axes = tuple(axis for axis in env.order if axis in value.axes or axis in over)
    if op in ("min", "max", "land", "lor", "and", "or"):
        axes = value.axes  # Repetition changes nothing.
    is_repeated = axes != value.axes
    if is_repeated:
        value = repeated(value, env.origins)
    array = env.spread(value, axes)
    dimensions = tuple(i for i, axis in enumerate(axes) if axis in over)
    kept = tuple(axis for axis in axes if axis not in over)
    result = operations.reduce(op, array, dimensions)
    if is_repeated:
        env.origins.note(result, "scaled" if op == "add" else "several")
    return Value(result, kept)
