"""The (dtype, format) constants that rows of op info are written with."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

_DTYPES = {
    "None": "",
    "BOOL": "bool",
    "I8": "int8",
    "U8": "uint8",
    "I16": "int16",
    "U16": "uint16",
    "I32": "int32",
    "U32": "uint32",
    "I64": "int64",
    "U64": "uint64",
    "F16": "float16",
    "F32": "float32",
    "F64": "float64",
    "BF16": "bfloat16",
    "C64": "complex64",
    "C128": "complex128",
}
_REAL = "BOOL I8 U8 I16 U16 I32 U32 I64 U64 F16 F32 F64 BF16"

# One line per suffix: the value's tail after the dtype, and the dtypes it exists for.
_SUFFIXES: dict[str, tuple[tuple[str, ...], str]] = {
    "None": (("",), f"None {_REAL}"),
    "Default": (("DefaultFormat",), f"None {_REAL} C64 C128"),
    "5HD": (("NC1HWC0",), _REAL),
    "FracZ": (("FRACTAL_Z",), _REAL),
    "FracNZ": (("FRACTAL_NZ",), _REAL),
    "C1HWNCoC0": (("C1HWNCoC0",), _REAL),
    "NCHW": (("NCHW",), _REAL),
    "NHWC": (("NHWC",), _REAL),
    "HWCN": (("HWCN",), _REAL),
    "NDHWC": (("NDHWC",), _REAL),
    "ChannelLast": (("ChannelLast",), _REAL),
    "Default_Tuple": (("DefaultFormat", "tuple"), f"{_REAL} C64 C128"),
    "Default_List": (("DefaultFormat", "list"), _REAL),
    "NCDHW": (("NCDHW",), "I8 U8 I32 F16 F32 BF16"),
    "NDC1HWC0": (("NDC1HWC0",), "I8 U8 I32 F16 F32 BF16"),
    "NC1HWC0": (("NC1HWC0",), "I8 U8"),
    "DHWCN": (("DHWCN",), "F16 F32 BF16"),
    "FRACTAL_Z_3D": (("FRACTAL_Z_3D",), "F16 F32 BF16"),
    "FracZNLSTM": (("FRACTAL_ZN_LSTM",), "F16 F32 BF16"),
    "FracZNRNN": (("FRACTAL_ZN_RNN",), "F16 F32 BF16"),
    "ND_RNNBIAS": (("ND_RNN_BIAS",), "F16 F32 BF16"),
}


def _constants() -> Iterator[tuple[str, tuple[str, ...]]]:
    for suffix, (tail, prefixes) in _SUFFIXES.items():
        for prefix in prefixes.split():
            yield f"{prefix}_{suffix}", (_DTYPES[prefix], *tail)


class _ConstantsMeta(type):
    if TYPE_CHECKING:

        def __getattr__(cls, name: str) -> tuple[str, ...]: ...


class DataType(metaclass=_ConstantsMeta):
    """The (dtype, format) constants of op info rows, ``DataType.F32_Default`` and 203 others.

    Corresponds to ``mindspore.ops.DataType``. A name is ``<dtype>_<format>``:

    * dtypes: ``BOOL I8 U8 I16 U16 I32 U32 I64 U64 F16 F32 F64 BF16 C64 C128``, ``None`` for any;
    * formats: ``Default`` (the only one that tensors have on CPU and GPU), ``None`` for any, and
      Ascend's layouts ``5HD FracZ FracNZ C1HWNCoC0 NCHW NHWC HWCN NDHWC ChannelLast NCDHW NDC1HWC0
      NC1HWC0 DHWCN FRACTAL_Z_3D FracZNLSTM FracZNRNN ND_RNNBIAS``, most of them for some dtypes;
    * ``Default_Tuple`` and ``Default_List`` add a third element, for a list of tensors.

    Example:
      >>> from msops.ops import DataType
      >>> DataType.F32_Default
      ('float32', 'DefaultFormat')
      >>> DataType.None_None
      ('', '')

    Source: MindSpore 2.7.2, ``mindspore.ops.op_info_register.DataType``.
    """

    __slots__ = ()


for _name, _value in _constants():
    setattr(DataType, _name, _value)


def constant_name(dtype: str) -> str:
    """Returns the constant for tensors of `dtype`; that for any dtype, if it has none."""
    matching = (prefix for prefix, text in _DTYPES.items() if text == dtype)
    return f"{next(matching, 'None')}_Default"
