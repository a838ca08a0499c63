"""Operators that are methods of ``ms::Tensor`` or functions, and what makes tensors."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from msops._extension.calls import check_shape, current_frame, new_handle
from msops._extension.handles import Handle, dtype_of, out_of_memory
from msops._op.arrays import refuse_64_bit
from msops.errors import ArgumentTypeError, ArgumentValueError


def cast(array: Any, type_id: int) -> Any:
    """Converts to another dtype."""
    dtype = dtype_of(type_id)
    refuse_64_bit(dtype, "the target of cast", "ms::Tensor::cast")
    return array.astype(dtype)


def chunk(array: Any, chunks: int, dim: int) -> tuple[Any, ...]:
    """Cuts along an axis into parts of equal size, the last of which may be smaller."""
    axis = _axis(dim, array.ndim, "chunk")
    if chunks < 1:
        raise ArgumentValueError.explained(
            "ms::Tensor::chunk", f"expected chunks of 1 or more; got {chunks}", "Pass 1."
        )
    size = -(-array.shape[axis] // chunks) or 1
    starts = range(0, max(array.shape[axis], 1), size)
    return tuple(
        jax.lax.slice_in_dim(array, start, min(start + size, array.shape[axis]), axis=axis)
        for start in starts
    )


def contiguous(array: Any) -> Any:
    """Returns a dense copy; arrays of JAX are dense."""
    return array


def flatten(array: Any, start_dim: int, end_dim: int) -> Any:
    """Joins the axes from `start_dim` to `end_dim`, which is included, into one."""
    if array.ndim == 0:
        return array.reshape(1)
    first, last = (_axis(dim, array.ndim, "flatten") for dim in (start_dim, end_dim))
    if first > last:
        raise ArgumentValueError.explained(
            "ms::Tensor::flatten",
            f"expected start_dim before end_dim; got {start_dim} and {end_dim}",
            "Swap them.",
        )
    joined = int(np.prod(array.shape[first : last + 1]))
    return array.reshape(*array.shape[:first], joined, *array.shape[last + 1 :])


def index_select(array: Any, dim: int, index: Handle) -> Any:
    """Takes the slices along an axis that a vector names, as ``aclnnIndexSelect`` does.

    An index out of range, or below 0, is an error if it is known. If it is being traced its slice
    is NaN; for integers it is the smallest number, for unsigned ones the greatest.
    """
    # Most modules launch no operator, and do without the table.
    from msops._ascend.aclnn import lookup

    _require_integers(index, "index_select")
    axis = _axis(dim, array.ndim, "index_select")
    shape = (*array.shape[:axis], index.array.size, *array.shape[axis + 1 :])
    operator = lookup("aclnnIndexSelect", "ms::Tensor::index_select")
    (result,) = operator([array, axis, index.array], [jax.ShapeDtypeStruct(shape, array.dtype)])
    return result


def reshape(array: Any, shape: list[int]) -> Any:
    """Gives it other extents, one of which may be -1."""
    try:
        return array.reshape(shape)
    except TypeError as error:
        raise ArgumentValueError.explained(
            "ms::Tensor::reshape",
            f"expected a shape of {array.size} entries; got {shape}",
            "Let one extent be -1, or make the product right.",
        ) from error


def repeat(array: Any, repeats: list[int]) -> Any:
    """Tiles it; there may be more repeats than axes, never fewer."""
    if len(repeats) < array.ndim:
        raise ArgumentValueError.explained(
            "ms::Tensor::repeat",
            f"expected {array.ndim} repeats or more; got {len(repeats)}",
            "Pass one per axis, 1 where nothing is repeated.",
        )
    check_shape(repeats, "ms::Tensor::repeat")
    extents = [1] * (len(repeats) - array.ndim) + list(array.shape)
    result = [count * extent for count, extent in zip(repeats, extents, strict=True)]
    check_shape(result, "ms::Tensor::repeat")
    return jnp.tile(array, repeats)


def repeat_interleave(array: Any, repeats: Any, dim: int | None, output_size: int | None) -> Any:
    """Repeats each entry along an axis; without an axis, of the flattened tensor."""
    if isinstance(repeats, Handle):
        _require_integers(repeats, "repeat_interleave")
        repeats = repeats.array
        if isinstance(repeats, jax.core.Tracer) and output_size is None:
            raise ArgumentTypeError.explained(
                "ms::Tensor::repeat_interleave",
                "the repeats are being traced, so the size of the result is not known",
                "Pass output_size.",
            )
    axis = None if dim is None else _axis(dim, array.ndim, "repeat_interleave")
    extent = array.size if axis is None else array.shape[axis]
    lengths = [0 if output_size is None else output_size]
    if not isinstance(repeats, jax.core.Tracer):
        counts = np.atleast_1d(np.asarray(repeats))
        least, most = int(counts.min(initial=0)), int(counts.max(initial=0))
        lengths += [least, most * extent]
    others = [] if axis is None else [*array.shape[:axis], *array.shape[axis + 1 :]]
    for length in lengths:
        check_shape([*others, length], "ms::Tensor::repeat_interleave")
    return jnp.repeat(array, repeats, axis=axis, total_repeat_length=output_size)


def pyboost(array: Any, function: str, aclnn: str, *arguments: Any) -> Any:
    """Serves the functions of ``mindspore::kernel::pyboost``: operators of aclnn, by value."""
    from msops._ascend.aclnn import lookup

    operator = lookup(aclnn, f"kernel::pyboost::{function}")
    rest = [each.array if isinstance(each, Handle) else each for each in arguments]
    (result,) = operator([array, *rest], None)
    return result


_METHODS: dict[str, Callable[..., Any]] = {
    "cast": cast,
    "chunk": chunk,
    "contiguous": contiguous,
    "flatten": flatten,
    "index_select": index_select,
    "pyboost": pyboost,
    "repeat": repeat,
    "repeat_interleave": repeat_interleave,
    "reshape": reshape,
}


def call_method(name: str, handle: Handle, *arguments: Any) -> Handle | tuple[Handle, ...]:
    """Serves the methods of ``ms::Tensor`` that compute.

    Raises:
      BackendError: a program runs a kernel that calls it.
    """
    current_frame()
    result = _METHODS[name](handle.array, *arguments)
    if isinstance(result, tuple):
        return tuple(Handle(part.shape, part.dtype, part) for part in result)
    return Handle(result.shape, result.dtype, result)


def make(name: str, value: Any, type_id: int) -> Handle:
    """Serves ``ms::tensor``, ``ms::ones`` and ``ms::zeros``; `value` is data, or a shape.

    Raises:
      ArgumentTypeError: msops has no such dtype.
      ArgumentValueError: the dtype does not hold the data, or there is no such shape.
      BackendError: the memory is not there, or a program runs a kernel that calls it.
    """
    current_frame()
    dtype = dtype_of(type_id)
    handle = new_handle(np.shape(value) if name == "tensor" else tuple(value), dtype)
    try:
        data = np.asarray(value, dtype) if name == "tensor" else getattr(np, name)(value, dtype)
    except (OverflowError, ValueError) as error:
        raise ArgumentValueError.explained(
            f"ms::{name}",
            f"expected data that {dtype} holds; got {value} ({error})",
            "Make the tensor with a wider dtype, or correct the data.",
        ) from error
    except MemoryError as error:
        raise out_of_memory(handle.shape, dtype) from error
    handle.array = jnp.asarray(data)
    return handle


def _axis(dim: int, rank: int, method: str) -> int:
    if not -rank <= dim < rank:
        raise ArgumentValueError.explained(
            f"ms::Tensor::{method}",
            f"expected an axis from {-rank} to {rank - 1}; got {dim}",
            "Count axes from 0, or from -1 backwards.",
        )
    return dim % rank


def _require_integers(handle: Handle, method: str) -> None:
    if handle.dtype.kind not in "iu":
        raise ArgumentTypeError.explained(
            f"ms::Tensor::{method}",
            f"expected a tensor of integers; got {handle.dtype}",
            "Cast it to kNumberTypeInt32 or kNumberTypeInt64.",
        )
