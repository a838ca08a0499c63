"""What an expression of a nest is evaluated in."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property, reduce
from typing import TypeAlias

from jax import lax

from msops._loops.analysis.conditions import conjuncts
from msops._loops.analysis.ranges import Range
from msops._loops.ir.nodes import Expr
from msops._loops.to_jax.printing.values import Array, Contents, Value, combine, spread
from msops._loops.to_jax.raising.nests import Axis

ValueOf: TypeAlias = Callable[[Expr], Value]
"""Evaluates an expression; how loads and stores get the values of their indices."""


@dataclass(frozen=True)
class Machine:
    """What is known at a point of the program.

    Attributes:
      contents: of every buffer.
      scalars: the values of the serial loops' variables.
      ranges: the bounds of those variables.
    """

    contents: Mapping[str, Contents]
    scalars: Mapping[str, Array]
    ranges: Mapping[str, Range]

    def with_contents(self, new: Mapping[str, Contents]) -> Machine:
        """Returns the machine after buffers changed."""
        return dataclasses.replace(self, contents={**self.contents, **new})


@dataclass(frozen=True)
class Scope:
    """What expressions are evaluated in: the machine, the axes, the conditions in force.

    Attributes:
      machine: buffers and scalars.
      axes: the vector axes, in the order that values have.
      conditions: all known to hold where the value matters.
      masks: values of conditions that say where that is.
    """

    machine: Machine
    axes: tuple[Axis, ...]
    conditions: tuple[Expr, ...] = ()
    masks: tuple[Value, ...] = ()

    @cached_property
    def order(self) -> tuple[str, ...]:
        """The names of the axes."""
        return tuple(axis.var for axis in self.axes)

    @cached_property
    def extents(self) -> dict[str, int]:
        """The extents of the axes."""
        return {axis.var: axis.extent for axis in self.axes}

    @cached_property
    def axis_ranges(self) -> dict[str, Range]:
        """The bounds of the axes."""
        return {axis.var: axis.interval for axis in self.axes}

    @cached_property
    def ranges(self) -> dict[str, Range]:
        """The bounds of all variables."""
        return {**self.machine.ranges, **self.axis_ranges}

    @cached_property
    def mask(self) -> Value | None:
        """Where the value matters; None for everywhere."""
        if not self.masks:
            return None
        return reduce(lambda one, other: self.apply(lax.bitwise_and, one, other), self.masks)

    def apply(self, function: Callable[..., Array], *values: Value) -> Value:
        """Returns an elementwise function of values."""
        return combine(function, self.order, self.extents, *values)

    def choose(self, condition: Value, then: Value, otherwise: Value) -> Value:
        """Returns one value where a condition holds, else the other."""
        return self.apply(lax.select, condition, then, otherwise)

    def spread(self, value: Value, axes: Sequence[str]) -> Array:
        """Returns a value's array with one dimension for each of some axes, in their order."""
        return spread(value, axes, self.extents)

    def ordered(self, axes: set[str]) -> tuple[str, ...]:
        """Returns axes in the order of the scope."""
        return tuple(axis for axis in self.order if axis in axes)

    def knowing(self, condition: Expr, holds: bool = True) -> Scope:
        """Returns the scope where a condition holds, or where it does not."""
        return dataclasses.replace(
            self, conditions=(*self.conditions, *conjuncts(condition, holds))
        )

    def under(self, condition: Expr, value: Value, holds: bool = True) -> Scope:
        """Returns the same with what is computed elsewhere kept harmless.

        Args:
          condition: the condition.
          value: its value.
          holds: whether it holds in the new scope.
        """
        mask = value if holds else self.apply(lax.bitwise_not, value)
        return dataclasses.replace(self.knowing(condition, holds), masks=(*self.masks, mask))
