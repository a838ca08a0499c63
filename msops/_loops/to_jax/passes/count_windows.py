"""Loops over windows that move with a loop around them count from where the window begins.

    serial y in max(i - 3, 0) .. min(i + 4, h) {      serial y in 0 .. 7 {
      s[] = s[] + a[y]                                  if (0 <= ((i + y) - 3)) {
    }                                          ->         if (((i + y) - 3) < h) {
                                                            s[] = s[] + a[(i + y) - 3]

An array operation goes over the hull of a loop: without this, over all h elements for each i, with
a mask. What the bounds are clamped to becomes a condition. Triangles have no length, so they stay.
So do long windows on matrices that are multiplied by others: a masked product takes less time than
a copy of the rows in each window.
"""

from __future__ import annotations

import dataclasses
import functools
import math

from msops._loops.ir.algebra import binary, integer
from msops._loops.ir.nodes import Expr, For, If, Kernel, Stmt, Store, Var
from msops._loops.ir.ranges import Ranges, loop_range
from msops._loops.ir.walk import (
    Scope,
    bodies,
    has_bounds_of_data,
    index_variables,
    loads,
    rewrite_inner_loops,
    rewrite_loops,
    statements,
    variables,
    with_parts,
    with_value,
)
from msops._loops.passes.simplify_expressions import difference, sides_of, simplified

_LEAST_GAIN = 2
"""How many times as many iterations the hulls of windows in one another must have as the windows
themselves."""
_LEAST_GAIN_OF_PRODUCTS = 16
"""The same for factors that may be matrices. Measured of 1024 x 64 elements in windows of 65 rows,
the product took 0.5 of the time; in windows of 257 rows it took 20 times as long."""


def count_windows(kernel: Kernel) -> Kernel:
    """Returns the kernel with loops over windows counting from zero."""
    return rewrite_loops(kernel, functools.partial(_loop, gain=1.0))


def _loop(loop: For, scope: Scope, gain: float) -> tuple[Stmt, ...] | None:
    """Returns what replaces a loop; `gain` is that of the windows around it."""
    window = _window(loop, scope.ranges)
    if window is None:
        return None
    own = gain * window.gain
    is_copied = window.overlaps and _may_multiply_matrices(loop)
    least = _LEAST_GAIN_OF_PRODUCTS if is_copied else _LEAST_GAIN
    if own * _gain_inside(window.loop, scope) < least:
        return None
    change = functools.partial(_loop, gain=own)
    return (rewrite_inner_loops(window.loop, scope, change),)


@dataclasses.dataclass(frozen=True)
class _Window:
    """A loop that counts from where a window begins.

    Attributes:
      loop: the loop.
      gain: how many times as many iterations the hull of the loop before had.
      overlaps: whether several windows may have an element.
    """

    loop: For
    gain: float
    overlaps: bool


def _window(loop: For, ranges: Ranges) -> _Window | None:
    """Returns a loop as one that counts from zero; None if it is no window."""
    if not variables(loop.begin) or has_bounds_of_data(loop):
        return None
    lows, highs = sides_of("max", loop.begin, ranges), sides_of("min", loop.end, ranges)
    found = [
        (length, low, high)
        for low in lows
        for high in highs
        if (length := _length(low, high, ranges)) is not None
    ]
    if not found:
        return None
    length, first, end = min(found, key=lambda window: window[0])
    at = simplified(binary("add", first, Var(loop.var)), {**ranges, loop.var: (0, length - 1)})
    conditions = [binary("le", low, at) for low in lows if low != first]
    conditions += [binary("lt", at, high) for high in highs if high != end]
    body = with_value(loop.body, loop.var, at)
    for condition in reversed(conditions):
        body = (If(condition, body, location=loop.location),)
    least, greatest = loop_range(loop, ranges)
    gain = (greatest - least + 1) / length
    moving = [ranges[var] for var in variables(first)]
    overlaps = math.prod(high - low + 1 for low, high in moving) > gain
    counted = with_parts(loop, begin=integer(0), end=integer(length), body=body)
    return _Window(counted, gain, overlaps)


def _length(low: Expr, high: Expr, ranges: Ranges) -> int | None:
    """Returns how far apart two bounds are; None if that depends, or nothing is between them."""
    apart = difference(high, low, ranges)
    return apart[0] if apart and apart[0] == apart[1] > 0 else None


def _gain_inside(stmt: Stmt, scope: Scope) -> float:
    """Returns the product of the gains of windows in one another inside of a statement."""
    most = 1.0
    for body, inside in zip(bodies(stmt), scope.inside(stmt), strict=True):
        for part in body:
            window = _window(part, inside.ranges) if isinstance(part, For) else None
            found = (window.gain, window.loop) if window else (1.0, part)
            most = max(most, found[0] * _gain_inside(found[1], inside))
    return most


def _may_multiply_matrices(loop: For) -> bool:
    """Returns whether sums over a loop have factors with other axes than one another.

    The axis of the loop, and those that its bounds move with, do not count.
    """
    own = {loop.var} | variables(loop.begin) | variables(loop.end)
    for store in statements(loop.body):
        if isinstance(store, Store) and loop.var not in index_variables(store):
            factors = [load for load in loads(store.value) if load.buffer != store.buffer]
            axes = {
                frozenset(index_variables(factor) - own) for factor in factors if factor.indices
            }
            if len(axes) > 1:
                return True
    return False
