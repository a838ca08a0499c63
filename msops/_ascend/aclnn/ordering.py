"""Where extremes are, sorting, counting, and running sums."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np

from msops._ascend.aclnn.dtypes import floating, kind_of
from msops._ascend.aclnn.kinds import Bool, DType, Int, Tensor
from msops._ascend.aclnn.outputs import Outputs, declared
from msops._ascend.aclnn.reductions import axes
from msops._ascend.aclnn.refusal import Refused
from msops._ascend.aclnn.table import aclnn


def _line(x: jax.Array, dim: int) -> tuple[jax.Array, int]:
    """Returns a tensor with at least one axis, and the axis `dim` counted from the front."""
    axes((dim,), x)
    x = x.reshape(1) if x.ndim == 0 else x
    return x, dim % x.ndim


def _index_dtype() -> np.dtype:
    return jax.dtypes.canonicalize_dtype(np.int64)


@aclnn("ArgMax")
def argmax(self: Tensor, dim: Int, keep_dim: Bool) -> Tensor:
    """The index of the first greatest entry along an axis."""
    return _extreme(self, dim, keep_dim, greatest=True)[1]


@aclnn("ArgMin")
def argmin(self: Tensor, dim: Int, keep_dim: Bool) -> Tensor:
    """The index of the first smallest entry along an axis."""
    return _extreme(self, dim, keep_dim, greatest=False)[1]


@aclnn("MaxDim")
def max_dim(self: Tensor, dim: Int, keep_dim: Bool) -> tuple[Tensor, Tensor]:
    """The greatest entries along an axis, and their indices."""
    return _extreme(self, dim, keep_dim, greatest=True)


@aclnn("MinDim")
def min_dim(self: Tensor, dim: Int, keep_dim: Bool) -> tuple[Tensor, Tensor]:
    """The smallest entries along an axis, and their indices."""
    return _extreme(self, dim, keep_dim, greatest=False)


def _extreme(x: jax.Array, dim: int, keep_dim: bool, greatest: bool) -> tuple[jax.Array, jax.Array]:
    line, axis = _line(x, dim)
    if line.shape[axis] == 0:
        raise Refused(f"expected entries along axis {dim}; got shape {x.shape}", "Give it some.")
    find = jnp.argmax if greatest else jnp.argmin
    indices = find(line, axis=axis, keepdims=True).astype(_index_dtype())
    values = jnp.take_along_axis(line, indices, axis=axis)
    if x.ndim == 0:
        return values.reshape(()), indices.reshape(())
    return (values, indices) if keep_dim else (values.squeeze(axis), indices.squeeze(axis))


def _order(line: jax.Array, axis: int, descending: bool) -> jax.Array:
    """Returns the indices of a stable order, NaN counting as greatest."""
    return jnp.argsort(line, axis=axis, stable=True, descending=descending).astype(_index_dtype())


@aclnn("Sort")
def sort(self: Tensor, stable: Bool, dim: Int, descending: Bool) -> tuple[Tensor, Tensor]:
    """The entries in order along an axis, and where they were; equal ones stay in order."""
    line, axis = _line(self, dim)
    indices = _order(line, axis, descending)
    values = jnp.take_along_axis(line, indices, axis=axis)
    return values.reshape(self.shape), indices.reshape(self.shape)


@aclnn("Argsort")
def argsort(self: Tensor, dim: Int, descending: Bool) -> Tensor:
    """Where the entries in order were."""
    return sort(self, True, dim, descending)[1]


@aclnn("Topk")
def topk(self: Tensor, k: Int, dim: Int, largest: Bool, sorted: Bool) -> tuple[Tensor, Tensor]:
    """The `k` greatest or smallest entries along an axis, in order, and where they were."""
    line, axis = _line(self, dim)
    if not 0 <= k <= line.shape[axis]:
        raise Refused(f"expected k between 0 and {line.shape[axis]}; got {k}", "Lower it.")
    indices = jax.lax.slice_in_dim(_order(line, axis, largest), 0, k, axis=axis)
    values = jnp.take_along_axis(line, indices, axis=axis)
    return (values, indices) if self.ndim else (values.reshape(()), indices.reshape(()))


@aclnn("Kthvalue")
def kth_value(self: Tensor, k: Int, dim: Int, keep_dim: Bool) -> tuple[Tensor, Tensor]:
    """The `k`-th smallest entries along an axis, counted from 1, and where they are."""
    line, axis = _line(self, dim)
    if not 1 <= k <= line.shape[axis]:
        raise Refused(f"expected k between 1 and {line.shape[axis]}; got {k}", "1 is the least.")
    indices = jax.lax.slice_in_dim(_order(line, axis, False), k - 1, k, axis=axis)
    values = jnp.take_along_axis(line, indices, axis=axis)
    if self.ndim == 0:
        return values.reshape(()), indices.reshape(())
    return (values, indices) if keep_dim else (values.squeeze(axis), indices.squeeze(axis))


@aclnn("Bincount")
def bincount(self: Tensor, weights: Tensor | None, min_length: Int, *, outputs: Outputs) -> Tensor:
    """How often each number occurs in a vector, or the sum of its weights.

    The output has an entry for each number up to the greatest, at least `min_length`. A greater
    number is an error where it is known, and is not counted in a traced program.
    """
    if self.ndim != 1 or kind_of(self.dtype) != 1:
        raise Refused(f"expected a vector of integers; got {self.dtype}{self.shape}", "Flatten it.")
    if weights is not None and weights.shape != self.shape:
        raise Refused(f"expected weights {self.shape}; got {weights.shape}", "One per number.")
    (length,) = declared(outputs).shape if len(declared(outputs).shape) == 1 else (-1,)
    least = min_length
    if not isinstance(self, jax.core.Tracer) and self.size:
        if int(self.min()) < 0:
            raise Refused(f"expected numbers of 0 or more; got {int(self.min())}", "Shift them.")
        least = max(min_length, int(self.max()) + 1)
    if length < least:
        raise Refused(
            f"expected an output of {least} or more entries; got {declared(outputs).shape}",
            "It has one for each number up to the greatest, at least minlength.",
        )
    kind = _index_dtype() if weights is None else floating(weights).dtype
    counted = jnp.ones(self.shape, kind) if weights is None else floating(weights)
    indices = jnp.where(self < 0, length, self)
    return jnp.zeros(length, kind).at[indices].add(counted, mode="drop")


@aclnn("Cumsum")
def cumsum(self: Tensor, dim: Int, dtype: DType | None) -> Tensor:
    """The running sums along an axis, in `dtype`."""
    x = self.astype(self.dtype if dtype is None else dtype)
    line, axis = _line(x, dim)
    return _running_sum(line, axis).reshape(self.shape)


@aclnn("CumsumV2")
def cumsum_v2(self: Tensor, dim: Int, exclusive: Bool, reverse: Bool) -> Tensor:
    """The running sums along an axis: without the entry itself if `exclusive`, from the end if
    `reverse`."""
    line, axis = _line(self, dim)
    line = jnp.flip(line, axis) if reverse else line
    if exclusive:
        first = jnp.zeros_like(jax.lax.slice_in_dim(line, 0, 1, axis=axis))
        line = jnp.concatenate([first, jax.lax.slice_in_dim(line, 0, -1, axis=axis)], axis=axis)
    total = _running_sum(line, axis)
    return (jnp.flip(total, axis) if reverse else total).reshape(self.shape)


def _running_sum(line: jax.Array, axis: int) -> jax.Array:
    # Narrow floats are added in Float32, as the device does.
    narrow = kind_of(line.dtype) == 2 and line.dtype.itemsize < 4
    total = jnp.cumsum(line, axis=axis, dtype=np.float32 if narrow else line.dtype)
    return total.astype(line.dtype)
