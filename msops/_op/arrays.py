"""Which arrays an op takes and returns: their dtypes, widths and sizes."""

from __future__ import annotations

from typing import Any

import jax
import numpy as np

from msops._base.dtypes import DTYPES, find_dtype, is_low_precision
from msops._jax_seam import x64_enabled
from msops.errors import (
    ArgumentTypeError,
    ArgumentValueError,
    InferenceTypeError,
    InferenceValueError,
)

Shape = tuple[Any, ...]

# The widest dtype has 16 bytes, and sizes in bytes are int64; numpy's arrays have 64 dimensions.
MOST_ENTRIES = 2**59 - 1
HIGHEST_RANK = 64

# The dtypes of 64 bits, and those that JAX narrows them to.
_WIDE = {"int64": "int32", "uint64": "uint32", "float64": "float32", "complex128": "complex64"}


def as_array(value: Any, what: str, who: str) -> Any:
    """Returns `value` as something jit takes: native byte order, numeric.

    Raises:
      ArgumentTypeError: it is no such array; `what` and `who` are for the message.
      InferenceTypeError: it has 64-bit numbers, and these are off in JAX.
      ArgumentValueError: it is an int that JAX's type of ints cannot hold.
    """
    if isinstance(value, np.ma.MaskedArray):
        raise ArgumentTypeError.explained(
            who,
            f"expected an array for {what}; got a masked array, whose mask would be lost",
            "Pass x.filled(value), or the mask as an input of its own.",
        )
    if isinstance(value, int):
        remedy = "Pass a float, or an array of a type that holds it."
        refuse_wide(value, 64 if x64_enabled() else 32, what, remedy, who)
    if isinstance(value, (np.ndarray, np.generic)):
        if find_dtype(value.dtype) is not None:
            refuse_64_bit(value.dtype, what, who)
            native = value.dtype.newbyteorder("=")
            return value if value.dtype == native else value.astype(native)
    elif isinstance(value, (bool, int, float, complex)):
        return value
    elif isinstance(value, jax.Array) or hasattr(value, "__jax_array__"):
        array = value if isinstance(value, jax.Array) else value.__jax_array__()
        refuse_64_bit(array.dtype, what, who)
        return array
    shown = repr(value)
    raise ArgumentTypeError.explained(
        who,
        f"expected an array for {what}; got {type(value).__name__} "
        f"{shown if len(shown) < 60 else shown[:57] + '...'}",
        "Pass a jax.Array, numpy array, msops.Tensor or number; what is no array is an attribute: "
        "declare it by attrs= or by op info, and pass it by its name.",
    )


def kind_of(value: Any) -> str:
    """Returns what a message calls a value: JAX's classes of arrays have names of their own."""
    return "an array" if isinstance(value, jax.Array) else type(value).__name__


def refuse_wide(value: int, bits: int, what: str, remedy: str, who: str) -> None:
    """Raises for an int that a signed type of so many bits does not hold."""
    if value.bit_length() < bits or value == -(2 ** (bits - 1)):
        return
    shown = value if value.bit_length() < 200 else f"an int of {value.bit_length()} bits"
    raise ArgumentValueError.explained(
        who, f"expected {what} to fit {bits} bits; got {shown}", remedy
    )


def refuse_64_bit(
    dtype: Any, what: str, who: str, narrowing: str = "Cast to 32 bits (x.astype({}))"
) -> None:
    """Raises when `dtype` is 64 bits wide and JAX would silently narrow it.

    `narrowing` says how to have the narrow dtype, which replaces the braces.
    """
    narrow = _WIDE.get(getattr(dtype, "name", ""))
    if narrow and not x64_enabled():
        raise InferenceTypeError.explained(
            who,
            f"{what} is {dtype.name}, and 64-bit types are off in JAX",
            f"{narrowing.format(f'np.{narrow}')}, set "
            "jax.config.update('jax_enable_x64', True), call inside jax.enable_x64(True), or "
            "pass msops.Tensors, which keep their width.",
        )


def refuse_low_precision(dtype: Any, what: str, who: str, taker: str) -> None:
    """Raises when `dtype` is float8, or narrower than a byte, which `taker` does not take."""
    if is_low_precision(dtype):
        cast = "jnp.int8" if "int" in dtype.name else "jnp.bfloat16"
        raise ArgumentTypeError.explained(
            who,
            f"expected for {what} a dtype that {taker} takes, one of "
            f"{', '.join(row.name for row in DTYPES)}; got {dtype}",
            f"Cast by x.astype({cast}), or write the kernel in C++ (func_type 'aot') or as a "
            f"Python function (func_type 'pyfunc'), which take {dtype}.",
        )


def require_numbers(shape: Shape, what: str, who: str, remedy: str) -> None:
    """Raises when `shape` has a symbolic size (`jax.export`), where only numbers will do.

    Args:
      shape: the shape.
      what: whose it is, for messages.
      who: the op, for messages.
      remedy: what to do, besides exporting a program per shape.
    """
    if not all(isinstance(size, int) for size in shape):
        raise InferenceValueError.explained(
            who,
            f"expected numbers for the shape of {what}; got ({', '.join(map(str, shape))})",
            f"{remedy}, or export one program per shape.",
        )
