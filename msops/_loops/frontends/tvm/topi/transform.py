"""Tensors with their elements moved."""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from msops._loops.frontends.tvm.arithmetic import binary
from msops._loops.frontends.tvm.compute import compute, nest
from msops._loops.frontends.tvm.expr import IterVar, ScalarExpr, as_expr
from msops._loops.frontends.tvm.tensor import (
    Extent,
    Operation,
    Shape,
    Tensor,
    as_tensors,
    unravelled,
)
from msops._loops.frontends.tvm.topi.shapes import as_axis, as_int
from msops._loops.frontends.tvm.tracing import author_location, fresh_key, wrong_value
from msops._loops.ir.nodes import Stmt, Store


def expand_dims(a: Tensor, axis: Any, num_newaxis: Any = 1) -> Any:
    """Returns a tensor with new dimensions of extent 1 before an axis."""
    position = as_axis(axis, a.ndim + 1)
    count = as_int(num_newaxis)
    shape = (*a.shape[:position], *(Extent(1),) * count, *a.shape[position:])
    return compute(
        shape,
        lambda *indices: a(*indices[:position], *indices[position + count :]),
        name="T_expand_dims",
    )


def squeeze(a: Tensor, axis: Any = None) -> Any:
    """Returns a tensor without dimensions of extent 1: all of them, or those named."""
    if axis is None:
        gone = [position for position, extent in enumerate(a.shape) if extent == 1]
    else:
        given = axis if isinstance(axis, (tuple, list)) else (axis,)
        gone = [as_axis(each, a.ndim) for each in given]
    for position in gone:
        if a.shape[position] != 1:
            raise wrong_value(
                f"axis {position} has extent {a.shape[position]}, not 1",
                "Only dimensions of extent 1 can be dropped.",
            )

    def element(*indices: ScalarExpr) -> ScalarExpr:
        kept = iter(indices)
        return a(*(0 if position in gone else next(kept) for position in range(a.ndim)))

    shape = [extent for position, extent in enumerate(a.shape) if position not in gone]
    return compute(shape, element, name="T_squeeze")


def transpose(a: Tensor, axes: Any = None) -> Any:
    """Returns a tensor with its axes permuted; None reverses them."""
    order = tuple(range(a.ndim))[::-1]
    if axes is not None:
        order = tuple(as_axis(axis, a.ndim) for axis in axes)
    if sorted(order) != list(range(a.ndim)):
        raise wrong_value(
            f"expected a permutation of {a.ndim} axes; got {order}",
            "Name each axis once.",
        )

    def element(*indices: ScalarExpr) -> ScalarExpr:
        return a(*(indices[order.index(position)] for position in range(a.ndim)))

    return compute([a.shape[axis] for axis in order], element, name="T_transpose")


def reshape(a: Tensor, newshape: Any) -> Any:
    """Returns the elements in row-major order under another shape; one extent may be -1."""
    shape = _inferred(a, newshape)
    groups = list(_groups(a.shape, shape))

    def element(*indices: ScalarExpr) -> ScalarExpr:
        found: list[ScalarExpr] = []
        for old, new in groups:
            found += _regrouped(old, new, indices[: len(new)])
            indices = indices[len(new) :]
        return a(*found)

    return compute(shape, element, name="T_reshape")


def _inferred(tensor: Tensor, newshape: Any) -> Shape:
    given = newshape if isinstance(newshape, (tuple, list)) else (newshape,)
    extents = [as_int(extent) for extent in given]
    size = math.prod(tensor.shape)
    known = math.prod(extent for extent in extents if extent != -1)
    if extents.count(-1) == 1 and known and size % known == 0:
        extents[extents.index(-1)] = size // known
    if min(extents, default=1) < 0 or math.prod(extents) != size:
        raise wrong_value(
            f"{size} elements of shape {tuple(map(int, tensor.shape))} do not fit {tuple(given)}",
            "Both shapes hold the same number of elements; one extent may be -1.",
        )
    return tuple(map(Extent, extents))


