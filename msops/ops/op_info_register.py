"""MindSpore's ``ops.op_info_register`` namespace: op info builders and decorators."""

from msops._base.missing_names import missing_names
from msops._op_info import (
    AiCPURegOp,
    AkgAscendRegOp,
    AkgCpuRegOp,
    AkgGpuRegOp,
    AkgRegOp,
    CpuRegOp,
    CustomRegOp,
    DataType,
    RegOp,
    TBERegOp,
    custom_info_register,
    op_info_register,
)

__all__ = [
    "AiCPURegOp",
    "AkgAscendRegOp",
    "AkgCpuRegOp",
    "AkgGpuRegOp",
    "AkgRegOp",
    "CpuRegOp",
    "CustomRegOp",
    "DataType",
    "RegOp",
    "TBERegOp",
    "custom_info_register",
    "op_info_register",
]

__getattr__ = missing_names(__name__)
