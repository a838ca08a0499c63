"""Caches of keys and values, in blocks: written in place, and read.

Source: the pages of these operators in CANN's ops-transformer, and MindSpore's ms_custom_ops.
"""

from __future__ import annotations

import math

import jax
import jax.numpy as jnp
import numpy as np

from msops._ascend.aclnn.dtypes import in_float32
from msops._ascend.aclnn.indexing import check_indices
from msops._ascend.aclnn.kinds import Bool, Float, Tensor, Text, UpdatedTensor
from msops._ascend.aclnn.normalization import rms_norm
from msops._ascend.aclnn.outputs import Outputs
from msops._ascend.aclnn.quantization import to_integers
from msops._ascend.aclnn.refusal import Refused
from msops._ascend.aclnn.rotary import rotary_embedding
from msops._ascend.aclnn.table import aclnn


@aclnn("ScatterPaCache")
def scatter_cache(
    key: Tensor,
    key_cache_ref: UpdatedTensor,
    slot_mapping: Tensor,
    compress_lens: Tensor | None,
    compress_seq_offset: Tensor | None,
    seq_lens: Tensor | None,
    cache_mode: Text | None,
) -> Tensor:
    """Stores tokens in the slots of a cache that has them in blocks.

    Args:
      key: [tokens, heads, D].
      key_cache_ref: [blocks, block size, heads, D].
      slot_mapping: [tokens], where each goes: block times block size, plus the place there.
      compress_lens, compress_seq_offset, seq_lens: must be None.
      cache_mode: has no effect.
    """
    if any(one is not None for one in (compress_lens, compress_seq_offset, seq_lens)):
        raise Refused("expected a key of rank 3 and no lengths; got some", "Compress it before.")
    return store_tokens(key_cache_ref, slot_mapping, key)


def store_tokens(cache: jax.Array, slots: jax.Array, tokens: jax.Array) -> jax.Array:
    """Returns a cache [blocks, block size, ...] with tokens [n, ...] in their slots."""
    if tokens.shape != (*slots.shape, *cache.shape[2:]) or slots.ndim != 1:
        raise Refused(
            f"expected a slot for each token, and tokens as a cache {cache.shape} has them; got "
            f"{slots.shape} and {tokens.shape}",
            "A cache is [blocks, block size, ...], and tokens are [n, ...].",
        )
    flat = cache.reshape(-1, *cache.shape[2:])
    check_indices(slots, flat.shape[0])
    return _store(flat, slots, tokens).reshape(cache.shape)


def _store(flat: jax.Array, slots: jax.Array, tokens: jax.Array) -> jax.Array:
    """Stores along the first axis; a slot below 0 is passed over."""
    where = jnp.where(slots < 0, flat.shape[0], slots.astype(np.int32))
    return flat.at[where].set(tokens.astype(flat.dtype), mode="drop")


@aclnn("GatherPaKvCache")
def gather_cache(
    key_cache: Tensor,
    value_cache: Tensor,
    block_tables: Tensor,
    seq_lens: Tensor,
    key_ref: UpdatedTensor,
    value_ref: UpdatedTensor,
    seq_offset: Tensor | None,
    cache_mode: Text,
    is_seq_lens_cumsum: Bool,
) -> tuple[Tensor, Tensor]:
    """The tokens of sequences, one behind the other, from a cache that has them in blocks.

    The order of the parameters was checked with no published prototype.

    Args:
      key_cache, value_cache: [blocks, block size, ...].
      block_tables: [B, n], the blocks of each sequence in order.
      seq_lens: [B], how many tokens of each are wanted; if `is_seq_lens_cumsum` [B + 1], where
        those of each start and the last ends.
      key_ref, value_ref: [tokens, ...]; entries behind the last token stay as they are.
      seq_offset: [B], the first token of each that is wanted; 0 if absent.
      cache_mode: must be "Norm".
      is_seq_lens_cumsum: see `seq_lens`.

    Returns:
      The new values of `key_ref` and `value_ref`.
    """
    if cache_mode not in ("Norm", ""):
        raise Refused(f"expected cacheMode 'Norm'; got {cache_mode!r}", "Convert the cache.")
    batch = block_tables.shape[0]
    ends = seq_lens.astype(jnp.int32) if is_seq_lens_cumsum else jnp.cumsum(seq_lens, dtype=int)
    if not is_seq_lens_cumsum:
        ends = jnp.concatenate([jnp.zeros(1, ends.dtype), ends])
    if block_tables.ndim != 2 or ends.shape != (batch + 1,):
        raise Refused(
            f"expected blockTables [B, n] and a length per sequence; got {block_tables.shape} and "
            f"{seq_lens.shape}",
            "Sums of lengths start with 0.",
        )
    offsets = jnp.zeros(batch, ends.dtype) if seq_offset is None else seq_offset
    return (
        _gather_tokens(key_cache, block_tables, ends, offsets, key_ref),
        _gather_tokens(value_cache, block_tables, ends, offsets, value_ref),
    )


