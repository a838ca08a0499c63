"""Makes expressions simpler without changing any bit of what they compute.

Constants are folded with the table that the interpreter uses. Floats keep every rounding and sign
of zero: ``x + 0.0`` stays, ``x - 0.0`` and ``x * 1.0`` do not. Whole numbers without loads (indices
and bounds) become sums of multiples in a fixed order, with the laws of // and % under the ranges of
the loop variables.
"""

from __future__ import annotations

import dataclasses
from functools import cache, partial

import numpy as np

from msops._loops.analysis.affine import INDEX_DTYPES, Affine
from msops._loops.analysis.conditions import compared, conjuncts, narrowed
from msops._loops.ir import scalars
from msops._loops.ir.nodes import (
    INDEX_DTYPE,
    Binary,
    BinaryOp,
    Cast,
    Const,
    Expr,
    Load,
    Select,
    Unary,
    Var,
)
from msops._loops.ir.operators import COMPARISONS, FLOATS, INTEGERS, LOGICAL, NEGATED, is_float
from msops._loops.ir.ranges import Range, Ranges, may_wrap, range_of
from msops._loops.ir.walk import expressions, map_operands, with_parts

_FLOORING: dict[BinaryOp, BinaryOp] = {"truncdiv": "floordiv", "truncmod": "mod"}
# On floats too, these round the exact result; the other functions differ between libraries.
_FOLDED = ("add", "sub", "mul", "div", "min", "max", *COMPARISONS)


def simplified(expr: Expr, ranges: Ranges) -> Expr:
    """Returns an equal expression.

    Args:
      expr: any expression.
      ranges: of each loop variable in it.
    """
    match expr:
        case Const():
            return expr
        case Var(name=name):
            low, high = ranges.get(name, (0, 1))
            return Const(low, INDEX_DTYPE) if low == high else expr
    if _is_index(expr):
        found = _affine(expr, ranges).expression()
        return expr if found == expr else found
    if isinstance(expr, Select):
        return _select(expr, ranges)
    if isinstance(expr, Binary) and expr.op in LOGICAL:
        return _logical(expr, ranges)
    expr = map_operands(expr, partial(simplified, ranges=ranges))
    match expr:
        case Unary():
            return _unary(expr)
        case Cast():
            return _cast(expr)
        case Binary(op=op) if op in COMPARISONS:
            return _comparison(expr, ranges)
        case Binary():
            return _arithmetic(expr)
    return expr


def difference(left: Expr, right: Expr, ranges: Ranges) -> Range | None:
    """Returns an interval of `left - right` of integers; None if that is not known."""
    if isinstance(left, Const) and isinstance(right, Const):
        exactly = int(left.value) - int(right.value)
        return (exactly, exactly)
    if _is_index(left) and _is_index(right):
        a, b = _affine(left, ranges), _affine(right, ranges)
        exact = a.is_exact(ranges) and b.is_exact(ranges)
        return (a - b).range(ranges) if exact else None
    (low, high), (first, last) = range_of(left, ranges), range_of(right, ranges)
    return (low - last, high - first)


def sides_of(op: BinaryOp, bound: Expr, ranges: Ranges) -> tuple[Expr, ...]:
    """Returns expressions whose extreme a bound is; the bound alone if it is no extreme.

    ``min(n, i + 2) + 1`` is the least of ``n + 1`` and ``i + 2 + 1``.

    Args:
      op: "min" or "max".
      bound: a whole number.
      ranges: of each loop variable in it.
    """
    match bound:
        case Binary(op=own, left=left, right=right) if own == op:
            return (*sides_of(op, left, ranges), *sides_of(op, right, ranges))
        case Binary(op="add" | "sub", left=left):
            moved = [with_parts(bound, left=side) for side in sides_of(op, left, ranges)]
            # An extreme of numbers that wrap is not the extreme of those moved.
            if not any(may_wrap(part, ranges) for part in moved):
                return tuple(simplified(part, ranges) for part in moved)
    return (bound,)


def where(condition: Expr, ranges: Ranges, *, holds: bool = True) -> Ranges:
    """Returns the ranges of loop variables where a condition holds, or where it does not."""
    for part in conjuncts(condition, holds):
        match part:
            case Binary(op=op, left=left, right=right) if (
                op in COMPARISONS and _is_index(left) and _is_index(right)
            ):
                sides = _affine(left, ranges), _affine(right, ranges)
                ranges = narrowed(ranges, compared(op, *sides, ranges) or ())
    return ranges


