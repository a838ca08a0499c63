"""Sums of products."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from msops._loops.frontends.tvm.arithmetic import binary
from msops._loops.frontends.tvm.compute import compute
from msops._loops.frontends.tvm.dtypes import as_dtype
from msops._loops.frontends.tvm.expr import ScalarExpr, cast
from msops._loops.frontends.tvm.reduce import reduce_axis, sum_of
from msops._loops.frontends.tvm.tensor import Extent, Tensor
from msops._loops.frontends.tvm.topi.elementwise import BINARY
from msops._loops.frontends.tvm.topi.shapes import as_axis, as_int
from msops._loops.frontends.tvm.tracing import wrong_value


def tensordot(a: Tensor, b: Tensor, axes: Any) -> Any:
    """Returns the sum of products over axes of both.

    Args:
      a: a tensor.
      b: a tensor.
      axes: so many of the last axes of `a` and the first of `b`, or a pair: axes of `a`, axes of
        `b`.
    """
    return _contracted("tensordot", a, b, axes)


def _contracted(name: str, a: Tensor, b: Tensor, axes: Any) -> Any:
    left, right = _axis_pairs(a, b, axes)
    sums = [reduce_axis((0, a.shape[axis]), f"k{n}") for n, axis in enumerate(left)]
    free = [extent for axis, extent in enumerate(a.shape) if axis not in left]
    shape = [*free, *(extent for axis, extent in enumerate(b.shape) if axis not in right)]

    def element(*indices: ScalarExpr) -> Any:
        own, other = indices[: len(free)], indices[len(free) :]
        product = binary("mul", a(*_placed(own, left, sums)), b(*_placed(other, right, sums)))
        return sum_of(product, axis=sums)

    return compute(shape, element, name=f"T_{name}")


def _placed(
    free: Sequence[ScalarExpr], bound_axes: Sequence[int], bound: Sequence[ScalarExpr]
) -> list[ScalarExpr]:
    remaining = iter(free)
    at = dict(zip(bound_axes, bound, strict=True))
    return [at[axis] if axis in at else next(remaining) for axis in range(len(free) + len(bound))]


def _axis_pairs(x: Tensor, y: Tensor, axes: Any) -> tuple[list[int], list[int]]:
    if isinstance(axes, (tuple, list)):
        pair = [part if isinstance(part, (tuple, list)) else (part,) for part in axes]
        left = [as_axis(axis, x.ndim) for axis in pair[0]]
        right = [as_axis(axis, y.ndim) for axis in pair[1]]
    else:
        count = as_int(axes)
        left, right = list(range(x.ndim - count, x.ndim)), list(range(count))
    if [x.shape[a] for a in left] != [y.shape[a] for a in right] or min(left, default=0) < 0:
        raise wrong_value(
            f"axes {left} of shape {tuple(map(int, x.shape))} do not match axes {right} of shape "
            f"{tuple(map(int, y.shape))}",
            "Axes that are summed over have equal extents.",
        )
    return left, right


def matmul(a: Tensor, b: Tensor, transp_a: Any = False, transp_b: Any = False) -> Any:
    """Returns the product of two matrices, each transposed first if asked."""
    for tensor in (a, b):
        if tensor.ndim != 2:
            raise wrong_value(
                f"expected matrices; got shape {tuple(map(int, tensor.shape))}",
                "Use topi.nn.batch_matmul for batches, topi.tensordot for others.",
            )
    return _contracted("matmul", a, b, ((0,) if transp_a else (1,), (1,) if transp_b else (0,)))


def dense(data: Tensor, weight: Tensor, bias: Tensor | None = None, out_dtype: Any = None) -> Any:
    """Returns ``data @ weight.T + bias``.

    Args:
      data: shape (batch, in).
      weight: shape (out, in).
      bias: shape (out,), or None.
      out_dtype: dtype in which products are summed; None is that of `data`.
    """
    dtype = data.dtype if out_dtype is None else as_dtype(out_dtype)
    if data.ndim != 2 or weight.ndim != 2 or data.shape[1] != weight.shape[1]:
        raise wrong_value(
            f"expected shapes (batch, in) and (out, in); got {tuple(map(int, data.shape))} and "
            f"{tuple(map(int, weight.shape))}",
            "Transpose the weight if it is (in, out).",
        )
    k = reduce_axis((0, data.shape[1]), "k")

    def element(i: ScalarExpr, j: ScalarExpr) -> Any:
        product = binary("mul", cast(data(i, k), dtype), cast(weight(j, k), dtype))
        return sum_of(product, axis=k)

    product = compute((data.shape[0], weight.shape[0]), element, name="T_dense")
    return product if bias is None else BINARY["add"](product, bias)


def batch_matmul(x: Tensor, y: Tensor) -> Any:
    """Returns ``x[b] @ y[b].T`` for each b.

    Args:
      x: shape (batch, m, k).
      y: shape (batch, n, k).
    """
    shapes = [tuple(map(int, tensor.shape)) for tensor in (x, y)]
    fits = x.ndim == y.ndim == 3 and x.shape[2] == y.shape[2]
    if not fits or not (x.shape[0] == y.shape[0] or 1 in (x.shape[0], y.shape[0])):
        raise wrong_value(
            f"expected shapes (batch, m, k) and (batch, n, k); got {shapes[0]} and {shapes[1]}",
            "Transpose the second tensor if it is (batch, k, n).",
        )
    k = reduce_axis((0, x.shape[2]), "k")
    batch = Extent(max(x.shape[0], y.shape[0]))

    def element(b: ScalarExpr, i: ScalarExpr, j: ScalarExpr) -> Any:
        first, second = (0 if t.shape[0] == 1 else b for t in (x, y))
        return sum_of(binary("mul", x(first, i, k), y(second, j, k)), axis=k)

    return compute((batch, x.shape[1], y.shape[1]), element, name="T_batch_matmul")
