"""Reading and writing at indices.

An index out of range is an error where indices are known; in a traced program a read gives NaN (for
integers the smallest, for unsigned ones the greatest number) and a write is dropped. On the device
it is undefined. Negative indices count back from the end in Index and Gather, and in GatherNd if an
argument says so; elsewhere they are out of range.
"""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np

from msops._ascend.aclnn.dtypes import kind_of, number, promote
from msops._ascend.aclnn.kinds import Bool, Indices, Int, Ints, Scalar, Tensor, UpdatedTensor
from msops._ascend.aclnn.refusal import Refused
from msops._ascend.aclnn.shapes import one_axis
from msops._ascend.aclnn.table import aclnn


def check_indices(index: jax.Array, extent: int, *, may_count_back: bool = False) -> None:
    """Refuses indices that are known to be out of range, or are no integers."""
    if kind_of(index.dtype) != 1:
        raise Refused(f"expected integer indices; got {index.dtype}", "Cast them to Int64.")
    if isinstance(index, jax.core.Tracer) or not index.size:
        return
    least, most = int(index.min()), int(index.max())
    if least < (-extent if may_count_back else 0) or most >= extent:
        raise Refused(
            f"expected indices below {extent}; got {least} to {most}",
            "Count from 0 to the size of the axis less one.",
        )


def _wide(index: jax.Array) -> jax.Array:
    """Returns indices that JAX can count back by an extent: it adds that in the index's dtype."""
    return index.astype(np.int32) if index.dtype.itemsize < 4 else index


def _read(x: jax.Array, positions: object, *, may_count_back: bool = False) -> jax.Array:
    """Returns the entries of `x` at `positions`, which were checked if they are known."""
    return x.at[positions].get(mode="fill", wrap_negative_indices=may_count_back)


@aclnn("Index")
def index(self: Tensor, indices: Indices) -> Tensor:
    """``self[indices]`` as numpy has it; None takes a whole axis, a bool tensor what it marks.

    A tensor without entries takes a whole axis, too: lists in C++ have no None.
    """
    positions: list[object] = []
    axis = 0
    for item in indices:
        if item is None or item.size == 0:
            positions.append(slice(None))
            axis += 1
        elif item.dtype == np.bool_:
            if isinstance(item, jax.core.Tracer):
                raise Refused(
                    "a traced mask has no known number of entries",
                    "Use integer indices, or aclnnSWhere.",
                )
            if item.shape != self.shape[axis : axis + item.ndim]:
                raise Refused(
                    f"expected a mask of shape {self.shape[axis : axis + item.ndim]}; "
                    f"got {item.shape}",
                    "A mask has the shape of the axes it selects from.",
                )
            positions += np.nonzero(np.asarray(item))
            axis += item.ndim
        else:
            if axis >= self.ndim:
                raise Refused(
                    f"expected up to {self.ndim} indices; got {len(indices)}", "One per axis."
                )
            check_indices(item, self.shape[axis], may_count_back=True)
            positions.append(_wide(item))
            axis += 1
    return _read(self, tuple(positions), may_count_back=True)


@aclnn("IndexSelect")
def index_select(self: Tensor, dim: Int, index: Tensor) -> Tensor:
    """The slices of `self` along an axis that a vector names; a number is a vector of one."""
    if index.ndim > 1:
        raise Refused(f"expected a vector of indices; got rank {index.ndim}", "Flatten it.")
    if self.ndim == 0 and index.size == 1:
        return index_select(self.reshape(1), dim, index).reshape(())
    axis = one_axis(dim, self)
    check_indices(index, self.shape[axis])
    return _read(self, (slice(None),) * axis + (index.reshape(-1),))


@aclnn("Embedding")
def embedding(weight: Tensor, indices: Tensor) -> Tensor:
    """The rows of a matrix that `indices` names."""
    check_indices(indices, weight.shape[0])
    return _read(weight, indices)


def _along(x: jax.Array, axis: int, index: jax.Array) -> tuple[jax.Array, ...]:
    """Returns the full indices of entries that differ from their own position along one axis."""
    if index.ndim != x.ndim or any(
        mine > whole
        for n, (mine, whole) in enumerate(zip(index.shape, x.shape, strict=True))
        if n != axis
    ):
        raise Refused(
            f"expected an index that fits {x.shape} off axis {axis}; got shape {index.shape}",
            "Index and tensor have one rank, and the index is no longer along other axes.",
        )
    grid = jnp.meshgrid(*(jnp.arange(n) for n in index.shape), indexing="ij")
    return tuple(index if n == axis else positions for n, positions in enumerate(grid))


@aclnn("Gather")
def gather(self: Tensor, dim: Int, index: Tensor) -> Tensor:
    """``self[i][index[i][j]]`` for `dim` 1 of a matrix, and likewise."""
    axis = one_axis(dim, self)
    positions = _along(self, axis, _wide(index))
    check_indices(index, self.shape[axis], may_count_back=True)
    return _read(self, positions, may_count_back=True)