def _is_index(expr: Expr) -> bool:
    return expr.dtype in INDEX_DTYPES and not any(
        isinstance(part, Load) or part.dtype in FLOATS for part in expressions(expr)
    )


# Whole numbers without loads.


def _affine(expr: Expr, ranges: Ranges) -> Affine:
    match expr:
        case Const(value=value, dtype=dtype):
            return Affine.of_constant(int(value), dtype)
        case Var():
            return _fixed(Affine.of_atom(expr), ranges)
        case Unary(op="neg", operand=operand):
            return _affine(operand, ranges).scaled(-1).wrapped()
        case Binary(op=("add" | "sub") as op, left=left, right=right):
            a, b = _affine(left, ranges), _affine(right, ranges)
            return _beyond_extremes((a + b if op == "add" else a - b).wrapped(), ranges)
        case Binary(op="mul", left=left, right=right):
            a, b = _affine(left, ranges), _affine(right, ranges)
            if not a.terms:
                return b.scaled(a.constant).wrapped()
            if not b.terms:
                return a.scaled(b.constant).wrapped()
            return _atom(Binary("mul", a.expression(), b.expression(), expr.dtype), ranges)
        case Binary():
            return _division(expr, ranges)
        case Select():
            return _atom(_select(expr, ranges), ranges)
    return _atom(map_operands(expr, partial(simplified, ranges=ranges)), ranges)


def _beyond_extremes(value: Affine, ranges: Ranges) -> Affine:
    """Returns a sum with what is added to an extreme inside of it, if a side is then a number.

    ``min(4 * b + 4, n) - 4 * b``, the length of a block, is ``min(4, n - 4 * b)``.
    """
    for atom, coefficient in value.terms.items():
        match atom:
            case Binary(op="min" | "max") if coefficient == 1 and len(value.terms) > 1:
                rest = value - Affine.of_atom(atom)
                sides = [_affine(side, ranges) for side in (atom.left, atom.right)]
                moved = [side + rest for side in sides]
                # An extreme of numbers that wrap is not the extreme of those moved.
                if any(not side.terms for side in moved) and all(
                    part.is_exact(ranges) for part in (value, *sides, *moved)
                ):
                    first, second = (side.expression() for side in moved)
                    return _division(dataclasses.replace(atom, left=first, right=second), ranges)
    return value


def _division(expr: Binary, ranges: Ranges) -> Affine:
    left, right = _affine(expr.left, ranges), _affine(expr.right, ranges)
    op: BinaryOp = expr.op
    if not right.terms and right.constant > 0 and left.is_exact(ranges):
        if left.range(ranges)[0] >= 0:
            op = _FLOORING.get(op, op)
        law = {"floordiv": left.divided, "mod": left.remainder}.get(op)
        found = law(right.constant, ranges) if law else None
        if found is not None:
            return _fixed(found.wrapped(), ranges)
    if op in ("min", "max") and left.is_exact(ranges) and right.is_exact(ranges):
        low, high = (left - right).range(ranges)
        if low >= 0 or high <= 0:
            return left if (low >= 0) == (op == "max") else right
    return _atom(Binary(op, left.expression(), right.expression(), expr.dtype), ranges)


def _atom(expr: Expr, ranges: Ranges) -> Affine:
    """Returns an expression with simple operands as a sum of itself, or its constant value."""
    match expr:
        case Const(value=value, dtype=dtype):
            return Affine.of_constant(int(value), dtype)
        case Binary(op=op, left=Const() as left, right=Const() as right):
            return Affine.of_constant(int(_folded(op, left, right)), expr.dtype)
        case Cast():
            found = _cast(expr)
            if isinstance(found, Const):
                return Affine.of_constant(int(found.value), expr.dtype)
    return _fixed(Affine.of_atom(expr), ranges)


def _fixed(value: Affine, ranges: Ranges) -> Affine:
    """Returns the only value of a sum if it has no other."""
    if value.terms and value.is_exact(ranges):
        low, high = value.range(ranges)
        if low == high:
            return Affine.of_constant(low, value.dtype)
    return value


# Everything else; operands are simple already.


def _folded(op: str, left: Const, right: Const) -> bool | int | float:
    a, b = (scalars.constant(part.value, part.dtype) for part in (left, right))
    with np.errstate(all="ignore"):
        return _number(scalars.binary(op, left.dtype)(a, b))


