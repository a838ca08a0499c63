"""Vector nests: loops in any order around one store, as a box of axes and what is left of guards."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

from msops._loops.ir import INDEX_DTYPE, Binary, Const, Expr, For, If, Stmt, Store, Var
from msops._loops.raising.conditions import conjuncts, inequalities, narrow
from msops._loops.raising.linear import variables
from msops._loops.ranges import Range, range_of
from msops._loops.walk import substitute

LARGEST_EXTENT = 2**31 - 1


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


@dataclass(frozen=True)
class Nest:
    """One store, executed at once for a box of values of its axes.

    Attributes:
      axes: the loops, outermost first; each has two iterations or more.
      store: what is stored.
      mask: the conditions under which, beside the box.
      reduced: axes of kind "reduction".
      outer: the serial loops around, hulls of their ranges.
    """

    axes: tuple[Axis, ...]
    store: Store
    mask: tuple[Expr, ...]
    reduced: frozenset[str]
    outer: tuple[Axis, ...]

    @cached_property
    def ranges(self) -> dict[str, Range]:
        """The bounds of all variables in the nest."""
        return {axis.var: axis.interval for axis in (*self.outer, *self.axes)}

    @cached_property
    def extents(self) -> dict[str, int]:
        """The extents of the axes."""
        return {axis.var: axis.extent for axis in self.axes}

    def axis_ranges(self) -> dict[str, Range]:
        """The bounds of the axes alone."""
        return {axis.var: axis.interval for axis in self.axes}


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


def nest(parts: Chain, outer: Sequence[Axis], guards: Sequence[Expr] = ()) -> Nest | None:
    """Returns the box of a chain; None if a loop has no bounds that are known here.

    Args:
      parts: the chain.
      outer: the serial loops around it.
      guards: conditions known from outside, that the store is also under.
    """
    ranges: dict[str, Range] = {axis.var: axis.interval for axis in outer}
    conditions = [part for guard in (*guards, *parts.guards) for part in conjuncts(guard)]
    axes = set()
    for loop in parts.loops:
        low, high = range_of(loop.begin, ranges), range_of(loop.end, ranges)
        if low is None or high is None or high[1] - low[0] > LARGEST_EXTENT:
            return None
        ranges[loop.var] = (low[0], high[1] - 1)
        axes.add(loop.var)
        var = Var(loop.var)
        conditions += [
            Binary(op, *operands, "bool")
            for op, bound, operands in (
                ("le", loop.begin, (loop.begin, var)), ("lt", loop.end, (var, loop.end)),
            ) if not isinstance(bound, Const)
        ]  # fmt: skip
    left = _tighten(conditions, axes, ranges)
    values: dict[str, Expr] = {
        axis: Const(ranges[axis][0], INDEX_DTYPE)
        for axis in axes
        if ranges[axis][0] == ranges[axis][1]
    }
    return Nest(
        tuple(
            Axis(loop.var, ranges[loop.var][0], ranges[loop.var][1] + 1)
            for loop in parts.loops
            if loop.var not in values
        ),
        _substituted_store(parts.store, values),
        tuple(substitute(condition, values) for condition in left),
        frozenset(loop.var for loop in parts.loops if loop.kind == "reduction") - set(values),
        tuple(outer),
    )


def _tighten(
    conditions: Sequence[Expr], axes: set[str], ranges: dict[str, Range]
) -> tuple[Expr, ...]:
    """Shrinks the ranges of axes to the hull of where conditions hold; returns what is left."""
    for _ in range(2):
        left = []
        for condition in conditions:
            functions = inequalities(condition, axes)
            if any(ranges[axis][0] > ranges[axis][1] for axis in axes):
                return ()
            if functions is None or not all([narrow(f, ranges) for f in functions]):
                left.append(condition)
    return tuple(left)


def _substituted_store(store: Store, values: Mapping[str, Expr]) -> Store:
    if not values:
        return store
    return dataclasses.replace(
        store,
        indices=tuple(substitute(index, dict(values)) for index in store.indices),
        value=substitute(store.value, dict(values)),
    )


def is_scalar(expr: Expr, nest: Nest) -> bool:
    """Tells whether an expression is free of the nest's axes."""
    return variables(expr).isdisjoint(nest.extents)
