"""Quantities that all estimates of costs share: trips of loops, operations, sizes of caches."""

from __future__ import annotations

import math
from collections.abc import Iterator

from msops._base.dtypes import as_dtype
from msops._loops.analysis.affine import Affine, affine
from msops._loops.analysis.boxes import Span
from msops._loops.ir.facts import kept
from msops._loops.ir.functions import FUNCTIONS
from msops._loops.ir.nodes import (
    Binary,
    Cast,
    Const,
    Expr,
    For,
    FunctionCall,
    Load,
    Select,
    Unary,
    Var,
    Within,
)
from msops._loops.ir.ranges import Range, Ranges, range_of
from msops._loops.ir.walk import Scope, accesses_in, expressions, loads, operands, variables

CACHE_BYTES = 1 << 20
"""The size of the largest arrays that a cache near the processor holds."""

FIRST_CACHE_BYTES = 1 << 15
"""The size of the largest arrays that the first-level cache holds."""

MEASURED_VECTOR_BYTES = 32
"""The size of the vectors that the constants of estimates are for."""

UNKNOWN_TRIPS = 1024
"""Iterations that estimates take for a loop whose bounds are data."""

_FUNCTION = 16
"""Operations of a mathematical function: a polynomial, and bringing its argument into a range."""

_QUOTIENT = 4
"""Operations of a quotient, or of a function that is an instruction, such as a square root."""

_COUNTED_BYTES = 4
"""The size of the elements that the constants of estimates are for."""

_SAMPLES = 8
"""Iterations of the loops around that a mean is taken of."""

_FARTHEST_BOUND = 1 << 30
"""A bound whose range goes beyond this is data, or computed from data."""


def mean_trips(loop: For, ranges: Ranges) -> float:
    """Returns about how many iterations a loop runs; half of the square for a triangle.

    Args:
      loop: the loop.
      ranges: of the variables of the loops around it.
    """
    over = [name for name in sorted(variables(loop.begin) | variables(loop.end)) if name in ranges]
    if not over or not any(map(_is_bent, (loop.begin, loop.end))):
        return _mean(range_of(loop.begin, ranges), range_of(loop.end, ranges))
    total = 0.0
    for sample in range(_SAMPLES):
        at = {name: _sample(ranges[name], sample * (2 * i + 1)) for i, name in enumerate(over)}
        point = {**ranges, **at}
        total += _mean(range_of(loop.begin, point), range_of(loop.end, point))
    return total / _SAMPLES


def _is_bent(bound: Expr) -> bool:
    """Returns whether a bound is no straight line, so that its mean is not between its ends."""
    return any(isinstance(e, Binary) and e.op in ("min", "max") for e in expressions(bound))


def _sample(span: Range, number: int) -> Range:
    """Returns one of a few values that are spread over a range."""
    low, high = span
    value = low + (high - low + 1) * (2 * (number % _SAMPLES) + 1) // (2 * _SAMPLES)
    return (value, value)


def nested_trips(loop: For, scope: Scope) -> float:
    """Returns what `mean_trips` does, also of `j in k .. i` in a loop `i in k .. n`.

    The ranges of i and k do not say that i is not before k, nor how far it is from there.

    Args:
      loop: the loop.
      scope: that around it.
    """
    begin, end = range_of(loop.begin, scope.ranges), range_of(loop.end, scope.ranges)
    if begin[1] <= end[0] and not any(map(_is_bent, (loop.begin, loop.end))):
        return _mean(begin, end)
    total = 0.0
    for sample in range(_SAMPLES):
        point = dict(scope.ranges)
        for depth, outer in enumerate(scope.loops):
            low, past = range_of(outer.begin, point)[0], range_of(outer.end, point)[1]
            if low < past:
                point[outer.var] = _sample((low, past - 1), sample * (2 * depth + 1))
        total += _mean(range_of(loop.begin, point), range_of(loop.end, point))
    return total / _SAMPLES


