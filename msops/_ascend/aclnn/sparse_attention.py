"""Attention to chosen keys: which are chosen, and the attention.

Source: DeepSeek-AI, "DeepSeek-V3.2", 2025; the parameters are those of MindSpore's ms_custom_ops
(its documents of lightning_indexer and sparse_flash_attention). Operators of the same names in
CANN 8.5 take more.
"""

from __future__ import annotations

import functools
from typing import Annotated, Any

import jax
import jax.numpy as jnp
import numpy as np

from msops._ascend.aclnn.dtypes import in_float32
from msops._ascend.aclnn.flash_attention import masked_softmax
from msops._ascend.aclnn.indexing import check_indices
from msops._ascend.aclnn.kinds import Float, Int, Kind, Tensor
from msops._ascend.aclnn.refusal import Refused
from msops._ascend.aclnn.sequences import Keys, QueryPlaces, find_places, read_keys
from msops._ascend.aclnn.table import aclnn

_AT_A_TIME = 64
"""How many queries are served at a time; each has scores with all keys of its sequence."""


def _layout(*names: str) -> Kind:
    """A layout by its name, or by its number, which ms_custom_ops passes outside of graphs."""

    def read(value: Any) -> str:
        if isinstance(value, int) and 0 <= value < len(names):
            return names[value]
        if value not in names:
            raise TypeError
        return str(value)

    return Kind(f"one of the layouts {', '.join(names)}", read)


QueryLayout = Annotated[str, _layout("BSND", "TND")]
IndexerKeyLayout = Annotated[str, _layout("PA_BSND", "BSND")]
KeyLayout = Annotated[str, _layout("BSND", "PA_BSND")]


def _count_visible(places: QueryPlaces, keys: Keys, sparse_mode: int) -> jax.Array:
    """Returns for each query how many keys of its sequence it may see."""
    if sparse_mode not in (0, 3):
        raise Refused(f"expected sparseMode 0 or 3; got {sparse_mode}", "0 is without a mask.")
    have = keys.lengths[places.sequence]
    seen = have if sparse_mode == 0 else have - places.length + places.position + 1
    return jnp.where(places.is_there, seen, 0)


@aclnn("LightningIndexer")
def choose_keys(
    query: Tensor,
    key: Tensor,
    weights: Tensor,
    actual_seq_lengths_query: Tensor | None,
    actual_seq_lengths_key: Tensor | None,
    block_table: Tensor | None,
    layout_query: QueryLayout,
    layout_key: IndexerKeyLayout,
    sparse_count: Int,
    sparse_mode: Int,
) -> Tensor:
    """For each query the keys with the greatest ``sum(weights * relu(query @ key.T))`` over heads.

    Args:
      query: [B, S, N, D], or [T, N, D] with layout TND.
      key: [blocks, block size, 1, D] with layout PA_BSND, else [B, keys, 1, D].
      weights: [B, S, N] or [T, N], or with a last axis of 1.
      actual_seq_lengths_query: [B] lengths, with TND their sums; None with BSND: all.
      actual_seq_lengths_key: [B] lengths; None with BSND: all.
      block_table: [B, n], the blocks of each sequence with PA_BSND.
      layout_query, layout_key: see above.
      sparse_count: how many keys are chosen.
      sparse_mode: 0: among all keys; 3: among those up to the query, the last query having the
        last key.

    Returns:
      [B, S, 1, count] or [T, 1, count] Int32 numbers of keys, the best first; -1 where there are no
      more.
    """
    places, count = find_places(query, actual_seq_lengths_query, layout_query)
    keys = read_keys(key, block_table, actual_seq_lengths_key, layout_key, count)
    heads, size = query.shape[-2:]
    _check_indexer(query, key, weights, sparse_count)
    position = jnp.arange(keys.room)
    chosen = min(sparse_count, keys.room)

    def choose(one: tuple[jax.Array, ...]) -> jax.Array:
        q, factor, sequence, end = one
        products = jnp.einsum("nd,sd->ns", q, keys.at(sequence, position, 0), precision="highest")
        scores = jnp.einsum("n,ns->s", factor, jax.nn.relu(products), precision="highest")
        found = jax.lax.top_k(jnp.where(position < end, scores, -jnp.inf), chosen)[1]
        return jnp.where(jnp.arange(chosen) < end, found, -1)

    each = (
        in_float32(query).reshape(-1, heads, size),
        in_float32(weights).reshape(-1, heads),
        places.sequence,
        _count_visible(places, keys, sparse_mode),
    )
    found = jax.lax.map(choose, each, batch_size=_AT_A_TIME).astype(np.int32)
    filled = jnp.pad(found, ((0, 0), (0, sparse_count - chosen)), constant_values=-1)
    return filled.reshape(*query.shape[:-2], 1, sparse_count)


def _check_indexer(query: jax.Array, key: jax.Array, weights: jax.Array, sparse_count: int) -> None:
    size = query.shape[-1]
    if key.shape[2:] != (1, size) or weights.size != query.size // max(size, 1):
        raise Refused(
            f"expected keys [.., .., 1, {size}] and a weight per head; got {key.shape}, "
            f"{weights.shape}",
            "Reshape them.",
        )
    if sparse_count < 1:
        raise Refused(f"expected sparseCount above 0; got {sparse_count}", "Pass how many.")


