"""Stores: whole buffers, slices and masks where indices are affine, else scatters."""

from __future__ import annotations

import dataclasses
import functools
import operator
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from jax import lax

from msops._loops.analysis.affine import Affine
from msops._loops.analysis.conditions import implied
from msops._loops.ir.nodes import Store
from msops._loops.ir.operators import is_float
from msops._loops.to_jax.printing import operations
from msops._loops.to_jax.printing.environment import Environment
from msops._loops.to_jax.printing.evaluate import evaluate
from msops._loops.to_jax.printing.indices import scalar_sum
from msops._loops.to_jax.printing.scatters import scatter
from msops._loops.to_jax.printing.shields import barred, origin_of, shield
from msops._loops.to_jax.printing.values import (
    Array,
    Contents,
    Uniform,
    Value,
    contents_array,
    reshaped,
)
from msops._loops.to_jax.raising.views import ArrayView, Dimension, find_view

_LARGE = 8
"""An update of at least one in so many elements writes the whole array.

XLA computes the update of a slice, and what it fuses with it, in one thread and element by element.
On a CPU a stencil takes 4 to 5 times as long as with concatenations, between other operations 5 to
13 times, and in a loop 1 to 5 times.
"""


def store(target: Store, value: Value, op: str | None, env: Environment) -> Contents:
    """Returns a buffer's contents after a store.

    Args:
      target: what is stored to.
      value: what is stored.
      op: what it is combined with the old elements by; None replaces them.
      env: nothing is stored where its masks do not hold.
    """
    old = env.contents[target.buffer]
    if 0 in old.shape:
        return old
    if is_float(target.value.dtype) and target.buffer in env.read:
        old, value = _shielded(old, value, op, env)
    view = find_view(target.indices, old.shape, env.axis_ranges)
    view = view and _without_gaps(view)
    is_view = view is not None and set(view.axes) >= _needed(value, env)
    if view is not None and is_view and _is_dense(view):
        block = _Block.make(view, value, env)
        if block is not None:
            written = block.write(old, op)
            env.origins.note(written, *_origins(old, value, op, view, env))
            return written
    return scatter(contents_array(old), target, value, op, env, once=is_view)


def _origins(
    old: Contents, value: Value, op: str | None, view: ArrayView, env: Environment
) -> set[str]:
    """Returns what the elements of a buffer may come from after a store."""
    found = {*env.origins.of(old), *env.origins.of(value.array)}
    if op:
        found.add(origin_of(op, (Value(old, ()), value)))
    if isinstance(old, Uniform) or set(view.axes) - set(value.axes):
        found.add("shared")
    if isinstance(old, Uniform):
        found.add("hidden")
    return found


def _shielded(
    old: Contents, value: Value, op: str | None, env: Environment
) -> tuple[Contents, Value]:
    """Returns a buffer of floats and what is stored, without what XLA would rewrite by, when read.

    Constants among other elements are hidden, and so is the combination of old and new elements.
    """
    if isinstance(old, Uniform):
        old = dataclasses.replace(old, is_hidden=True)
    elif op:
        earlier, value = shield(op, (Value(old, ()), value), env.origins)
        env.origins.follow(earlier.array, old)
        old = earlier.array
    if op is None and isinstance(value.array, np.generic):
        value = barred(value)
        env.origins.note(value.array, "hidden")
    return old, value


def covers(view: ArrayView) -> bool:
    """Returns whether a view shows the whole buffer."""
    return _is_dense(view) and all(
        not d.rest and d.start == 0 and _stride(d) == 1 and d.length == d.size
        for d in view.dimensions
    )


def _needed(value: Value, env: Environment) -> set[str]:
    """The axes that the value or the mask varies with."""
    return set(value.axes) | set(env.mask.axes if env.mask else ())


def _is_dense(view: ArrayView) -> bool:
    """Returns whether the levels of every dimension leave no gaps between one another."""
    return all(map(_has_one_stride, view.dimensions))


def _has_one_stride(dimension: Dimension) -> bool:
    """Returns whether the elements that a view shows of a dimension are equally far apart."""
    step = 1
    for level in reversed(dimension.levels):
        if len(dimension.levels) > 1 and level.step != step:
            return False
        step *= level.extent
    return True