def _gather_tokens(
    cache: jax.Array, tables: jax.Array, ends: jax.Array, offsets: jax.Array, target: jax.Array
) -> jax.Array:
    if cache.shape[2:] != target.shape[1:] or not math.prod(tables.shape):
        raise Refused(
            f"expected a cache [blocks, size, ...] and [tokens, ...]; got {cache.shape} and "
            f"{target.shape}",
            "What stands behind is one token.",
        )
    token = jnp.arange(target.shape[0])
    is_wanted = token < ends[-1]
    sequence = jnp.clip(jnp.searchsorted(ends, token, side="right") - 1, 0, tables.shape[0] - 1)
    position = jnp.where(is_wanted, token - ends[sequence] + offsets[sequence], 0)
    check_indices(position, tables.shape[1] * cache.shape[1])
    block, place = find_in_blocks(tables, sequence, position, cache.shape[1])
    check_indices(jnp.where(is_wanted, block, 0), cache.shape[0])
    found = cache.at[block, place].get(mode="fill", wrap_negative_indices=False)
    wanted = is_wanted.reshape(-1, *[1] * (target.ndim - 1))
    return jnp.where(wanted, found.astype(target.dtype), target)


def find_in_blocks(
    tables: jax.Array, sequence: jax.Array, position: jax.Array, size: int
) -> tuple[jax.Array, jax.Array]:
    """Returns the block of each position of a sequence, and the place in it.

    The block of a position that the table does not have is below 0.
    """
    signed = tables.astype(np.int32)
    block = signed.at[sequence, position // size].get(mode="fill", wrap_negative_indices=False)
    return block, position % size


@aclnn("KvRmsNormRopeCache")
def norm_rotate_store(
    kv: Tensor,
    gamma: Tensor,
    cos: Tensor,
    sin: Tensor,
    index: Tensor,
    k_cache_ref: UpdatedTensor,
    ckv_cache_ref: UpdatedTensor,
    k_rope_scale: Tensor | None,
    c_kv_scale: Tensor | None,
    k_rope_offset: Tensor | None,
    c_kv_offset: Tensor | None,
    epsilon: Float,
    cache_mode: Text,
    is_output_kv: Bool,
    *,
    outputs: Outputs,
) -> tuple[Tensor | None, Tensor | None, Tensor, Tensor]:
    """`RmsNorm` of the first part of `kv`, rotary embedding of the rest, both stored in caches.

    Args:
      kv: [B, 1, S, Dv + Dk].
      gamma: [Dv].
      cos, sin: [B, 1, S, Dk] or [B, 1, 1, Dk]; pairs are side by side in `kv`, in halves in the
        result.
      index: "Norm": [B, S], a place in the cache of each sequence; "PA", "PA_BNSD": [B * S], a
        slot of the cache. Nothing is stored for -1.
      k_cache_ref, ckv_cache_ref: "Norm": [B, 1, places, Dk] and [..., Dv]; otherwise [blocks,
        block size, 1, Dk] and [..., Dv].
      k_rope_scale, c_kv_scale: [Dk] and [Dv], factors for caches of Int8, or None.
      k_rope_offset, c_kv_offset: must be None.
      epsilon: added to the mean square.
      cache_mode: "Norm", "PA" or "PA_BNSD".
      is_output_kv: whether the first two outputs are wanted.

    Returns:
      Rotated and normalized parts; then the new values of the two caches.
    """
    if cache_mode not in ("Norm", "PA", "PA_BNSD") or not (k_rope_offset is c_kv_offset is None):
        raise Refused(
            f"expected cacheMode 'Norm', 'PA' or 'PA_BNSD' and no offsets; got {cache_mode!r}",
            "Layouts of blocks and of Ascend's units are not supported.",
        )
    size = gamma.shape[-1]
    if kv.ndim != 4 or kv.shape[1] != 1 or not size < kv.shape[-1]:
        raise Refused(f"expected kv [B, 1, S, more than {size}]; got {kv.shape}", "Reshape it.")
    wide = in_float32(kv)
    normed = rms_norm(wide[..., :size], in_float32(gamma), epsilon)[0]
    turned = rotary_embedding(wide[..., size:], cos, sin, 3)
    caches = []
    for part, cache, scale in (
        (turned, k_cache_ref, k_rope_scale),
        (normed, ckv_cache_ref, c_kv_scale),
    ):
        entries = part
        if scale is not None:
            entries = to_integers(part * in_float32(scale), np.dtype(np.int8))
        caches.append(_store_parts(cache, index, entries, cache_mode == "Norm"))
    parts = [part.astype(kv.dtype) for part in (turned, normed)]
    if not is_output_kv and outputs is not None:
        parts = [jnp.zeros((0,) if one is None else one.shape, kv.dtype) for one in outputs]
    return parts[0], parts[1], caches[0], caches[1]


def _store_parts(
    cache: jax.Array, index: jax.Array, entries: jax.Array, is_norm: bool
) -> jax.Array:
    batch, _, length, width = entries.shape
    expected = (batch, length) if is_norm else (batch * length,)
    fits = cache.ndim == 4 and cache.shape[1 if is_norm else 2] == 1 and cache.shape[3] == width
    if index.shape != expected or not fits or (is_norm and cache.shape[0] != batch):
        raise Refused(
            f"expected an index of shape {expected} and a cache of tokens of {width}; got "
            f"{index.shape} and {cache.shape}",
            "See the layouts of the operator's cache modes.",
        )
    places = cache.shape[2] if is_norm else cache.shape[0] * cache.shape[1]
    check_indices(jnp.where(index < 0, 0, index) if places else index, places)
    if is_norm:
        return jax.vmap(_store)(cache[:, 0], index, entries[:, 0])[:, None]
    flat = cache.reshape(-1, width)
    return _store(flat, index, entries.reshape(-1, width)).reshape(cache.shape)
