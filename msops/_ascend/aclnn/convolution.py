"""Convolution and its gradients, over one to three axes.

In the formulas x is the input [N, C, ...], w the weight [O, C / groups, ...] and y the output.
"""

from __future__ import annotations

import jax
import jax.numpy as jnp

from msops._ascend.aclnn.dtypes import floating, promote
from msops._ascend.aclnn.kinds import Bool, Bools, CubeMathType, Int, Ints, Tensor
from msops._ascend.aclnn.outputs import Outputs, require_shape
from msops._ascend.aclnn.refusal import Refused, WrongShape
from msops._ascend.aclnn.table import aclnn


@aclnn("Convolution")
def convolution(
    input: Tensor,
    weight: Tensor,
    bias: Tensor | None,
    stride: Ints,
    padding: Ints,
    dilation: Ints,
    transposed: Bool,
    output_padding: Ints,
    groups: Int,
    cube_math_type: CubeMathType = 0,
    *,
    outputs: Outputs,
) -> Tensor:
    """The cross-correlation of `input` with `weight`; its transpose if `transposed`.

    Args:
      input: [N, C, ...] with one to three axes behind, or without N.
      weight: [O, C / groups, ...]; if `transposed` [C, O / groups, ...].
      bias: [O], or None.
      stride, dilation: one number per axis, or one for all.
      padding: the same; zeros on both sides of an axis. Two numbers per axis are before and after.
      transposed: whether to apply the transpose of the convolution with these arguments.
      output_padding: how many entries a transposed result is longer by.
      groups: into how many groups the channels are divided.
      cube_math_type: has no effect here.
      outputs: the declared output.

    Returns:
      [N, O, ...].
    """
    arguments = (stride, padding, dilation, transposed, output_padding, groups)
    return _convolve(input, weight, bias, *arguments, outputs)


def _convolve(
    input: jax.Array,
    weight: jax.Array,
    bias: jax.Array | None,
    stride: Ints,
    padding: Ints,
    dilation: Ints,
    transposed: bool,
    output_padding: Ints,
    groups: int,
    outputs: Outputs,
) -> jax.Array:
    rank = weight.ndim - 2
    if rank not in (1, 2, 3) or input.ndim not in (rank + 1, rank + 2):
        raise Refused(
            f"expected an input [N, C, ...] and a weight of one rank from 3 to 5; got "
            f"{input.shape} and {weight.shape}",
            "Reshape them.",
        )
    steps, spread = _per_axis(stride, rank, "stride", 1), _per_axis(dilation, rank, "dilation", 1)
    pads = _pads(padding, rank)
    longer = _per_axis(output_padding, rank, "outputPadding", 0) if transposed else (0,) * rank
    has_batch = input.ndim == rank + 2
    x, w = map(floating, promote(input if has_batch else input[None], weight))
    channels = weight.shape[0] if transposed else weight.shape[1] * groups
    if groups < 1 or x.shape[1] != channels or weight.shape[0] % groups:
        raise Refused(
            f"channels do not fit: an input {input.shape}, a weight {weight.shape}, {groups} "
            "groups",
            "A weight is [O, C / groups, ...], or [C, O / groups, ...] if transposed.",
        )
    # Before anything is computed: XLA cannot count sizes beyond 64 bits.
    axes = list(zip(x.shape[2:], w.shape[2:], steps, pads, spread, longer, strict=True))
    extents = [(_extent_back if transposed else _extent)(*axis) for axis in axes]
    if min(extents) < 1:
        raise Refused(f"a window of {w.shape[2:]} does not fit {x.shape[2:]} entries", "Pad more.")
    outer = weight.shape[1] * groups if transposed else weight.shape[0]
    require_shape((*input.shape[: input.ndim - rank - 1], outer, *extents), outputs)
    # What no entry is moved by means what 1 does.
    spread = tuple(n if k > 1 else 1 for n, k in zip(spread, w.shape[2:], strict=True))
    if transposed:
        steps = tuple(n if size > 1 else 1 for n, size in zip(steps, x.shape[2:], strict=True))
        y = _transposed(x, w, steps, pads, spread, longer, groups)
    else:
        steps = tuple(n if extent > 1 else 1 for n, extent in zip(steps, extents, strict=True))
        pads = [
            (before, (extent - 1) * n + d * (k - 1) + 1 - size - before)
            for extent, n, d, k, size, (before, _) in zip(
                extents, steps, spread, w.shape[2:], x.shape[2:], pads, strict=True
            )
        ]
        y = jax.lax.conv_general_dilated(
            x, w, steps, pads, rhs_dilation=spread, feature_group_count=groups
        )
    y = y if bias is None else y + bias.astype(y.dtype).reshape(-1, *[1] * rank)
    return y if has_batch else y[0]


