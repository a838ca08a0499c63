"""Pooling over the last axes, two or three of them."""

from __future__ import annotations

import math
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from msops._ascend.aclnn.dtypes import floating, in_float32, kind_of
from msops._ascend.aclnn.kinds import Bool, Int, Ints, Tensor
from msops._ascend.aclnn.outputs import Outputs, require_shape
from msops._ascend.aclnn.refusal import Refused
from msops._ascend.aclnn.table import aclnn
from msops._base.extremes import window_extreme


def _pair(values: Ints, name: str, least: int, default: Ints = ()) -> tuple[int, int]:
    values = values or default
    if len(values) not in (1, 2) or min(values) < least:
        raise Refused(
            f"expected 1 or 2 numbers of {least} or more for {name}; got {list(values)}",
            "One per axis.",
        )
    return values[0], values[-1]


def _count(size: int, window: int, stride: int, pads: tuple[int, int], ceil_mode: bool) -> int:
    """Returns the number of windows along an axis: in ceil mode also a partial one, unless it would
    start in the padding behind the tensor."""
    space = size + sum(pads) - window
    if space < 0:
        raise Refused(
            f"a window of {window} does not fit {size} entries padded by {pads}", "Pad more."
        )
    steps = space // stride
    if ceil_mode and space % stride and (steps + 1) * stride < size + pads[0]:
        steps += 1
    return steps + 1


def _extra(size: int, window: int, stride: int, pads: tuple[int, int], count: int) -> int:
    """Returns how far `count` windows reach past the padding."""
    return max(0, (count - 1) * stride + window - size - sum(pads))


def _check_rank(x: jax.Array) -> None:
    if x.ndim not in (3, 4):
        raise Refused(f"expected [N, C, H, W] or [C, H, W]; got shape {x.shape}", "Reshape it.")


@aclnn("AvgPool2d")
def avg_pool2d(
    self: Tensor,
    kernel_size: Ints,
    strides: Ints,
    paddings: Ints,
    ceil_mode: Bool,
    count_include_pad: Bool,
    divisor_override: Int,
    cube_math_type: Int = 0,
    *,
    outputs: Outputs,
) -> Tensor:
    """The means of windows of [N, C, H, W] or [C, H, W].

    Args:
      self: the tensor.
      kernel_size, strides, paddings: one or two numbers each; no strides means the kernel's size.
      ceil_mode: whether a window may reach past the end.
      count_include_pad: whether padding counts in the divisor.
      divisor_override: the divisor, 0 for the number of entries.
      cube_math_type: has no effect here.
      outputs: the declared output.
    """
    _check_rank(self)
    window = _pair(kernel_size, "kernelSize", 1)
    steps = _pair(strides, "strides", 1, window)
    around = _pair(paddings, "paddings", 0, (0,))
    if any(2 * pad > size for pad, size in zip(around, window, strict=True)):
        raise Refused(f"expected padding up to half of {window}; got {around}", "Lower it.")
    x = in_float32(self)
    axes = list(zip(x.shape[-2:], window, steps, [(pad, pad) for pad in around], strict=True))
    counts = [_count(*axis, ceil_mode) for axis in axes]
    require_shape((*x.shape[:-2], *counts), outputs)
    pads = [
        (pad, pad + _extra(*axis, count))
        for pad, axis, count in zip(around, axes, counts, strict=True)
    ]
    lead = (1,) * (x.ndim - 2)
    total = jax.lax.reduce_window(
        x, np.zeros((), x.dtype), jax.lax.add,
        (*lead, *window), (*lead, *steps), [(0, 0)] * len(lead) + pads,
    )  # fmt: skip
    if divisor_override:
        divisor: Any = divisor_override
    else:
        rows, columns = (
            _covered(*axis, count, count_include_pad)
            for axis, count in zip(axes, counts, strict=True)
        )
        divisor = jnp.asarray(np.multiply.outer(rows, columns), x.dtype)
    return (total / divisor).astype(floating(self).dtype)


