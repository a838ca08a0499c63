"""Copies of arrays with another axis as the last, for vectors along that axis."""

from __future__ import annotations

import math
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from typing import TypeVar

from msops._loops.ir.names import Names, over_box
from msops._loops.ir.nodes import Buffer, Expr, For, Load, Local, Stmt, Store
from msops._loops.ir.walk import rewrite_all, variables
from msops._loops.to_c.facts.strides import offset

A = TypeVar("A")

FEWEST_READS = 32
"""Reads of each element of a factor: with so many, copying it takes a small share of the time."""


@dataclass(frozen=True)
class Factor:
    """A load whose elements for neighbouring columns are apart.

    Attributes:
      load: the load.
      axis: the axis of its array along which columns go.
    """

    load: Load
    axis: int

    def moved_axes(self, axes: tuple[A, ...]) -> tuple[A, ...]:
        """Returns what belongs to the axes of the array, with that of the columns last."""
        return (*axes[: self.axis], *axes[self.axis + 1 :], axes[self.axis])

    def elements(self, buffers: Mapping[str, Buffer]) -> int:
        """Returns the size of the array."""
        return math.prod(buffers[self.load.buffer].shape)


def factor_of(load: Load, columns: For) -> Factor | None:
    """Returns a load that moves with columns along one axis; None if it moves in another way."""
    axes = [n for n, at in enumerate(load.indices) if columns.var in variables(at)]
    if len(axes) != 1 or offset(load.indices[axes[0]], columns.var) is None:
        return None
    return Factor(load, axes[0])


class AxisCopies:
    """Makes copies of the arrays of a kernel."""

    def __init__(self, names: Names, buffers: Mapping[str, Buffer]) -> None:
        self._names = names
        self._buffers = buffers
        self._sources: dict[str, tuple[Factor, Buffer]] = {}

    @property
    def made(self) -> Collection[str]:
        """The names of the copies, each of which is a local that its first statements fill."""
        return self._sources.keys()

    def read(
        self, factors: Collection[Factor], body: tuple[Stmt, ...]
    ) -> tuple[tuple[Stmt, ...], list[str]]:
        """Returns statements that read factors from copies, and the names of the copies."""
        copies: dict[tuple[str, int], Buffer] = {}
        instead: dict[Expr, Expr] = {}
        for factor in sorted(factors, key=lambda factor: (factor.load.buffer, factor.axis)):
            source = self._buffers[factor.load.buffer]
            key = (source.name, factor.axis)
            if key not in copies:
                name = self._names.fresh(f"{source.name}_columns")
                copies[key] = Buffer(name, factor.moved_axes(source.shape), source.dtype)
                self._sources[name] = (factor, copies[key])
            at = factor.moved_axes(factor.load.indices)
            instead[factor.load] = Load(copies[key].name, at, source.dtype)
        changed = rewrite_all(body, lambda part: instead.get(part, part))
        return changed, [copy.name for copy in copies.values()]

    def filled(self, names: Collection[str], body: tuple[Stmt, ...]) -> tuple[Stmt, ...]:
        """Returns statements in the scope of some copies, after what fills these."""
        for name in names:
            factor, copy = self._sources[name]
            body = (Local(copy, (self._filling(factor, copy), *body)),)
        return body

    def _filling(self, factor: Factor, copy: Buffer) -> Stmt:
        """Returns the loops that copy an array with one axis as the last."""
        source = self._buffers[factor.load.buffer]

        def copied(at: tuple[Expr, ...]) -> Stmt:
            before, last = at[: factor.axis], at[-1]
            load = Load(source.name, (*before, last, *at[factor.axis : -1]), source.dtype)
            return Store(copy.name, at, load)

        prefixes = [f"{source.name}_{axis}" for axis in range(len(source.shape))]
        spans = [(0, size) for size in copy.shape]
        return over_box(spans, factor.moved_axes(tuple(prefixes)), self._names.fresh, copied)