def _groups(old: Shape, new: Shape) -> Iterator[tuple[Shape, Shape]]:
    """Yields runs of dimensions that hold the same elements, as short as possible.

    Indices then need division only where dimensions are really split or joined.
    """
    cuts = [
        (x, y)
        for x, y in itertools.product(range(len(old) + 1), range(len(new) + 1))
        if math.prod(old[:x]) == math.prod(new[:y])
    ]
    start = (0, 0)
    for cut in cuts:
        if cut != start and cut[0] >= start[0] and cut[1] >= start[1]:
            yield old[start[0] : cut[0]], new[start[1] : cut[1]]
            start = cut


def _regrouped(old: Shape, new: Shape, indices: Sequence[ScalarExpr]) -> list[ScalarExpr]:
    if old == new:
        return list(indices)
    position = as_expr(0)
    for index, extent in zip(indices, new, strict=True):
        position = binary("add", binary("mul", position, int(extent)), index)
    return list(unravelled(position, old))


def flip(a: Tensor, axis: Any = 0) -> Any:
    """Returns a tensor with the order along an axis reversed."""
    position = as_axis(axis, a.ndim)
    last = int(a.shape[position]) - 1
    return _along("flip", a, position, a.shape[position], lambda index: binary("sub", last, index))


def repeat(a: Tensor, repeats: Any, axis: Any) -> Any:
    """Returns a tensor with each element along an axis repeated."""
    position = as_axis(axis, a.ndim)
    count = as_int(repeats)
    return _along(
        "repeat",
        a,
        position,
        a.shape[position] * count,
        lambda index: binary("floordiv", index, count),
    )


def _along(name: str, tensor: Tensor, position: int, extent: int, source: Any) -> Any:
    shape = [*tensor.shape[:position], extent, *tensor.shape[position + 1 :]]
    return compute(
        shape,
        lambda *indices: tensor(
            *indices[:position], source(indices[position]), *indices[position + 1 :]
        ),
        name=f"T_{name}",
    )


def tile(a: Tensor, reps: Any) -> Any:
    """Returns a tensor repeated as a whole along each axis, as `numpy.tile`."""
    given = [as_int(count) for count in (reps if _is_sequence(reps) else (reps,))]
    ndim = max(a.ndim, len(given))
    counts = [1] * (ndim - len(given)) + given
    extents = [1] * (ndim - a.ndim) + list(a.shape)

    def element(*indices: ScalarExpr) -> ScalarExpr:
        own = list(zip(indices, extents, counts, strict=True))[ndim - a.ndim :]
        return a(
            *(index if count == 1 else binary("mod", index, int(n)) for index, n, count in own)
        )

    return compute([n * count for n, count in zip(extents, counts, strict=True)], element, "T_tile")


def _is_sequence(value: Any) -> bool:
    return isinstance(value, (tuple, list))


def strided_slice(a: Tensor, begin: Any, end: Any, strides: Any = None) -> Any:
    """Returns every `strides`-th element from `begin` to `end`, per axis, as Python slices."""
    slices = [
        slice(*bounds).indices(int(extent))
        for extent, *bounds in itertools.zip_longest(
            a.shape,
            _ints(begin),
            _ints(end),
            _ints(strides or ()),
        )
    ]

    def element(*indices: ScalarExpr) -> ScalarExpr:
        return a(
            *(
                binary("add", binary("mul", index, step), first)
                for index, (first, _, step) in zip(indices, slices, strict=True)
            )
        )

    return compute([len(range(*bounds)) for bounds in slices], element, name="T_strided_slice")


def _ints(values: Any) -> list[int]:
    return [as_int(value) for value in values]