@aclnn("SparseFlashAttention")
def sparse_attention(
    query: Tensor,
    key: Tensor,
    value: Tensor,
    sparse_indices: Tensor,
    block_table: Tensor | None,
    actual_seq_lengths_query: Tensor | None,
    actual_seq_lengths_kv: Tensor | None,
    query_rope: Tensor | None,
    key_rope: Tensor | None,
    scale_value: Float,
    sparse_block_size: Int,
    layout_query: QueryLayout,
    layout_kv: KeyLayout,
    sparse_mode: Int,
) -> Tensor:
    """``softmax(scale * query @ chosen keys.T) @ chosen values``.

    Args:
      query: [B, S, heads, D], or [T, heads, D] with layout TND.
      key, value: [B, keys, N, D], or [blocks, block size, N, D] with layout PA_BSND.
      sparse_indices: [B, S, N, n] or [T, N, n]: which groups of `sparse_block_size` keys are
        chosen, each as often as it is there; -1 ends them.
      block_table: [B, n], the blocks of each sequence with PA_BSND.
      actual_seq_lengths_query: [B] lengths, with TND their sums; None with BSND: all.
      actual_seq_lengths_kv: [B] lengths; None with BSND: all.
      query_rope, key_rope: more channels of query and key, or None.
      scale_value: the factor of the products.
      sparse_block_size: how many keys a group has.
      layout_query, layout_kv: see above.
      sparse_mode: 0: all chosen keys; 3: those up to the query, the last query having the last key.

    Returns:
      An output like `query`; zeros for a query that sees no key.
    """
    places, count = find_places(query, actual_seq_lengths_query, layout_query)
    if (query_rope is None) != (key_rope is None):
        raise Refused("expected queryRope and keyRope, or none of them; got one", "Pass both.")
    if query_rope is not None and key_rope is not None:
        query, key = (_joined(x, rope) for x, rope in ((query, query_rope), (key, key_rope)))
    keys, values = (
        read_keys(x, block_table, actual_seq_lengths_kv, layout_kv, count) for x in (key, value)
    )
    _check_attention(query, key, value, sparse_indices, sparse_block_size)
    # -1 ends the groups of a query, and one beyond the keys, which may be traced, sees none.
    last = -(-keys.room // sparse_block_size)
    check_indices(jnp.maximum(sparse_indices, 0), last)
    groups = jnp.minimum(sparse_indices, last).astype(np.int32)

    attend = functools.partial(_attend, keys, values, scale_value, sparse_block_size)
    each = (
        in_float32(query).reshape(-1, *query.shape[-2:]),
        groups.reshape(-1, *groups.shape[-2:]),
        places.sequence,
        _count_visible(places, keys, sparse_mode),
    )
    out = jax.lax.map(attend, each, batch_size=_AT_A_TIME)
    return out.reshape(*query.shape[:-1], value.shape[3]).astype(query.dtype)


def _check_attention(
    query: jax.Array,
    key: jax.Array,
    value: jax.Array,
    sparse_indices: jax.Array,
    sparse_block_size: int,
) -> None:
    heads, size = query.shape[-2:]
    shared = key.shape[2]
    indices_shape = (*query.shape[:-2], shared)
    fits = sparse_indices.shape[:-1] == indices_shape and heads % shared == 0
    if not fits or key.shape[3] != size or key.shape[:3] != value.shape[:3]:
        raise Refused(
            f"query, key, value and sparseIndices do not fit: {query.shape}, {key.shape}, "
            f"{value.shape} and {sparse_indices.shape}",
            "The heads of the key divide those of the query, and each has indices of its own.",
        )
    if sparse_block_size < 1:
        raise Refused(f"expected sparseBlockSize above 0; got {sparse_block_size}", "Pass 1.")


def _attend(
    keys: Keys,
    values: Keys,
    scale: float,
    block_size: int,
    one: tuple[jax.Array, jax.Array, jax.Array, jax.Array],
) -> jax.Array:
    """Returns [heads, D] of one query.

    Args:
      keys, values: of all sequences.
      scale: the factor of the products.
      block_size: how many keys a group has.
      one: [heads, D] query, [N, n] groups, its sequence, how many keys it may see.
    """
    query, groups, sequence, end = one
    shared = groups.shape[0]
    ends = jnp.cumsum(groups < 0, axis=-1) > 0
    positions = (groups[..., None] * block_size + jnp.arange(block_size)).reshape(shared, -1)
    is_seen = (positions < end) & ~jnp.repeat(ends, block_size, axis=-1)
    at = jnp.where(is_seen, positions, 0)

    def of(entries: Keys) -> jax.Array:
        found = jax.vmap(entries.at, (None, 0, 0))(sequence, at, jnp.arange(shared))
        return jnp.where(is_seen[..., None], found, 0)

    grouped = query.reshape(shared, -1, query.shape[-1])
    scores = jnp.einsum("ngd,nsd->ngs", grouped, of(keys), precision="highest") * scale
    shares = masked_softmax(scores, ~is_seen[:, None])[0]
    out = jnp.einsum("ngs,nsd->ngd", shares, of(values), precision="highest")
    return out.reshape(query.shape[0], -1)


def _joined(x: jax.Array, rope: jax.Array) -> jax.Array:
    if x.shape[:-1] != rope.shape[:-1]:
        raise Refused(f"expected a rope of {x.shape[:-1]}; got {rope.shape}", "Reshape it.")
    return jnp.concatenate([x, rope], axis=-1)