def _without_gaps(view: ArrayView) -> ArrayView:
    """Returns a view in which dimensions are split where the levels leave gaps between one another.

    If rows of 2 * m elements are filled to a half, as by a butterfly, half of the columns of a
    matrix are. Dimensions that are no multiple of their rows stay.
    """
    found: list[Dimension] = []
    ahead = list(view.dimensions)
    while ahead:
        dimension = ahead.pop(0)
        outer, inner = _rows(dimension)
        found.append(outer)
        ahead[:0] = inner
    return dataclasses.replace(view, dimensions=tuple(found))


def _rows(dimension: Dimension) -> tuple[Dimension, list[Dimension]]:
    """Returns the outermost level of a dimension as one of its own, and the rest of it."""
    if _has_one_stride(dimension) or dimension.rest:
        return dimension, []
    first, *others = dimension.levels
    row, start = divmod(dimension.start, first.step)
    length = dimension.length - first.step * (first.extent - 1)
    if dimension.size % first.step or start + length > first.step:
        return dimension, []
    size = dimension.size // first.step
    level = dataclasses.replace(first, step=1)
    outer = dataclasses.replace(dimension, size=size, start=row, levels=(level,))
    inner = dataclasses.replace(dimension, size=first.step, start=start, levels=tuple(others))
    return outer, [inner]


