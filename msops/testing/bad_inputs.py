"""Inputs that an op may have to refuse: integers that are no index, shapes that do not fit.

A kernel in a library is handed what its caller has, and nobody else looks at it. So it reports such
inputs, or computes something; it does not leave its arrays.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from typing import TypeAlias

import numpy as np

from msops.testing.other_inputs import wrapped

Arrays: TypeAlias = tuple[np.ndarray, ...]
Shape: TypeAlias = tuple[int, ...]

# Beyond any array that is tried, and few enough for a kernel that takes them for a number of steps.
_FAR = 1 << 20
# Extents of which each may be the bound of an index, and arrays and axes that are made another.
_EXTENTS, _ARRAYS, _AXES = 4, 4, 3


def with_bad_integers(
    flat: Sequence[np.ndarray], results: Sequence[Shape]
) -> Iterator[tuple[str, Arrays]]:
    """Yields arrays of which one has integers that may be no index, and that in words.

    Args:
      flat: the arrays given.
      results: the shapes of what comes of them.
    """
    shapes = [*(array.shape for array in flat), *results]
    extents = sorted({n for shape in shapes for n in shape})[:_EXTENTS]
    values = (-1, *extents, _FAR)
    yield from with_last_integer(flat, values)
    for index, array in _of_integers(flat):
        for number in _fitting(values, array):
            yield f"input {index}, all {number}", _with(flat, index, np.full_like(array, number))


def with_last_integer(
    flat: Sequence[np.ndarray], values: Sequence[int]
) -> Iterator[tuple[str, Arrays]]:
    """Yields arrays of which the last integer of one is another, and that in words."""
    for index, array in _of_integers(flat):
        for number in _fitting(values, array):
            changed = array.copy()
            changed.reshape(-1)[-1] = number
            yield f"input {index}, last {number}", _with(flat, index, changed)


def _of_integers(flat: Sequence[np.ndarray]) -> list[tuple[int, np.ndarray]]:
    arrays = enumerate(flat)
    return [(i, a) for i, a in arrays if np.issubdtype(a.dtype, np.integer) and a.size]


def _fitting(values: Sequence[int], array: np.ndarray) -> list[int]:
    """Returns numbers, or the nearest that the dtype of an array has."""
    info = np.iinfo(array.dtype)
    return list(dict.fromkeys(max(info.min, min(value, info.max)) for value in values))


def with_unlike_shapes(flat: Sequence[np.ndarray]) -> Iterator[tuple[str, Arrays]]:
    """Yields arrays of shapes that may not fit, or that are no longer square, and that in words.

    One array is of one element, has no axis or one more, or one axis of an array is another where
    several are as long.
    """
    extents = [n for array in flat for n in array.shape]
    if len({array.shape for array in flat}) == 1:
        for shape in _with_another_axis(flat[0].shape, extents[: flat[0].ndim]):
            yield f"all {list(shape)}", tuple(wrapped(array, shape) for array in flat)
    for index, array in enumerate(flat[:_ARRAYS] if len(flat) > 1 else ()):
        shapes = [(1,) * array.ndim, *_with_another_axis(array.shape, extents)]
        for shape in dict.fromkeys(shapes):
            if array.size and shape != array.shape:
                yield f"input {index} {list(shape)}", _with(flat, index, wrapped(array, shape))
        if array.size and array.ndim:
            for other in (array.reshape(-1)[0], np.stack([array, array])):
                yield f"input {index} {list(other.shape)}", _with(flat, index, np.asarray(other))


def no_longer_square(flat: Sequence[np.ndarray]) -> Iterator[tuple[str, Arrays]]:
    """Yields arrays of which one, or all of one shape, are no longer square, and that in words."""
    shapes = {array.shape for array in flat}
    for index, array in enumerate(flat[:_ARRAYS]):
        extents = array.shape
        for shape in _longer(extents, extents) if math.prod(extents) else ():
            yield f"input {index} {list(shape)}", _with(flat, index, wrapped(array, shape))
            if len(flat) > 1 and len(shapes) == 1 and not index:
                yield f"all {list(shape)}", tuple(wrapped(each, shape) for each in flat)


def _with_another_axis(shape: Shape, extents: Sequence[int]) -> Iterator[Shape]:
    """Yields shapes of which one axis is longer, or of 1, if it is as long as others."""
    for longer in _longer(shape, extents):
        yield longer
        yield tuple(n if n == m else 1 for n, m in zip(shape, longer, strict=True))


def _longer(shape: Shape, extents: Sequence[int]) -> Iterator[Shape]:
    """Yields shapes of which one axis is longer, if it is as long as others."""
    for axis, n in enumerate(shape[:_AXES]):
        if n and extents.count(n) > 1:
            yield (*shape[:axis], n + 1, *shape[axis + 1 :])


def _with(flat: Sequence[np.ndarray], index: int, changed: np.ndarray) -> Arrays:
    return (*flat[:index], changed, *flat[index + 1 :])
