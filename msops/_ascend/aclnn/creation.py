"""Operators that make values: constants, ranges, one-hot vectors."""

from __future__ import annotations

import math

import jax.numpy as jnp
import numpy as np

from msops._ascend.aclnn.dtypes import kind_of
from msops._ascend.aclnn.kinds import Int, Scalar, Tensor, UpdatedTensor
from msops._ascend.aclnn.outputs import Outputs, declared, require_shape
from msops._ascend.aclnn.refusal import Refused
from msops._ascend.aclnn.table import aclnn


@aclnn("InplaceFillScalar")
def fill_scalar(self_ref: UpdatedTensor, value: Scalar) -> Tensor:
    """One number in every entry."""
    return jnp.full_like(self_ref, value)


@aclnn("InplaceFillTensor")
def fill_tensor(self_ref: UpdatedTensor, value: Tensor) -> Tensor:
    """The one entry of `value` in every entry."""
    if value.size != 1:
        raise Refused(f"expected one entry; got shape {value.shape}", "Use aclnnInplaceCopy.")
    return jnp.broadcast_to(value.reshape(()).astype(self_ref.dtype), self_ref.shape)


@aclnn("InplaceZero")
def zero(self_ref: UpdatedTensor) -> Tensor:
    """Zeros."""
    return jnp.zeros_like(self_ref)


@aclnn("InplaceOne")
def one(self_ref: UpdatedTensor) -> Tensor:
    """Ones."""
    return jnp.ones_like(self_ref)


@aclnn("InplaceCopy")
def copy(self_ref: UpdatedTensor, src: Tensor) -> Tensor:
    """The entries of `src`, broadcast and cast."""
    return jnp.broadcast_to(src, self_ref.shape).astype(self_ref.dtype)


@aclnn("Arange")
def arange(start: Scalar, end: Scalar, step: Scalar, *, outputs: Outputs) -> Tensor:
    """``start``, ``start + step``, ... before `end`, in the dtype of the output."""
    if step == 0:
        raise Refused("expected a step other than 0; got 0", "Pass 1 or -1.")
    require_shape((max(0, math.ceil((end - start) / step)),), outputs)
    dtype = np.dtype(declared(outputs).dtype)
    # In numpy, whose numbers are wide: the entries are constants of the program.
    return jnp.asarray(np.arange(start, end, step).astype(dtype))


@aclnn("Linspace")
def linspace(start: Scalar, end: Scalar, steps: Int, *, outputs: Outputs) -> Tensor:
    """`steps` numbers from `start` to `end`, both included, in the dtype of the output."""
    require_shape((steps,), outputs)
    dtype = np.dtype(declared(outputs).dtype)
    return jnp.asarray(np.linspace(start, end, steps, dtype=np.float64).astype(dtype))


@aclnn("Eye")
def eye(n: Int, m: Int, *, outputs: Outputs) -> Tensor:
    """Ones on the diagonal of an n by m matrix."""
    require_shape((n, m), outputs)
    return jnp.eye(n, m, dtype=declared(outputs).dtype)


@aclnn("OneHot")
def one_hot(
    self: Tensor,
    num_classes: Int,
    on_value: Tensor,
    off_value: Tensor,
    axis: Int,
    *,
    outputs: Outputs,
) -> Tensor:
    """`on_value` at the class an entry names along a new axis, `off_value` elsewhere."""
    if kind_of(self.dtype) != 1:
        raise Refused(f"expected integers; got {self.dtype}", "Cast them to Int64.")
    if not -self.ndim - 1 <= axis <= self.ndim:
        raise Refused(f"expected an axis up to {self.ndim}; got {axis}", "-1 is the last.")
    axis = axis % (self.ndim + 1)
    require_shape((*self.shape[:axis], num_classes, *self.shape[axis:]), outputs)
    classes = jnp.arange(num_classes, dtype=self.dtype)
    shape = [1] * (self.ndim + 1)
    shape[axis] = num_classes
    marked = jnp.expand_dims(self, axis) == classes.reshape(shape)
    return jnp.where(marked, on_value.reshape(()), off_value.reshape(()).astype(on_value.dtype))
