"""Queries and keys of several sequences: one behind the other, or keys in blocks of a cache."""

from __future__ import annotations

import dataclasses
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from msops._ascend.aclnn.caches import find_in_blocks
from msops._ascend.aclnn.dtypes import in_float32
from msops._ascend.aclnn.indexing import check_indices
from msops._ascend.aclnn.refusal import Refused


@dataclasses.dataclass(frozen=True)
class QueryPlaces:
    """Where each query is, queries of all sequences being one behind the other.

    Attributes:
      sequence: [T], the sequence it belongs to.
      position: [T], its place there.
      length: [T], how many queries the sequence has.
      is_there: [T], False for what fills up a sequence.
    """

    sequence: jax.Array
    position: jax.Array
    length: jax.Array
    is_there: jax.Array


def find_places(
    query: jax.Array, lengths: jax.Array | None, layout: str
) -> tuple[QueryPlaces, int]:
    """Returns the places of queries, and how many sequences there are."""
    if query.ndim != len(layout):
        raise Refused(f"expected a query {layout}; got shape {query.shape}", "Reshape it.")
    if layout == "BSND":
        count, size = query.shape[:2]
        own = jnp.full(count, size) if lengths is None else lengths
        if own.shape != (count,):
            raise Refused(f"expected {count} lengths; got {own.shape}", "One per sequence.")
        check_indices(own, size + 1)
        sequence, position = jnp.repeat(jnp.arange(count), size), jnp.tile(jnp.arange(size), count)
        length = own[sequence]
        return QueryPlaces(sequence, position, length, position < length), count
    if lengths is None or lengths.ndim != 1 or not lengths.size:
        raise Refused("expected actualSeqLengthsQuery with layout TND", "Pass the sums of lengths.")
    check_indices(lengths, query.shape[0] + 1)
    token = jnp.arange(query.shape[0])
    sequence = jnp.searchsorted(lengths, token, side="right")
    start = jnp.concatenate([jnp.zeros(1, lengths.dtype), lengths])
    inside = jnp.minimum(sequence, lengths.size - 1)
    length = start[inside + 1] - start[inside]
    return QueryPlaces(inside, token - start[inside], length, sequence < lengths.size), lengths.size


@dataclasses.dataclass(frozen=True)
class Keys:
    """Keys, or values, of sequences.

    Attributes:
      entries: [B, S, N, D], or [blocks, block size, N, D] with a table.
      table: [B, n], the blocks of each sequence; None without.
      lengths: [B], how many there are.
    """

    entries: jax.Array
    table: jax.Array | None
    lengths: jax.Array

    @property
    def room(self) -> int:
        """How many keys a sequence can have."""
        size = self.entries.shape[1]
        return size if self.table is None else size * self.table.shape[1]

    def at(self, sequence: jax.Array, positions: jax.Array, head: Any) -> jax.Array:
        """Returns [n, D] of one sequence and head; what is out of range is NaN."""
        first = sequence
        if self.table is not None:
            size = self.entries.shape[1]
            first, positions = find_in_blocks(self.table, sequence, positions, size)
        found = self.entries.at[first, positions, head]
        return in_float32(found.get(mode="fill", fill_value=np.nan, wrap_negative_indices=False))


def read_keys(
    entries: jax.Array, table: jax.Array | None, lengths: jax.Array | None, layout: str, count: int
) -> Keys:
    """Returns keys or values of `count` sequences, in blocks with layout PA_BSND."""
    if entries.ndim != 4 or 0 in entries.shape or (layout == "PA_BSND") != (table is not None):
        raise Refused(
            f"expected keys of rank 4, and a blockTable with PA_BSND alone; got {entries.shape}, "
            f"layout {layout}",
            "Reshape them.",
        )
    if table is None and lengths is None:
        lengths = jnp.full(count, entries.shape[1])
    if lengths is None or lengths.shape != (count,):
        raise Refused(f"expected {count} lengths of keys", "Pass one per sequence.")
    sequences = entries.shape[0] if table is None else table.shape[0]
    if sequences != count or (table is not None and table.ndim != 2):
        raise Refused(f"expected keys of {count} sequences; got {sequences}", "One per sequence.")
    if table is not None:
        check_indices(jnp.maximum(table, 0), entries.shape[0])  # -1 stands where there is no block
    keys = Keys(entries, table, lengths)
    check_indices(lengths, keys.room + 1)
    return keys
