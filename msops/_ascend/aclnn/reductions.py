"""Sums, means and extremes over axes. No axes means all of them."""

from __future__ import annotations

import math

import jax
import jax.numpy as jnp
import numpy as np

from msops._ascend.aclnn.dtypes import floating, in_float32, kind_of
from msops._ascend.aclnn.kinds import Bool, DType, Int, Ints, Scalar, Tensor
from msops._ascend.aclnn.outputs import Outputs, declared
from msops._ascend.aclnn.refusal import Refused
from msops._ascend.aclnn.table import aclnn
from msops._base import extremes


def axes(dims: Ints | None, tensor: jax.Array) -> tuple[int, ...]:
    """Returns axes counted from the front; all of them for None or an empty list."""
    if not dims:
        return tuple(range(tensor.ndim))
    rank = max(tensor.ndim, 1)
    if any(not -rank <= dim < rank for dim in dims) or len({d % rank for d in dims}) < len(dims):
        raise Refused(
            f"expected different axes of a tensor of rank {tensor.ndim}; got {list(dims)}",
            "Count them from 0, or back from -1.",
        )
    return tuple(dim % rank for dim in dims) if tensor.ndim else ()


@aclnn("ReduceSum")
def reduce_sum(self: Tensor, dims: Ints | None, keep_dims: Bool, dtype: DType | None) -> Tensor:
    """The sum over axes, in `dtype`; narrow floats are added in Float32."""
    dtype = self.dtype if dtype is None else dtype
    wide = np.float32 if dtype.itemsize < 4 and kind_of(dtype) == 2 else dtype
    return jnp.sum(self, axis=axes(dims, self), keepdims=keep_dims, dtype=wide).astype(dtype)


@aclnn("Mean")
def mean(self: Tensor, dim: Ints | None, keep_dim: Bool, dtype: DType | None) -> Tensor:
    """The mean over axes, in `dtype`; as an integer it is cut towards 0."""
    dtype = floating(self).dtype if dtype is None else dtype
    x = in_float32(self.astype(dtype))
    return jnp.mean(x, axis=axes(dim, self), keepdims=keep_dim).astype(dtype)


@aclnn("MeanV2")
def mean_v2(
    self: Tensor,
    dim: Ints | None,
    keep_dim: Bool,
    noop_with_empty_axes: Bool,
    *,
    outputs: Outputs,
) -> Tensor:
    """The mean over axes; `self` without axes if `noop_with_empty_axes`.

    In an output of integers it is cut towards 0.
    """
    x = floating(self)
    result = x if not dim and noop_with_empty_axes else mean(x, dim, keep_dim, None)
    is_integer = outputs is not None and kind_of(declared(outputs).dtype) == 1
    return result.astype(declared(outputs).dtype) if is_integer else result


def _not_empty(x: jax.Array, dims: tuple[int, ...]) -> None:
    if any(x.shape[dim] == 0 for dim in dims):
        raise Refused(
            f"expected entries along axes {list(dims)} of a tensor of shape {x.shape}",
            "An extreme of nothing is not defined.",
        )


@aclnn("Amax")
def amax(self: Tensor, dim: Ints | None, keep_dim: Bool) -> Tensor:
    """The greatest entries over axes; equal ones share the gradient."""
    _not_empty(self, axes(dim, self))
    return extremes.amax(self, axis=axes(dim, self), keepdims=keep_dim)


@aclnn("Amin")
def amin(self: Tensor, dim: Ints | None, keep_dim: Bool) -> Tensor:
    """The smallest entries over axes; equal ones share the gradient."""
    _not_empty(self, axes(dim, self))
    return extremes.amin(self, axis=axes(dim, self), keepdims=keep_dim)


@aclnn("Max")
def max_of_all(self: Tensor) -> Tensor:
    """The greatest entry."""
    return amax(self, None, False)


@aclnn("Min")
def min_of_all(self: Tensor) -> Tensor:
    """The smallest entry."""
    return amin(self, None, False)


@aclnn("ProdDim")
def prod_dim(self: Tensor, dim: Int, keep_dim: Bool, dtype: DType | None) -> Tensor:
    """The product along one axis, in `dtype`."""
    x = self.astype(self.dtype if dtype is None else dtype)
    return jnp.prod(x, axis=axes((dim,), x), keepdims=keep_dim, dtype=x.dtype)


@aclnn("Prod")
def prod(self: Tensor, dtype: DType | None) -> Tensor:
    """The product of all entries, in `dtype`."""
    x = self.astype(self.dtype if dtype is None else dtype)
    return jnp.prod(x, dtype=x.dtype)


@aclnn("All")
def all_nonzero(self: Tensor, dim: Ints | None, keep_dim: Bool) -> Tensor:
    """Whether no entry is zero."""
    return jnp.all(self != 0, axis=axes(dim, self), keepdims=keep_dim)


@aclnn("Any")
def any_nonzero(self: Tensor, dim: Ints | None, keep_dim: Bool) -> Tensor:
    """Whether an entry is not zero."""
    return jnp.any(self != 0, axis=axes(dim, self), keepdims=keep_dim)


@aclnn("Var")
def var(self: Tensor, dim: Ints | None, unbiased: Bool, keep_dim: Bool) -> Tensor:
    """The variance over axes, divided by n, or by n - 1 if `unbiased`."""
    return var_correction(self, dim, int(unbiased), keep_dim)


@aclnn("VarCorrection")
def var_correction(self: Tensor, dim: Ints | None, correction: Int, keep_dim: Bool) -> Tensor:
    """The variance over axes, divided by n - `correction`; infinite if that is 0 or less, unless
    `correction` is 0 or 1."""
    x = floating(self)
    wide = in_float32(x)
    over = axes(dim, x)
    result = jnp.var(wide, axis=over, keepdims=keep_dim, ddof=correction)
    if correction > 1 and math.prod(x.shape[axis] for axis in over) <= correction:
        result = jnp.full_like(result, jnp.inf)
    return result.astype(x.dtype)


@aclnn("Std")
def std(self: Tensor, dim: Ints | None, correction: Int, keep_dim: Bool) -> Tensor:
    """The standard deviation over axes, of n - `correction` degrees."""
    return jnp.sqrt(var_correction(self, dim, correction, keep_dim))


@aclnn("Norm")
def norm(self: Tensor, p: Scalar | None, dim: Ints | None, keep_dim: Bool) -> Tensor:
    """``sum(|self| ** p) ** (1 / p)`` over axes; `p` is 2 if absent, and may be infinite."""
    x = jnp.abs(in_float32(self))
    p, over = 2.0 if p is None else float(p), axes(dim, self)
    if p == np.inf:
        result = extremes.amax(x, axis=over, keepdims=keep_dim)
    elif p == -np.inf:
        result = extremes.amin(x, axis=over, keepdims=keep_dim)
    elif p == 0:
        result = jnp.sum((x != 0).astype(x.dtype), axis=over, keepdims=keep_dim)
    else:
        result = jnp.sum(x**p, axis=over, keepdims=keep_dim) ** (1 / p)
    return result.astype(floating(self).dtype)


@aclnn("LogSumExp")
def log_sum_exp(self: Tensor, dim: Ints, keep_dim: Bool) -> Tensor:
    """``log(sum(exp(self)))`` over axes."""
    x = floating(self)
    result = jax.scipy.special.logsumexp(in_float32(x), axis=axes(dim, x), keepdims=keep_dim)
    return result.astype(x.dtype)
