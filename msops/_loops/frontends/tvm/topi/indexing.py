"""Elements chosen by other tensors."""

from __future__ import annotations

import math
from typing import Any

from msops._loops.frontends.tvm import expr
from msops._loops.frontends.tvm.arithmetic import binary, select
from msops._loops.frontends.tvm.compute import compute
from msops._loops.frontends.tvm.dtypes import as_dtype
from msops._loops.frontends.tvm.expr import ScalarExpr, cast
from msops._loops.frontends.tvm.tensor import Tensor, unravelled
from msops._loops.frontends.tvm.topi.shapes import as_axis, as_int
from msops._loops.frontends.tvm.tracing import wrong_value
from msops._loops.ir.operators import INTEGERS

_MODES = ("clip", "wrap", "fast")


def take(a: Tensor, indices: Tensor, axis: Any = None, mode: str = "clip") -> Any:
    """Returns elements along an axis, or of the flattened tensor, at given indices.

    Args:
      a: the tensor.
      indices: a tensor of indices; the result has its shape instead of the axis.
      axis: the axis; None counts elements in row-major order.
      mode: out of range, "clip" takes the nearest, "wrap" counts on from the other end; "fast"
        promises that there are none.
    """
    if mode not in _MODES:
        raise wrong_value(
            f"expected a mode among {', '.join(_MODES)}; got {mode!r}",
            'Leave it out for "clip".',
        )
    if axis is None:
        size = math.prod(a.shape)
        return compute(
            indices.shape,
            lambda *at: a(*unravelled(_bounded(indices(*at), size, mode), a.shape)),
            name="T_take",
        )
    axis = as_axis(axis, a.ndim)
    extent = int(a.shape[axis])
    end = axis + indices.ndim

    def element(*at: ScalarExpr) -> ScalarExpr:
        return a(*at[:axis], _bounded(indices(*at[axis:end]), extent, mode), *at[end:])

    shape = (*a.shape[:axis], *indices.shape, *a.shape[axis + 1 :])
    return compute(shape, element, name="T_take")


def _bounded(index: ScalarExpr, extent: int, mode: str) -> ScalarExpr:
    number = _as_index(index)
    if mode == "clip":
        return binary("max", binary("min", number, extent - 1), 0)
    return binary("mod", number, extent) if mode == "wrap" else number


def _as_index(index: ScalarExpr) -> ScalarExpr:
    return index if index.dtype in INTEGERS else cast(index, "int32")


def gather_nd(a: Tensor, indices: Tensor) -> Any:
    """Returns elements or slices at index tuples.

    Args:
      a: the tensor.
      indices: shape (m, ...): the first m indices of each; the result has shape
        ``indices.shape[1:] + a.shape[m:]``.
    """
    count = int(indices.shape[0]) if indices.ndim else 0
    if indices.ndim < 2 or count > a.ndim:
        raise wrong_value(
            f"expected indices of shape (m, ...) with m <= {a.ndim} and at least 2 dimensions; "
            f"got {tuple(map(int, indices.shape))}",
            "The first dimension of the indices counts the axes they index.",
        )
    rank = indices.ndim - 1

    def element(*at: ScalarExpr) -> ScalarExpr:
        chosen = (_as_index(indices(position, *at[:rank])) for position in range(count))
        return a(*chosen, *at[rank:])

    return compute((*indices.shape[1:], *a.shape[count:]), element, name="T_gather_nd")


def one_hot(
    indices: Tensor, on_value: Any, off_value: Any, depth: Any, axis: Any, dtype: Any
) -> Any:
    """Returns a tensor that has `on_value` where the new axis counts the index, else `off_value`.

    Args:
      indices: a tensor of integers.
      on_value: a number.
      off_value: a number.
      depth: extent of the new axis.
      axis: where the new axis is in the result; -1 is last.
      dtype: dtype of the result.
    """
    position = as_axis(axis, indices.ndim + 1)
    name = as_dtype(dtype)
    values = [expr.cast(value, name) for value in (on_value, off_value)]

    def element(*at: ScalarExpr) -> ScalarExpr:
        own = (*at[:position], *at[position + 1 :])
        return select(binary("eq", at[position], indices(*own)), *values)

    shape = [
        *indices.shape[:position],
        as_int(depth),
        *indices.shape[position:],
    ]
    return compute(shape, element, name="T_one_hot")


def sequence_mask(data: Tensor, valid_length: Tensor, mask_value: Any = 0, axis: Any = 0) -> Any:
    """Returns a batch of sequences with everything past the length of each replaced.

    Args:
      data: the sequences along `axis`, the batch along the other of the first two axes.
      valid_length: shape (batch,).
      mask_value: a number.
      axis: 0 or 1.
    """
    position = as_int(axis)
    if position not in (0, 1) or data.ndim < 2 or valid_length.ndim != 1:
        raise wrong_value(
            f"expected axis 0 or 1, data of 2 or more dimensions and lengths of one; got axis "
            f"{position}, {data.ndim} and {valid_length.ndim}",
            "Sequences run along one of the first two axes, the batch along the other.",
        )
    filler = expr.cast(mask_value, data.dtype)
    return compute(
        data.shape,
        lambda *at: select(
            binary("ge", at[position], valid_length(at[1 - position])), filler, data(*at)
        ),
        name="T_sequence_mask",
    )
