"""Expressions as values over vector axes."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from jax import lax

from msops._loops.ir.intrinsics import is_float
from msops._loops.ir.nodes import Binary, Call, Cast, Const, Expr, Load, Select, Unary, Var
from msops._loops.to_jax.printing import operations
from msops._loops.to_jax.printing.loads import load
from msops._loops.to_jax.printing.scope import Scope
from msops._loops.to_jax.printing.values import Array, Value, constant

LARGEST_INTEGER_POWER = 64
"""Constant whole exponents up to here become multiplications, which are exact at 0."""


def evaluate(expr: Expr, scope: Scope) -> Value:
    """Returns an expression's value for all values of the axes."""
    match expr:
        case Const(value=value, dtype=dtype):
            return Value(constant(value, dtype), ())
        case Var(name=name):
            return _variable(name, scope)
        case Load():
            return load(expr, scope, lambda index: evaluate(index, scope))
        case Unary(op=op, operand=operand):
            return scope.apply(operations.unary(op), evaluate(operand, scope))
        case Binary(op="land" | "lor"):
            return _logical(expr, scope)
        case Binary(op="pow", right=Const(value=exponent)) if _is_small_power(expr, exponent):
            return _power(expr.left, int(exponent), scope)
        case Binary(op=op, left=left, right=right):
            function = operations.binary(op, left.dtype)
            return scope.apply(function, *_operands(op, (left, right), scope))
        case Call(function=name, args=args):
            function = operations.call(name, args[0].dtype)
            return scope.apply(function, *_operands(name, args, scope))
        case Cast(operand=operand, dtype=dtype):
            return scope.apply(operations.cast(operand.dtype, dtype), evaluate(operand, scope))
        case Select():
            return _select(expr, scope)


def guarded(conditions: Sequence[Expr], scope: Scope) -> Scope:
    """Returns the scope where conditions hold, each evaluated where those before it do."""
    for condition in conditions:
        scope = scope.under(condition, evaluate(condition, scope))
    return scope


def _variable(name: str, scope: Scope) -> Value:
    for axis in scope.axes:
        if axis.var == name:
            counted = lax.iota(np.int32, axis.extent)
            if axis.begin:
                counted = lax.add(counted, operations.like(counted, axis.begin))
            return Value(counted, (name,))
    return Value(scope.machine.scalars[name], ())


def _operands(op: str, exprs: Sequence[Expr], scope: Scope) -> list[Value]:
    """Evaluates operands; where the result is not chosen, so that its derivative is finite."""
    values = [evaluate(expr, scope) for expr in exprs]
    safe = operations.safe_operands(op)
    if not safe or scope.mask is None or not is_float(exprs[0].dtype):
        return values
    mask, dtype = scope.mask, exprs[0].dtype
    return [
        scope.choose(mask, value, Value(constant(argument, dtype), ()))
        for value, argument in zip(values, safe, strict=True)
    ]


def _is_small_power(expr: Binary, exponent: float) -> bool:
    return (
        is_float(expr.dtype)
        and abs(exponent) <= LARGEST_INTEGER_POWER
        and float(exponent).is_integer()
    )


def _power(base: Expr, exponent: int, scope: Scope) -> Value:
    value = evaluate(base, scope)
    if exponent < 0 and scope.mask is not None:
        value = scope.choose(scope.mask, value, Value(constant(1.0, base.dtype), ()))

    def power(x: Array) -> Array:
        return lax.integer_pow(x, exponent)

    return scope.apply(power, value)


def _logical(expr: Binary, scope: Scope) -> Value:
    # No derivative passes through a condition, so nothing needs to be kept harmless for it.
    left = evaluate(expr.left, scope)
    right = evaluate(expr.right, scope.knowing(expr.left, expr.op == "land"))
    return scope.apply(operations.binary(expr.op, "bool"), left, right)


def _select(expr: Select, scope: Scope) -> Value:
    condition = evaluate(expr.condition, scope)
    then = evaluate(expr.then, scope.under(expr.condition, condition))
    otherwise = evaluate(expr.otherwise, scope.under(expr.condition, condition, holds=False))
    return scope.choose(condition, then, otherwise)
