"""Mixtures of experts: which experts a token goes to, its way there, and back.

Source: the pages of these operators in CANN's ops-transformer.
"""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np

from msops._ascend.aclnn.dtypes import in_float32
from msops._ascend.aclnn.indexing import check_indices
from msops._ascend.aclnn.kinds import Bool, Int, Tensor
from msops._ascend.aclnn.refusal import Refused
from msops._ascend.aclnn.table import aclnn


@aclnn("MoeGatingTopKSoftmax")
def gate(x: Tensor, finished: Tensor | None, k: Int) -> tuple[Tensor, Tensor, Tensor]:
    """The `k` greatest entries of ``softmax(x)`` along the last axis.

    Args:
      x: [..., experts].
      finished: [...] bool or None: rows that go nowhere, whose experts are all ``experts``.
      k: how many.

    Returns:
      [..., k] weights, Int32 experts, and Int32 numbers of the places, counted by columns.
    """
    if x.ndim < 2 or not 0 < k <= x.shape[-1]:
        raise Refused(f"expected x of rank 2 or more and k up to {x.shape[-1:]}; got {k}", "Fewer.")
    weights, experts = jax.lax.top_k(jax.nn.softmax(in_float32(x), axis=-1), k)
    if finished is not None:
        experts = jnp.where((finished != 0)[..., None], x.shape[-1], experts)
    places = jnp.arange(weights.size, dtype=np.int32).reshape(k, -1).T.reshape(weights.shape)
    return weights.astype(x.dtype), experts.astype(np.int32), places


@aclnn("MoeInitRoutingV2")
def route(
    x: Tensor,
    expert_idx: Tensor,
    active_num: Int,
    expert_capacity: Int,
    expert_num: Int,
    drop_pad_mode: Int,
    expert_tokens_count_or_cumsum_flag: Int,
    expert_tokens_before_capacity_flag: Bool,
) -> tuple[Tensor, Tensor, Tensor | None, Tensor | None]:
    """Tokens in the order of the experts they go to.

    Args:
      x: [rows, H] tokens.
      expert_idx: [rows, k] or [rows], the experts of each.
      active_num: with mode 0 how many rows of the result are kept; 0 keeps all.
      expert_capacity: with mode 1 how many tokens an expert takes.
      expert_num: how many experts there are.
      drop_pad_mode: 0: one token behind the other; 1: `expert_capacity` for each expert, zeros
        where there are fewer, and none of what is more.
      expert_tokens_count_or_cumsum_flag: with mode 0 what the third result is: 1 ends of the
        experts' tokens, 2 their numbers.
      expert_tokens_before_capacity_flag: has no effect: the fourth result is always there.

    Returns:
      The tokens, [rows * k, H] or [experts, capacity, H]; for each pair of a token and one of its
      experts, by rows, where it is, -1 if it is dropped; then Int32 numbers of tokens by expert.
    """
    if x.ndim != 2 or expert_idx.ndim not in (1, 2) or x.shape[0] != expert_idx.shape[0]:
        raise Refused(
            f"expected x [rows, H] and expertIdx [rows, k]; got {x.shape}, {expert_idx.shape}",
            "Reshape them.",
        )
    if drop_pad_mode not in (0, 1) or (drop_pad_mode == 1 and min(expert_capacity, expert_num) < 1):
        raise Refused(
            f"expected dropPadMode 0, or 1 with a capacity and experts; got {drop_pad_mode}, "
            f"{expert_capacity} and {expert_num}",
            "Pass them.",
        )
    flat = expert_idx.reshape(-1).astype(np.int32)
    if drop_pad_mode == 1 or expert_tokens_count_or_cumsum_flag:
        check_indices(flat, expert_num)
    choices = flat.size // max(x.shape[0], 1)
    order = jnp.argsort(flat, stable=True)
    place = jnp.argsort(order).astype(np.int32)
    counts = jnp.sum(flat[:, None] == jnp.arange(expert_num), axis=0, dtype=np.int32)
    tokens = x[order // max(choices, 1)]
    if drop_pad_mode == 0:
        kept = min(active_num or flat.size, flat.size)
        ends = jnp.cumsum(counts, dtype=np.int32)
        numbers = ends if expert_tokens_count_or_cumsum_flag == 1 else counts
        return tokens[:kept], place, numbers, counts
    rank = place - jnp.searchsorted(flat[order], flat, side="left")
    slot = jnp.where(rank < expert_capacity, flat * expert_capacity + rank, -1).astype(np.int32)
    room = jnp.zeros((expert_num * expert_capacity, x.shape[1]), x.dtype)
    sources = x[jnp.arange(flat.size) // max(choices, 1)]
    filled = room.at[jnp.where(slot < 0, room.shape[0], slot)].set(sources, mode="drop")
    return filled.reshape(expert_num, expert_capacity, -1), slot, counts, counts


@aclnn("MoeFinalizeRoutingV2")
def combine(
    expanded_x: Tensor,
    expanded_row_idx: Tensor,
    x1: Tensor | None,
    x2: Tensor | None,
    bias: Tensor | None,
    scales: Tensor | None,
    expert_idx: Tensor | None,
    drop_pad_mode: Int,
) -> Tensor:
    """For each token the weighted sum of what its experts made of it, plus `x1` and `x2`.

    Args:
      expanded_x: [rows * k, H], or [experts, capacity, H] with modes 1 and 3.
      expanded_row_idx: [rows * k], where the results for a token are; -1 where there is none.
      x1, x2: [rows, H] or None.
      bias: [experts, H], added to each result, with `expert_idx`, or None; not with modes 1, 3.
      scales: [rows, k] weights; None is 1, with k 1.
      expert_idx: [rows, k], the experts.
      drop_pad_mode: 0 and 1: `expanded_row_idx` goes by columns; 2 and 3: by rows.
    """
    drops = drop_pad_mode in (1, 3)
    if drop_pad_mode not in (0, 1, 2, 3) or (
        bias is not None and (drops or expert_idx is None or scales is None)
    ):
        raise Refused(
            f"expected dropPadMode 0 to 3, and a bias with experts, scales and mode 0 or 2; got "
            f"mode {drop_pad_mode}",
            "What a dropped token adds to a bias is not published.",
        )
    choices = 1 if scales is None else scales.shape[-1]
    pool = in_float32(expanded_x).reshape(-1, expanded_x.shape[-1])
    if expanded_row_idx.size % choices:
        raise Refused(f"expected {choices} places a token; got {expanded_row_idx.shape}", "Add.")
    if not drops:
        check_indices(expanded_row_idx, pool.shape[0])
    flat = expanded_row_idx.reshape(-1).astype(np.int32)
    places = flat.reshape(-1, choices) if drop_pad_mode > 1 else flat.reshape(choices, -1).T
    filler = 0 if drops else np.nan
    found = pool.at[places].get(mode="fill", fill_value=filler, wrap_negative_indices=False)
    if bias is not None and expert_idx is not None:
        check_indices(expert_idx, bias.shape[0])
        experts = expert_idx.astype(np.int32)
        found = found + in_float32(bias).at[experts].get(mode="fill", wrap_negative_indices=False)
    weights = 1 if scales is None else in_float32(scales)[..., None]
    total = jnp.sum(weights * found, axis=1)
    for shared in (x1, x2):
        total = total if shared is None else total + in_float32(shared)
    return total.astype(expanded_x.dtype)