def split(ary: Tensor, indices_or_sections: Any, axis: Any = 0) -> list[Any]:
    """Returns parts along an axis: so many of equal extent, or cut before each index."""
    position = as_axis(axis, ary.ndim)
    extent = int(ary.shape[position])
    if _is_sequence(indices_or_sections):
        cuts = _ints(indices_or_sections)
    else:
        sections = as_int(indices_or_sections)
        if sections <= 0 or extent % sections:
            raise wrong_value(
                f"an extent of {extent} does not divide into {sections} equal parts",
                "Pass a divisor, or the indices to cut at.",
            )
        cuts = list(range(extent // sections, extent, extent // sections))
    bounds = list(itertools.pairwise([0, *cuts, extent]))
    full = [(0, int(n)) for n in ary.shape]
    return [
        strided_slice(
            ary,
            [low if a == position else first for a, (first, _) in enumerate(full)],
            [high if a == position else last for a, (_, last) in enumerate(full)],
        )
        for low, high in bounds
    ]


@dataclass(frozen=True, eq=False, kw_only=True)
class _ConcatenateOp(Operation):
    """Tensors one after another along an axis: a nest per tensor, without conditions.

    Attributes:
      position: the axis.
    """

    position: int

    def lowered(self) -> tuple[Stmt, ...]:
        """Returns a nest per tensor."""
        body: tuple[Stmt, ...] = ()
        offset = 0
        for part in self.inputs:
            axes = [IterVar(f"i{a}", 0, int(n)) for a, n in enumerate(part.shape)]
            target: list[ScalarExpr] = list(axes)
            if offset:
                target[self.position] = binary("add", axes[self.position], offset)
            store = Store(
                self.keys[0],
                tuple(index.node for index in target),
                part(*axes).node,
                location=self.location,
            )
            body += nest(axes, (store,), self.location)
            offset += part.shape[self.position]
        return body


def concatenate(a_tuple: Any, axis: Any = 0) -> Any:
    """Returns tensors one after another along an axis."""
    parts = as_tensors("topi.concatenate", a_tuple)
    first = parts[0]
    position = as_axis(axis, first.ndim)
    for part in parts:
        others = [(*x.shape[:position], *x.shape[position + 1 :]) for x in (part, first)]
        if part.ndim != first.ndim or others[0] != others[1] or part.dtype != first.dtype:
            raise wrong_value(
                f"{part.dtype}{list(map(int, part.shape))} does not continue "
                f"{first.dtype}{list(map(int, first.shape))} along axis {position}",
                "All have one dtype, and equal extents but along the axis.",
            )
    extent = sum(part.shape[position] for part in parts)
    shape = (*first.shape[:position], Extent(extent), *first.shape[position + 1 :])
    op = _ConcatenateOp(
        "T_concat",
        (shape,),
        (first.dtype,),
        (fresh_key("T_concat"),),
        location=author_location(),
        inputs=parts,
        position=position,
    )
    return op.output(0)


def stack(a: Any, axis: Any = 0) -> Any:
    """Returns tensors of one shape one after another along a new axis."""
    parts = as_tensors("topi.stack", a)
    position = as_axis(axis, parts[0].ndim + 1)
    return concatenate([expand_dims(part, position) for part in parts], position)


def expand_like(a: Tensor, shape_like: Tensor, axis: Any) -> Any:
    """Returns a tensor repeated along new axes of another tensor's shape.

    Args:
      a: the tensor; its dimensions are those of `shape_like` without `axis`.
      shape_like: has the shape of the result.
      axis: the new axes, in the result.
    """
    wanted = shape_like.shape
    axes = [as_axis(each, len(wanted)) for each in axis]
    kept = [extent for position, extent in enumerate(wanted) if position not in axes]
    if list(a.shape) != kept:
        raise wrong_value(
            f"the shape {tuple(map(int, a.shape))} is not {tuple(map(int, wanted))} without "
            f"axes {axes}",
            "Name the axes that the tensor lacks.",
        )
    return compute(
        wanted,
        lambda *indices: a(
            *(index for position, index in enumerate(indices) if position not in axes)
        ),
        name="T_expand_like",
    )
