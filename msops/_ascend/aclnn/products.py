"""Products of matrices and vectors. `cube_math_type` stands after the output in aclnn."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np

from msops._ascend.aclnn.dtypes import floating, kind_of, number, promote
from msops._ascend.aclnn.kinds import CubeMathType, Int, Ints, Scalar, Tensor
from msops._ascend.aclnn.refusal import Refused
from msops._ascend.aclnn.table import aclnn

# 0 keeps the precision of the dtype; 1, 2 and 3 allow the matrix unit to round.
_PRECISION = {
    0: jax.lax.Precision.HIGHEST,
    1: jax.lax.Precision.DEFAULT,
    2: jax.lax.Precision.DEFAULT,
    3: jax.lax.Precision.DEFAULT,
}


def _product(
    x: jax.Array, y: jax.Array, cube_math_type: int, keeps_integers: bool = False
) -> jax.Array:
    if cube_math_type not in _PRECISION:
        raise Refused(
            f"expected cubeMathType 0, 1, 2 or 3; got {cube_math_type}", "0 keeps the precision."
        )
    x, y = promote(x, y)
    if not keeps_integers:
        x, y = floating(x), floating(y)
    elif kind_of(x.dtype) == 0:
        # A sum of booleans is whether one of them holds.
        return jnp.matmul(x.astype(np.int32), y.astype(np.int32)) != 0
    return jnp.matmul(x, y, precision=_PRECISION[cube_math_type])


def _check_rank(name: str, x: jax.Array, rank: int) -> None:
    if x.ndim != rank:
        raise Refused(f"expected {name} of rank {rank}; got shape {x.shape}", "Reshape it.")


@aclnn("Matmul")
def matmul(self: Tensor, mat2: Tensor, cube_math_type: CubeMathType = 0) -> Tensor:
    """The product of matrices or vectors; leading axes broadcast."""
    return _product(self, mat2, cube_math_type)


@aclnn("Mm")
def mm(self: Tensor, mat2: Tensor, cube_math_type: CubeMathType = 0) -> Tensor:
    """The product of two matrices."""
    _check_rank("self", self, 2)
    _check_rank("mat2", mat2, 2)
    return _product(self, mat2, cube_math_type)


@aclnn("BatchMatMul")
def batch_matmul(self: Tensor, mat2: Tensor, cube_math_type: CubeMathType = 0) -> Tensor:
    """The products of matrices, one per entry of the first axis."""
    _check_rank("self", self, 3)
    _check_rank("mat2", mat2, 3)
    return _product(self, mat2, cube_math_type)


@aclnn("Addmm")
def addmm(
    self: Tensor,
    mat1: Tensor,
    mat2: Tensor,
    beta: Scalar,
    alpha: Scalar,
    cube_math_type: CubeMathType = 0,
) -> Tensor:
    """``beta * self + alpha * (mat1 @ mat2)``."""
    _check_rank("mat1", mat1, 2)
    _check_rank("mat2", mat2, 2)
    return _add_product(self, mat1, mat2, beta, alpha, cube_math_type)


@aclnn("Baddbmm")
def baddbmm(
    self: Tensor,
    batch1: Tensor,
    batch2: Tensor,
    beta: Scalar,
    alpha: Scalar,
    cube_math_type: CubeMathType = 0,
) -> Tensor:
    """``beta * self + alpha * (batch1 @ batch2)``, one per entry of the first axis."""
    _check_rank("batch1", batch1, 3)
    _check_rank("batch2", batch2, 3)
    return _add_product(self, batch1, batch2, beta, alpha, cube_math_type)


@aclnn("Addmv")
def addmv(
    self: Tensor,
    mat: Tensor,
    vec: Tensor,
    alpha: Scalar,
    beta: Scalar,
    cube_math_type: CubeMathType = 0,
) -> Tensor:
    """``beta * self + alpha * (mat @ vec)``; `alpha` comes before `beta`, integers stay."""
    _check_rank("mat", mat, 2)
    _check_rank("vec", vec, 1)
    return _add_product(self, mat, vec, beta, alpha, cube_math_type, keeps_integers=True)


def _add_product(
    added: jax.Array,
    x: jax.Array,
    y: jax.Array,
    beta: Scalar,
    alpha: Scalar,
    cube_math_type: int,
    keeps_integers: bool = False,
) -> jax.Array:
    product = _product(x, y, cube_math_type, keeps_integers)
    product = number(alpha, product.dtype, "alpha") * product
    # Nothing of `added` counts then, not even its NaN.
    if beta == 0:
        return product
    added, product = promote(added, product)
    return number(beta, product.dtype, "beta") * added + product


@aclnn("Mv")
def mv(self: Tensor, vec: Tensor, cube_math_type: CubeMathType = 0) -> Tensor:
    """A matrix times a vector."""
    _check_rank("self", self, 2)
    _check_rank("vec", vec, 1)
    return _product(self, vec, cube_math_type)


@aclnn("Dot")
def dot(self: Tensor, tensor: Tensor) -> Tensor:
    """The inner product of two vectors; that of integers is one."""
    _check_rank("self", self, 1)
    _check_rank("tensor", tensor, 1)
    return _product(self, tensor, 0, keeps_integers=True)


@aclnn("TransposeBatchMatMul")
def transpose_batch_matmul(
    x1: Tensor,
    x2: Tensor,
    bias: Tensor | None,
    scale: Tensor | None,
    perm_x1: Ints,
    perm_x2: Ints,
    perm_y: Ints,
    cube_math_type: Int,
    batch_split_factor: Int,
) -> Tensor:
    """Products of matrices, one per entry of the first axis, with permuted axes.

    Args:
      x1, x2: tensors of rank 3.
      bias, scale: must be None.
      perm_x1, perm_x2: the axes of `x1` as [B, M, K] and of `x2` as [B, K, N]; none leaves them.
      perm_y: the axes of [B, M, N] as the result has them; none leaves them.
      cube_math_type: how the matrix unit may round.
      batch_split_factor: must be 1 or 0: the result is one tensor.
    """
    if bias is not None or scale is not None or batch_split_factor not in (0, 1):
        raise Refused(
            "expected no bias, no scale and batchSplitFactor 1; got another",
            "Add and scale with operators of their own.",
        )
    _check_rank("x1", x1, 3)
    _check_rank("x2", x2, 3)
    for perm in (perm_x1, perm_x2, perm_y):
        if perm and sorted(perm) != [0, 1, 2]:
            raise Refused(f"expected each of the axes 0, 1, 2 once; got {list(perm)}", "Name all.")
    x, y = (one.transpose(perm or (0, 1, 2)) for one, perm in ((x1, perm_x1), (x2, perm_x2)))
    return _product(x, y, cube_math_type).transpose(perm_y or (0, 1, 2))
