"""Broadcasting and concatenation."""

from __future__ import annotations

from typing import Any

import jax.numpy as jnp

from msops._ascend.tbe.operation import apply, check_tensors, number_of
from msops._ascend.tbe.session import KernelTypeError, remember_dtype
from msops._loops.frontends.tvm.dtypes import as_dtype
from msops._loops.frontends.tvm.expr import ConstExpr
from msops._loops.frontends.tvm.tensor import Tensor, as_shape
from msops._loops.frontends.tvm.tracing import build_error, call_error


def broadcast(var: Any, shape: Any, output_dtype: Any = None) -> Tensor:
    """Returns a tensor of a shape, made from a smaller one or from a number.

    Args:
      var: a tensor with at most as many dimensions, each of extent 1 or of the extent wanted,
        counted from the last; or a number.
      shape: the shape.
      output_dtype: for a number: the dtype of the result. None is float16 for a Python float, int32
        for an int, and a `tvm.const`'s own.
    """
    extents = tuple(map(int, as_shape("broadcast", shape)))
    if isinstance(var, Tensor):
        return _broadcast_tensor(var, extents)
    if isinstance(var, ConstExpr):
        own = var.dtype
    else:
        own = "float16" if isinstance(var, float) else "int32"
    remember_dtype(own)
    dtype = own if output_dtype is None else as_dtype(output_dtype)
    number = number_of("broadcast", var, dtype)
    rule = lambda: jnp.full(extents, number, jnp.dtype(dtype))  # noqa: E731
    return apply("broadcast", rule, [], extents, dtype, number)


def _broadcast_tensor(x: Tensor, extents: tuple[int, ...]) -> Tensor:
    check_tensors("broadcast", x)
    own = tuple(map(int, x.shape))
    if len(own) > len(extents):
        raise build_error(
            "broadcast",
            "Length of shape of input must be less than or equal to output for Tensor "
            f"Broadcasting, while input shape is {own}, and output shape is {extents}",
            "Dimensions can be added, not removed.",
        )
    for size, wanted in zip(own, extents[len(extents) - len(own) :], strict=True):
        if size not in (1, wanted):
            raise build_error(
                "broadcast",
                "For tensor broadcasting, shape must be the same or corresponding shape of src "
                f"tensor is 1 while src shape is {own}, and dst shape is {extents}",
                "Dimensions are matched from the last one; give the placeholder ones where it has "
                "none.",
            )
    if own == extents:
        return x
    return apply("broadcast", lambda a: jnp.broadcast_to(a, extents), [x], extents, x.dtype)


def concat(raw_tensors: Any, axis: Any) -> Tensor:
    """Returns tensors put one after the other along an axis.

    Args:
      raw_tensors: a list of tensors, alike in dtype and in all other extents.
      axis: an int, not negative.
    """
    if not isinstance(raw_tensors, (list, tuple)) or not raw_tensors:
        raise call_error(
            KernelTypeError,
            "concat",
            f"expected a list of tensors; got {type(raw_tensors).__name__}",
            "Pass [x, y].",
        )
    tensors = check_tensors("concat", *raw_tensors)
    shapes = [tuple(map(int, tensor.shape)) for tensor in tensors]
    rank = len(shapes[0])
    if not isinstance(axis, int) or not 0 <= axis < rank:
        raise build_error(
            "concat",
            f"concat axis must be in 0-{rank - 1}, actual is {axis}",
            "Count axes from the first one.",
        )
    if len({tensor.dtype for tensor in tensors}) > 1:
        raise build_error(
            "concat",
            f"dtype must be the same to each other: got {', '.join(t.dtype for t in tensors)}",
            "Cast them first: cast_to(x, dtype).",
        )
    if len({(*shape[:axis], *shape[axis + 1 :]) for shape in shapes}) > 1 or any(
        len(shape) != rank for shape in shapes
    ):
        raise build_error(
            "concat",
            "concat input shape len must be the same to each other except concat axis: got "
            f"{', '.join(map(str, shapes))}",
            "Broadcast them to agree in all other axes.",
        )
    shape = list(shapes[0])
    shape[axis] = sum(one[axis] for one in shapes)
    rule = lambda *arrays: jnp.concatenate(arrays, axis)  # noqa: E731
    return apply("concat", rule, tensors, shape, tensors[0].dtype, f"axis={axis}")