def _covered(
    size: int,
    window: int,
    stride: int,
    pads: tuple[int, int],
    count: int,
    with_pads: bool,
) -> np.ndarray:
    """Returns how many entries count in each window along an axis; past the padding none do."""
    window = min(window, size + sum(pads))
    starts = np.arange(count) * stride - pads[0]
    first, last = (-pads[0], size + pads[1]) if with_pads else (0, size)
    return np.minimum(starts + window, last) - np.maximum(starts, first)


@aclnn("MaxPool")
def max_pool(
    self: Tensor,
    kernel_shape: Ints,
    strides: Ints,
    auto_pad: Int,
    pads: Ints,
    dilations: Ints,
    ceil_mode: Int,
    *,
    outputs: Outputs,
) -> Tensor:
    """The greatest entries of windows of [N, C, H, W] or [C, H, W].

    Args:
      self: the tensor.
      kernel_shape, strides, dilations: one or two numbers each; none for strides or
        dilations is 1, and four dilations must be 1.
      auto_pad: must be 0: padding is explicit.
      pads: two numbers, or four: before both axes, then after both.
      ceil_mode: whether a window may reach past the end.
      outputs: the declared output.
    """
    if auto_pad:
        raise Refused(f"expected autoPad 0; got {auto_pad}", "Pass the padding in pads.")
    return _max_pool(self, kernel_shape, strides, pads, dilations, bool(ceil_mode), outputs)


def _max_pool(
    self: jax.Array,
    kernel_shape: Ints,
    strides: Ints,
    pads: Ints,
    dilations: Ints,
    ceil_mode: bool,
    outputs: Outputs,
) -> jax.Array:
    _check_rank(self)
    window, steps = _pair(kernel_shape, "kernelShape", 1), _pair(strides, "strides", 1, (1,))
    spread = (1, 1) if tuple(dilations) == (1,) * 4 else _pair(dilations, "dilations", 1, (1,))
    four = pads if len(pads) == 4 else _pair(pads, "pads", 0, (0,)) * 2
    if min(four) < 0:
        raise Refused(f"expected pads of 0 or more; got {list(pads)}", "Slice the tensor instead.")
    reach = [(window[n] - 1) * spread[n] + 1 for n in (0, 1)]
    around = [(four[n], four[n + 2]) for n in (0, 1)]
    axes = list(zip(self.shape[-2:], reach, steps, around, strict=True))
    counts = [_count(*axis, ceil_mode) for axis in axes]
    require_shape((*self.shape[:-2], *counts), outputs)
    whole = [
        (before, after + _extra(*axis, count))
        for (before, after), axis, count in zip(around, axes, counts, strict=True)
    ]
    lead = (1,) * (self.ndim - 2)
    return window_extreme(
        "max", self,
        (*lead, *window), (*lead, *steps), [(0, 0)] * len(lead) + whole, (*lead, *spread),
    )  # fmt: skip


