"""Calling a Python function from inside a program, with arrays of every width.

JAX prepares a callback's arrays on a thread of its own at run time, where `jax.enable_x64` of the
caller does not hold: 64-bit values would lose their upper half. So they cross as pairs of uint32.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax.experimental import io_callback

_WIDE = {np.dtype(name) for name in ("int64", "uint64", "float64", "complex128")}


def call_on_host(
    function: Callable[..., Sequence[np.ndarray]],
    outputs: Sequence[jax.ShapeDtypeStruct],
    inputs: Sequence[jax.Array],
    has_effect: bool,
    is_ordered: bool,
) -> list[jax.Array]:
    """Calls `function` on the host when the program runs.

    Args:
      function: numpy arrays to numpy arrays of the shapes and dtypes of `outputs`.
      outputs: what it returns.
      inputs: arrays of the program.
      has_effect: whether every call must run; else calls are pure.
      is_ordered: whether calls run in the order of the program.

    Returns:
      Arrays of the program, one per output.
    """
    dtypes = [np.dtype(array.dtype) for array in inputs]

    def narrow(*arrays: Any) -> list[np.ndarray]:
        wide = [_join_numpy(np.asarray(a), dtype) for a, dtype in zip(arrays, dtypes, strict=True)]
        return [_split_numpy(result) for result in function(*wide)]

    structs = [_split_struct(struct) for struct in outputs]
    operands = [_split(array) for array in inputs]
    if has_effect:
        results = io_callback(narrow, structs, *operands, ordered=is_ordered)
    else:
        results = jax.pure_callback(narrow, structs, *operands)
    return [
        _join(result, np.dtype(struct.dtype))
        for result, struct in zip(results, outputs, strict=True)
    ]


def _words(dtype: np.dtype) -> tuple[int, ...]:
    """Returns the trailing axes a value of `dtype` has as words of 32 bits."""
    return (2, 2) if dtype.kind == "c" else (2,)


def _split_struct(struct: jax.ShapeDtypeStruct) -> jax.ShapeDtypeStruct:
    dtype = np.dtype(struct.dtype)
    if dtype not in _WIDE:
        return struct
    return jax.ShapeDtypeStruct((*struct.shape, *_words(dtype)), np.uint32)


def _split(array: jax.Array) -> jax.Array:
    dtype = np.dtype(array.dtype)
    if dtype not in _WIDE:
        return array
    if dtype.kind == "c":
        array = jnp.stack([array.real, array.imag], axis=-1)
    return jax.lax.bitcast_convert_type(array, jnp.uint32)


def _join(array: jax.Array, dtype: np.dtype) -> jax.Array:
    if dtype not in _WIDE:
        return array
    if dtype.kind != "c":
        return jax.lax.bitcast_convert_type(array, dtype)
    parts = jax.lax.bitcast_convert_type(array, jnp.float64)
    return jax.lax.complex(parts[..., 0], parts[..., 1])


def _split_numpy(array: np.ndarray) -> np.ndarray:
    if array.dtype not in _WIDE:
        return array
    words = np.ascontiguousarray(array).reshape(-1).view(np.uint32)
    return words.reshape(*array.shape, *_words(array.dtype))


def _join_numpy(array: np.ndarray, dtype: np.dtype) -> np.ndarray:
    if dtype not in _WIDE:
        return array
    shape = array.shape[: array.ndim - len(_words(dtype))]
    return np.ascontiguousarray(array).reshape(-1).view(dtype).reshape(shape)
