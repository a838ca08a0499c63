"""Elements chosen by other tensors."""

from __future__ import annotations

import math
from typing import Any

from msops._loops.frontends.tvm import expr
from msops._loops.frontends.tvm.arithmetic import binary, select
from msops._loops.frontends.tvm.compute import compute
from msops._loops.frontends.tvm.dtypes import as_dtype
from msops._loops.frontends.tvm.expr import ScalarExpr, cast
from msops._loops.frontends.tvm.tensor import unravelled
from msops._loops.frontends.tvm.topi.shapes import as_axis, as_int, as_tensor
from msops._loops.frontends.tvm.tracing import value_error
from msops._loops.ir.operators import INTEGERS

_MODES = ("clip", "wrap", "fast")


def take(a: Any, indices: Any, axis: Any = None, mode: str = "clip") -> Any:
    """Returns elements along an axis, or of the flattened tensor, at given indices.

    Args:
      a: the tensor.
      indices: a tensor of indices; the result has its shape instead of the axis.
      axis: the axis; None counts elements in row-major order.
      mode: out of range, "clip" takes the nearest, "wrap" counts on from the other end; "fast"
        promises that there are none.
    """
    data, positions = as_tensor("topi.take", a), as_tensor("topi.take", indices)
    if mode not in _MODES:
        raise value_error(
            "topi.take",
            f"expected a mode among {', '.join(_MODES)}; got {mode!r}",
            'Leave it out for "clip".',
        )
    if axis is None:
        size = math.prod(data.shape)
        return compute(
            positions.shape,
            lambda *at: data(*unravelled(_bounded(positions(*at), size, mode), data.shape)),
            name="T_take",
        )
    axis = as_axis("topi.take", axis, data.ndim)
    extent = int(data.shape[axis])
    end = axis + positions.ndim

    def element(*at: ScalarExpr) -> ScalarExpr:
        return data(*at[:axis], _bounded(positions(*at[axis:end]), extent, mode), *at[end:])

    shape = (*data.shape[:axis], *positions.shape, *data.shape[axis + 1 :])
    return compute(shape, element, name="T_take")


def _bounded(index: ScalarExpr, extent: int, mode: str) -> ScalarExpr:
    number = _as_index(index)
    if mode == "clip":
        return binary("max", binary("min", number, extent - 1), 0)
    return binary("mod", number, extent) if mode == "wrap" else number


def _as_index(index: ScalarExpr) -> ScalarExpr:
    return index if index.dtype in INTEGERS else cast(index, "int32")


def gather_nd(a: Any, indices: Any) -> Any:
    """Returns elements or slices at index tuples.

    Args:
      a: the tensor.
      indices: shape (m, ...): the first m indices of each; the result has shape
        ``indices.shape[1:] + a.shape[m:]``.
    """
    data, positions = as_tensor("topi.gather_nd", a), as_tensor("topi.gather_nd", indices)
    count = int(positions.shape[0]) if positions.ndim else 0
    if positions.ndim < 2 or count > data.ndim:
        raise value_error(
            "topi.gather_nd",
            f"expected indices of shape (m, ...) with m <= {data.ndim} and at least 2 dimensions; "
            f"got {tuple(map(int, positions.shape))}",
            "The first dimension of the indices counts the axes they index.",
        )
    rank = positions.ndim - 1

    def element(*at: ScalarExpr) -> ScalarExpr:
        chosen = (_as_index(positions(position, *at[:rank])) for position in range(count))
        return data(*chosen, *at[rank:])

    return compute((*positions.shape[1:], *data.shape[count:]), element, name="T_gather_nd")


def one_hot(indices: Any, on_value: Any, off_value: Any, depth: Any, axis: Any, dtype: Any) -> Any:
    """Returns a tensor that has `on_value` where the new axis counts the index, else `off_value`.

    Args:
      indices: a tensor of integers.
      on_value: a number.
      off_value: a number.
      depth: extent of the new axis.
      axis: where the new axis is in the result; -1 is last.
      dtype: dtype of the result.
    """
    positions = as_tensor("topi.one_hot", indices)
    position = as_axis("topi.one_hot", axis, positions.ndim + 1)
    name = as_dtype(dtype)
    values = [expr.cast(value, name) for value in (on_value, off_value)]

    def element(*at: ScalarExpr) -> ScalarExpr:
        own = (*at[:position], *at[position + 1 :])
        return select(binary("eq", at[position], positions(*own)), *values)

    shape = [
        *positions.shape[:position],
        as_int("topi.one_hot", depth),
        *positions.shape[position:],
    ]
    return compute(shape, element, name="T_one_hot")


def sequence_mask(data: Any, valid_length: Any, mask_value: Any = 0, axis: Any = 0) -> Any:
    """Returns a batch of sequences with everything past the length of each replaced.

    Args:
      data: the sequences along `axis`, the batch along the other of the first two axes.
      valid_length: shape (batch,).
      mask_value: a number.
      axis: 0 or 1.
    """
    tensor = as_tensor("topi.sequence_mask", data)
    lengths = as_tensor("topi.sequence_mask", valid_length)
    position = as_int("topi.sequence_mask", axis)
    if position not in (0, 1) or tensor.ndim < 2 or lengths.ndim != 1:
        raise value_error(
            "topi.sequence_mask",
            f"expected axis 0 or 1, data of 2 or more dimensions and lengths of one; got axis "
            f"{position}, {tensor.ndim} and {lengths.ndim}",
            "Sequences run along one of the first two axes, the batch along the other.",
        )
    filler = expr.cast(mask_value, tensor.dtype)
    return compute(
        tensor.shape,
        lambda *at: select(
            binary("ge", at[position], lengths(at[1 - position])), filler, tensor(*at)
        ),
        name="T_sequence_mask",
    )