def _extent(
    size: int, window: int, step: int, pads: tuple[int, int], spread: int, longer: int
) -> int:
    """Returns the size of an axis of a convolution."""
    space = size + sum(pads) - spread * (window - 1) - 1
    return space // step + 1


def _extent_back(
    size: int, window: int, step: int, pads: tuple[int, int], spread: int, longer: int
) -> int:
    """Returns the size of an axis of a transposed convolution."""
    return (size - 1) * step - sum(pads) + spread * (window - 1) + 1 + longer


def _transposed(
    x: jax.Array,
    w: jax.Array,
    steps: Ints,
    pads: list[tuple[int, int]],
    spread: Ints,
    longer: Ints,
    groups: int,
) -> jax.Array:
    """A convolution of x with gaps between its entries and the weight backwards.

    Source: V. Dumoulin, F. Visin, "A guide to convolution arithmetic", 2016, chapter 4.
    """
    window = w.shape[2:]
    around = [
        (size * (n - 1) - before, size * (n - 1) - after + extra)
        for size, n, (before, after), extra in zip(spread, window, pads, longer, strict=True)
    ]
    # [C, O / groups, ...] to [O, C / groups, ...]: the groups are apart.
    parts = w.reshape(groups, w.shape[0] // groups, *w.shape[1:]).swapaxes(1, 2)
    kernel = jnp.flip(parts.reshape(-1, w.shape[0] // groups, *window), range(2, w.ndim))
    return jax.lax.conv_general_dilated(
        x,
        kernel,
        (1,) * len(window),
        around,
        lhs_dilation=steps,
        rhs_dilation=spread,
        feature_group_count=groups,
    )


def _per_axis(values: Ints, rank: int, name: str, least: int) -> Ints:
    if len(values) not in (1, rank) or min(values) < least:
        raise Refused(
            f"expected {rank} numbers of {least} or more for {name}; got {list(values)}",
            "One per axis, or one for all.",
        )
    return values if len(values) == rank else values * rank


def _pads(padding: Ints, rank: int) -> list[tuple[int, int]]:
    if len(padding) == 2 * rank and rank > 1 and min(padding) >= 0:
        return list(zip(padding[::2], padding[1::2], strict=True))
    return [(pad, pad) for pad in _per_axis(padding, rank, "padding", 0)]


@aclnn("ConvolutionBackward")
def convolution_backward(
    grad_output: Tensor,
    input: Tensor,
    weight: Tensor,
    bias_sizes: Ints | None,
    stride: Ints,
    padding: Ints,
    dilation: Ints,
    transposed: Bool,
    output_padding: Ints,
    groups: Int,
    output_mask: Bools,
    cube_math_type: Int,
) -> tuple[Tensor, Tensor, Tensor]:
    """The gradients of `convolution` for input, weight and bias.

    The convolution is linear in each, so they are its transposes; the bias's is the sum of
    `grad_output` over all axes but the channels.

    Args:
      grad_output: the gradient of the output.
      input, weight, stride, padding, dilation, transposed, output_padding, groups: as there.
      bias_sizes: [O], or None; has no effect here.
      output_mask: which of the gradients are wanted; has no effect here.
      cube_math_type: has no effect here.

    Returns:
      The gradients of input, weight and bias.
    """
    arguments = (stride, padding, dilation, transposed, output_padding, groups)
    outputs = [jax.ShapeDtypeStruct(grad_output.shape, grad_output.dtype)]

    def forward(x: jax.Array, w: jax.Array) -> jax.Array:
        return _convolve(x, w, None, *arguments, outputs)

    try:
        y, pull_back = jax.vjp(forward, input, weight)
    except WrongShape as error:
        raise Refused(
            f"expected gradOutput {error.shape}; got {grad_output.shape}",
            "It has the shape of the output.",
        ) from error
    dx, dw = pull_back(grad_output.astype(y.dtype))
    channel = grad_output.ndim - weight.ndim + 1
    over = tuple(n for n in range(grad_output.ndim) if n != channel)
    return dx, dw, jnp.sum(grad_output, axis=over)
