"""Index tuples as views of a buffer: reshapes, strided slices, reversals and transposes."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from msops._loops.analysis.affine import Affine, affine
from msops._loops.ir.algebra import joined_axes
from msops._loops.ir.nodes import Expr
from msops._loops.ir.ranges import Range, is_within
from msops._loops.ir.walk import variables


@dataclass(frozen=True)
class Level:
    """An axis along a dimension: position p of it is `step * p` further."""

    axis: str
    step: int
    extent: int


@dataclass(frozen=True)
class Dimension:
    """The part of one dimension that a view shows.

    Attributes:
      size: of the buffer's dimension.
      index: the index, an affine function.
      start: where the view begins, apart from `rest`.
      rest: the scalar part of where it begins.
      levels: the axes that run along it, steps descending, ranges not overlapping.
    """

    size: int
    index: Affine
    start: int
    rest: tuple[tuple[Expr, int], ...]
    levels: tuple[Level, ...]

    @property
    def length(self) -> int:
        """The number of elements from the first that is shown to the last, both included."""
        return 1 + sum(level.step * (level.extent - 1) for level in self.levels)

    @property
    def has_gaps(self) -> bool:
        """Whether some elements between the first and the last are not shown."""
        return self.length > math.prod(level.extent for level in self.levels)


@dataclass(frozen=True)
class ArrayView:
    """A buffer seen through an index tuple.

    Attributes:
      dimensions: the dimensions of the buffer, once neighbours are merged.
      reversed: axes that run backwards.
    """

    dimensions: tuple[Dimension, ...]
    reversed: frozenset[str]

    @property
    def shape(self) -> tuple[int, ...]:
        """The buffer's shape with neighbours merged."""
        return tuple(dimension.size for dimension in self.dimensions)

    @property
    def has_gaps(self) -> bool:
        """Whether it leaves out elements along some dimension."""
        return any(dimension.has_gaps for dimension in self.dimensions)

    @property
    def axes(self) -> tuple[str, ...]:
        """The axes, in the order of memory."""
        return tuple(level.axis for d in self.dimensions for level in d.levels)


def find_view(
    indices: Sequence[Expr], shape: Sequence[int], axes: Mapping[str, Range]
) -> ArrayView | None:
    """Returns an access with these indices as a view; None if it is none.

    Args:
      indices: one expression a dimension.
      shape: of the buffer.
      axes: the vector axes, each with its least and greatest value.
    """
    # A scalar may be out of range: of two axes its nearest element is another one than of one.
    merged = joined_axes(indices, shape, lambda index: not variables(index).isdisjoint(axes))
    functions = [(affine(index, axes), size) for index, size in merged]
    known = [(function, size) for function, size in functions if function is not None]
    if len(known) < len(functions):
        return None
    return _view(known, axes) or _flat_view(known, axes)


def _view(dimensions: Sequence[tuple[Affine, int]], axes: Mapping[str, Range]) -> ArrayView | None:
    used = [axis for function, _ in dimensions for axis, _ in function.along]
    if len(used) != len(set(used)):
        return None
    parts = [_dimension(function, size, axes) for function, size in dimensions]
    found = [part for part in parts if part is not None]
    if len(found) < len(parts):
        return None
    backwards = {axis for function, _ in dimensions for axis, c in function.along if c < 0}
    return ArrayView(tuple(found), frozenset(backwards))


def _dimension(function: Affine, size: int, axes: Mapping[str, Range]) -> Dimension | None:
    start = function.constant
    levels = []
    for axis, coefficient in function.along:
        least, greatest = axes[axis]
        start += coefficient * (least if coefficient > 0 else greatest)
        levels.append(Level(axis, abs(coefficient), greatest - least + 1))
    levels.sort(key=lambda level: -level.step)
    reach = 0
    for level in reversed(levels):
        if level.step <= reach:
            return None
        reach += level.step * (level.extent - 1)
    return Dimension(size, function, start, function.scalars, tuple(levels))


def _flat_view(
    dimensions: Sequence[tuple[Affine, int]], axes: Mapping[str, Range]
) -> ArrayView | None:
    """The view of the flattened buffer; only where no index leaves its dimension."""
    flat = Affine.of_constant(0)
    for function, size in dimensions:
        if function.scalars or not is_within(function.range(axes), (0, size - 1)):
            return None
        flat = flat.scaled(size) + function
    return _view([(flat, math.prod(size for _, size in dimensions))], axes)
