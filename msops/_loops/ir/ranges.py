"""Intervals of integer expressions, from the intervals of loop variables.

Cheap and always an answer, where isl is exact and costs more: an expression whose interval could
leave its dtype's range may wrap, and gets the whole range of the dtype.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import cache
from typing import TypeAlias

import numpy as np

from msops._loops.ir.nodes import (
    INDEX_DTYPE,
    Binary,
    Cast,
    Const,
    Expr,
    For,
    FunctionCall,
    Load,
    Select,
    Store,
    Unary,
    Var,
    Within,
)
from msops._loops.ir.operators import INTEGERS, is_float

Range: TypeAlias = tuple[int, int]
"""Least and greatest value, both included."""

Ranges: TypeAlias = Mapping[str, Range]
"""The range of each loop variable in scope; of scalar locals, too, where they are known.

That of a float is the one of `float_range`."""

_FLOATS = (-(2**1024), 2**1024)
"""Whole numbers around all floats."""


@cache
def dtype_range(dtype: str) -> Range:
    """Returns the range of an integer dtype or bool."""
    if dtype == "bool":
        return (0, 1)
    info = np.iinfo(dtype)
    return (int(info.min), int(info.max))


def whole_range(dtype: str) -> Range:
    """Returns the range of a dtype, which of floats says nothing."""
    return _FLOATS if is_float(dtype) else dtype_range(dtype)


def range_of(expr: Expr, ranges: Ranges) -> Range:
    """Returns an interval that holds every value of an integer expression."""
    whole = dtype_range(expr.dtype)
    exact = unwrapped_range(expr, ranges)
    return exact if exact is not None and is_within(exact, whole) else whole


def may_wrap(expr: Expr, ranges: Ranges) -> bool:
    """Returns whether the last operation of an integer expression may wrap."""
    exact = unwrapped_range(expr, ranges)
    return exact is None or not is_within(exact, dtype_range(expr.dtype))


def unwrapped_range(expr: Expr, ranges: Ranges) -> Range | None:
    """Returns an interval of an integer expression whose last operation does not wrap.

    Operands are taken as they are, wrapped. None if nothing is known; a result outside the range of
    the dtype says that the operation may wrap.
    """
    match expr:
        case Const(value=value):
            return (int(value), int(value))
        case Var(name=name):
            return ranges.get(name)
        case Binary(op=op, left=left, right=right) if op in _BINARY and left.dtype in INTEGERS:
            return _BINARY[op](range_of(left, ranges), range_of(right, ranges))
        case Unary(op="neg", operand=operand):
            low, high = range_of(operand, ranges)
            return (-high, -low)
        case FunctionCall(function="abs", args=(operand,)):
            low, high = range_of(operand, ranges)
            return (max(low, -high, 0), max(-low, high))
        case Load(buffer=name):
            return ranges.get(name)
        case Cast(operand=operand) if operand.dtype in INTEGERS or operand.dtype == "bool":
            return range_of(operand, ranges)
        case Cast(operand=operand, dtype=dtype) if is_float(operand.dtype):
            # It is truncated. Out of range it is the nearest number, and of NaN 0.
            low, high = dtype_range(dtype)
            least, greatest = hull(float_range(operand, ranges), (0, 0))
            return (max(least, low), min(greatest, high))
        case Within(low=low, high=high):
            return (low, high)
        case Select(then=then, otherwise=otherwise):
            return hull(range_of(then, ranges), range_of(otherwise, ranges))
    return None


def float_range(expr: Expr, ranges: Ranges) -> Range:
    """Returns an interval of the whole number below a float, or equal to it, unless it is NaN."""
    match expr:
        case Const(value=value) if math.isfinite(value):
            return (math.floor(value), math.floor(value))
        case Binary(op="min" | "max" as op, left=left, right=right):
            return _BINARY[op](float_range(left, ranges), float_range(right, ranges)) or _FLOATS
        case FunctionCall(function="floor", args=(x,)):
            return float_range(x, ranges)
        case FunctionCall(function="ceil" | "trunc" | "round" | "nearbyint", args=(x,)):
            low, high = float_range(x, ranges)
            return (low, min(high + 1, _FLOATS[1]))
        case Select(then=then, otherwise=otherwise):
            return hull(float_range(then, ranges), float_range(otherwise, ranges))
        case Cast(operand=operand) if operand.dtype in INTEGERS:
            return _around(*range_of(operand, ranges), expr.dtype)
        case Load(buffer=name, indices=()):
            return ranges.get(name, _FLOATS)
    return _FLOATS


def _around(low: float, high: float, dtype: str) -> Range:
    """Returns whole numbers around the floats that are nearest to two numbers."""
    if dtype not in ("float32", "float64"):
        return _FLOATS
    kind = np.dtype(dtype).type
    with np.errstate(over="ignore"):
        least, greatest = kind(low), kind(high)
    if not (math.isfinite(least) and math.isfinite(greatest)):
        return _FLOATS
    return (math.floor(least), math.ceil(greatest))


def loop_range(loop: For, ranges: Ranges) -> Range:
    """Returns the range of a loop's variable inside the loop; low > high if it never runs."""
    return (range_of(loop.begin, ranges)[0], range_of(loop.end, ranges)[1] - 1)


