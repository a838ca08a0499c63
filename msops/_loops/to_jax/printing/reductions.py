"""Reductions of expressions over axes."""

from __future__ import annotations

from collections.abc import Sequence

from msops._loops.ir.nodes import Expr
from msops._loops.to_jax.printing import operations
from msops._loops.to_jax.printing.environment import Environment
from msops._loops.to_jax.printing.evaluate import evaluate, guarded
from msops._loops.to_jax.printing.kept_zeros import FOUND_BY, with_signs, zero_keys
from msops._loops.to_jax.printing.shields import repeated
from msops._loops.to_jax.printing.values import Value
from msops._loops.to_jax.raising.steps import Reduce


def reduce_expression(op: str, expr: Expr, over: Sequence[str], env: Environment) -> Value:
    """Returns the reduction of an expression over axes, where the conditions of `env` hold."""
    return reduce_value(op, _neutral_where_masked(op, expr, env), over, env)


def reduce_kept(step: Reduce, env: Environment) -> Value:
    """Returns the extremes that a condition keeps, where the conditions of `env` hold."""
    op, over = step.stored_op, step.over
    value = _neutral_where_masked(op, step.value, env)
    best = reduce_value(op, value, over, env)
    if set(over).isdisjoint(value.axes):
        return best

    def keys(inner: Environment) -> Value:
        # Here once more, or XLA would keep all values for the case that this runs.
        inner = guarded(step.nest.mask, inner.over(env.axes))
        value = _neutral_where_masked(op, step.value, inner)
        found = zero_keys(value, over, step.keeps, inner)
        return reduce_value(FOUND_BY[step.keeps], found, over, inner)

    return with_signs(best, keys, step.nest.iterations, env)


def _neutral_where_masked(op: str, expr: Expr, env: Environment) -> Value:
    value = evaluate(expr, env)
    if env.mask is None:
        return value
    neutral = Value(operations.identity(op, expr.dtype), ())
    return env.choose(env.mask, value, neutral)


def reduce_value(op: str, value: Value, over: Sequence[str], env: Environment) -> Value:
    """Returns the reduction of a value over axes; it may be constant along some."""
    if not over:
        return value
    axes = tuple(axis for axis in env.order if axis in value.axes or axis in over)
    if op not in ("add", "mul", "xor"):
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
