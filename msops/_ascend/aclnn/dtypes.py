"""dtypes as aclnn sees them: its numbers for them, and which one operands are computed in.

Operands of two dtypes are computed in the smallest that holds both kinds, as PyTorch defines it
(``op::PromoteType``), which is JAX's lattice too. A number beside a tensor matters by its kind
alone: Int32 and 2.5 are computed in Float32, Float16 and 2.5 in Float16.
"""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from msops._ascend.aclnn.refusal import Refused
from msops._base.dtypes import BY_NAME, BY_TYPE_ID, KIND_RANKS, SCALAR_RANKS, as_dtype

# CANN's aclDataType. No number here is also one of MindSpore's TypeId for a dtype of the table.
_ACL_NUMBERS = {
    0: "float32",
    1: "float16",
    2: "int8",
    3: "int32",
    4: "uint8",
    6: "int16",
    7: "uint16",
    8: "uint32",
    9: "int64",
    10: "uint64",
    11: "float64",
    12: "bool",
    16: "complex64",
    17: "complex128",
    27: "bfloat16",
}


def read_dtype(value: Any) -> np.dtype:
    """Returns the dtype named by a ``TypeId``, an ``aclDataType`` or anything numpy takes.

    Raises:
      TypeError: `value` names no dtype.
    """
    if isinstance(value, (int, np.integer)) and not isinstance(value, bool):
        if int(value) in BY_TYPE_ID:
            return BY_TYPE_ID[int(value)].dtype
        if int(value) in _ACL_NUMBERS:
            return BY_NAME[_ACL_NUMBERS[int(value)]].dtype
        raise TypeError
    return as_dtype(value).dtype


def kind_of(dtype: Any) -> int:
    """Returns 0 for bool, 1 for integers, 2 for floats, 3 for complex dtypes."""
    return KIND_RANKS[np.dtype(dtype).kind]


def can_cast(source: Any, target: Any) -> bool:
    """Returns whether aclnn stores results of dtype `source` in an output of dtype `target`."""
    return kind_of(source) <= kind_of(target)


def promote(*tensors: jax.Array) -> list[jax.Array]:
    """Returns tensors in the dtype that holds them all."""
    dtype = np.dtype(tensors[0].dtype)
    for tensor in tensors[1:]:
        joint = jnp.promote_types(dtype, tensor.dtype)
        if kind_of(joint) > max(kind_of(dtype), kind_of(tensor.dtype)):
            raise Refused(
                f"{dtype} and {tensor.dtype} have no common dtype", "Cast one of the two."
            )
        dtype = np.dtype(joint)
    return [tensor.astype(dtype) for tensor in tensors]


def dtype_beside(tensor: jax.Array, *scalars: Any) -> np.dtype:
    """Returns the dtype in which a tensor and numbers are computed."""
    dtype = np.dtype(tensor.dtype)
    kind = max(SCALAR_RANKS[type(scalar)] for scalar in scalars)
    if kind <= kind_of(dtype):
        return dtype
    if kind == 3:
        return np.dtype(np.complex128 if dtype == np.float64 else np.complex64)
    return jax.dtypes.canonicalize_dtype(np.int64) if kind == 1 else np.dtype(np.float32)


def number(scalar: Any, dtype: Any, name: str) -> Any:
    """Returns a number in a dtype that holds its kind.

    Raises:
      Refused: the dtype does not, as for alpha = 0.5 and integers.
    """
    if SCALAR_RANKS[type(scalar)] > max(kind_of(dtype), 1):
        raise Refused(
            f"expected {name} to be a number that {np.dtype(dtype)} holds; got {scalar!r}",
            "Pass a number of that kind, or cast the tensors.",
        )
    return np.dtype(dtype).type(scalar)


def floating(tensor: jax.Array) -> jax.Array:
    """Returns a tensor in a float dtype: Float32 for integers and booleans."""
    return tensor.astype(np.float32) if kind_of(tensor.dtype) < 2 else tensor


def in_float32(tensor: jax.Array) -> jax.Array:
    """Returns a tensor in the dtype its sums are kept in: Float32 for narrower floats."""
    tensor = floating(tensor)
    return tensor.astype(np.float32) if tensor.dtype.itemsize < 4 else tensor