def estimated_trips(loop: For, scope: Scope) -> float:
    """Returns what `mean_trips` does, or an estimate for a loop whose bounds are data.

    A run that begins at data and goes along an axis of an array is a part of one walk along the
    axis that all runs are together, as over the rows of a sparse matrix; longer ones are estimated
    too low. One that begins at a number is a row of its own, and takes half of the axis. A window
    around a position that is data is as long as its bounds say, and one between any two positions
    as the root of the axis, which is neither far from one element nor from all.

    Args:
      loop: the loop.
      scope: that around it.
    """
    begin, end = range_of(loop.begin, scope.ranges), range_of(loop.end, scope.ranges)
    if _is_near(begin) and _is_near(end):
        return nested_trips(loop, scope)
    sizes = [
        size
        for access in accesses_in(loop.body)
        if access.buffer in scope.buffers
        for index, size in zip(access.indices, scope.buffers[access.buffer].shape, strict=True)
        if _unwrapped(index) == Var(loop.var)
    ]
    window = window_length(loop)
    if window is not None:
        return window
    if sizes and _is_near(begin):
        return max(1.0, _mean(begin, (begin[0], min(sizes))))
    over = variables(loop.begin) | variables(loop.end)
    picked = [index for load in (*loads(loop.begin), *loads(loop.end)) for index in load.indices]
    if any(map(loads, picked)) and scope.loops:
        # Which run it is, is data as well: each iteration of the loop around picks one.
        over |= {scope.loops[-1].var}
    if sizes and not over:
        return math.sqrt(min(sizes))
    runs = math.prod(high - low + 1 for low, high in (scope.ranges[var] for var in over))
    return max(1.0, min(sizes) / max(1, runs)) if sizes else UNKNOWN_TRIPS


@kept
def window_length(loop: For) -> int | None:
    """Returns the most iterations of a window, as from x - 2 to x + 4; None for other loops.

    If only one of the bounds wraps, the loop does not run. Both are sums of 32 bits: `affine` takes
    no wider ones apart.
    """
    begins, ends = _sides("max", loop.begin), list(_sides("min", loop.end))
    lengths = [
        max(0, span.constant)
        for first in begins
        for last in ends
        if (span := _span(first, last)) and not span.terms
    ]
    return min(lengths, default=None)


def _span(first: Expr, last: Expr) -> Affine | None:
    begin, end = affine(first, ()), affine(last, ())
    return end - begin if begin and end else None


def _sides(op: str, bound: Expr) -> Iterator[Expr]:
    """Yields the expressions whose extreme a bound is."""
    match bound:
        case Binary(op=own, left=left, right=right) if own == op:
            yield from _sides(op, left)
            yield from _sides(op, right)
        case Cast(operand=operand, dtype=dtype) if operand.dtype in ("int32", dtype):
            yield from _sides(op, operand)
        case _:
            yield bound


def _is_near(bound: Range) -> bool:
    return max(-bound[0], bound[1]) < _FARTHEST_BOUND


def _unwrapped(index: Expr) -> Expr:
    """Returns an index without what a pass to C says of its range."""
    while isinstance(index, Within | Cast):
        index = index.operand
    return index


def _mean(begin: Range, end: Range) -> float:
    return max(0.0, (end[0] + end[1] - begin[0] - begin[1]) / 2)


def fixed_trips(loop: For) -> int | None:
    """Returns how many iterations a loop runs; None if its bounds are not constants."""
    span = fixed_span(loop)
    return None if span is None else max(0, span[1] - span[0])


def fixed_span(loop: For) -> Span | None:
    """Returns the first iteration of a loop and the one after its last; None if these are data.

    A loop that never runs may end before it begins.
    """
    if isinstance(loop.begin, Const) and isinstance(loop.end, Const):
        return (int(loop.begin.value), int(loop.end.value))
    return None


def width_in_float32s(dtype: str) -> float:
    """Returns how many elements of float32 a vector holds for one of a dtype; at least 1."""
    return max(1.0, as_dtype(dtype).dtype.itemsize / _COUNTED_BYTES)


def effort(part: Expr) -> int:
    """Returns about how many quick operations one operation, function or load takes.

    Its operands do not count. A constant or variable takes none.
    """
    match part:
        case FunctionCall(function=function):
            return _QUOTIENT if FUNCTIONS[function].is_instruction else _FUNCTION
        case Binary(op="div" | "floordiv" | "mod" | "pow"):
            return _QUOTIENT
    return 0 if isinstance(part, Const | Var) else 1


def arithmetic(expr: Expr) -> int:
    """Returns how many operations there are in an expression; calls of functions are none."""
    return sum(isinstance(part, Binary | Cast | Select | Unary) for part in computed(expr))


def computed(expr: Expr) -> Iterator[Expr]:
    """Yields what is computed for an expression; indices are not, where they are slices."""
    yield expr
    for part in operands(expr) if not isinstance(expr, Load) else ():
        yield from computed(part)
