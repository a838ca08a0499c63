"""`topi.nn`: what neural networks are made of."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

from msops._loops.frontends.tvm.arithmetic import binary, select, true_divide
from msops._loops.frontends.tvm.compute import compute
from msops._loops.frontends.tvm.expr import ScalarExpr, as_expr, cast, const
from msops._loops.frontends.tvm.intrin import all_of, maximum, unary
from msops._loops.frontends.tvm.reduce import lowest, max_of, reduce_axis, sum_of
from msops._loops.frontends.tvm.tensor import Extent, Tensor
from msops._loops.frontends.tvm.topi.elementwise import BINARY, UNARY
from msops._loops.frontends.tvm.topi.reduction import max_over, sum_over
from msops._loops.frontends.tvm.topi.shapes import as_axis, as_int, elementwise
from msops._loops.frontends.tvm.topi.transform import reshape
from msops._loops.frontends.tvm.tracing import wrong_value


def relu(x: Any) -> Any:
    """Returns the larger of each element and 0."""
    return elementwise("relu", lambda value: maximum(value, _zero(value)), x)


def leaky_relu(x: Any, alpha: Any) -> Any:
    """Returns each positive element, and `alpha` times each other one."""

    def element(value: Any) -> ScalarExpr:
        slope = const(alpha, value.dtype)
        return select(binary("gt", value, _zero(value)), value, binary("mul", value, slope))

    return elementwise("leaky_relu", element, x)


def _zero(value: Any) -> ScalarExpr:
    return const(0, as_expr(value).dtype)


def prelu(x: Tensor, slope: Tensor, axis: Any = 1) -> Any:
    """Returns each positive element, and its channel's slope times each other one.

    Args:
      x: a tensor with channels along `axis`.
      slope: shape (channels,).
      axis: the axis of channels.
    """
    position = _channel_axis(x, slope, axis)

    def element(*at: ScalarExpr) -> ScalarExpr:
        value = x(*at)
        scaled = binary("mul", value, slope(at[position]))
        return select(binary("gt", value, _zero(value)), value, scaled)

    return compute(x.shape, element, name="T_prelu")


def _channel_axis(data: Tensor, of_channels: Tensor, axis: Any) -> int:
    position = as_axis(axis, data.ndim)
    if of_channels.shape == (data.shape[position],):
        return position
    raise wrong_value(
        f"expected shape ({data.shape[position]},), one number per channel; got "
        f"{tuple(map(int, of_channels.shape))}",
        f"Axis {position} holds the channels.",
    )


def _scale_shift(name: str, axis: int) -> Callable[[Any, Any, Any], Any]:
    def apply(Input: Tensor, Scale: Tensor, Shift: Tensor) -> Any:
        position = _channel_axis(Input, Scale, axis)
        _channel_axis(Input, Shift, axis)

        def element(*at: ScalarExpr) -> ScalarExpr:
            return binary(
                "add", binary("mul", Input(*at), Scale(at[position])), Shift(at[position])
            )

        return compute(Input.shape, element, name="ScaleShift")

    apply.__name__ = name
    apply.__doc__ = "Returns each element times its channel's scale, plus its channel's shift."
    return apply


scale_shift_nchw = _scale_shift("scale_shift_nchw", 1)
scale_shift_nhwc = _scale_shift("scale_shift_nhwc", 3)


def softmax(x: Tensor, axis: Any = -1) -> Any:
    """Returns the softmax along an axis."""
    exps = UNARY["exp"](BINARY["subtract"](x, max_over(x, axis, keepdims=True)))
    return BINARY["divide"](exps, sum_over(exps, axis, keepdims=True))


def log_softmax(x: Tensor, axis: Any = -1) -> Any:
    """Returns the logarithm of the softmax along an axis."""
    shifted = BINARY["subtract"](x, max_over(x, axis, keepdims=True))
    total = sum_over(UNARY["exp"](shifted), axis, keepdims=True)
    return BINARY["subtract"](shifted, UNARY["log"](total))


def l2_normalize(data: Tensor, eps: Any, axis: Any = None) -> Any:
    """Returns a tensor divided by its norm over axes, of which the square is at least `eps`."""
    squares = sum_over(BINARY["multiply"](data, data), axis, keepdims=True)
    bound = const(eps, data.dtype)
    norm = elementwise("l2_norm", lambda s: unary("sqrt", maximum(s, bound)), squares)
    return BINARY["divide"](data, norm)


def lrn(
    data: Tensor,
    size: Any,
    axis: Any = 1,
    alpha: Any = 0.0001,
    beta: Any = 0.75,
    bias: Any = 2,
) -> Any:
    """Returns each element over a power of the squares of its neighbours along an axis.

    ``x / (bias + alpha / size * sum of squares over size neighbours) ** beta``; neighbours outside
    count as 0.
    """
    position = as_axis(axis, data.ndim)
    count = as_int(size)
    extent = int(data.shape[position])
    k = reduce_axis((0, count), "k")

    def squares(*at: ScalarExpr) -> Any:
        near = binary("sub", binary("add", at[position], k), count // 2)
        value = data(*at[:position], near, *at[position + 1 :])
        is_inside = all_of(binary("ge", near, 0), binary("lt", near, extent))
        return sum_of(binary("mul", value, value), axis=k, where=is_inside)

    total = compute(data.shape, squares, name="T_lrn_sum")

    def element(*at: ScalarExpr) -> ScalarExpr:
        scale = const(float(alpha) / count, data.dtype)
        base = binary("add", const(bias, data.dtype), binary("mul", scale, total(*at)))
        return binary("div", data(*at), binary("pow", base, const(beta, data.dtype)))

    return compute(data.shape, element, name="T_lrn")


def flatten(data: Tensor) -> Any:
    """Returns a tensor with all dimensions but the first joined."""
    return reshape(data, (data.shape[0], math.prod(data.shape[1:])))


def _widths(data: Tensor, before: Any, after: Any) -> list[tuple[int, int]]:
    low = [as_int(width) for width in before]
    high = low if after is None else [as_int(width) for width in after]
    if len(low) != data.ndim or len(high) != data.ndim or min((*low, *high), default=0) < 0:
        raise wrong_value(
            f"expected {data.ndim} widths before and after, none negative; got {low} and {high}",
            "Give one width per dimension; 0 adds nothing.",
        )
    return list(zip(low, high, strict=True))


def _padded_shape(data: Tensor, widths: Sequence[tuple[int, int]]) -> list[int]:
    return [low + int(n) + high for n, (low, high) in zip(data.shape, widths, strict=True)]


def pad(
    data: Tensor,
    pad_before: Any,
    pad_after: Any = None,
    pad_value: Any = 0.0,
    name: str = "PadInput",
) -> Any:
    """Returns a tensor with a border of one value.

    Args:
      data: the tensor.
      pad_before: width of the border before each dimension.
      pad_after: likewise after it; None is `pad_before`.
      pad_value: the value.
      name: name in the loop IR.
    """
    widths = _widths(data, pad_before, pad_after)
    border = cast(pad_value, data.dtype)

    def element(*at: ScalarExpr) -> ScalarExpr:
        inner, conditions = [], []
        for index, extent, (low, high) in zip(at, data.shape, widths, strict=True):
            inner.append(binary("sub", index, low) if low else index)
            conditions += [binary("ge", index, low)] if low else []
            conditions += [binary("lt", index, low + int(extent))] if high else []
        value = data(*inner)
        return select(all_of(*conditions), value, border) if conditions else value

    return compute(_padded_shape(data, widths), element, name=name)


def mirror_pad(
    data: Tensor,
    pad_before: Any,
    pad_after: Any = None,
    mode: str = "SYMMETRIC",
    name: str = "MirrorPadInput",
) -> Any:
    """Returns a tensor with a border that mirrors it.

    Args:
      data: the tensor.
      pad_before: width of the border before each dimension.
      pad_after: likewise after it; None is `pad_before`.
      mode: "SYMMETRIC" repeats the outermost elements, "REFLECT" does not.
      name: name in the loop IR.
    """
    widths = _widths(data, pad_before, pad_after)
    if mode not in ("SYMMETRIC", "REFLECT"):
        raise wrong_value(
            f'expected mode "SYMMETRIC" or "REFLECT"; got {mode!r}',
            "Use one of the two.",
        )
    skip = 1 if mode == "REFLECT" else 0

    def source(index: ScalarExpr, extent: int, low: int, high: int) -> ScalarExpr:
        position = binary("sub", index, low)
        if high:
            mirrored = binary("sub", 2 * extent - 1 - skip, position)
            position = select(binary("ge", position, extent), mirrored, position)
        if low:
            mirrored = binary("sub", low - 1 + skip, index)
            position = select(binary("lt", index, low), mirrored, position)
        return position

    def element(*at: ScalarExpr) -> ScalarExpr:
        return data(
            *(
                source(index, int(extent), low, high)
                for index, extent, (low, high) in zip(at, data.shape, widths, strict=True)
            )
        )

    return compute(_padded_shape(data, widths), element, name=name)


def dilate(data: Tensor, strides: Any, name: str = "DilatedInput") -> Any:
    """Returns a tensor with zeros between its elements.

    Args:
      data: the tensor.
      strides: per dimension, the distance of neighbours in the result.
      name: name in the loop IR.
    """
    steps = [as_int(step) for step in strides]
    if len(steps) != data.ndim or min(steps, default=1) < 1:
        raise wrong_value(
            f"expected {data.ndim} positive strides; got {steps}",
            "Give one stride per dimension; 1 leaves it as it is.",
        )

    def element(*at: ScalarExpr) -> ScalarExpr:
        positions = [
            binary("floordiv", i, step) if step > 1 else i
            for i, step in zip(at, steps, strict=True)
        ]
        conditions = [
            binary("eq", binary("mod", i, step), 0)
            for i, step in zip(at, steps, strict=True)
            if step > 1
        ]
        value = data(*positions)
        return select(all_of(*conditions), value, _zero(value)) if conditions else value

    shape = [Extent((n - 1) * step + 1) for n, step in zip(data.shape, steps, strict=True)]
    return compute(shape, element, name=name)


def pool(
    data: Tensor,
    kernel: Any,
    stride: Any,
    padding: Any,
    pool_type: str = "max",
    ceil_mode: bool = False,
    layout: str = "NCHW",
    count_include_pad: bool = True,
) -> Any:
    """Returns the largest element, or the mean, of windows over height and width.

    Args:
      data: the tensor, of 4 or more dimensions.
      kernel: height and width of a window.
      stride: steps between windows.
      padding: widths of the border at the top, left, bottom and right.
      pool_type: "max" or "avg".
      ceil_mode: whether a last window may reach beyond the border.
      layout: a letter per dimension; "H" and "W" are pooled over.
      count_include_pad: whether the mean counts the border.
    """
    axes = [layout.find("H"), layout.find("W")]
    if pool_type not in ("max", "avg") or min(axes) < 0 or max(axes) >= data.ndim:
        raise wrong_value(
            f"expected pool_type 'max' or 'avg' and a layout with H and W; got {pool_type!r}, "
            f"{layout!r}",
            "Write topi.nn.pool(data, (2, 2), (2, 2), (0, 0, 0, 0), 'max').",
        )
    sizes, steps = [int(size) for size in kernel], [int(step) for step in stride]
    borders = [int(width) for width in padding]
    before, after = [0] * data.ndim, [0] * data.ndim
    shape = [int(extent) for extent in data.shape]
    for n, axis in enumerate(axes):
        before[axis], after[axis] = borders[n], borders[n + 2]
        after[axis] += steps[n] - 1 if ceil_mode else 0
        room = shape[axis] + before[axis] + after[axis] - sizes[n]
        shape[axis] = room // steps[n] + 1
    is_max = pool_type == "max"
    start = lowest(data.dtype) if is_max else const(0, data.dtype)
    window = [reduce_axis((0, size), f"k{size}") for size in sizes]
    padded = pad(data, before, after, start, "pool_padded") if any(before + after) else data

    def reduced(*at: ScalarExpr) -> Any:
        where = list(at)
        for n, axis in enumerate(axes):
            where[axis] = binary("add", binary("mul", at[axis], steps[n]), window[n])
        return (max_of if is_max else sum_of)(padded(*where), tuple(window))

    pooled = compute(shape, reduced, name=f"pool_{pool_type}")
    if is_max:
        return pooled

    def counted(n: int, index: ScalarExpr) -> ScalarExpr:
        """Returns how many elements of one axis a window has."""
        if count_include_pad:
            return const(sizes[n])
        first = binary("sub", binary("mul", index, steps[n]), borders[n])
        last = binary("min", binary("add", first, sizes[n]), int(data.shape[axes[n]]))
        return binary("sub", last, binary("max", first, 0))

    def mean(*at: ScalarExpr) -> ScalarExpr:
        count = binary("mul", *(counted(n, at[axis]) for n, axis in enumerate(axes)))
        return true_divide(pooled(*at), cast(binary("max", count, 1), data.dtype))

    return compute(shape, mean, name="pool_mean")
