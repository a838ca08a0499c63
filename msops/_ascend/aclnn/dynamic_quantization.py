"""Numbers to integers of a scale that comes from the numbers themselves.

Source: the pages of these operators in CANN's ops-nn.
"""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np

from msops._ascend.aclnn.dtypes import in_float32
from msops._ascend.aclnn.kinds import Int, Tensor, Text
from msops._ascend.aclnn.outputs import Outputs
from msops._ascend.aclnn.quantization import to_integers
from msops._ascend.aclnn.refusal import Refused
from msops._ascend.aclnn.table import aclnn
from msops._base import extremes

_INT8 = np.dtype(np.int8)


@aclnn("DynamicQuant")
def dynamic_quant(
    x: Tensor, smooth_scales: Tensor | None, *, outputs: Outputs
) -> tuple[Tensor, Tensor]:
    """Each row of the last axis as Int8, divided by a scale with which its greatest entry is 127.

    Args:
      x: [..., H].
      smooth_scales: [H], factors ahead of that, or None.
      outputs: the first is Int8.

    Returns:
      The integers, and Float32 scales of shape [...]; a row of zeros stays one.
    """
    if outputs is not None and outputs[0] is not None and outputs[0].dtype != _INT8:
        raise Refused(f"expected an Int8 output; got {outputs[0].dtype}", "Int4 is not supported.")
    wide = in_float32(x)
    if smooth_scales is not None:
        wide = wide * _row(smooth_scales, wide, "smoothScales")
    return _by_its_maximum(wide)


def _by_its_maximum(x: jax.Array) -> tuple[jax.Array, jax.Array]:
    if not x.ndim:
        raise Refused("expected an axis; got a number", "Reshape it.")
    greatest = extremes.amax(jnp.abs(x), -1) if x.shape[-1] else jnp.zeros(x.shape[:-1], x.dtype)
    scale = greatest / 127
    steps = x / jnp.where(scale == 0, 1, scale)[..., None]
    return to_integers(steps, _INT8), scale.astype(np.float32)


def _row(values: jax.Array, x: jax.Array, name: str) -> jax.Array:
    if not x.ndim or values.shape not in ((1,), x.shape[-1:]):
        raise Refused(
            f"expected {name} of the last axis of {x.shape}; got {values.shape}", "One per column."
        )
    return in_float32(values)


@aclnn("GeluQuant")
def gelu_quant(
    self: Tensor,
    input_scale: Tensor | None,
    input_offset: Tensor | None,
    approximate: Text,
    quant_mode: Text,
    round_mode: Text,
    dst_type: Int,
) -> tuple[Tensor, Tensor | None]:
    """GELU as Int8: times a scale plus an offset, or by the greatest entry of each row.

    Args:
      self: [..., H].
      input_scale: [H] or [1]; None only with "dynamic".
      input_offset: the same, with "static", or None.
      approximate: "none" (by erf) or "tanh".
      quant_mode: "static" or "dynamic".
      round_mode: must be "rint": halves to even.
      dst_type: must be 2, Int8.

    Returns:
      The integers; with "dynamic" also the scales, [...].
    """
    if approximate not in ("none", "tanh") or quant_mode not in ("static", "dynamic"):
        raise Refused(
            "expected approximate 'none' or 'tanh' and quantMode 'static' or 'dynamic'; got "
            f"{approximate!r} and {quant_mode!r}",
            "Pass one of these.",
        )
    if dst_type != 2 or round_mode != "rint":
        raise Refused(
            f"expected dstType 2 (Int8) with roundMode 'rint'; got {dst_type} and {round_mode!r}",
            "Floats of 8 bits are not supported.",
        )
    y = jax.nn.gelu(in_float32(self), approximate=approximate == "tanh")
    if input_scale is not None:
        y = y * _row(input_scale, y, "inputScale")
    if quant_mode == "dynamic":
        if input_offset is not None:
            raise Refused("expected no inputOffset with 'dynamic'; got one", "Leave it out.")
        return _by_its_maximum(y)
    if input_scale is None:
        raise Refused("expected an inputScale with 'static'; got none", "Pass one, 1 for none.")
    offset = 0 if input_offset is None else _row(input_offset, y, "inputOffset")
    return to_integers(y + offset, _INT8), None
