"""Vector nests: loops in any order around one store, as a box of axes and the guards left."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

from msops._loops.analysis.affine import affine
from msops._loops.analysis.conditions import conjuncts, inequalities, narrow, narrow_unequal
from msops._loops.ir.algebra import binary, integer
from msops._loops.ir.nodes import Const, Expr, For, If, Load, Stmt, Store, Var
from msops._loops.ir.ranges import Range, loop_range
from msops._loops.ir.walk import Scope, map_expressions, substitute

LONGEST_HULL = 2**24
"""Loops whose bounds are data get no hull beyond so many iterations."""

LARGEST_BOX = 2**47
"""Iterations that a nest may have: no array has more elements, and XLA aborts on shapes whose sizes
overflow. The outer loops of a larger one stay loops."""


@dataclass(frozen=True)
class Axis:
    """A loop of a vector nest, or a serial one: `var` runs from `begin` to before `end`."""

    var: str
    begin: int
    end: int

    @property
    def extent(self) -> int:
        """The number of iterations."""
        return max(0, self.end - self.begin)

    @property
    def interval(self) -> Range:
        """The least and the greatest value."""
        return (self.begin, self.end - 1)


class AxesNamed:
    """Anything with axes, which are looked up by name."""

    axes: tuple[Axis, ...]

    @cached_property
    def extents(self) -> dict[str, int]:
        """The extents of the axes."""
        return {axis.var: axis.extent for axis in self.axes}

    @cached_property
    def axis_ranges(self) -> dict[str, Range]:
        """The bounds of the axes alone."""
        return {axis.var: axis.interval for axis in self.axes}


@dataclass(frozen=True)
class Nest(AxesNamed):
    """One store, executed at once for a box of values of its axes.

    Attributes:
      axes: the loops, outermost first; each has two iterations or more.
      store: what is stored.
      mask: the conditions under which, beside the box.
      reduced: axes of kind "reduction".
      outer: the serial loops around, hulls of their ranges.
      ordered_axes: the axes in the order in which arrays have them, once `orders` has found it;
        that of the loops before.
    """

    axes: tuple[Axis, ...]
    store: Store
    mask: tuple[Expr, ...]
    reduced: frozenset[str]
    outer: tuple[Axis, ...]
    ordered_axes: tuple[Axis, ...]

    @cached_property
    def ranges(self) -> dict[str, Range]:
        """The bounds of all variables in the nest."""
        return {axis.var: axis.interval for axis in (*self.outer, *self.axes)}

    @property
    def iterations(self) -> int:
        """How often the store is executed."""
        return math.prod(self.extents.values())

    def is_indirect(self, access: Load | Store) -> bool:
        """Whether an access follows indices that are no linear functions of the axes."""
        return any(affine(index, self.extents) is None for index in access.indices)


def axes_around(scope: Scope) -> tuple[Axis, ...]:
    """Returns the loops around a statement, hulls of their ranges."""
    limits = ((loop.var, *scope.ranges[loop.var]) for loop in scope.loops)
    return tuple(Axis(var, low, high + 1) for var, low, high in limits)


@dataclass(frozen=True)
class Chain:
    """Loops and guards down to one store, as they stand in the body."""

    loops: tuple[For, ...]
    guards: tuple[Expr, ...]
    store: Store


def chain(stmt: Stmt) -> Chain | None:
    """Returns a vector nest's parts; None if the statement is something else."""
    loops: list[For] = []
    guards: list[Expr] = []
    while True:
        match stmt:
            case For(body=(inner,), kind="parallel" | "reduction"):
                loops.append(stmt)
            case If(condition=condition, then=(inner,), otherwise=()):
                guards.append(condition)
            case Store():
                return Chain(tuple(loops), tuple(guards), stmt)
            case _:
                return None
        stmt = inner


def nest(parts: Chain, outer: Sequence[Axis]) -> Nest | None:
    """Returns the box of a chain; None if it is too large, or a loop has no bounds known here.

    Args:
      parts: the chain.
      outer: the serial loops around it.
    """
    ranges: dict[str, Range] = {axis.var: axis.interval for axis in outer}
    conditions = [part for guard in parts.guards for part in conjuncts(guard)]
    for loop in parts.loops:
        ranges[loop.var] = loop_range(loop, ranges)
        if not is_known(loop, ranges[loop.var]):
            return None
        conditions += _bounds(loop)
    left = _tighten(conditions, {loop.var for loop in parts.loops}, ranges)
    values: dict[str, Expr] = {
        loop.var: integer(ranges[loop.var][0])
        for loop in parts.loops
        if ranges[loop.var][0] == ranges[loop.var][1]
    }
    axes = tuple(
        Axis(loop.var, ranges[loop.var][0], ranges[loop.var][1] + 1)
        for loop in parts.loops
        if loop.var not in values
    )
    if math.prod(axis.extent for axis in axes) > LARGEST_BOX:
        return None
    return Nest(
        axes,
        map_expressions(parts.store, lambda expr: substitute(expr, values)),
        tuple(substitute(condition, values) for condition in left),
        frozenset(loop.var for loop in parts.loops if loop.kind == "reduction") - set(values),
        tuple(outer),
        axes,
    )


def is_known(loop: For, hull: Range) -> bool:
    """Returns whether the hull of a loop's range is worth running through."""
    is_constant = isinstance(loop.begin, Const) and isinstance(loop.end, Const)
    return is_constant or hull[1] - hull[0] < LONGEST_HULL


def _bounds(loop: For) -> list[Expr]:
    """Returns the conditions on a loop's variable that do not follow from its hull."""
    var = Var(loop.var)
    conditions: list[Expr] = []
    if not isinstance(loop.begin, Const):
        conditions.append(binary("le", loop.begin, var))
    if not isinstance(loop.end, Const):
        conditions.append(binary("lt", var, loop.end))
    return conditions


def _tighten(
    conditions: Sequence[Expr], axes: set[str], ranges: dict[str, Range]
) -> tuple[Expr, ...]:
    """Shrinks ranges of axes by conditions; returns the conditions that do not follow from them."""
    left = tuple(conditions)
    for _ in range(2):
        left = tuple(c for c in conditions if not _is_said(c, axes, ranges))
    return left


def _is_said(condition: Expr, axes: set[str], ranges: dict[str, Range]) -> bool:
    """Shrinks ranges to the hull of a condition; returns whether it then follows from them."""
    if any(ranges[axis][0] > ranges[axis][1] for axis in axes):
        return True
    functions = inequalities(condition, axes, ranges)
    if functions is None:
        return narrow_unequal(condition, axes, ranges)
    return all([narrow(function, ranges) for function in functions])  # noqa: C419 - narrow all
