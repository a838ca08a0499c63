"""Scaled dot-product attention, with masks, dropout and shared heads.

The device computes it in tiles; the results are those of the formula, whose intermediate values
here are as large as the matrix of scores.

Source: T. Dao et al., "FlashAttention", 2022; the order of shift and scale is that of MindSpore
2.7.2, ``ops.flash_attention_score``.
"""

from __future__ import annotations

import dataclasses

import jax
import jax.numpy as jnp

from msops._ascend.aclnn.activations import unpack_mask
from msops._ascend.aclnn.dtypes import in_float32
from msops._ascend.aclnn.kinds import Float, Int, Ints, Tensor, Text
from msops._ascend.aclnn.refusal import Refused
from msops._ascend.aclnn.table import aclnn
from msops._base import extremes

# The axes of each layout in the order batch, heads, sequence, channels; H is heads and channels.
_LAYOUTS = {"BNSD": "BNSD", "BSND": "BSND", "BSH": "BSH", "SBH": "SBH"}
_COPIES = 8
"""How often the device has each row's maximum and sum, side by side."""


def masked_softmax(scores: jax.Array, hidden: jax.Array) -> tuple[jax.Array, jax.Array, jax.Array]:
    """Returns the shares of the scores along the last axis, and maximum and sum of each row.

    Args:
      scores: [..., S].
      hidden: which of them are left out, as something that broadcasts against them.
    """
    scores = jnp.where(hidden, jnp.finfo(scores.dtype).min, scores)
    most = jax.lax.stop_gradient(extremes.amax(scores, axis=-1, keepdims=True))
    # A row of which nothing is seen gives zeros, not a mean.
    weights = jnp.where(hidden, 0, jnp.exp(scores - most))
    total = jnp.sum(weights, axis=-1, keepdims=True)
    return weights / jnp.where(total == 0, 1, total), most, total


@dataclasses.dataclass(frozen=True)
class _Attention:
    """The arguments of attention, beside query, key and value."""

    drop_mask: jax.Array | None
    atten_mask: jax.Array | None
    scale: float
    keep_prob: float
    before: int
    after: int
    sparse_mode: int

    def __call__(
        self, q: jax.Array, k: jax.Array, v: jax.Array, shift: jax.Array | None
    ) -> tuple[jax.Array, jax.Array, jax.Array]:
        """Returns the output, and maximum and sum of each row, of arrays [B, N, S, D]."""
        q, k, v = map(in_float32, (q, k, v))
        group = q.shape[1] // k.shape[1]
        k, v = (jnp.repeat(one, group, axis=1) for one in (k, v))
        scores = jnp.einsum("bnid,bnjd->bnij", q, k, precision="highest")
        if shift is not None:
            scores = scores + in_float32(shift)
        scores = scores * self.scale
        shares, most, total = masked_softmax(scores, self._hidden(scores))
        if self.drop_mask is not None and self.keep_prob < 1:
            kept = unpack_mask(self.drop_mask, shares.shape)
            shares = jnp.where(kept, shares / self.keep_prob, 0)
        return jnp.einsum("bnij,bnjd->bnid", shares, v, precision="highest"), most, total

    def _hidden(self, scores: jax.Array) -> jax.Array:
        """Returns which scores are masked, as something that broadcasts against them."""
        rows, columns = scores.shape[-2:]
        distance = jnp.arange(columns) - jnp.arange(rows)[:, None]
        match self.sparse_mode:
            case 0 | 1 if self.atten_mask is None:
                return jnp.zeros((), bool)
            case 0 | 1:
                mask = jnp.not_equal(jnp.asarray(self.atten_mask), 0)
                if mask.ndim < 2 or mask.shape[-2:] != (rows, columns):
                    raise Refused(
                        f"expected an attenMask [..., {rows}, {columns}]; got {mask.shape}",
                        "It has an entry for each pair of query and key.",
                    )
                if self.sparse_mode == 1:
                    return mask
                return mask | (distance > self.after) | (distance < -self.before)
            case 2:
                return distance > 0
            case 3:
                return distance > columns - rows
            case 4:
                last = distance - (columns - rows)
                return (last > self.after) | (last < -self.before)
        raise Refused(f"expected sparseMode 0 to 4; got {self.sparse_mode}", "Pass an attenMask.")


