"""Arrays that know which loops they vary with."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np
from jax import lax

from msops._base.dtypes import as_dtype

Array: TypeAlias = Any
"""A `jax.Array`, a tracer, or a numpy constant."""


@dataclass(frozen=True)
class Value:
    """The value of an expression, for all values of the axes that it varies with.

    Attributes:
      array: one dimension per axis.
      axes: the axes, in the order of the nest.
    """

    array: Array
    axes: tuple[str, ...]

    def spread(self, axes: Sequence[str], extents: Mapping[str, int]) -> Array:
        """Returns the array with one dimension per axis, in their order.

        Args:
          axes: the axes wanted, among them all that the value varies with.
          extents: of the axes.
        """
        if self.axes == tuple(axes):
            return self.array
        wanted = [axis for axis in axes if axis in self.axes]
        array = self.array
        if tuple(wanted) != self.axes:
            array = lax.transpose(array, [self.axes.index(axis) for axis in wanted])
        if len(wanted) == len(axes):
            return array
        shape = [extents[axis] for axis in axes]
        return lax.broadcast_in_dim(array, shape, [axes.index(axis) for axis in wanted])


@dataclass(frozen=True)
class Uniform:
    """A buffer whose elements are all equal; not yet an array.

    Attributes:
      value: a numpy scalar of the buffer's dtype.
      shape: of the buffer.
      is_hidden: XLA shall not know the value, see shields.py.
    """

    value: Any
    shape: tuple[int, ...]
    is_hidden: bool = False

    def element(self) -> Array:
        """Returns one element."""
        return lax.optimization_barrier(self.value) if self.is_hidden else self.value

    def materialise(self) -> Array:
        """Returns the array."""
        return lax.full(self.shape, self.element())


Contents: TypeAlias = Any
"""The contents of a buffer: an array, or a `Uniform`."""


def contents_array(contents: Contents) -> Array:
    """Returns a buffer's contents as an array."""
    return contents.materialise() if isinstance(contents, Uniform) else contents


def constant(value: bool | int | float, dtype: str) -> Any:
    """Returns a number as a numpy scalar of a dtype of the IR."""
    with np.errstate(over="ignore"):  # It is infinite, as in C.
        return np.asarray(value).astype(as_dtype(dtype).dtype)[()]


def reshaped(array: Array, shape: Sequence[int]) -> Array:
    """Returns an array in another shape."""
    return array if tuple(array.shape) == tuple(shape) else lax.reshape(array, tuple(shape))


def in_float32(function: Callable[..., Array], *arrays: Array) -> Array:
    """Returns a function of arrays; sums and products of 16-bit floats are taken in float32."""
    dtype = np.dtype(arrays[0].dtype)
    if dtype.itemsize != 2 or dtype.kind in "iu":
        return function(*arrays)
    wide = (lax.convert_element_type(array, np.float32) for array in arrays)
    return lax.convert_element_type(function(*wide), dtype)
