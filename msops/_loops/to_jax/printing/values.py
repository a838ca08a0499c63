"""Arrays that know which loops they vary with."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np
from jax import lax

from msops._base.dtypes import as_dtype

Array: TypeAlias = Any
"""A `jax.Array`, a tracer, or a numpy constant."""


@dataclass(frozen=True)
class Value:
    """What an expression is for all values of the axes it varies with.

    Attributes:
      array: one dimension per axis.
      axes: the axes, in the order of the nest.
    """

    array: Array
    axes: tuple[str, ...]


@dataclass(frozen=True)
class Uniform:
    """A buffer whose elements are all equal; not yet an array.

    Attributes:
      value: a numpy scalar of the buffer's dtype.
      shape: of the buffer.
    """

    value: Any
    shape: tuple[int, ...]

    def materialise(self) -> Array:
        """Returns the array."""
        return lax.full(self.shape, self.value)


Contents: TypeAlias = Any
"""What a buffer holds: an array, or a `Uniform`."""


def contents_array(contents: Contents) -> Array:
    """Returns a buffer's contents as an array."""
    return contents.materialise() if isinstance(contents, Uniform) else contents


def constant(value: bool | int | float, dtype: str) -> Any:
    """Returns a number as a numpy scalar of a dtype of the IR."""
    with np.errstate(over="ignore"):  # It is infinite, as in C.
        return np.asarray(value).astype(as_dtype(dtype).dtype)[()]


def spread(value: Value, axes: Sequence[str], extents: dict[str, int]) -> Array:
    """Returns the value's array with one dimension per axis, in their order.

    Args:
      value: varies with some of `axes`.
      axes: the axes wanted.
      extents: of the axes.
    """
    if value.axes == tuple(axes):
        return value.array
    wanted = [axis for axis in axes if axis in value.axes]
    array = value.array
    if tuple(wanted) != value.axes:
        array = lax.transpose(array, [value.axes.index(axis) for axis in wanted])
    if len(wanted) == len(axes):
        return array
    shape = [extents[axis] for axis in axes]
    return lax.broadcast_in_dim(array, shape, [axes.index(axis) for axis in wanted])


def join(order: Sequence[str], *values: Value) -> tuple[str, ...]:
    """Returns the axes that one of the values varies with, in the order of the nest."""
    first = values[0].axes
    if all(value.axes == first for value in values):
        return first
    found = {axis for value in values for axis in value.axes}
    return tuple(axis for axis in order if axis in found)


def combine(
    function: Callable[..., Array], order: Sequence[str], extents: dict[str, int], *values: Value
) -> Value:
    """Returns an elementwise function of values."""
    axes = join(order, *values)
    # jax.lax takes numpy scalars for weakly typed numbers in some operations.
    arrays = (spread(value, axes, extents) for value in values)
    return Value(function(*(_as_array(array) for array in arrays)), axes)


def _as_array(array: Array) -> Array:
    return lax.full((), np.asarray(array)) if isinstance(array, np.generic) else array


def reshaped(array: Array, shape: Sequence[int]) -> Array:
    """Returns an array in another shape."""
    return array if tuple(array.shape) == tuple(shape) else lax.reshape(array, tuple(shape))
