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
from msops._loops.frontends.tvm.topi.shapes import as_axis, as_int, as_tensor
from msops._loops.frontends.tvm.tracing import value_error


def tensordot(a: Any, b: Any, axes: Any) -> Any:
    """Returns the sum of products over axes of both.

    Args:
      a: a tensor.
      b: a tensor.
      axes: so many of the last axes of `a` and the first of `b`, or a pair: axes of `a`, axes of
        `b`.
    """
    return _contracted("tensordot", a, b, axes)


def _contracted(name: str, a: Any, b: Any, axes: Any) -> Any:
    x, y = as_tensor(f"topi.{name}", a), as_tensor(f"topi.{name}", b)
    left, right = _axis_pairs(name, x, y, axes)
    sums = [reduce_axis((0, x.shape[axis]), f"k{n}") for n, axis in enumerate(left)]
    free = [extent for axis, extent in enumerate(x.shape) if axis not in left]
    shape = [*free, *(extent for axis, extent in enumerate(y.shape) if axis not in right)]

    def element(*indices: ScalarExpr) -> Any:
        own, other = indices[: len(free)], indices[len(free) :]
        product = binary("mul", x(*_placed(own, left, sums)), y(*_placed(other, right, sums)))
        return sum_of(product, axis=sums)

    return compute(shape, element, name=f"T_{name}")


def _placed(
    free: Sequence[ScalarExpr], bound_axes: Sequence[int], bound: Sequence[ScalarExpr]
) -> list[ScalarExpr]:
    remaining = iter(free)
    at = dict(zip(bound_axes, bound, strict=True))
    return [at[axis] if axis in at else next(remaining) for axis in range(len(free) + len(bound))]


def _axis_pairs(name: str, x: Tensor, y: Tensor, axes: Any) -> tuple[list[int], list[int]]:
    if isinstance(axes, (tuple, list)):
        pair = [part if isinstance(part, (tuple, list)) else (part,) for part in axes]
        left = [as_axis(f"topi.{name}", axis, x.ndim) for axis in pair[0]]
        right = [as_axis(f"topi.{name}", axis, y.ndim) for axis in pair[1]]
    else:
        count = as_int(f"topi.{name}", axes)
        left, right = list(range(x.ndim - count, x.ndim)), list(range(count))
    if [x.shape[a] for a in left] != [y.shape[a] for a in right] or min(left, default=0) < 0:
        raise value_error(
            f"topi.{name}",
            f"axes {left} of shape {tuple(map(int, x.shape))} do not match axes {right} of shape "
            f"{tuple(map(int, y.shape))}",
            "Axes that are summed over have equal extents.",
        )
    return left, right


def matmul(a: Any, b: Any, transp_a: Any = False, transp_b: Any = False) -> Any:
    """Returns the product of two matrices, each transposed first if asked."""
    x, y = as_tensor("topi.matmul", a), as_tensor("topi.matmul", b)
    for tensor in (x, y):
        if tensor.ndim != 2:
            raise value_error(
                "topi.matmul",
                f"expected matrices; got shape {tuple(map(int, tensor.shape))}",
                "Use topi.nn.batch_matmul for batches, topi.tensordot for others.",
            )
    return _contracted("matmul", x, y, ((0,) if transp_a else (1,), (1,) if transp_b else (0,)))


def dense(data: Any, weight: Any, bias: Any = None, out_dtype: Any = None) -> Any:
    """Returns ``data @ weight.T + bias``.

    Args:
      data: shape (batch, in).
      weight: shape (out, in).
      bias: shape (out,), or None.
      out_dtype: dtype in which products are summed; None is that of `data`.
    """
    x, w = as_tensor("topi.nn.dense", data), as_tensor("topi.nn.dense", weight)
    dtype = x.dtype if out_dtype is None else as_dtype(out_dtype)
    if x.ndim != 2 or w.ndim != 2 or x.shape[1] != w.shape[1]:
        raise value_error(
            "topi.nn.dense",
            f"expected shapes (batch, in) and (out, in); got {tuple(map(int, x.shape))} and "
            f"{tuple(map(int, w.shape))}",
            "Transpose the weight if it is (in, out).",
        )
    k = reduce_axis((0, x.shape[1]), "k")
    product = compute(
        (x.shape[0], w.shape[0]),
        lambda i, j: sum_of(binary("mul", cast(x(i, k), dtype), cast(w(j, k), dtype)), axis=k),
        name="T_dense",
    )
    return product if bias is None else BINARY["add"](product, as_tensor("topi.nn.dense", bias))


def batch_matmul(x: Any, y: Any) -> Any:
    """Returns ``x[b] @ y[b].T`` for each b.

    Args:
      x: shape (batch, m, k).
      y: shape (batch, n, k).
    """
    left, right = as_tensor("topi.nn.batch_matmul", x), as_tensor("topi.nn.batch_matmul", y)
    shapes = [tuple(map(int, tensor.shape)) for tensor in (left, right)]
    fits = left.ndim == right.ndim == 3 and left.shape[2] == right.shape[2]
    if not fits or not (left.shape[0] == right.shape[0] or 1 in (left.shape[0], right.shape[0])):
        raise value_error(
            "topi.nn.batch_matmul",
            f"expected shapes (batch, m, k) and (batch, n, k); got {shapes[0]} and {shapes[1]}",
            "Transpose the second tensor if it is (batch, k, n).",
        )
    k = reduce_axis((0, left.shape[2]), "k")
    batch = Extent(max(left.shape[0], right.shape[0]))

    def element(b: ScalarExpr, i: ScalarExpr, j: ScalarExpr) -> Any:
        first, second = (0 if t.shape[0] == 1 else b for t in (left, right))
        return sum_of(binary("mul", left(first, i, k), right(second, j, k)), axis=k)

    return compute((batch, left.shape[1], right.shape[1]), element, name="T_batch_matmul")
