"""Limits of loop variables where a condition holds, and loops that it ends."""

from __future__ import annotations

import dataclasses
from collections.abc import Collection, Iterable, Mapping

from msops._loops.analysis.affine import INDEX_DTYPES, Affine, affine
from msops._loops.ir.nodes import Binary, Cast, Const, Expr, For, If, Unary
from msops._loops.ir.operators import NEGATED
from msops._loops.ir.ranges import Range, Ranges
from msops._loops.ir.walk import expressions, loads, stored_in, variables


def conjuncts(condition: Expr, holds: bool = True) -> tuple[Expr, ...]:
    """Returns conditions that all hold where `condition` does, or where it does not.

    Together they say the same as the condition.
    """
    match condition:
        case Binary(op="land", left=left, right=right) if holds:
            return (*conjuncts(left), *conjuncts(right))
        case Binary(op="lor", left=left, right=right) if not holds:
            return (*conjuncts(left, False), *conjuncts(right, False))
        case Unary(op="not", operand=operand):
            return conjuncts(operand, not holds)
        case Const(value=True) if holds:
            return ()
        case Binary(op=op, left=left, right=right) if (
            not holds and op in NEGATED and left.dtype in INDEX_DTYPES
        ):
            return (Binary(NEGATED[op], left, right, "bool"),)
    return (condition,) if holds else (Unary("not", condition, "bool"),)


def inequalities(
    condition: Expr, axes: Collection[str], ranges: Ranges
) -> tuple[Affine, ...] | None:
    """Returns linear functions of axes that are at least 0 exactly where a condition holds.

    None: the condition is no linear comparison, or `compared` knows none.
    """
    if not isinstance(condition, Binary) or condition.left.dtype not in INDEX_DTYPES:
        return None
    left, right = affine(condition.left, axes), affine(condition.right, axes)
    if left is None or right is None or not widens_exactly(condition, axes, ranges):
        return None
    return compared(condition.op, left, right, ranges)


def widens_exactly(expr: Expr, axes: Collection[str], ranges: Ranges) -> bool:
    """Returns whether no sum has wrapped before it is converted to another dtype."""
    converted = [part.operand for part in expressions(expr) if isinstance(part, Cast)]
    sums = [affine(operand, axes) for operand in converted if operand.dtype in INDEX_DTYPES]
    return all(found is None or found.is_exact(ranges) for found in sums)


def compared(op: str, left: Affine, right: Affine, ranges: Ranges) -> tuple[Affine, ...] | None:
    """Returns sums that are at least 0 exactly where a comparison of two sums holds.

    None: it is `!=`, or one of the two may wrap in the ranges. The program compares what it has
    wrapped to, of which the sum says nothing.
    """
    if not (left.is_exact(ranges) and right.is_exact(ranges)):
        return None
    one = Affine.of_constant(1)
    match op:
        case "le":
            return (right - left,)
        case "lt":
            return (right - left - one,)
        case "ge":
            return (left - right,)
        case "gt":
            return (left - right - one,)
        case "eq":
            return (left - right, right - left)
    return None


def narrow(function: Affine, ranges: dict[str, Range]) -> bool:
    """Shrinks the ranges of axes to where `function >= 0` can hold.

    Returns:
      Whether it then holds everywhere in the ranges.
    """
    bounds = function.range(ranges)
    for axis, coefficient in function.along:
        least, greatest = ranges[axis]
        # The most that everything but this term can add.
        others = bounds[1] - max(coefficient * least, coefficient * greatest)
        if coefficient > 0:
            least = max(least, -(others // coefficient))
        else:
            greatest = min(greatest, others // -coefficient)
        ranges[axis] = (least, greatest)
        bounds = function.range(ranges)
    return bounds[0] >= 0


def narrowed(ranges: Ranges, functions: Iterable[Affine]) -> Ranges:
    """Returns the ranges of variables where functions are at least 0.

    If that is nowhere, no range describes it, and `ranges` are returned as they are.
    """
    found = dict(ranges)
    for function in functions:
        narrow(dataclasses.replace(function, axes=frozenset(ranges)), found)
    return found if all(least <= greatest for least, greatest in found.values()) else ranges


def decide(condition: Expr, ranges: Mapping[str, Range]) -> bool | None:
    """Returns whether a condition holds everywhere in the ranges of variables, or nowhere."""
    holds = True
    for part in conjuncts(condition):
        functions = inequalities(part, ranges, ranges) or ()
        bounds = [f.range(ranges) for f in functions if not f.scalars]
        if any(greatest < 0 for _, greatest in bounds):
            return False
        holds = holds and bool(functions) and len(bounds) == len(functions)
        holds = holds and all(least >= 0 for least, _ in bounds)
    return holds or None


def narrow_unequal(condition: Expr, axes: Collection[str], ranges: dict[str, Range]) -> bool:
    """Does the same as `narrow` for `axis != value`, which can only cut off an end."""
    if not isinstance(condition, Binary) or condition.op != "ne":
        return False
    functions = inequalities(dataclasses.replace(condition, op="eq"), axes, ranges)
    if functions is None or functions[0].scalars or len(functions[0].along) != 1:
        return False
    ((axis, coefficient),) = functions[0].along
    value, left = divmod(-functions[0].constant, coefficient)
    least, greatest = ranges[axis]
    if left or not least <= value <= greatest:
        return True
    if value not in (least, greatest):
        return False
    ranges[axis] = (least + 1, greatest) if value == least else (least, greatest - 1)
    return True


def implied(
    function: Affine, conditions: Iterable[Expr], axes: Collection[str],
    ranges: Mapping[str, Range],
) -> bool:  # fmt: skip
    """Returns whether `function >= 0` follows from the ranges and the conditions."""
    if function.range(ranges)[0] >= 0:
        return True
    inside = dict(ranges)
    known = [part for c in conditions for part in inequalities(c, axes, ranges) or ()]
    for part in known:
        narrow(part, inside)
    if any(least > greatest for least, greatest in inside.values()):
        return True
    parts = (Affine.of_constant(0), *known)
    return any((function - part).range(inside)[0] >= 0 for part in parts)


def ends_early(loop: For) -> bool:
    """Returns whether a loop does nothing more once its condition is false, like a `while`.

        serial i in 0 .. 100 {
          if (a[t[]] > 1) {
            t[] = t[] + 1

    This holds if only the branch changes what the condition reads, and the loop's variable is not
    in it.
    """
    match loop:
        case For(kind="serial", body=(If(condition=condition, then=then, otherwise=()),)):
            changed = {load.buffer for load in loads(condition)} & stored_in(then)
            return bool(changed) and loop.var not in variables(condition)
    return False