def nested_ranges(loops: Iterable[For], outer: Ranges) -> dict[str, Range]:
    """Returns the ranges of loops in one another, outermost first, and of those around them.

    A loop that never runs counts as one that runs once.
    """
    ranges = dict(outer)
    for loop in loops:
        low, high = loop_range(loop, ranges)
        ranges[loop.var] = (low, max(low, high))
    return ranges


def is_known(limits: Range) -> bool:
    """Returns whether both ends of a range lie within half the range of a loop variable.

    Wider ones come from data, such as ``x[b]`` or ``x[b] - 1``.
    """
    first, last = dtype_range(INDEX_DTYPE)
    return first // 2 <= limits[0] and limits[1] <= last // 2


def is_within(inner: Range, outer: Range) -> bool:
    """Returns whether one range lies in another."""
    return outer[0] <= inner[0] and inner[1] <= outer[1]


def range_of_stores(values: Iterable[Expr], ranges: Ranges) -> Range | None:
    """Returns an interval of what a local holds that is 0 at first; None if nothing is known."""
    known = (0, 0)
    for value in values:
        found = float_range(value, ranges) if is_float(value.dtype) else range_of(value, ranges)
        known = hull(known, found)
        if known == whole_range(value.dtype):
            return None
    return known


def hull(a: Range, b: Range) -> Range:
    """Returns the interval around two."""
    return (min(a[0], b[0]), max(a[1], b[1]))


def _corners(exact: Callable[[int, int], int]) -> Callable[[Range, Range], Range]:
    """Returns the interval form of an operation that is monotonous in each operand."""

    def apply(a: Range, b: Range) -> Range:
        values = [exact(x, y) for x in a for y in b]
        return (min(values), max(values))

    return apply


def _floordiv(a: Range, b: Range) -> Range | None:
    if b[0] <= 0:
        return None
    return _corners(lambda x, y: x // y)(a, b)


def _mod(a: Range, b: Range) -> Range | None:
    if b[0] <= 0:
        return None
    if b[0] == b[1] and a[0] // b[0] == a[1] // b[0]:
        return (a[0] % b[0], a[1] % b[0])
    return (0, min(b[1] - 1, a[1]) if a[0] >= 0 else b[1] - 1)


def _if_natural(
    floored: Callable[[Range, Range], Range | None],
) -> Callable[[Range, Range], Range | None]:
    """Returns the truncating form of a division: the flooring one where nothing is negative."""
    return lambda a, b: floored(a, b) if a[0] >= 0 else None


def _and(a: Range, b: Range) -> Range | None:
    naturals = [x for x in (a, b) if x[0] >= 0]
    return (0, min(x[1] for x in naturals)) if naturals else None


def _shift(exact: Callable[[int, int], int]) -> Callable[[Range, Range], Range | None]:
    shifted = _corners(exact)
    # The variable of a loop that never runs has a range that ends before it begins.
    return lambda a, b: shifted(a, b) if min(b) >= 0 and max(b) <= 31 else None


_BINARY: dict[str, Callable[[Range, Range], Range | None]] = {
    "add": _corners(lambda x, y: x + y),
    "sub": _corners(lambda x, y: x - y),
    "mul": _corners(lambda x, y: x * y),
    "min": lambda a, b: (min(a[0], b[0]), min(a[1], b[1])),
    "max": lambda a, b: (max(a[0], b[0]), max(a[1], b[1])),
    "floordiv": _floordiv,
    "mod": _mod,
    "truncdiv": _if_natural(_floordiv),
    "truncmod": _if_natural(_mod),
    "and": _and,
    "shl": _shift(lambda x, y: x << y),
    "shr": _shift(lambda x, y: x >> y),
}


_MOST_ROUNDS = 4
"""How often intervals may grow. One that still does then may grow for ever, as a sum does."""


def held_ranges(
    dtypes: Mapping[str, str], stores: Sequence[tuple[Store, tuple[For, ...]]]
) -> dict[str, Range]:
    """Returns the intervals of buffers, by name, that are narrower than their dtypes.

        parallel p in 0 .. 100 { list[p] = p }
        ...                                         list holds 0 .. 99, so x[list[p]] exists
        list[left[]] = list[p]

    Lists of what is still to do, parents in a forest and permutations are such arrays: their
    elements are indices of other arrays. Variables such as `max(int(x[k]), 0)` begin loops over
    windows. This is interval analysis without the order of statements (P. Cousot, R. Cousot, POPL
    1977): an interval holds if every store keeps it. `walk.contents` collects the stores.

    Args:
      dtypes: those of all buffers of integers that a kernel makes.
      stores: all stores to them, each with the loops around it.
    """
    # All are zero at first, or are not read before they are stored.
    known = dict.fromkeys(dtypes, (0, 0))
    rounds = 0
    while grown := _grown(stores, known):
        rounds += 1
        known |= grown
        if rounds >= _MOST_ROUNDS:
            known = {name: span for name, span in known.items() if name not in grown}
    return {name: span for name, span in known.items() if span != dtype_range(dtypes[name])}


def _grown(
    stores: Sequence[tuple[Store, tuple[For, ...]]], known: Mapping[str, Range]
) -> dict[str, Range]:
    """Returns the intervals that some stores leave, with what they store."""
    grown: dict[str, Range] = {}
    for store, loops in stores:
        if store.buffer not in known:
            continue
        low, high = grown.get(store.buffer, known[store.buffer])
        least, greatest = range_of(store.value, nested_ranges(loops, known))
        if least < low or greatest > high:
            grown[store.buffer] = (min(low, least), max(high, greatest))
    return grown
