"""The dtype table: one row per dtype, with every name it goes by."""

from __future__ import annotations

from typing import Any

import ml_dtypes
import numpy as np

from msops.errors import ArgumentTypeError

KIND_RANKS = {"b": 0, "i": 1, "u": 1, "f": 2, "V": 2, "c": 3}
"""Numpy's kinds of dtypes, from booleans to complex numbers: promotion takes the highest."""
SCALAR_RANKS: dict[type, int] = {bool: 0, int: 1, float: 2, complex: 3}
"""The same of Python's numbers."""


class DType:
    """A MindSpore dtype, usable wherever numpy and JAX take one.

    Attributes:
      name: numpy's name, also the text a kernel and op info see, e.g. ``"float32"``.
      title: the name MindSpore prints, e.g. ``"Float32"``; numpy's if MindSpore has no such dtype.
      type_id: the number of MindSpore 2.7.2's ``TypeId``, which ``NameInferType`` returns; None if
        it has none.
      dtype: the numpy dtype; the attribute is what makes ``np.dtype(ms.float32)`` work.
    """

    __slots__ = ("dtype", "name", "title", "type_id")

    def __init__(self, name: str, title: str, type_id: int | None, dtype: Any):
        self.name = name
        self.title = title
        self.type_id = type_id
        self.dtype = np.dtype(dtype)

    def __eq__(self, other: object) -> bool:
        if isinstance(other, DType):
            return self is other
        if isinstance(other, (np.dtype, type)):
            try:
                return self.dtype == np.dtype(other)
            except TypeError:
                return False
        return NotImplemented

    def __hash__(self) -> int:
        return hash(self.dtype)

    def __str__(self) -> str:
        return self.title

    def __repr__(self) -> str:
        return f"msops.{self.name}" if self.title != self.name else f"dtype({self.name!r})"

    def __reduce__(self) -> tuple[Any, ...]:
        return as_dtype, (self.name,)


DTYPES = tuple(
    DType(name, title, type_id, dtype)
    for name, title, type_id, dtype in (
        ("bool", "Bool", 30, np.bool_),
        ("int8", "Int8", 32, np.int8),
        ("int16", "Int16", 33, np.int16),
        ("int32", "Int32", 34, np.int32),
        ("int64", "Int64", 35, np.int64),
        ("uint8", "UInt8", 37, np.uint8),
        ("uint16", "UInt16", 38, np.uint16),
        ("uint32", "UInt32", 39, np.uint32),
        ("uint64", "UInt64", 40, np.uint64),
        ("float16", "Float16", 42, np.float16),
        ("float32", "Float32", 43, np.float32),
        ("float64", "Float64", 44, np.float64),
        ("bfloat16", "BFloat16", 45, ml_dtypes.bfloat16),
        ("complex64", "Complex64", 51, np.complex64),
        ("complex128", "Complex128", 52, np.complex128),
    )
)
"""The dtypes that kernels of every func_type take."""

LOW_PRECISION_DTYPES = tuple(
    DType(name, title, type_id, getattr(ml_dtypes, name))
    for name, title, type_id in (
        ("float8_e3m4", "float8_e3m4", None),
        ("float8_e4m3", "float8_e4m3", None),
        ("float8_e4m3b11fnuz", "float8_e4m3b11fnuz", None),
        ("float8_e4m3fn", "Float8E4M3FN", 46),
        ("float8_e4m3fnuz", "float8_e4m3fnuz", None),
        ("float8_e5m2", "Float8E5M2", 47),
        ("float8_e5m2fnuz", "float8_e5m2fnuz", None),
        ("float8_e8m0fnu", "float8_e8m0fnu", None),
        ("float4_e2m1fn", "float4_e2m1fn", None),
        ("int4", "int4", None),
        ("uint4", "uint4", None),
        ("int2", "int2", None),
        ("uint2", "uint2", None),
    )
)
"""Those of ml_dtypes that XLA has arrays of, which aot kernels and Python functions take."""

BY_NAME = {row.name: row for row in (*DTYPES, *LOW_PRECISION_DTYPES)}
BY_TYPE_ID = {row.type_id: row for row in BY_NAME.values() if row.type_id is not None}
_BY_DTYPE = {row.dtype: row for row in BY_NAME.values()}
_BY_TITLE = {row.title: row for row in BY_NAME.values()}
_LOW_PRECISION = frozenset(row.dtype for row in LOW_PRECISION_DTYPES)


def as_dtype(value: Any) -> DType:
    """Returns the `DType` that `value` names.

    Args:
      value: a `DType`, anything ``np.dtype`` accepts (``jnp.float32`` included), or MindSpore's
        printed name such as ``"Float32"``.

    Raises:
      ArgumentTypeError: `value` names no dtype of the table.
    """
    if isinstance(value, DType):
        return value
    row = None
    if isinstance(value, str) and value in _BY_TITLE:
        row = _BY_TITLE[value]
    elif value is not None:
        try:
            # Byte order is a property of a buffer, not of the dtype an op is declared with.
            row = _BY_DTYPE.get(np.dtype(value).newbyteorder("="))
        except (TypeError, ValueError):
            row = None
    if row is None:
        raise ArgumentTypeError.explained(
            "dtype",
            f"expected one of {', '.join(BY_NAME)}; got {value!r}",
            "Pass a dtype such as msops.float32, jnp.float32 or 'float32'.",
        )
    return row


def find_dtype(dtype: Any) -> DType | None:
    """Returns the row of an array's dtype, of either byte order; None if there is none."""
    # JAX's random keys have a dtype that is none of numpy's. A numpy dtype takes 2 us to give its
    # name.
    return _BY_DTYPE.get(dtype.newbyteorder("=")) if isinstance(dtype, np.dtype) else None


def known_dtype(dtype: Any, what: str, who: str) -> DType:
    """Returns the dtype of an array as msops's own.

    Raises:
      ArgumentTypeError: it is one that kernels are not given, such as that of random keys.
    """
    known = find_dtype(dtype)
    if known is None:
        raise ArgumentTypeError.explained(
            who,
            f"expected for {what} one of {', '.join(BY_NAME)}; got {dtype}",
            "Cast it to one of these: integers by x.astype(jnp.int8), floats by "
            "x.astype(jnp.bfloat16), random keys by jax.random.key_data(x).",
        )
    return known


def is_low_precision(dtype: Any) -> bool:
    """Returns whether the dtype of an array is one of `LOW_PRECISION_DTYPES`."""
    return isinstance(dtype, np.dtype) and dtype.newbyteorder("=") in _LOW_PRECISION
