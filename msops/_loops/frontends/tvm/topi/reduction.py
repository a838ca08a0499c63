"""Reductions over axes."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from msops._loops.frontends.tvm import reduce
from msops._loops.frontends.tvm.arithmetic import as_condition, binary
from msops._loops.frontends.tvm.compute import compute
from msops._loops.frontends.tvm.expr import IterVar, ScalarExpr, as_expr
from msops._loops.frontends.tvm.tensor import Extent, Shape, Tensor
from msops._loops.frontends.tvm.topi.shapes import as_axes
from msops._loops.frontends.tvm.tracing import wrong_value


def _reduced(
    name: str,
    data: Tensor,
    axis: Any,
    keepdims: bool,
    formula: Callable[[ScalarExpr, Sequence[IterVar]], Any],
) -> Any:
    """Returns a tensor reduced over axes.

    Args:
      name: its name in the loop IR.
      data: the tensor.
      axis: one axis or several; None is all.
      keepdims: reduced dimensions stay, with extent 1.
      formula: from an element and the reduced variables to the reduction. All axes reduced leave
        shape (1,), as in AKG.
    """
    axes = as_axes(axis, data.ndim)
    ranges = [reduce.reduce_axis((0, data.shape[a]), f"k{a}") for a in axes]
    shape = _reduced_shape(data.shape, axes, keepdims)

    def element(*indices: ScalarExpr) -> Any:
        kept = list(indices)
        if keepdims:
            kept = [index for position, index in enumerate(indices) if position not in axes]
        remaining = iter(kept)
        bound = dict(zip(axes, ranges, strict=True))
        full = [bound[a] if a in bound else next(remaining) for a in range(data.ndim)]
        return formula(data(*full), ranges)

    return compute(shape, element, name=f"T_{name}")


def _reduced_shape(shape: Shape, axes: Sequence[int], keepdims: bool) -> Shape:
    if keepdims:
        return tuple(Extent(1) if a in axes else n for a, n in enumerate(shape))
    return tuple(n for a, n in enumerate(shape) if a not in axes) or (Extent(1),)


def _plain(
    name: str,
    reducer: Callable[..., Any],
    prepare: Callable[[ScalarExpr], ScalarExpr] | None = None,
) -> Callable[..., Any]:
    def apply(data: Tensor, axis: Any = None, keepdims: bool = False) -> Any:
        def formula(value: ScalarExpr, ranges: Sequence[IterVar]) -> Any:
            return reducer(prepare(value) if prepare else value, axis=list(ranges))

        return _reduced(name, data, axis, keepdims, formula)

    apply.__name__ = name
    apply.__doc__ = f"Returns the {name} over axes; None is over all, giving shape (1,)."
    return apply


sum_over = _plain("sum", reduce.sum_of)
max_over = _plain("max", reduce.max_of)
min_over = _plain("min", reduce.min_of)
prod_over = _plain("prod", reduce.product_of)
all_over = _plain("all", reduce.all_along, lambda value: as_condition("topi.all", value))
any_over = _plain("any", reduce.any_along, lambda value: as_condition("topi.any", value))


def _positions(name: str, reducer: Callable[..., Any]) -> Callable[..., Any]:
    def apply(data: Tensor, axis: Any = None, keepdims: bool = False) -> Any:
        _refuse_empty(data, axis)

        def formula(value: ScalarExpr, ranges: Sequence[IterVar]) -> Any:
            return reducer((_row_major(ranges), value), axis=list(ranges))

        return _reduced(name, data, axis, keepdims, formula)[0]

    apply.__name__ = name
    apply.__doc__ = f"Returns the int32 {name} over axes, the first of equals, in row-major order."
    return apply


def _refuse_empty(tensor: Tensor, axis: Any) -> None:
    axes = as_axes(axis, tensor.ndim)
    if any(tensor.shape[a] == 0 for a in axes):
        raise wrong_value(
            f"nothing to choose from along axes {axes} of shape {tuple(map(int, tensor.shape))}",
            "Reduce axes that have elements.",
        )


def _row_major(ranges: Sequence[IterVar]) -> ScalarExpr:
    position = as_expr(0)
    for var in ranges:
        position = binary("add", binary("mul", position, var.extent), var)
    return position


argmax = _positions("argmax", reduce.argmax_of)
argmin = _positions("argmin", reduce.argmin_of)
