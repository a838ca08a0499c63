"""Tensors from numbers."""

from __future__ import annotations

import math
from typing import Any

from msops._loops.frontends.tvm.arithmetic import binary, select
from msops._loops.frontends.tvm.compute import compute
from msops._loops.frontends.tvm.dtypes import as_dtype
from msops._loops.frontends.tvm.expr import ScalarExpr, as_expr, cast, const
from msops._loops.frontends.tvm.tensor import Tensor, as_shape
from msops._loops.frontends.tvm.tracing import wrong_type, wrong_value


def full(shape: Any, dtype: Any, fill_value: Any) -> Any:
    """Returns a tensor with one value everywhere."""
    value = cast(fill_value, as_dtype(dtype))
    return compute(as_shape("topi.full", shape), lambda *_: value, name="T_full")


def full_like(x: Tensor, fill_value: Any) -> Any:
    """Returns a tensor of the shape and dtype of another with one value everywhere."""
    return full(x.shape, x.dtype, fill_value)


def zeros_like(x: Tensor) -> Any:
    """Returns a tensor of zeros of the shape and dtype of another."""
    return full_like(x, 0)


def ones_like(x: Tensor) -> Any:
    """Returns a tensor of ones of the shape and dtype of another."""
    return full_like(x, 1)


def arange(start: Any, stop: Any = None, step: Any = 1, dtype: Any = "float32") -> Any:
    """Returns ``start``, ``start + step``, ... before ``stop``; one bound alone is ``stop``."""
    first, last = (0, start) if stop is None else (start, stop)
    try:
        low, high, by = (getattr(bound, "value", bound) for bound in (first, last, step))
        count = max(0, math.ceil((high - low) / by))
    except (TypeError, ZeroDivisionError):
        raise wrong_type(
            f"expected numbers and a step other than 0; got {first!r}, {last!r}, {step!r}",
            "The length must be known when the kernel is compiled.",
        ) from None
    name = as_dtype(dtype)

    def element(index: ScalarExpr) -> ScalarExpr:
        return binary("add", const(low, name), binary("mul", const(by, name), cast(index, name)))

    return compute((count,), element, name="T_arange")


def shape(array: Tensor, dtype: Any = "int32") -> Any:
    """Returns the shape of a tensor as a tensor."""
    extents = array.shape
    if not extents:
        raise wrong_value(
            "a tensor without dimensions has an empty shape",
            "Use x.shape, which is known when the kernel is compiled.",
        )

    def element(index: ScalarExpr) -> ScalarExpr:
        value = as_expr(int(extents[-1]))
        for position in range(len(extents) - 2, -1, -1):
            value = select(binary("eq", index, position), int(extents[position]), value)
        return cast(value, dtype)

    return compute((len(extents),), element, name="T_shape")


def ndarray_size(array: Tensor, dtype: Any = "int32") -> Any:
    """Returns the number of elements of a tensor as a tensor of shape (1,)."""
    size = math.prod(map(int, array.shape))
    return full((1,), dtype, size)
