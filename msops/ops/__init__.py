"""MindSpore's ``ops`` namespace: Custom, op info, gradients, and the operators of the table."""

# The module before the function of the same name, which would otherwise be replaced by it when a
# script imports mindspore.ops.op_info_register.
from msops.ops import op_info_register as _op_info_register_module  # noqa: F401 isort:skip

from typing import TYPE_CHECKING

from msops._base.missing_names import missing_names
from msops._custom.custom import Custom
from msops._custom.kernel import kernel, ms_hybrid, ms_kernel
from msops._face.gradients import GradOperation, get_grad, grad, value_and_grad
from msops._face.transformations import jacfwd, jacrev, jvp, vjp, vmap
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
from msops.ops import composite, functional, operations, primitive
from msops.ops._table import FUNCTIONS, PRIMITIVES, Primitive
from msops.ops.primitive import (
    HookBackward,
    PrimitiveWithCheck,
    PrimitiveWithInfer,
    PyFunc,
    _ms_pyfunc,
    prim_attr_register,
)

if TYPE_CHECKING:
    from msops._extension import CustomOpBuilder

globals().update(FUNCTIONS)
globals().update(PRIMITIVES)

__all__ = [
    "AiCPURegOp",
    "AkgAscendRegOp",
    "AkgCpuRegOp",
    "AkgGpuRegOp",
    "AkgRegOp",
    "CpuRegOp",
    "Custom",
    "CustomOpBuilder",
    "CustomRegOp",
    "DataType",
    "GradOperation",
    "HookBackward",
    "Primitive",
    "PrimitiveWithCheck",
    "PrimitiveWithInfer",
    "PyFunc",
    "RegOp",
    "TBERegOp",
    "_ms_pyfunc",
    "composite",
    "custom_info_register",
    "functional",
    "get_grad",
    "grad",
    "jacfwd",
    "jacrev",
    "jvp",
    "kernel",
    "ms_hybrid",
    "ms_kernel",
    "op_info_register",
    "operations",
    "prim_attr_register",
    "primitive",
    "value_and_grad",
    "vjp",
    "vmap",
    *FUNCTIONS,
    *PRIMITIVES,
]

# The toolchain comes with it, and takes a quarter of the time of the rest.
_LATER = {"CustomOpBuilder": "msops._extension"}

__getattr__ = missing_names(__name__, _LATER)


def __dir__() -> list[str]:
    return sorted({*globals(), *_LATER})
