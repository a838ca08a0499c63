"""Operators that move entries and compute nothing: views, joins, pieces."""

from __future__ import annotations

import itertools
import math

import jax
import jax.numpy as jnp

from msops._ascend.aclnn.dtypes import number, promote
from msops._ascend.aclnn.kinds import Int, Ints, Scalar, Tensor, Tensors
from msops._ascend.aclnn.outputs import Outputs, require_shape
from msops._ascend.aclnn.reductions import axes
from msops._ascend.aclnn.refusal import Refused
from msops._ascend.aclnn.table import aclnn


def one_axis(dim: int, tensor: jax.Array) -> int:
    """Returns an axis counted from the front."""
    if tensor.ndim == 0:
        raise Refused("expected a tensor of rank 1 or more; got a scalar", "Reshape it.")
    return axes((dim,), tensor)[0]


@aclnn("Expand")
def expand(self: Tensor, size: Ints, *, outputs: Outputs) -> Tensor:
    """`self` repeated along axes of size 1 and new leading axes; -1 keeps an axis."""
    added = len(size) - self.ndim
    if added < 0 or any(extent < 0 for extent in size[:added]):
        raise Refused(
            f"a tensor of shape {self.shape} cannot be expanded to {list(size)}",
            "Give a size per axis, new ones in front; -1 is for an axis that is there.",
        )
    own = zip(size[added:], self.shape, strict=True)
    extents = [extent if wanted == -1 else wanted for wanted, extent in own]
    require_shape((*size[:added], *extents), outputs)
    return jnp.broadcast_to(self, (*size[:added], *extents))


@aclnn("Flatten")
def flatten(self: Tensor, axis: Int) -> Tensor:
    """`self` as a matrix: the axes before `axis` are rows, the others columns."""
    if not -self.ndim <= axis <= self.ndim:
        raise Refused(f"expected an axis up to {self.ndim}; got {axis}", "-1 is the last.")
    axis = axis % self.ndim if axis < 0 else axis
    return self.reshape(math.prod(self.shape[:axis]), math.prod(self.shape[axis:]))


@aclnn("Permute")
def permute(self: Tensor, dims: Ints) -> Tensor:
    """`self` with its axes in the order `dims`."""
    if len(dims) != self.ndim:
        raise Refused(f"expected {self.ndim} axes; got {list(dims)}", "Name every axis once.")
    return jnp.transpose(self, axes(dims, self) if dims else ())


@aclnn("Cat")
def cat(tensors: Tensors, dim: Int) -> Tensor:
    """The tensors joined along an axis they have; empty vectors are left out."""
    if not tensors:
        raise Refused("expected tensors; got none", "Pass one or more.")
    kept = [tensor for tensor in tensors if tensor.shape != (0,)] or tensors[:1]
    return jnp.concatenate(promote(*kept), axis=one_axis(dim, kept[0]))


@aclnn("Stack")
def stack(tensors: Tensors, dim: Int) -> Tensor:
    """The tensors joined along a new axis."""
    if not tensors:
        raise Refused("expected tensors; got none", "Pass one or more.")
    return jnp.stack(promote(*tensors), axis=dim)


@aclnn("SplitTensor")
def split_tensor(self: Tensor, split_sections: Int, dim: Int) -> list[Tensor]:
    """Pieces of `split_sections` entries along an axis; the last may be shorter."""
    axis = one_axis(dim, self)
    if split_sections <= 0:
        raise Refused(f"expected a size above 0; got {split_sections}", "It is that of a piece.")
    edges = range(split_sections, self.shape[axis], split_sections)
    return jnp.split(self, list(edges), axis=axis)


@aclnn("SplitWithSize")
def split_with_size(self: Tensor, split_size: Ints, dim: Int) -> list[Tensor]:
    """Pieces of the sizes given, along an axis."""
    axis = one_axis(dim, self)
    if sum(split_size) != self.shape[axis] or any(size < 0 for size in split_size):
        raise Refused(
            f"expected sizes that add up to {self.shape[axis]}; got {list(split_size)}",
            "Name the size of every piece.",
        )
    return jnp.split(self, list(itertools.accumulate(split_size))[:-1], axis=axis)


