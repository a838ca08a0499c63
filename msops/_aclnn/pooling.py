"""Pooling over the last two axes."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from msops._aclnn.dtypes import floating, in_float32, kind_of
from msops._aclnn.kinds import Bool, Int, Ints, Tensor
from msops._aclnn.refusal import Refused
from msops._aclnn.table import aclnn


def _pair(values: Ints, name: str, default: Ints = ()) -> tuple[int, int]:
    values = values or default
    if len(values) not in (1, 2):
        raise Refused(f"expected 1 or 2 numbers for {name}; got {list(values)}", "One per axis.")
    return values[0], values[-1]


def _extra(size: int, window: int, stride: int, pads: tuple[int, int], ceil_mode: bool) -> int:
    """Returns how far windows reach past the padding: a partial one counts in ceil mode, unless
    it would start in the padding behind the tensor."""
    space = size + sum(pads) - window
    if space < 0:
        raise Refused(
            f"a window of {window} does not fit {size} entries padded by {pads}", "Pad more."
        )
    steps = space // stride
    if ceil_mode and space % stride and (steps + 1) * stride < size + pads[0]:
        steps += 1
    return max(0, steps * stride - space)


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
) -> Tensor:
    """The means of windows of [N, C, H, W] or [C, H, W].

    Args:
      self: the tensor.
      kernel_size, strides, paddings: one or two numbers each; no strides means the kernel's size.
      ceil_mode: whether a window may reach past the end.
      count_include_pad: whether padding counts in the divisor.
      divisor_override: the divisor, 0 for the number of entries.
      cube_math_type: has no effect here.
    """
    _check_rank(self)
    window = _pair(kernel_size, "kernelSize")
    steps = _pair(strides, "strides", window)
    around = _pair(paddings, "paddings", (0,))
    if any(2 * pad > size for pad, size in zip(around, window, strict=True)):
        raise Refused(f"expected padding up to half of {window}; got {around}", "Lower it.")
    x = in_float32(self)
    sizes = x.shape[-2:]
    over = [
        _extra(sizes[n], window[n], steps[n], (around[n], around[n]), ceil_mode) for n in (0, 1)
    ]
    pads = [(around[n], around[n] + over[n]) for n in (0, 1)]
    total = _windows(x, np.zeros((), x.dtype), jax.lax.add, window, steps, pads)
    if divisor_override:
        count: Any = divisor_override
    else:
        # What counts is marked by ones; what lies past the padding never counts.
        ones = np.ones(sizes, x.dtype)
        if count_include_pad:
            ones = np.pad(ones, [(pad, pad) for pad in around], constant_values=1)
            pads = [(0, over[n]) for n in (0, 1)]
        count = _windows(jnp.asarray(ones), np.zeros((), x.dtype), jax.lax.add, window, steps, pads)
    return (total / count).astype(floating(self).dtype)


@aclnn("MaxPool")
def max_pool(
    self: Tensor,
    kernel_shape: Ints,
    strides: Ints,
    auto_pad: Int,
    pads: Ints,
    dilations: Ints,
    ceil_mode: Int,
) -> Tensor:
    """The greatest entries of windows of [N, C, H, W] or [C, H, W].

    Args:
      self: the tensor.
      kernel_shape, strides, dilations: one or two numbers each; none for strides or dilations is 1.
      auto_pad: must be 0: padding is explicit.
      pads: two numbers, or four: before both axes, then after both.
      ceil_mode: whether a window may reach past the end.
    """
    _check_rank(self)
    if auto_pad:
        raise Refused(f"expected autoPad 0; got {auto_pad}", "Pass the padding in pads.")
    window = _pair(kernel_shape, "kernelShape")
    steps, spread = _pair(strides, "strides", (1,)), _pair(dilations, "dilations", (1,))
    four = pads if len(pads) == 4 else _pair(pads, "pads", (0,)) * 2
    reach = [(window[n] - 1) * spread[n] + 1 for n in (0, 1)]
    around = [(four[n], four[n + 2]) for n in (0, 1)]
    over = [
        _extra(self.shape[n - 2], reach[n], steps[n], around[n], bool(ceil_mode)) for n in (0, 1)
    ]
    whole = [(around[n][0], around[n][1] + over[n]) for n in (0, 1)]
    floats = kind_of(self.dtype) == 2
    lowest = self.dtype.type(-np.inf) if floats else np.iinfo(self.dtype).min
    initial = np.asarray(lowest, self.dtype)
    return _windows(self, initial, jax.lax.max, window, steps, whole, spread)