@aclnn("GatherNd")
def gather_nd(self: Tensor, indices: Tensor, negative_index_support: Bool) -> Tensor:
    """The slices of `self` at the points along the last axis of `indices`."""
    depth = indices.shape[-1]
    if depth > self.ndim:
        raise Refused(f"expected points of up to {self.ndim} numbers; got {depth}", "Shorten.")
    for n in range(depth):
        check_indices(indices[..., n], self.shape[n], may_count_back=negative_index_support)
    points = tuple(jnp.moveaxis(_wide(indices), -1, 0))
    return _read(self, points, may_count_back=negative_index_support)


@aclnn("ScatterAdd")
def scatter_add(self: Tensor, dim: Int, index: Tensor, src: Tensor) -> Tensor:
    """`self` with the entries of `src` added at `index` along an axis."""
    return scatter(self, dim, index, src, 1)


@aclnn("Scatter")
def scatter(self: Tensor, dim: Int, index: Tensor, src: Tensor, reduce: Int) -> Tensor:
    """`self` with `src` stored (`reduce` 0), added (1) or multiplied (2) at `index`.

    Where an index occurs twice, which store is last is not defined.
    """
    axis = one_axis(dim, self)
    positions = _along(self, axis, index)
    check_indices(index, self.shape[axis])
    if src.ndim != index.ndim or any(
        have < need for have, need in zip(src.shape, index.shape, strict=True)
    ):
        raise Refused(
            f"expected src to cover an index of shape {index.shape}; got {src.shape}", "Enlarge it."
        )
    entries = src[tuple(slice(extent) for extent in index.shape)].astype(self.dtype)
    return _store(self, positions, entries, reduce)


@aclnn("ScatterValue")
def scatter_value(self: Tensor, dim: Int, index: Tensor, value: Scalar, reduce: Int) -> Tensor:
    """`Scatter` of one number."""
    return scatter(self, dim, index, jnp.full(index.shape, value, self.dtype), reduce)


def _store(x: jax.Array, positions: object, entries: jax.Array, reduce: int) -> jax.Array:
    if reduce not in (0, 1, 2):
        raise Refused(f"expected reduce 0, 1 or 2; got {reduce}", "Store, add or multiply.")
    at = x.at[positions]
    update = (at.set, at.add, at.multiply)[reduce]
    return update(entries, mode="drop", wrap_negative_indices=False)


@aclnn("ScatterNdUpdate")
def scatter_nd_update(var_ref: UpdatedTensor, indices: Tensor, updates: Tensor) -> Tensor:
    """`var_ref` with slices stored at points: the last axis of `indices` holds one each."""
    depth = indices.shape[-1] if indices.ndim else 0
    if not 0 < depth <= var_ref.ndim:
        raise Refused(
            f"expected points of 1 to {var_ref.ndim} numbers; got indices {indices.shape}",
            "Their last axis is a point.",
        )
    expected = (*indices.shape[:-1], *var_ref.shape[depth:])
    if updates.shape != expected:
        raise Refused(f"expected updates of shape {expected}; got {updates.shape}", "Reshape them.")
    for n in range(depth):
        check_indices(indices[..., n], var_ref.shape[n])
    points = tuple(jnp.moveaxis(_wide(indices), -1, 0))
    return _store(var_ref, points, updates.astype(var_ref.dtype), 0)


@aclnn("IndexAdd")
def index_add(self: Tensor, dim: Int, index: Tensor, source: Tensor, alpha: Scalar) -> Tensor:
    """`self` with ``alpha * source`` added to the slices that a vector names."""
    axis = one_axis(dim, self)
    check_indices(index, self.shape[axis])
    x, y = promote(self, source)
    return _store(x, (slice(None),) * axis + (index,), y * x.dtype.type(alpha), 1)


@aclnn("IndexFillTensor")
def index_fill(self: Tensor, dim: Int, index: Ints, value: Scalar) -> Tensor:
    """`self` with one number in the slices that a list names; they count back from the end too."""
    axis = one_axis(dim, self)
    extent = self.shape[axis]
    if any(not -extent <= entry < extent for entry in index):
        raise Refused(
            f"expected indices below {extent}; got {list(index)}", "Count from 0, or back from -1."
        )
    marked = np.zeros(extent, bool)
    marked[list(index)] = True
    shape = [extent if n == axis else 1 for n in range(self.ndim)]
    return jnp.where(marked.reshape(shape), number(value, self.dtype, "value"), self)


@aclnn("InplaceMaskedFillScalar")
def masked_fill_scalar(self_ref: UpdatedTensor, mask: Tensor, value: Scalar) -> Tensor:
    """`value` where `mask` holds."""
    return jnp.where(mask != 0, self_ref.dtype.type(value), self_ref)


@aclnn("InplaceMaskedFillTensor")
def masked_fill_tensor(self_ref: UpdatedTensor, mask: Tensor, value: Tensor) -> Tensor:
    """A 0-dimensional `value` where `mask` holds."""
    return jnp.where(mask != 0, value.astype(self_ref.dtype), self_ref)