@aclnn("Slice")
def slice_axis(self: Tensor, dim: Int, start: Int, end: Int, step: Int) -> Tensor:
    """Every `step`-th entry from `start` to before `end` along an axis, counted as in Python."""
    if step <= 0:
        raise Refused(f"expected a step above 0; got {step}", "Flip the tensor instead.")
    axis = one_axis(dim, self)
    extent = self.shape[axis]
    first, last, _ = slice(start, end, 1).indices(extent)
    # A step past the end means what the extent does; XLA terminates the process when it overflows.
    return jax.lax.slice_in_dim(
        self, first, max(first, last), stride=min(step, max(extent, 1)), axis=axis
    )


@aclnn("SliceV2")
def slice_v2(self: Tensor, starts: Ints, ends: Ints, axes: Ints, steps: Ints) -> Tensor:
    """`Slice` along several axes at once."""
    if not len(starts) == len(ends) == len(axes) == len(steps):
        raise Refused(
            f"expected lists of one length; got {list(starts)}, {list(ends)}, {list(axes)}, "
            f"{list(steps)}",
            "Give start, end and step for every axis.",
        )
    for start, end, axis, step in zip(starts, ends, axes, steps, strict=True):
        self = slice_axis(self, axis, start, end, step)
    return self


@aclnn("Repeat")
def repeat(self: Tensor, repeats: Ints, *, outputs: Outputs) -> Tensor:
    """`self` laid side by side along each axis, new ones in front."""
    if len(repeats) < self.ndim:
        raise Refused(f"expected {self.ndim} counts; got {list(repeats)}", "One per axis.")
    extents = (*(1,) * (len(repeats) - self.ndim), *self.shape)
    require_shape([n * extent for n, extent in zip(repeats, extents, strict=True)], outputs)
    return jnp.tile(self, repeats)


@aclnn("RepeatInterleaveIntWithDim")
def repeat_interleave(
    self: Tensor, repeats: Int, dim: Int, output_size: Int, *, outputs: Outputs
) -> Tensor:
    """Each entry along an axis repeated in place; `output_size` is how many that makes."""
    axis = one_axis(dim, self)
    if output_size != repeats * self.shape[axis]:
        raise Refused(
            f"expected outputSize {repeats * self.shape[axis]}; got {output_size}",
            f"It is repeats, {repeats}, times the size of the axis, {self.shape[axis]}.",
        )
    require_shape((*self.shape[:axis], output_size, *self.shape[axis + 1 :]), outputs)
    return jnp.repeat(self, repeats, axis=axis, total_repeat_length=output_size)


@aclnn("Flip")
def flip(self: Tensor, dims: Ints) -> Tensor:
    """`self` backwards along axes."""
    return jnp.flip(self, axes(dims, self)) if dims else self


@aclnn("Roll")
def roll(x: Tensor, shifts: Ints, dims: Ints) -> Tensor:
    """`x` rotated along axes, or as a vector if none are named."""
    if not dims:
        return jnp.roll(x, sum(shifts) % max(x.size, 1))
    if len(shifts) != len(dims):
        raise Refused(f"expected {len(dims)} shifts; got {list(shifts)}", "One per axis.")
    axes = [one_axis(dim, x) for dim in dims]
    # Within the axis first: JAX negates them as int64, which holds no 2**63.
    steps = [n % max(x.shape[axis], 1) for n, axis in zip(shifts, axes, strict=True)]
    return jnp.roll(x, steps, axis=axes)


@aclnn("Tril")
def tril(self: Tensor, diagonal: Int) -> Tensor:
    """The lower triangle of matrices, 0 above a diagonal."""
    return jnp.tril(self, diagonal)


@aclnn("Triu")
def triu(self: Tensor, diagonal: Int) -> Tensor:
    """The upper triangle of matrices, 0 below a diagonal."""
    return jnp.triu(self, diagonal)


@aclnn("ConstantPadNd")
def constant_pad(self: Tensor, padding: Ints, value: Scalar, *, outputs: Outputs) -> Tensor:
    """`self` with `value` around it: pairs of before and after, the last axis first.

    A negative number takes entries away.
    """
    if len(padding) % 2 or len(padding) > 2 * self.ndim:
        raise Refused(
            f"expected up to {self.ndim} pairs; got {list(padding)}", "Two numbers per axis."
        )
    pairs = list(zip(padding[::2], padding[1::2], strict=True))[::-1]
    config = [(0, 0, 0)] * (self.ndim - len(pairs)) + [
        (before, after, 0) for before, after in pairs
    ]
    require_shape(
        [n + before + after for n, (before, after, _) in zip(self.shape, config, strict=True)],
        outputs,
    )
    return jax.lax.pad(self, number(value, self.dtype, "value"), config)
