"""Inputs that the author did not give, made of those given."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

import jax.numpy as jnp
import numpy as np

# How many extents are made long, and which part of the length that is wanted will do.
_STRETCHED, _SHORTEST = 3, 16
# A multiple of the lengths of most blocks.
_BLOCKS = 1024

# So many arrays have an axis more, each alone.
_ALONE = 4
# Rows of an axis that is added, and the fewest that are many; and elements of an array of them.
_ROWS, _LEAST_ROWS, _MOST_IN_ROWS = 1025, 65, 20_000


def resized(array: np.ndarray, change: Mapping[int, int]) -> np.ndarray:
    """Returns the values of an array repeated along each axis over other extents."""
    shape = tuple(change.get(n, n) for n in array.shape)
    if not array.size:
        return np.zeros(shape, array.dtype)
    repeated = wrapped(array, shape)
    least = min((n for n in change.values() if n), default=0)
    if np.issubdtype(array.dtype, np.integer) and 0 < least <= np.iinfo(array.dtype).max:
        # They may be indices, which have to stay below the extents.
        return repeated % least if (repeated >= 0).all() else repeated
    return repeated


def wrapped(array: np.ndarray, shape: Sequence[int]) -> np.ndarray:
    """Returns an array of another shape that repeats this one along each axis."""
    for axis, extent in enumerate(shape):
        array = array.take(np.arange(extent) % array.shape[axis], axis)
    return array


def all_different(array: np.ndarray) -> np.ndarray:
    """Returns numbers of which no two are equal, if the dtype has as many, in no order.

    Integers are the first ones, floats lie between those of an array.
    """
    numbers = np.random.default_rng(0).permutation(array.size).reshape(array.shape)
    if np.issubdtype(array.dtype, np.integer):
        return (numbers % (int(np.iinfo(array.dtype).max) + 1)).astype(array.dtype)
    if not is_real(array) or not np.isfinite(array).all():
        return array
    least, most = np.min(array, initial=np.inf), np.max(array, initial=-np.inf)
    return (least + numbers * ((most - least) / max(array.size - 1, 1))).astype(array.dtype)


def rolled(array: np.ndarray) -> np.ndarray:
    """Returns the same values in another order: unlike input that stays valid, indices too."""
    return np.roll(array.reshape(-1), 1).reshape(array.shape)


def other_elements(array: np.ndarray, count: int) -> list[np.ndarray]:
    """Returns an array, and others of about the same numbers.

    In another order, and floats a little smaller, which leaves few domains: a sum of elements that
    belong to others is the same in another order.
    """
    elements = [array]
    for number in range(1, count):
        other = rolled(elements[-1])
        if is_real(array):
            other = (other * (1 - number / 16)).astype(array.dtype)
        elements.append(other)
    return elements


def is_real(array: np.ndarray) -> bool:
    """Returns whether an array holds floats."""
    return bool(jnp.issubdtype(array.dtype, jnp.floating))


def enlarged(flat: Sequence[np.ndarray], most: int) -> tuple[np.ndarray, ...] | None:
    """Returns arrays of which one has more elements, by their largest extent; None without one."""
    extent = max((n for array in flat for n in array.shape), default=1)
    if extent < 2 or not any(array.size for array in flat):
        return None
    factor = 2
    while True:
        larger = factor * extent + 1
        shapes = ([larger if n == extent else n for n in array.shape] for array in flat)
        if max(math.prod(shape) for shape in shapes) > most:
            return tuple(resized(array, {extent: larger}) for array in flat)
        factor *= 2


def grown(flat: Sequence[np.ndarray], least: int, most: int) -> tuple[np.ndarray, ...] | None:
    """Returns arrays with larger extents, so that one has many elements; None if it cannot be."""
    extents = {n for array in flat if array.size for n in array.shape if n > 1}
    factor, larger = 1, tuple(flat)
    while extents and max(array.size for array in larger) < least:
        factor *= 2
        larger = tuple(resized(array, {n: factor * n + 1 for n in extents}) for array in flat)
    count = max((array.size for array in larger), default=0)
    return larger if factor > 1 and count < most else None


def stretched(
    flat: Sequence[np.ndarray], least: int, fits: Callable[[tuple[np.ndarray, ...]], bool]
) -> Iterator[tuple[str, tuple[np.ndarray, ...]]]:
    """Yields per extent arrays in which it alone is long, so that one has so many elements.

    Or a half, or a quarter of that, and so on, until they fit.
    """
    extents = sorted({n for array in flat if array.size for n in array.shape if n > 1})
    for extent in extents[:_STRETCHED]:
        wanted = least
        while wanted >= least // _SHORTEST:
            larger = tuple(flat)
            factor = 1
            while max(array.size for array in larger) < wanted:
                factor *= 2
                change = {extent: factor * extent + 1}
                larger = tuple(resized(array, change) for array in flat)
            if factor > 1 and fits(larger):
                yield f"{extent} -> {factor * extent + 1}", larger
                break
            wanted //= 2


def with_whole_blocks(
    flat: Sequence[np.ndarray], fits: Callable[[tuple[np.ndarray, ...]], bool]
) -> Iterator[tuple[str, tuple[np.ndarray, ...]]]:
    """Yields per extent arrays in which it is a multiple of the lengths of most blocks.

    Floats get one sign: terms that cancel, repeated whole, have a sum of nothing but rounding.
    """
    flat = [np.abs(array) if is_real(array) else array for array in flat]
    extents = sorted({n for array in flat if array.size for n in array.shape if n > 1})
    for extent in extents[:_STRETCHED]:
        larger = tuple(resized(array, {extent: _BLOCKS}) for array in flat)
        if extent < _BLOCKS and fits(larger):
            yield f"{extent} -> {_BLOCKS}", larger


def with_other_ranks(
    flat: Sequence[np.ndarray],
) -> Iterator[tuple[str, tuple[np.ndarray, ...]]]:
    """Yields arrays of more axes, and of one or none if all have the same shape; 0-d stays.

    Where some have fewer axes than others, as those that are broadcast, they also stay as they are.
    """
    most = max((array.ndim for array in flat), default=0)
    if not most:
        return
    yield from _with_other_ranks_of_the_largest(flat, most)
    yield from _with_an_axis_more_of_one(flat)
    stacked = tuple(flat)
    for more in (1, 2):
        stacked = tuple(np.stack([a, rolled(a)]) if a.ndim else a for a in stacked)
        yield f"rank {most} -> {most + more}", stacked
    shaped = {array.shape for array in flat if array.ndim}
    if len(shaped) > 1 or not all(array.size for array in flat):
        return
    for rank, shape in enumerate([(), (-1,)][:most]):
        kept = None if rank else 1
        yield (
            f"rank {most} -> {rank}",
            tuple(a.reshape(-1)[:kept].reshape(shape) if a.ndim else a for a in flat),
        )


def _with_other_ranks_of_the_largest(
    flat: Sequence[np.ndarray], most: int
) -> Iterator[tuple[str, tuple[np.ndarray, ...]]]:
    """Yields arrays of which those of most axes alone have one more, or only their last ones."""
    fewer = max((array.ndim for array in flat if array.ndim < most), default=0)
    if fewer:
        yield (
            f"rank {most} -> {most + 1}, others as they are",
            tuple(np.stack([a, rolled(a)]) if a.ndim == most else a for a in flat),
        )
        # What belongs to the axes ahead still fits: to channels, whose pixels may have more.
        yield (
            f"rank {most} -> {most + 1}, an axis behind",
            tuple(np.stack([a, rolled(a)], -1) if a.ndim == most else a for a in flat),
        )
    if fewer and all(array.size for array in flat):
        first = (0,) * (most - fewer)
        yield (
            f"rank {most} -> {fewer}, others as they are",
            tuple(a[first] if a.ndim == most else a for a in flat),
        )


def _with_an_axis_more_of_one(
    flat: Sequence[np.ndarray],
) -> Iterator[tuple[str, tuple[np.ndarray, ...]]]:
    """Yields arrays of which one alone has one axis more, but for that of most axes if it is one.

    Of images and one filter, rows and one matrix, only the first may have more axes. Where shapes
    fit each other, one that has more axes is meant for a call that broadcasts the others.
    """
    ranks = [array.ndim for array in flat]
    for index, array in enumerate(() if _are_broadcast(flat) else flat[:_ALONE]):
        if array.ndim and not (array.ndim == max(ranks) and ranks.count(array.ndim) == 1):
            yield (
                f"rank {array.ndim} -> {array.ndim + 1} of input {index} alone",
                (*flat[:index], np.stack([array, rolled(array)]), *flat[index + 1 :]),
            )


def _are_broadcast(flat: Sequence[np.ndarray]) -> bool:
    """Returns whether NumPy computes with such arrays, element by element."""
    try:
        np.broadcast_shapes(*(array.shape for array in flat))
    except ValueError:
        return False
    return True


def with_many_rows(
    flat: Sequence[np.ndarray],
) -> Iterator[tuple[str, tuple[np.ndarray, ...]]]:
    """Yields arrays of one axis more, which is long; none if they are large already; 0-d stays."""
    size = max((array.size for array in flat), default=0)
    rows = min(_ROWS, _MOST_IN_ROWS // max(size, 1))
    if size and rows >= _LEAST_ROWS and any(array.ndim for array in flat):
        yield (
            f"{rows} rows",
            tuple(_turned(array, rows) if array.ndim else array for array in flat),
        )


def _turned(array: np.ndarray, rows: int) -> np.ndarray:
    """Returns an array so often, each time in another order."""
    places = np.arange(array.size) - np.arange(rows)[:, None]
    return array.reshape(-1)[places % max(array.size, 1)].reshape(rows, *array.shape)


def about_half(value: float) -> float:
    """Returns about half of a number, and a fraction: a kernel may cut it off."""
    half = value / 2
    return half + math.copysign(0.25, half) if half.is_integer() else half


def other_values(value: Any) -> list[Any]:
    """Returns values of an attribute that are not this one; none for text."""
    if isinstance(value, bool):
        return [not value]
    if isinstance(value, int):
        return [value + 1, value - 1]
    if isinstance(value, float):
        return [2 * value + 1, about_half(value), -value - 1]
    if isinstance(value, tuple):
        others = [other_values(item) for item in value]
        return list(zip(*others, strict=False)) if others else []
    return []