def _number(value: scalars.Value) -> bool | int | float:
    return float(value) if isinstance(value, np.floating) else value


def _unary(expr: Unary) -> Expr:
    match expr:
        case Unary(op=op, operand=Const(value=value, dtype=dtype)):
            result = scalars.unary(op, dtype)(scalars.constant(value, dtype))
            return Const(_number(result), expr.dtype)
        case Unary(operand=Unary(operand=inner, op=op)) if op == expr.op:
            return inner
        case Unary(op="not", operand=Binary(op=op, left=left, right=right)) if (
            op in NEGATED and not is_float(left.dtype)
        ):
            return Binary(NEGATED[op], left, right, "bool")  # type: ignore[arg-type]
    return expr


def _cast(expr: Cast) -> Expr:
    operand = expr.operand
    if operand.dtype == expr.dtype:
        return operand
    if isinstance(operand, Const):
        value = scalars.constant(operand.value, operand.dtype)
        with np.errstate(all="ignore"):
            return Const(_number(scalars.cast(operand.dtype, expr.dtype)(value)), expr.dtype)
    return expr


def _select(expr: Select, ranges: Ranges) -> Expr:
    condition = simplified(expr.condition, ranges)
    if isinstance(condition, Const):
        return simplified(expr.then if condition.value else expr.otherwise, ranges)
    then = simplified(expr.then, where(condition, ranges))
    otherwise = simplified(expr.otherwise, where(condition, ranges, holds=False))
    return with_parts(expr, condition=condition, then=then, otherwise=otherwise)


def _logical(expr: Binary, ranges: Ranges) -> Expr:
    decides = expr.op == "lor"
    left = simplified(expr.left, ranges)
    if isinstance(left, Const):
        return left if left.value == decides else simplified(expr.right, ranges)
    right = simplified(expr.right, where(left, ranges, holds=not decides))
    if isinstance(right, Const):
        return right if right.value == decides else left
    return with_parts(expr, left=left, right=right)


def _comparison(expr: Binary, ranges: Ranges) -> Expr:
    left, right = expr.left, expr.right
    if isinstance(left, Const) and isinstance(right, Const):
        return Const(_folded(expr.op, left, right), "bool")
    if left.dtype not in INTEGERS:
        return expr
    sides = difference(left, right, ranges)
    found = None if sides is None else _sign_test(expr.op, *sides)
    return expr if found is None else Const(found, "bool")


def _sign_test(op: str, low: int, high: int) -> bool | None:
    """Returns the outcome of a comparison whose left side minus the right one has a range."""
    if op in ("ge", "gt", "ne"):
        found = _sign_test(NEGATED[op], low, high)
        return None if found is None else not found
    holds, fails = {
        "lt": (high < 0, low >= 0),
        "le": (high <= 0, low > 0),
        "eq": (low == high == 0, low > 0 or high < 0),
    }[op]
    return True if holds else False if fails else None


def _arithmetic(expr: Binary) -> Expr:
    left, right = expr.left, expr.right
    if isinstance(left, Const) and isinstance(right, Const):
        if is_float(left.dtype) and expr.op not in _FOLDED:
            return expr
        return Const(_folded(expr.op, left, right), expr.dtype)
    if isinstance(right, Const) and _is_neutral(expr.op, right, on_right=True):
        return left
    if isinstance(left, Const) and _is_neutral(expr.op, left, on_right=False):
        return right
    return expr


@cache
def _neutral(on_right: bool) -> dict[tuple[str, bool], float]:
    """Returns the number that changes no operand, by operation and whether it is of floats."""
    both: dict[tuple[str, bool], float] = {("mul", False): 1, ("mul", True): 1, ("add", False): 0}
    # x + -0.0 is x, also for -0.0; x + 0.0 is not.
    both[("add", True)] = -0.0
    if on_right:
        both |= {("sub", False): 0, ("sub", True): 0.0, ("div", True): 1, ("floordiv", False): 1}
    return both


def _is_neutral(op: str, number: Const, on_right: bool) -> bool:
    wanted = _neutral(on_right).get((op, is_float(number.dtype)))
    if wanted is None or number.dtype == "bool":
        return False
    return number.value == wanted and bool(np.signbit(number.value)) == bool(np.signbit(wanted))
