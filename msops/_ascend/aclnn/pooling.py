"""Pooling over the last two axes."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from msops._ascend.aclnn.dtypes import floating, in_float32, kind_of
from msops._ascend.aclnn.kinds import Bool, Int, Ints, Tensor
from msops._ascend.aclnn.outputs import Outputs, require_shape
from msops._ascend.aclnn.refusal import Refused
from msops._ascend.aclnn.table import aclnn


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


def _windows(
    x: jax.Array,
    initial: Any,
    combine: Callable[..., Any],
    window: tuple[int, int],
    strides: tuple[int, int],
    pads: list[tuple[int, int]],
    dilations: tuple[int, int] = (1, 1),
) -> jax.Array:
    lead = (1,) * (x.ndim - 2)
    return jax.lax.reduce_window(
        x,
        initial,
        combine,
        (*lead, *window),
        (*lead, *strides),
        [(0, 0)] * (x.ndim - 2) + pads,
        window_dilation=(*lead, *dilations),
    )


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
    total = _windows(x, np.zeros((), x.dtype), jax.lax.add, window, steps, pads)
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
      kernel_shape, strides, dilations: one or two numbers each; none for strides or dilations is 1.
      auto_pad: must be 0: padding is explicit.
      pads: two numbers, or four: before both axes, then after both.
      ceil_mode: whether a window may reach past the end.
      outputs: the declared output.
    """
    _check_rank(self)
    if auto_pad:
        raise Refused(f"expected autoPad 0; got {auto_pad}", "Pass the padding in pads.")
    window, steps = _pair(kernel_shape, "kernelShape", 1), _pair(strides, "strides", 1, (1,))
    spread = _pair(dilations, "dilations", 1, (1,))
    four = pads if len(pads) == 4 else _pair(pads, "pads", 0, (0,)) * 2
    if min(four) < 0:
        raise Refused(f"expected pads of 0 or more; got {list(pads)}", "Slice the tensor instead.")
    reach = [(window[n] - 1) * spread[n] + 1 for n in (0, 1)]
    around = [(four[n], four[n + 2]) for n in (0, 1)]
    axes = list(zip(self.shape[-2:], reach, steps, around, strict=True))
    counts = [_count(*axis, bool(ceil_mode)) for axis in axes]
    require_shape((*self.shape[:-2], *counts), outputs)
    whole = [
        (before, after + _extra(*axis, count))
        for (before, after), axis, count in zip(around, axes, counts, strict=True)
    ]
    floats = kind_of(self.dtype) == 2
    lowest = self.dtype.type(-np.inf) if floats else np.iinfo(self.dtype).min
    initial = np.asarray(lowest, self.dtype)
    return _windows(self, initial, jax.lax.max, window, steps, whole, spread)
