"""Handles: a tensor in C++ is a handle on an array, which C++ rebinds to new arrays.

`jax.Array`s never change, so an operator that changes a tensor in place gives its handle another
array. C++ sees one object all the while, and the caller's Tensor gets the last array when the call
is over (calls.py).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from msops import _jax_seam as seam
from msops._base.dtypes import BY_TYPE_ID, DTYPES, LOW_PRECISION_DTYPES, as_dtype
from msops._face.tensor import Tensor
from msops.errors import ArgumentTypeError, ArgumentValueError, BackendError

_ALIGNMENT = 64


class Handle:
    """A tensor of C++.

    Attributes:
      dtype: the numpy dtype.
      shape: extents.
      content: None before anything was written, a numpy array that only this handle has, or a
        `jax.Array` or tracer.
      like: an array of the device its memory goes to as an array; None means JAX's default.
      owner: the Tensor it was made from, which follows it, or None.
      strided: memory of an eager slice as it lies in the array it was cut from, or None.
    """

    __slots__ = ("content", "dtype", "like", "owner", "shape", "strided")

    def __init__(
        self,
        shape: Sequence[int],
        dtype: np.dtype,
        content: Any = None,
        owner: Tensor | None = None,
    ):
        self.shape = tuple(shape)
        self.dtype = dtype
        self.owner = owner
        self.like: Any = None
        self.strided: np.ndarray | None = None
        self.content = content

    @property
    def is_empty(self) -> bool:
        """Whether nothing was written to it yet."""
        return self.content is None

    @property
    def is_traced(self) -> bool:
        """Whether its array is being traced."""
        return isinstance(self.content, jax.core.Tracer)

    @property
    def array(self) -> Any:
        """Its `jax.Array`; zeros before anything was written.

        Raises:
          BackendError: there is no memory for them.
        """
        if self.content is None:
            try:
                self.content = jnp.zeros(self.shape, self.dtype)
            except jax.errors.JaxRuntimeError as error:
                raise out_of_memory(self.shape, self.dtype) from error
        elif isinstance(self.content, np.ndarray):
            # The memory goes over to JAX, and nobody writes to it from here on.
            self.content = seam.array_of_memory(self.content, self.like)
        return self.content

    @array.setter
    def array(self, array: Any) -> None:
        if array.shape != self.shape or array.dtype != self.dtype:
            raise ArgumentValueError.explained(
                "extension tensor",
                f"expected an array of shape {self.shape} and dtype {self.dtype}; "
                f"got shape {array.shape} and dtype {array.dtype}",
                "Make the tensor with the shape and dtype of what is written to it.",
            )
        self.content = array
        self.strided = None

    def become(self, source: Handle) -> None:
        """Takes over array, shape and dtype of another handle."""
        self.content, self.shape, self.dtype = source.array, source.shape, source.dtype
        self.strided = None

    def writable(self) -> np.ndarray:
        """Returns memory that holds its data, that is its own, and that may be written to.

        Raises:
          ArgumentTypeError: it is being traced, so there is no data yet.
        """
        if not isinstance(self.content, np.ndarray):
            memory = aligned_memory(self.shape, self.dtype)
            if self.content is None:
                memory[...] = np.zeros((), self.dtype)
            else:
                memory[...] = self._concrete()
            self.content, self.strided = memory, None
        return self.content

    def readable(self) -> np.ndarray:
        """Returns memory that holds its data, row-major, for reading only.

        Raises:
          ArgumentTypeError: as `writable`.
        """
        if self.content is None or isinstance(self.content, np.ndarray):
            return self.writable()
        return self._concrete()

    def overwrite(self) -> np.ndarray:
        """Returns memory of its own, with anything in it, that is to be written to as a whole."""
        if not isinstance(self.content, np.ndarray):
            self.content = aligned_memory(self.shape, self.dtype)
        return self.content

    def _concrete(self) -> np.ndarray:
        if self.is_traced:
            raise ArgumentTypeError.explained(
                "extension tensor",
                f"there is no data yet behind the tensor of shape {self.shape}, because a "
                "function is being traced",
                "Read and write data in LaunchKernel of a PyboostRunner, which runs with the "
                "program, or in ms::DispatchKernel, with the tensors named by ms::TensorToDevice "
                "and ms::TensorAllocate; outside use operators (CustomLaunchAclnn, methods of "
                "ms::Tensor).",
            )
        return np.asarray(self.content)


def aligned_memory(shape: tuple[int, ...], dtype: np.dtype) -> np.ndarray:
    """Returns memory that JAX can take over without copying, with anything in it.

    Raises:
      BackendError: it is not there.
    """
    size_bytes = math.prod(shape) * dtype.itemsize
    try:
        block = np.empty(size_bytes + _ALIGNMENT, np.uint8)
    except MemoryError as error:
        raise out_of_memory(shape, dtype) from error
    start = -block.ctypes.data % _ALIGNMENT
    return block[start : start + size_bytes].view(dtype).reshape(shape)


def out_of_memory(shape: tuple[int, ...], dtype: np.dtype) -> BackendError:
    """Returns the error for a tensor that the machine cannot hold."""
    return BackendError.explained(
        "extension tensor",
        f"there is no memory for {math.prod(shape) * dtype.itemsize:,} bytes, a tensor of "
        f"shape {shape} and dtype {dtype}",
        "Make a smaller tensor, or a narrower one.",
    )


def dtype_of(type_id: int) -> np.dtype:
    """Returns the dtype of a number of ``TypeId``.

    Raises:
      ArgumentTypeError: msops has no such dtype.
    """
    # The short names of MindSpore's enum: kNumberTypeInt, UInt, Float, Double and Complex.
    known = BY_TYPE_ID.get({31: 34, 36: 39, 41: 43, 49: 44, 50: 51}.get(type_id, type_id))
    if known is None or known in LOW_PRECISION_DTYPES:
        names = ", ".join(f"{row.title} ({row.type_id})" for row in DTYPES)
        raise ArgumentTypeError.explained(
            "extension tensor",
            f"expected a TypeId of {names}; got {type_id}",
            "Make the tensor with one of these.",
        )
    return known.dtype


def type_id_of(dtype: Any) -> int:
    """Returns the number of ``TypeId`` of a dtype that extensions take."""
    type_id = as_dtype(dtype).type_id
    assert type_id is not None  # only low-precision dtypes have none
    return type_id


def layout(handle: Handle) -> tuple[int, tuple[int, ...], tuple[int, ...] | None, int]:
    """Returns type id, shape, strides (None for row-major), and offset, the last in elements."""
    if handle.strided is None:
        return type_id_of(handle.dtype), handle.shape, None, 0
    view = handle.strided
    base = view
    while isinstance(base.base, np.ndarray):
        base = base.base
    size = handle.dtype.itemsize
    offset = (view.ctypes.data - base.ctypes.data) // size
    return type_id_of(handle.dtype), handle.shape, tuple(s // size for s in view.strides), offset


def is_array(value: Any) -> bool:
    """Returns whether a Python object becomes a tensor in C++."""
    return isinstance(value, (Tensor, jax.Array, np.ndarray, np.generic))
