"""Rotary position embedding.

Source: J. Su et al., "RoFormer", 2021; the modes are layouts of the pairs that are rotated.
"""

from __future__ import annotations

import jax
import jax.numpy as jnp

from msops._ascend.aclnn.dtypes import in_float32
from msops._ascend.aclnn.kinds import Int, Tensor, Text, UpdatedTensor
from msops._ascend.aclnn.refusal import Refused
from msops._ascend.aclnn.table import aclnn


@aclnn("RotaryPositionEmbedding")
def rotary_embedding(x: Tensor, cos: Tensor, sin: Tensor, mode: Int) -> Tensor:
    """``x * cos + rotated(x) * sin``, which turns pairs (a, b) of entries: rotated is (-b, a).

    Args:
      x: [..., D].
      cos, sin: tensors that broadcast against `x`.
      mode: where the pairs are. 0: a in the first half, b in the second; 1: side by side; 2: as 0
        in each half of `x`; 3: side by side in `x`, in halves in the result.
    """
    wide = in_float32(x)
    straight, turned = _pairs(wide, mode)
    return (straight * in_float32(cos) + turned * in_float32(sin)).astype(x.dtype)


def _pairs(x: jax.Array, mode: int) -> tuple[jax.Array, jax.Array]:
    """Returns x as the result has it, and its pairs turned by 90 degrees."""
    if mode not in (0, 1, 2, 3):
        raise Refused(f"expected mode 0, 1, 2 or 3; got {mode}", "0 is half, 1 interleaved.")
    parts = 4 if mode == 2 else 2
    if not x.ndim or x.shape[-1] % parts:
        raise Refused(
            f"expected a last axis that is a multiple of {parts}; got {x.shape}", "Pad it."
        )
    if mode in (1, 3):
        a, b = x[..., ::2], x[..., 1::2]
        if mode == 3:
            return jnp.concatenate([a, b], -1), jnp.concatenate([-b, a], -1)
        return x, jnp.stack([-b, a], -1).reshape(x.shape)
    pieces = jnp.split(x, parts, axis=-1)
    turned = [piece for a, b in zip(pieces[::2], pieces[1::2], strict=True) for piece in (-b, a)]
    return x, jnp.concatenate(turned, -1)


_MODES = {"half": 0, "interleave": 1, "quarter": 2}


@aclnn("ApplyRotaryPosEmbV2")
def apply_rotary_embedding(
    query_ref: UpdatedTensor,
    key_ref: UpdatedTensor,
    cos: Tensor,
    sin: Tensor,
    layout: Int,
    rotary_mode: Text,
) -> tuple[Tensor, Tensor]:
    """`rotary_embedding` of queries and keys, in place.

    Args:
      query_ref, key_ref: [B, S, heads, D].
      cos, sin: [B, S, 1, D].
      layout: must be 1, which is these axes.
      rotary_mode: "half", "interleave" or "quarter": where the pairs are.
    """
    if layout != 1 or rotary_mode not in _MODES:
        raise Refused(
            f"expected layout 1 (BSND) and rotaryMode {', '.join(_MODES)}; got {layout} and "
            f"{rotary_mode!r}",
            "Transpose the tensors.",
        )
    mode = _MODES[rotary_mode]
    return rotary_embedding(query_ref, cos, sin, mode), rotary_embedding(key_ref, cos, sin, mode)


@aclnn("RotaryPositionEmbeddingGrad")
def rotary_embedding_grad(
    dy: Tensor, cos: Tensor, sin: Tensor, x: Tensor | None, mode: Int
) -> tuple[Tensor, Tensor | None, Tensor | None]:
    """The gradients of `rotary_embedding` for x, cos and sin; without `x` those of the last two
    are zero."""
    like = jnp.zeros_like(dy) if x is None else x

    def forward(x: jax.Array, cos: jax.Array, sin: jax.Array) -> jax.Array:
        return rotary_embedding(x, cos, sin, mode)

    _, pull_back = jax.vjp(forward, like, cos, sin)
    return pull_back(dy.astype(like.dtype))