def _to_heads(x: jax.Array, layout: str, heads: int) -> jax.Array:
    """Returns a tensor of a layout as [B, N, S, D]."""
    axes = _LAYOUTS.get(layout)
    if axes is None or x.ndim != len(axes):
        raise Refused(
            f"expected one of the layouts {', '.join(_LAYOUTS)}, and tensors of its rank; got "
            f"{layout!r} and {x.shape}",
            "Permute the tensors.",
        )
    if "H" in axes:
        if not heads or x.shape[-1] % heads:
            raise Refused(f"{x.shape[-1]} channels are not {heads} heads", "Check headNum.")
        x = x.reshape(*x.shape[:-1], heads, x.shape[-1] // heads)
        axes = axes.replace("H", "ND")
    return x.transpose([axes.index(axis) for axis in "BNSD"])


def _from_heads(x: jax.Array, layout: str) -> jax.Array:
    """Returns [B, N, S, D] in a layout."""
    axes = _LAYOUTS[layout].replace("H", "ND")
    x = x.transpose(["BNSD".index(axis) for axis in axes])
    return x.reshape(*x.shape[:-2], -1) if "H" in _LAYOUTS[layout] else x


def _key_heads(query: jax.Array, key: jax.Array, layout: str, heads: int) -> int:
    """Returns the number of heads that a key has, where several of the query share one."""
    if heads < 1:
        raise Refused(f"expected a headNum above 0; got {heads}", "It is that of the query.")
    if "H" not in layout:
        return 0
    channels = query.shape[-1] // heads
    return key.shape[-1] // channels if channels else 0


def _check(q: jax.Array, k: jax.Array, v: jax.Array, heads: int) -> None:
    fits = (
        q.shape[1] == heads
        and k.shape[1] > 0
        and heads % k.shape[1] == 0
        and k.shape[:3] == v.shape[:3]
        and (q.shape[0], q.shape[3]) == (k.shape[0], k.shape[3])
    )
    if not fits:
        raise Refused(
            f"query, key and value do not fit: [B, N, S, D] are {q.shape}, {k.shape}, {v.shape}, "
            f"and headNum {heads}",
            "The heads of the key divide those of the query.",
        )


@aclnn("FlashAttentionScore")
def flash_attention(
    query: Tensor,
    key: Tensor,
    value: Tensor,
    real_shift: Tensor | None,
    drop_mask: Tensor | None,
    padding_mask: Tensor | None,
    atten_mask: Tensor | None,
    prefix: Ints | None,
    scale_value: Float,
    keep_prob: Float,
    pre_tokens: Int,
    next_tokens: Int,
    head_num: Int,
    input_layout: Text,
    inner_precise: Int,
    sparse_mode: Int,
) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    """``dropout(softmax(mask(scale * (query @ key.T + shift)))) @ value``.

    Args:
      query, key, value: in `input_layout`: [B, N, S, D] ("BNSD"), "BSND", "BSH" or "SBH", where H
        is N * D. Several heads of the query may share one of the key.
      real_shift: added to the products, broadcast to [B, N, Sq, Sk], or None.
      drop_mask: a bit per score, as ``aclnnDropoutGenMask`` makes it, or None.
      padding_mask: must be None.
      atten_mask: 1 where a score is hidden, [Sq, Sk] or with axes of batch and heads in front.
      prefix: must be None.
      scale_value: the factor of the products.
      keep_prob: the part that `drop_mask` keeps.
      pre_tokens, next_tokens: how far before and after itself a query sees, for modes 0 and 4.
      head_num: N of the query.
      input_layout: see `query`.
      inner_precise: has no effect here.
      sparse_mode: 0: `atten_mask` and, with one, `pre_tokens` and `next_tokens`; 1: `atten_mask`;
        2: no key after the query, counted from the first; 3: counted from the last; 4: a band of
        `pre_tokens` and `next_tokens`, counted from the last.

    Returns:
      Maximum and sum of each row of scores, [B, N, Sq, 8] in Float32, each eight times; nothing
      (an empty tensor, as on the device); the output in the layout and dtype of the query.
    """
    if padding_mask is not None or prefix:
        raise Refused("expected no paddingMask and no prefix; got one", "Use attenMask.")
    if not 0 < keep_prob <= 1:
        raise Refused(f"expected keepProb above 0, up to 1; got {keep_prob}", "1 keeps all.")
    attend = _Attention(
        drop_mask, atten_mask, scale_value, keep_prob, pre_tokens, next_tokens, sparse_mode
    )
    q = _to_heads(query, input_layout, head_num)
    shared = _key_heads(query, key, input_layout, head_num)
    k, v = (_to_heads(one, input_layout, shared) for one in (key, value))
    _check(q, k, v, head_num)
    y, most, total = attend(q, k, v, real_shift)
    copies = (*most.shape[:-1], _COPIES)
    return (
        jnp.broadcast_to(most, copies),
        jnp.broadcast_to(total, copies),
        jnp.zeros((0,), query.dtype),
        _from_heads(y, input_layout).astype(query.dtype),
    )


@aclnn("FlashAttentionScoreGrad")
def flash_attention_grad(
    query: Tensor,
    key: Tensor,
    value: Tensor,
    dy: Tensor,
    pse_shift: Tensor | None,
    drop_mask: Tensor | None,
    padding_mask: Tensor | None,
    atten_mask: Tensor | None,
    softmax_max: Tensor | None,
    softmax_sum: Tensor | None,
    softmax_in: Tensor | None,
    attention_in: Tensor | None,
    prefix: Ints | None,
    scale_value: Float,
    keep_prob: Float,
    pre_tokens: Int,
    next_tokens: Int,
    head_num: Int,
    input_layout: Text,
    inner_precise: Int,
    sparse_mode: Int,
) -> tuple[Tensor, Tensor, Tensor, Tensor | None]:
    """The gradients of `flash_attention` for query, key, value and the shift.

    What the forward operator returned is not needed: it is computed again. The other parameters are
    those of `flash_attention`. Without a shift its gradient is empty.
    """
    shift = jnp.zeros((), jnp.float32) if pse_shift is None else pse_shift

    def forward(q: jax.Array, k: jax.Array, v: jax.Array, shift: jax.Array) -> jax.Array:
        return flash_attention(
            *(q, k, v, None if pse_shift is None else shift, drop_mask, padding_mask),
            *(atten_mask, prefix, scale_value, keep_prob, pre_tokens, next_tokens),
            *(head_num, input_layout, inner_precise, sparse_mode),
        )[3]

    y, pull_back = jax.vjp(forward, query, key, value, shift)
    dq, dk, dv, dshift = pull_back(dy.astype(y.dtype))
    return dq, dk, dv, jnp.zeros((0,), query.dtype) if pse_shift is None else dshift