@dataclasses.dataclass(frozen=True)
class _Block:
    """The region of a buffer that a view covers, with what is stored there.

    Attributes:
      shape: of the buffer with dimensions merged.
      starts: where the region begins; a dynamic scalar if its dimension moves.
      strides: the distance of its elements in each dimension.
      value: the new elements.
      mask: where they are stored; None for everywhere.
    """

    shape: tuple[int, ...]
    starts: tuple[Any, ...]
    strides: tuple[int, ...]
    value: Array
    mask: Array | None

    @staticmethod
    def make(view: ArrayView, value: Value, env: Environment) -> _Block | None:
        """Returns the block of a store; None if it might reach beyond moving ends."""
        mask = env.mask
        starts: list[Any] = []
        cuts: list[tuple[int, int]] = []
        for dimension in view.dimensions:
            extent = _count(dimension)
            if not dimension.rest:
                stride = _stride(dimension)
                first = max(0, -(dimension.start // stride))
                last = min(extent, -((dimension.start - dimension.size) // stride))
                starts.append(dimension.start + first * stride)
                cuts.append((first, last) if first < last else (0, 0))
                continue
            start = scalar_sum(
                dimension.rest, dimension.start, dimension.size, lambda e: evaluate(e, env)
            )
            if not _stays_inside(dimension, env):
                if dimension.levels:
                    return None
                mask = _inside(start, dimension.size, mask, env)
            starts.append(start)
            cuts.append((0, extent))
        strides = tuple(map(_stride, view.dimensions))
        new = _arranged(value, view, cuts, env)
        where = _arranged(mask, view, cuts, env) if mask is not None else None
        return _Block(view.shape, tuple(starts), strides, new, where)

    def write(self, old: Contents, op: str | None) -> Contents:
        """Returns the buffer with the block written."""
        if 0 in self.value.shape:
            return old
        if op and self.mask is None and _is_neutral(old, op):
            op = None
        is_kept = op is None and self.mask is None
        if isinstance(old, Uniform) and is_kept and self._is_fixed():
            return reshaped(self._in_uniform(old), old.shape)
        buffer = reshaped(contents_array(old), self.shape)
        new = self.value
        if not (is_kept and self._is_gapless()):
            new = self._merged(self._region(buffer), op)
        if not self._is_fixed() or new.size * _LARGE < buffer.size:
            starts = self._moving_starts()
            new = lax.dynamic_update_slice(buffer, new, starts, allow_negative_indices=False)
            return reshaped(new, old.shape)
        return reshaped(
            _surrounded(new, self.starts, self.shape, functools.partial(lax.slice, buffer)),
            old.shape,
        )

    def _in_uniform(self, old: Uniform) -> Array:
        """Returns the block in an array of equal elements."""
        element = old.element()
        if not self._is_gapless():
            return self._padded(self.value, element, self.starts, self.shape)

        def part(begin: Sequence[int], end: Sequence[int]) -> Array:
            return lax.full([last - first for first, last in zip(begin, end, strict=True)], element)

        return _surrounded(self.value, self.starts, self.shape, part)

    def _is_fixed(self) -> bool:
        return all(isinstance(start, int) for start in self.starts)

    def _is_gapless(self) -> bool:
        return all(stride == 1 for stride in self.strides)

    def _moving_starts(self) -> list[Any]:
        return [np.int32(s) if isinstance(s, int) else s for s in self.starts]

    def _region(self, buffer: Array) -> Array:
        """Returns the old elements from the first to the last that is stored to."""
        counts = zip(self.strides, self.value.shape, strict=True)
        spans = [1 + stride * (count - 1) for stride, count in counts]
        if self._is_fixed():
            ends = [start + span for start, span in zip(self.starts, spans, strict=True)]
            return lax.slice(buffer, self.starts, ends)
        starts = self._moving_starts()
        return lax.dynamic_slice(buffer, starts, spans, allow_negative_indices=False)

    def _merged(self, region: Array, op: str | None) -> Array:
        """Returns a region with the new elements among the old ones, where the mask holds."""
        first = (0,) * region.ndim
        is_gapless = self._is_gapless()
        old = region if is_gapless else lax.slice(region, first, region.shape, self.strides)
        new = operations.binary(op, str(old.dtype))(old, self.value) if op else self.value
        new = new if self.mask is None else lax.select(self.mask, new, old)
        if is_gapless:
            return new
        stored = self._padded(np.ones(new.shape, bool), np.False_, first, region.shape)
        return lax.select(stored, self._padded(new, new.dtype.type(0), first, region.shape), region)

    def _padded(
        self, block: Array, filling: Array, starts: Sequence[int], shape: Sequence[int]
    ) -> Array:
        """Returns a block in an array of a shape, surrounded and interleaved by a filling."""
        amounts = [
            (start, size - start - stride * (count - 1) - 1, stride - 1)
            for start, stride, size, count in zip(
                starts, self.strides, shape, block.shape, strict=True
            )
        ]
        if block.shape == tuple(shape):
            return block
        return lax.pad(block, filling, amounts)


def _surrounded(
    block: Array,
    starts: Sequence[int],
    shape: Sequence[int],
    part: Callable[[Sequence[int], Sequence[int]], Array],
) -> Array:
    """Returns an array of a shape: a block, and around it parts of another array.

    Args:
      block: the block.
      starts: where it begins.
      shape: the shape of the array.
      part: returns the elements of the other array from one position to before another.
    """
    for axis in reversed(range(block.ndim)):
        begin = [*starts[:axis], *[0] * (block.ndim - axis)]
        end = [*map(operator.add, starts[:axis], block.shape[:axis]), *shape[axis:]]
        first, last = starts[axis], starts[axis] + block.shape[axis]
        parts = [block]
        if first > 0:
            parts.insert(0, part(begin, [*end[:axis], first, *end[axis + 1 :]]))
        if last < shape[axis]:
            parts.append(part([*begin[:axis], last, *begin[axis + 1 :]], end))
        block = lax.concatenate(parts, axis) if len(parts) > 1 else block
    return block


def _count(dimension: Dimension) -> int:
    count = 1
    for level in dimension.levels:
        count *= level.extent
    return count


def _stride(dimension: Dimension) -> int:
    return dimension.levels[-1].step if dimension.levels else 1


def _stays_inside(dimension: Dimension, env: Environment) -> bool:
    size = Affine.of_constant(dimension.size - 1)
    # The whole region must be inside, so only conditions on scalars help.
    return all(
        implied(function, (), env.axis_ranges, env.ranges)
        for function in (dimension.index, size - dimension.index)
    ) and (_stride(dimension) == 1)


def _inside(start: Array, size: int, mask: Value | None, env: Environment) -> Value:
    inside = lax.bitwise_and(lax.ge(start, np.int32(0)), lax.lt(start, np.int32(size)))
    own = Value(inside, ())
    return own if mask is None else env.apply(lax.bitwise_and, mask, own)


def _arranged(
    value: Value, view: ArrayView, cuts: Sequence[tuple[int, int]], env: Environment
) -> Array:
    """Returns a value in the shape of the region, without what is cut off at fixed ends."""
    array = env.spread(value, view.axes)
    backwards = [i for i, axis in enumerate(view.axes) if axis in view.reversed]
    if backwards:
        array = lax.rev(array, backwards)
    counts = [_count(dimension) for dimension in view.dimensions]
    if isinstance(array, np.generic):
        array = lax.full((), np.asarray(array))
    array = reshaped(array, counts)
    if any(cut != (0, count) for cut, count in zip(cuts, counts, strict=True)):
        array = lax.slice(array, [first for first, _ in cuts], [last for _, last in cuts])
    return array


def _is_neutral(old: Contents, op: str) -> bool:
    """Returns whether all elements are such that combining leaves what they are combined with."""
    if not isinstance(old, Uniform):
        return False
    return bool(old.value == operations.identity(op, old.value.dtype.name))
