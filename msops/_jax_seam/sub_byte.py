"""Elements narrower than a byte: packed in XLA's arrays, one in a byte for kernels.

jaxlib 0.10.2 and 0.12.0.1 hand two int4 in a byte to a custom call, and four int2, the first in the
lowest bits. The FFI nevertheless counts a byte for each, and an element has no address. numpy and
ml_dtypes keep one in a byte, and so do kernels: a program unpacks the operands of a call
and packs its results. Signed integers are extended, so that a kernel reads them as int8; others
have zeros in the high bits. Of what a kernel writes, the low bits count.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax
from jax.interpreters import mlir

from msops._jax_seam.lowering import Lowering

BITS = {"int2": 2, "uint2": 2, "int4": 4, "uint4": 4, "float4_e2m1fn": 4}


def byte_dtype(dtype: np.dtype) -> np.dtype:
    """Returns the dtype of the elements that a kernel gets: of a byte, if `dtype` is narrower."""
    if dtype.name not in BITS:
        return dtype
    return np.dtype(np.int8 if jnp.issubdtype(dtype, jnp.signedinteger) else np.uint8)


def call_on_bytes(
    lowering: Lowering, call: Callable[..., Sequence[Any]], operands: Sequence[Any]
) -> Sequence[Any]:
    """Lowers an equation by a rule that gets such elements, and returns them, one in a byte.

    Args:
      lowering: the equation.
      call: JAX's rule: gets its context, then the operands' values in the program.
      operands: the operands' values in the program.
    """
    context = lowering.context
    inputs, outputs = ([_of_bytes(aval) for aval in a] for a in (lowering.inputs, lowering.outputs))
    unpack = mlir.lower_fun(lambda *arrays: [_unpack(array) for array in arrays])
    pack = mlir.lower_fun(
        lambda *arrays: [
            _pack(array, aval.dtype) for array, aval in zip(arrays, lowering.outputs, strict=True)
        ]
    )
    values = unpack(context.replace(avals_out=inputs), *operands)
    results = call(context.replace(avals_in=inputs, avals_out=outputs), *values)
    return pack(context.replace(avals_in=outputs), *results)


def _of_bytes(aval: Any) -> Any:
    dtype = byte_dtype(aval.dtype)
    return aval if dtype == aval.dtype else aval.update(dtype=dtype)


def _unpack(array: jax.Array) -> jax.Array:
    dtype = byte_dtype(array.dtype)
    if not jnp.issubdtype(array.dtype, jnp.integer) and dtype != array.dtype:
        array = lax.bitcast_convert_type(array, jnp.uint4)
    return lax.convert_element_type(array, dtype)


def _pack(array: jax.Array, dtype: np.dtype) -> jax.Array:
    if dtype == array.dtype:
        return array
    unused = np.array(8 - BITS[dtype.name], array.dtype)
    # What a kernel left in the high bits is gone after this, or is the sign.
    shift_right = (
        lax.shift_right_arithmetic
        if jnp.issubdtype(array.dtype, jnp.signedinteger)
        else lax.shift_right_logical
    )
    value = shift_right(lax.shift_left(array, unused), unused)
    if jnp.issubdtype(dtype, jnp.integer):
        return lax.convert_element_type(value, dtype)
    return lax.bitcast_convert_type(lax.convert_element_type(value, jnp.uint4), dtype)
