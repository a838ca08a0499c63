"""The environment that steps run in, and that the expressions of a nest are evaluated in."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property, reduce
from typing import TypeAlias, TypeVar, TypeVarTuple

import numpy as np
from jax import lax

from msops._jax_seam import vary_alike
from msops._loops.analysis.conditions import conjuncts
from msops._loops.ir.nodes import Expr
from msops._loops.ir.ranges import Range
from msops._loops.to_jax.printing.shields import (
    Origins,
    barred,
    divide,
    keeping_nan,
    origin_of,
    shield,
)
from msops._loops.to_jax.printing.values import Array, Contents, Value
from msops._loops.to_jax.raising.nests import AxesNamed, Axis

T = TypeVar("T")
Ts = TypeVarTuple("Ts")

ValueOf: TypeAlias = Callable[[Expr], Value]
"""Evaluates an expression; how loads get the values of their indices."""


@dataclass(frozen=True)
class Environment(AxesNamed):
    """The contents, scalars, axes and conditions at a point of the program.

    Attributes:
      contents: the contents of every buffer.
      scalars: the values of the serial loops' variables.
      scalar_ranges: the bounds of those variables.
      axes: the vector axes, in the order that values have.
      conditions: all known to hold where the value matters.
      masks: values of conditions that say where that is.
      inputs: of the kernel; all vary over the same axes of a mesh.
      indices: values of indices and of conditions on them that were evaluated already, and may be
        again, by the expression and its axes.
      origins: which operations made the arrays.
      read: the buffers that the kernel reads elements of.
    """

    contents: Mapping[str, Contents]
    scalars: Mapping[str, Array] = field(default_factory=dict)
    scalar_ranges: Mapping[str, Range] = field(default_factory=dict)
    axes: tuple[Axis, ...] = ()
    conditions: tuple[Expr, ...] = ()
    masks: tuple[Value, ...] = ()
    inputs: Sequence[Array] = ()
    indices: dict[tuple[Expr, tuple[Axis, ...]], Value] = field(default_factory=dict)
    origins: Origins = field(default_factory=Origins)
    read: frozenset[str] = frozenset()

    @cached_property
    def order(self) -> tuple[str, ...]:
        """The names of the axes."""
        return tuple(axis.var for axis in self.axes)

    @cached_property
    def ranges(self) -> dict[str, Range]:
        """The bounds of all variables."""
        return {**self.scalar_ranges, **self.axis_ranges}

    @cached_property
    def mask(self) -> Value | None:
        """Where the value matters; None for everywhere."""
        if not self.masks:
            return None
        return reduce(lambda one, other: self.apply(lax.bitwise_and, one, other), self.masks)

    # Values over the axes.

    def apply(self, function: Callable[..., Array], *values: Value) -> Value:
        """Returns an elementwise function of values."""
        axes = values[0].axes
        if any(value.axes != axes for value in values):
            axes = self.ordered({axis for value in values for axis in value.axes})
        # jax.lax takes numpy scalars for weakly typed numbers in some operations.
        arrays = (self.spread(value, axes) for value in values)
        arrays = (lax.full((), np.asarray(x)) if isinstance(x, np.generic) else x for x in arrays)
        return Value(function(*arrays), axes)

    def compute(self, op: str, function: Callable[..., Array], *values: Value) -> Value:
        """Returns an operation on floats, as the operation that it is; see shields.py."""
        if all(self.origins.is_constant(value.array) for value in values):
            self.origins.may_be_nan = True
        operands = shield(op, values, self.origins)
        if op == "div":
            function = divide
        if self.origins.may_be_nan:
            function = keeping_nan(op, function)
        result = self.apply(function, *operands)
        if all(isinstance(operand.array, np.generic) for operand in operands):
            # A constant that XLA folds is not known here to be one.
            return barred(result)
        self.origins.note(result.array, origin_of(op, operands))
        return result

    def choose(self, condition: Value, then: Value, otherwise: Value) -> Value:
        """Returns one value where a condition holds, else the other."""
        return self.apply(lax.select, condition, then, otherwise)

    def spread(self, value: Value, axes: Sequence[str]) -> Array:
        """Returns a value's array with one dimension for each of some axes, in their order."""
        return value.spread(axes, self.extents)

    def ordered(self, axes: set[str]) -> tuple[str, ...]:
        """Returns axes in the order of the nest."""
        return tuple(axis for axis in self.order if axis in axes)

    def vary(self, arrays: Sequence[Array]) -> tuple[Array, ...]:
        """Returns arrays that vary over the same axes of a mesh as the inputs.

        Under `jax.shard_map` what loops carry and branches return has to: zeros vary over none.
        """
        return tuple(vary_alike([*arrays, *self.inputs])[: len(arrays)])

    # Bodies that JAX traces by themselves. Each gets an environment of its own, as a value of
    # `indices` is of no use outside of the body that it was evaluated in.

    def cond(
        self,
        condition: Array,
        then: Callable[[Environment, *Ts], T],
        otherwise: Callable[[Environment, *Ts], T],
        *operands: *Ts,
    ) -> T:
        """Returns `lax.cond` of bodies that take an environment first."""
        result: T = lax.cond(condition, self._traced(then), self._traced(otherwise), *operands)
        return result

    def fori_loop(
        self,
        begin: Array | int,
        end: Array | int,
        body: Callable[[Environment, Array, T], T],
        start: T,
    ) -> T:
        """Returns `lax.fori_loop` of a body that takes an environment first; it counts in int32."""
        traced = self._traced(body)

        def counted(counter: Array, carried: T) -> T:
            # Under jax.enable_x64 the counter of a fixed number of trips is an int64.
            return traced(lax.convert_element_type(counter, np.int32), carried)

        result: T = lax.fori_loop(begin, end, counted, start)
        return result

    def _traced(self, body: Callable[[Environment, *Ts], T]) -> Callable[[*Ts], T]:
        def function(*args: *Ts) -> T:
            return body(dataclasses.replace(self, indices={}), *args)

        return function

    # Other environments.

    def counting(self, name: str, value: Array, ranges: Mapping[str, Range]) -> Environment:
        """Returns the environment where a loop's variable has a value, given `scalar_ranges`."""
        scalars = {**self.scalars, name: value}
        return dataclasses.replace(self, scalars=scalars, scalar_ranges=ranges)

    def after(self, new: Mapping[str, Contents]) -> Environment:
        """Returns the environment after buffers changed."""
        return dataclasses.replace(self, contents={**self.contents, **new})

    def over(self, axes: Sequence[Axis]) -> Environment:
        """Returns the environment of a nest over axes, without conditions."""
        return dataclasses.replace(self, axes=tuple(axes), conditions=(), masks=())

    def knowing(self, condition: Expr, holds: bool) -> Environment:
        """Returns the environment where a condition holds, or where it does not."""
        return dataclasses.replace(
            self, conditions=(*self.conditions, *conjuncts(condition, holds))
        )

    def under(self, condition: Expr, value: Value, holds: bool = True) -> Environment:
        """Returns the same with what is computed elsewhere kept harmless.

        Args:
          condition: the condition.
          value: its value.
          holds: whether it holds in the new environment.
        """
        mask = value if holds else self.apply(lax.bitwise_not, value)
        return dataclasses.replace(self.knowing(condition, holds), masks=(*self.masks, mask))
