"""Expressions as values over vector axes."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Callable, Sequence
from functools import partial

import numpy as np
from jax import lax

from msops._loops.ir.algebra import is_whole_power
from msops._loops.ir.nodes import (
    INDEX_DTYPE,
    Binary,
    Cast,
    Const,
    Expr,
    FunctionCall,
    Load,
    Select,
    Unary,
    Var,
    Within,
)
from msops._loops.ir.operators import INTEGERS, is_float
from msops._loops.ir.ranges import may_wrap, range_of
from msops._loops.ir.walk import expressions, variables
from msops._loops.to_jax.printing import operations
from msops._loops.to_jax.printing.environment import Environment
from msops._loops.to_jax.printing.loads import load
from msops._loops.to_jax.printing.values import Array, Value, constant, in_float32

_SHARED = (INDEX_DTYPE, "bool")
"""Dtypes of what is evaluated once for equal expressions."""


def evaluate(expr: Expr, env: Environment) -> Value:
    """Returns an expression's value for all values of the axes."""
    if env.masks and not is_float(expr.dtype):
        # No derivative passes through integers and conditions, so nothing needs to be kept harmless
        # for it. XLA sees that they are the same wherever they are needed.
        env = dataclasses.replace(env, masks=())
    if not isinstance(expr, Binary | Select | Unary) or expr.dtype not in _SHARED:
        return _evaluate(expr, env)
    # Every operation that JAX traces is one to lower and to compile, and indices repeat. Values of
    # floats depend on what the environment keeps harmless.
    if any(isinstance(part, Load) or is_float(part.dtype) for part in expressions(expr)):
        return _evaluate(expr, env)
    used = variables(expr)
    key = (expr, tuple(axis for axis in env.axes if axis.var in used))
    if key not in env.indices:
        env.indices[key] = _evaluate(expr, env)
    return env.indices[key]


def _evaluate(expr: Expr, env: Environment) -> Value:
    match expr:
        case Const(value=value, dtype=dtype):
            env.origins.may_be_nan |= is_float(dtype) and not math.isfinite(value)
            return Value(constant(value, dtype), ())
        case Var(name=name):
            return _variable(name, env)
        case Load():
            return _load(expr, env)
        case Unary(op=op, operand=operand):
            return _apply(op, operations.unary(op), [operand], [evaluate(operand, env)], env)
        case Binary(op="land" | "lor"):
            return _logical(expr, env)
        case Binary(right=Const(value=exponent)) if is_whole_power(expr):
            return _power(expr.left, int(exponent), env)
        case Binary(op=op, left=left, right=right):
            function = _of_integers(expr, env) or operations.binary(op, left.dtype)
            return _apply(op, function, [left, right], _operands(op, (left, right), env), env)
        case FunctionCall(function=name, args=args):
            function = operations.call(name, args[0].dtype)
            return _apply(name, function, args, _operands(name, args, env), env)
        case Cast():
            return _cast(expr, env)
        case Within(operand=operand):
            return evaluate(operand, env)
        case Select():
            return _select(expr, env)


def guarded(conditions: Sequence[Expr], env: Environment) -> Environment:
    """Returns the environment where conditions hold, each evaluated where those before it do."""
    for condition in conditions:
        env = env.under(condition, evaluate(condition, env))
    return env


def _variable(name: str, env: Environment) -> Value:
    for axis in env.axes:
        if axis.var == name:
            counted = lax.iota(np.int32, axis.extent)
            if axis.begin:
                counted = lax.add(counted, operations.like(counted, axis.begin))
            return Value(counted, (name,))
    return Value(env.scalars[name], ())


def _load(expr: Load, env: Environment) -> Value:
    value = load(expr, env, lambda index: evaluate(index, env))
    env.origins.follow(value.array, env.contents[expr.buffer])
    return value


def _cast(expr: Cast, env: Environment) -> Value:
    source = expr.operand.dtype
    value = env.apply(operations.cast(source, expr.dtype), evaluate(expr.operand, env))
    if source == "bool" and is_float(expr.dtype):
        env.origins.note(value.array, "from bool")
    return value


def _apply(
    op: str,
    function: Callable[..., Array],
    exprs: Sequence[Expr],
    values: Sequence[Value],
    env: Environment,
) -> Value:
    """Returns an operation on values of expressions; of floats, as the operation that it is."""
    if is_float(exprs[0].dtype):
        return env.compute(op, function, *values)
    return env.apply(function, *values)


def _operands(op: str, exprs: Sequence[Expr], env: Environment) -> list[Value]:
    """Evaluates operands; where the result is not chosen, so that its derivative is finite."""
    values = [evaluate(expr, env) for expr in exprs]
    safe = operations.safe_operands(op)
    if not safe or env.mask is None or not is_float(exprs[0].dtype):
        return values
    if op == "mul" and any(isinstance(expr, Const) for expr in exprs):
        # Its derivative is that number.
        return values
    mask, dtype = env.mask, exprs[0].dtype
    return [
        env.choose(mask, value, Value(constant(argument, dtype), ()))
        for value, argument in zip(values, safe, strict=True)
    ]


def _of_integers(expr: Binary, env: Environment) -> Callable[[Array, Array], Array] | None:
    """Returns XLA's own operation on integers if it serves; None if it does not.

    Its division and remainder do where the ranges show that neither operand is negative, and the
    divisor not 0, and its product where the ranges show that it does not wrap.
    """
    if expr.left.dtype not in INTEGERS:
        return None
    if expr.op == "mul":
        return lax.mul if not may_wrap(expr, env.ranges) else None
    natural = operations.NATURAL.get(expr.op)
    if natural is None:
        return None
    left, right = (range_of(part, env.ranges) for part in (expr.left, expr.right))
    return natural if left[0] >= 0 and right[0] > 0 else None


def _power(base: Expr, exponent: int, env: Environment) -> Value:
    value = evaluate(base, env)
    if exponent < 0 and env.mask is not None:
        value = env.choose(env.mask, value, Value(constant(1.0, base.dtype), ()))

    def power(x: Array) -> Array:
        return in_float32(partial(lax.integer_pow, y=exponent), x)

    return env.compute("whole power", power, value)


def _logical(expr: Binary, env: Environment) -> Value:
    left = evaluate(expr.left, env)
    right = evaluate(expr.right, env.knowing(expr.left, expr.op == "land"))
    return env.apply(operations.binary(expr.op, "bool"), left, right)


def _select(expr: Select, env: Environment) -> Value:
    condition = evaluate(expr.condition, env)
    then = evaluate(expr.then, env.under(expr.condition, condition))
    otherwise = evaluate(expr.otherwise, env.under(expr.condition, condition, holds=False))
    return env.choose(condition, then, otherwise)