@aclnn("MaxPool2dWithMask")
def max_pool_with_mask(
    self: Tensor,
    kernel_size: Ints,
    stride: Ints,
    padding: Ints,
    dilation: Ints,
    ceil_mode: Bool,
    *,
    outputs: Outputs,
) -> tuple[Tensor, Tensor]:
    """The greatest entries of windows, and a mask of where they are.

    The mask is for ``aclnnMaxPool2dWithMaskBackward`` alone: the device's own layout is not
    published. Here a plane per position in the window has a bit per output, lowest bit first.

    Args:
      self: [N, C, H, W] or [C, H, W].
      kernel_size, stride, padding: one or two numbers each; no stride means the kernel's size.
      dilation: must be 1.
      ceil_mode: whether a window may reach past the end.
      outputs: the declared outputs.

    Returns:
      The output; then int8 [N, C, kh * kw, (ceil(oh * ow / 16) + 1) * 32].
    """
    window, steps, counts = _mask_windows(self, kernel_size, stride, padding, dilation, ceil_mode)
    first = None if outputs is None else outputs[:1]
    result = _max_pool(self, window, steps, padding, dilation, ceil_mode, first)
    entries = _patches(self, window, steps, padding, counts)
    # The first position that has the greatest entry, NaN counting as one.
    position = jnp.argmax(entries, axis=-2)
    taken = position[..., None, :] == jnp.arange(math.prod(window))[:, None]
    size_bytes = (-(-taken.shape[-1] // 16) + 1) * 32
    spare = [(0, 0)] * (taken.ndim - 1) + [(0, size_bytes * 8 - taken.shape[-1])]
    bits = jnp.packbits(jnp.pad(taken, spare), axis=-1, bitorder="little")
    return result, jax.lax.bitcast_convert_type(bits, np.int8)


def _mask_windows(
    x: jax.Array, kernel_size: Ints, stride: Ints, padding: Ints, dilation: Ints, ceil_mode: bool
) -> tuple[Ints, Ints, Ints]:
    """Returns the size of the windows, the steps between them and how many there are."""
    _check_rank(x)
    window = _pair(kernel_size, "kernelSize", 1)
    steps = _pair(stride, "stride", 1, window)
    around = _pair(padding, "padding", 0, (0,))
    if any(n != 1 for n in dilation):
        raise Refused(f"expected a dilation of 1; got {list(dilation)}", "Use aclnnMaxPool.")
    if any(2 * pad > size for pad, size in zip(around, window, strict=True)) or any(
        pad >= extent for pad, extent in zip(around, x.shape[-2:], strict=True)
    ):
        raise Refused(
            f"expected padding up to half of {window} and below {x.shape[-2:]}; got {around}",
            "Lower it.",
        )
    axes = zip(x.shape[-2:], window, steps, [(pad, pad) for pad in around], strict=True)
    return window, steps, tuple(_count(*axis, ceil_mode) for axis in axes)


def _patches(x: jax.Array, window: Ints, steps: Ints, padding: Ints, counts: Ints) -> jax.Array:
    """Returns the entries of windows, [..., positions in the window, windows]."""
    around = _pair(padding, "padding", 0, (0,))
    lowest = jnp.asarray(-np.inf if kind_of(x.dtype) == 2 else np.iinfo(x.dtype).min, x.dtype)
    config = [(0, 0, 0)] * (x.ndim - 2) + [
        (pad, max(0, (count - 1) * step + extent - size - pad), 0)
        for pad, count, step, extent, size in zip(
            around, counts, steps, window, x.shape[-2:], strict=True
        )
    ]
    whole = jax.lax.pad(x, lowest, config)
    parts = [
        whole[
            ...,
            row : row + (counts[0] - 1) * steps[0] + 1 : steps[0],
            column : column + (counts[1] - 1) * steps[1] + 1 : steps[1],
        ]
        for row in range(window[0])
        for column in range(window[1])
    ]
    return jnp.stack([part.reshape(*part.shape[:-2], -1) for part in parts], axis=-2)


@aclnn("MaxPool2dWithMaskBackward")
def max_pool_with_mask_backward(
    grad_output: Tensor,
    self: Tensor,
    indices: Tensor,
    kernel_size: Ints,
    stride: Ints,
    padding: Ints,
    dilation: Ints,
    ceil_mode: Bool,
) -> Tensor:
    """The gradient of `MaxPool2dWithMask`: that of an output goes where the mask has its bit."""
    window, steps, counts = _mask_windows(self, kernel_size, stride, padding, dilation, ceil_mode)
    if grad_output.shape != (*self.shape[:-2], *counts):
        raise Refused(
            f"expected gradOutput {(*self.shape[:-2], *counts)}; got {grad_output.shape}",
            "It has the shape of the output.",
        )

    def entries(x: jax.Array) -> jax.Array:
        return _patches(x, window, steps, padding, counts)

    _, pull_back = jax.vjp(entries, self)
    flat = grad_output.reshape(*grad_output.shape[:-2], 1, -1)
    if indices.dtype.itemsize != 1 or indices.shape[-1] * 8 < flat.shape[-1]:
        raise Refused(
            f"expected the mask of aclnnMaxPool2dWithMask; got {indices.dtype}{indices.shape}",
            "Pass its second result.",
        )
    raw = jax.lax.bitcast_convert_type(indices, np.uint8)
    bits = jnp.unpackbits(raw, axis=-1, bitorder="little")[..., : flat.shape[-1]]
    return pull_back(jnp.where(bits == 1, flat, 0).astype(self.dtype))[0]


def _adaptive_edges(size: int, count: int) -> list[tuple[int, int]]:
    """Returns the first and the last of the entries that each of `count` outputs is made of."""
    return [(n * size // count, -((n + 1) * size // -count)) for n in range(count)]


def _adaptive_sizes(x: jax.Array, output_size: Ints, axes: int, outputs: Outputs) -> Ints:
    if x.ndim not in (axes + 1, axes + 2) or len(output_size) not in (1, axes):
        raise Refused(
            f"expected a tensor of rank {axes + 1} or {axes + 2} and {axes} sizes; got {x.shape} "
            f"and {list(output_size)}",
            "One size per axis that is pooled.",
        )
    sizes = output_size if len(output_size) == axes else output_size * axes
    if min(sizes) < 0 or min(x.shape[-axes:]) == 0:
        raise Refused(f"expected sizes above 0; got {list(sizes)} of {x.shape}", "Enlarge them.")
    require_shape((*x.shape[:-axes], *sizes), outputs)
    return sizes


@aclnn("AdaptiveAvgPool3d")
def adaptive_avg_pool3d(self: Tensor, output_size: Ints, *, outputs: Outputs) -> Tensor:
    """The means of windows of [N, C, D, H, W] or [C, D, H, W] that make an output of a size.

    Output n of an axis is made of the entries from ``n * size // count`` to before
    ``ceil((n + 1) * size / count)``.
    """
    x = in_float32(self)
    for axis, count in enumerate(_adaptive_sizes(self, output_size, 3, outputs), x.ndim - 3):
        # A matrix per axis: the mean over a box is the mean of means.
        share = np.zeros((x.shape[axis], count), x.dtype)
        for n, (first, last) in enumerate(_adaptive_edges(x.shape[axis], count)):
            share[first:last, n] = 1 / (last - first)
        x = jnp.moveaxis(jnp.tensordot(x, share, (axis, 0), precision="highest"), -1, axis)
    return x.astype(floating(self).dtype)


@aclnn("AdaptiveMaxPool2d")
def adaptive_max_pool2d(
    self: Tensor, output_size: Ints, *, outputs: Outputs
) -> tuple[Tensor, Tensor]:
    """The greatest entries of windows that make an output of a size, and where they are.

    The windows are those of ``aclnnAdaptiveAvgPool3d``, of [N, C, H, W] or [C, H, W]; a position is
    ``row * W + column``.
    """
    first = None if outputs is None else outputs[:1]
    rows, columns = _adaptive_sizes(self, output_size, 2, first)
    height, width = self.shape[-2:]
    numbers = np.arange(height * width).reshape(height, width)
    windows = [
        numbers[top:bottom, left:right].reshape(-1)
        for top, bottom in _adaptive_edges(height, rows)
        for left, right in _adaptive_edges(width, columns)
    ]
    # Windows of one length: the first position of a shorter one is there several times.
    longest = max(map(len, windows), default=1)
    filled = [np.pad(one, (longest - len(one), 0), mode="edge") for one in windows]
    positions = np.array(filled, np.int64).reshape(-1, longest)
    entries = self.reshape(*self.shape[:-2], -1)[..., positions]
    best = jnp.argmax(entries, axis=-1, keepdims=True)
    value = jnp.take_along_axis(entries, best, axis=-1)[..., 0]
    everywhere = jnp.broadcast_to(positions, entries.shape)
    position = jnp.take_along_axis(everywhere, best, axis=-1)[..., 0]
    shape = (*self.shape[:-2], rows, columns)
    return value.reshape(shape), position.reshape(shape)
