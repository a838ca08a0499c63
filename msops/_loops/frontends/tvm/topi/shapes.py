"""Axes and broadcasting, as numpy has them, and functions of each element."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from msops._loops.frontends.tvm.compute import compute
from msops._loops.frontends.tvm.expr import ScalarExpr
from msops._loops.frontends.tvm.tensor import Extent, Shape, Tensor
from msops._loops.frontends.tvm.tracing import wrong_type, wrong_value


def as_int(value: Any) -> int:
    """Returns an argument that must be known while the kernel is built."""
    try:
        return int(value.__index__())
    except (AttributeError, TypeError):
        raise wrong_type(
            f"expected an int; got {value!r}",
            "Pass a Python int or an attribute: it must be known when the kernel is compiled.",
        ) from None


def as_axis(axis: Any, ndim: int) -> int:
    """Returns an axis counted from the front; negative ones count from the back."""
    number = as_int(axis)
    if -ndim <= number < ndim:
        return number % ndim
    raise wrong_value(
        f"expected an axis in [{-ndim}, {ndim}); got {number}",
        f"The tensor has {ndim} dimensions.",
    )


def as_axes(axis: Any, ndim: int) -> tuple[int, ...]:
    """Returns axes in ascending order; none or an empty sequence are all of them."""
    if axis is None or (isinstance(axis, (tuple, list)) and not axis):
        return tuple(range(ndim))
    given = axis if isinstance(axis, (tuple, list)) else (axis,)
    return tuple(sorted({as_axis(each, ndim) for each in given}))


def broadcast_shapes(*shapes: Shape) -> Shape:
    """Returns the shape that shapes are broadcast to, aligned at their last dimensions."""
    ndim = max(map(len, shapes))
    columns = zip(*((Extent(1),) * (ndim - len(shape)) + shape for shape in shapes), strict=True)
    result = []
    for extents in columns:
        wide = {int(extent) for extent in extents} - {1}
        if len(wide) > 1:
            listed = " and ".join(str(tuple(map(int, shape))) for shape in shapes)
            raise wrong_value(
                f"incompatible broadcast dims: {' and '.join(map(str, sorted(wide)))} in {listed}",
                "Aligned at their last dimensions, extents must be equal or 1.",
            )
        result.append(Extent(wide.pop() if wide else 1))
    return tuple(result)


def broadcast_element(tensor: Tensor, indices: Sequence[ScalarExpr]) -> ScalarExpr:
    """Returns the element of a tensor at an index of the shape it is broadcast to."""
    own = indices[len(indices) - tensor.ndim :]
    return tensor(
        *(0 if extent == 1 else index for extent, index in zip(tensor.shape, own, strict=True))
    )


def elementwise(name: str, function: Callable[..., Any], *operands: Any) -> Any:
    """Returns a function of the elements of operands that are broadcast together.

    Args:
      name: its name in the loop IR.
      function: from one element of each operand to the element of the result.
      *operands: tensors, and scalars, which belong to every element; of scalars alone the result
        is a scalar expression.
    """
    tensors = [operand for operand in operands if isinstance(operand, Tensor)]
    if not tensors:
        return function(*operands)
    shape = broadcast_shapes(*(tensor.shape for tensor in tensors))

    def element(*indices: ScalarExpr) -> Any:
        return function(
            *(broadcast_element(x, indices) if isinstance(x, Tensor) else x for x in operands)
        )

    return compute(shape, element, name=f"T_{name}")
