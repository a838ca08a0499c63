"""MindSpore's ``common.dtype`` namespace, usually imported as ``mstype``.

Source: MindSpore 2.7.2, mindspore/common/dtype.py.
"""

from __future__ import annotations

import builtins
import dataclasses
from typing import Any

import numpy as np

from msops._base.dtypes import BY_NAME, DType, as_dtype
from msops._base.missing_names import missing_names


@dataclasses.dataclass(frozen=True, repr=False)
class AbstractType:
    """A kind of value that is no dtype of a tensor; scripts compare and print it."""

    name: str
    title: str

    def __str__(self) -> str:
        return self.title

    def __repr__(self) -> str:
        return f"msops.{self.name}"


# What MindSpore also has at its top level. int, bool and float stay out of ``import *``.
__all__ = [
    "bfloat16",
    "bool_",
    "byte",
    "cdouble",
    "cfloat",
    "complex64",
    "complex128",
    "double",
    "dtype_to_nptype",
    "dtype_to_pytype",
    "float8_e4m3fn",
    "float8_e5m2",
    "float16",
    "float32",
    "float64",
    "float_",
    "get_py_obj_dtype",
    "half",
    "int8",
    "int16",
    "int32",
    "int64",
    "int_",
    "intc",
    "intp",
    "list_",
    "long",
    "number",
    "pytype_to_dtype",
    "short",
    "single",
    "string",
    "tensor_type",
    "tuple_",
    "type_none",
    "ubyte",
    "uint",
    "uint8",
    "uint16",
    "uint32",
    "uint64",
    "uintc",
    "uintp",
    "ushort",
]

Type = DType

bool_ = BY_NAME["bool"]
int8 = byte = BY_NAME["int8"]
int16 = short = BY_NAME["int16"]
int32 = intc = BY_NAME["int32"]
int64 = long = intp = BY_NAME["int64"]
uint8 = ubyte = BY_NAME["uint8"]
uint16 = ushort = BY_NAME["uint16"]
uint32 = uintc = BY_NAME["uint32"]
uint64 = uintp = BY_NAME["uint64"]
float16 = half = BY_NAME["float16"]
float32 = single = BY_NAME["float32"]
float64 = double = BY_NAME["float64"]
bfloat16 = BY_NAME["bfloat16"]
float8_e4m3fn = BY_NAME["float8_e4m3fn"]
float8_e5m2 = BY_NAME["float8_e5m2"]
complex64 = cfloat = BY_NAME["complex64"]
complex128 = cdouble = BY_NAME["complex128"]

number = AbstractType("number", "Number")
int_ = AbstractType("int", "Int")
uint = AbstractType("uint", "UInt")
float_ = AbstractType("float", "Float")
string = AbstractType("string_", "String")
list_ = AbstractType("list_", "List")
tuple_ = AbstractType("tuple_", "Tuple")
type_none = AbstractType("type_none", "NoneType")
tensor_type = AbstractType("tensor", "Tensor")

int_type = (int8, int16, int32, int64)
uint_type = (uint8, uint16, uint32, uint64)
float_type = (float16, float32, float64, bfloat16, float8_e4m3fn, float8_e5m2)
complex_type = (complex64, complex128)
number_type = (*int_type, *uint_type, *float_type, *complex_type)
all_types = (bool_, *number_type)

# Python's own types, as MindSpore reads them here; the data of Tensor(1.0) is Float32 nevertheless.
_OF_PYTHON_TYPES: dict[type, DType | AbstractType] = {
    builtins.bool: bool_,
    builtins.int: int64,
    builtins.float: float64,
    complex: complex128,
    str: string,
    list: list_,
    tuple: tuple_,
    type(None): type_none,
}


def pytype_to_dtype(obj: Any) -> DType | AbstractType:
    """Returns the dtype of a Python or numpy type.

    Args:
      obj: a type such as ``int`` or ``np.float32``, a numpy dtype, or a dtype (returned as it is).

    Raises:
      ArgumentTypeError: it has none.

    Source: MindSpore 2.7.2, mindspore/common/dtype.py, pytype_to_dtype.
    """
    if isinstance(obj, (DType, AbstractType)):
        return obj
    return _OF_PYTHON_TYPES[obj] if obj in _OF_PYTHON_TYPES else as_dtype(obj)


def dtype_to_nptype(type_: DType) -> type:
    """Returns the numpy scalar type of a dtype.

    Args:
      type_: a dtype of the table.

    Raises:
      ArgumentTypeError: it is none.

    Source: MindSpore 2.7.2, mindspore/common/dtype.py, dtype_to_nptype.
    """
    return as_dtype(type_).dtype.type


def dtype_to_pytype(type_: DType) -> type:
    """Returns the Python type whose values a dtype's entries convert to.

    Args:
      type_: a dtype of the table.

    Raises:
      ArgumentTypeError: it is none.

    Source: MindSpore 2.7.2, mindspore/common/dtype.py, dtype_to_pytype.
    """
    kinds = {"b": builtins.bool, "i": builtins.int, "u": builtins.int, "c": complex}
    return kinds.get(as_dtype(type_).dtype.kind, builtins.float)


def get_py_obj_dtype(obj: Any) -> DType | AbstractType:
    """Returns the dtype of a Python value or type.

    Args:
      obj: a Tensor (gives `tensor_type`), a dtype, a type, or a value of a Python type.

    Raises:
      ArgumentTypeError: it has none.

    Source: MindSpore 2.7.2, mindspore/common/dtype.py, get_py_obj_dtype.
    """
    if isinstance(getattr(obj, "dtype", None), DType):
        return tensor_type
    return pytype_to_dtype(obj if isinstance(obj, (type, np.dtype, DType)) else type(obj))


# Names of builtins come last: this module must not use them for itself.
bool = bool_
int = int32
float = float32

__getattr__ = missing_names(__name__)
