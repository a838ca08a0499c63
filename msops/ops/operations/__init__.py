"""MindSpore's ``ops.operations`` namespace: the primitive classes, usually imported as ``P``."""

from msops._base.missing_names import missing_names
from msops._custom.custom import Custom
from msops.ops._table import PRIMITIVES
from msops.ops.operations import _grad_ops, _inner_ops
from msops.ops.primitive import (
    HookBackward,
    PrimitiveWithCheck,
    PrimitiveWithInfer,
    PyFunc,
    _ms_pyfunc,
    prim_attr_register,
)

globals().update(PRIMITIVES)

__all__ = [
    "Custom",
    "HookBackward",
    "PrimitiveWithCheck",
    "PrimitiveWithInfer",
    "PyFunc",
    "_grad_ops",
    "_inner_ops",
    "_ms_pyfunc",
    "prim_attr_register",
    *PRIMITIVES,
]

__getattr__ = missing_names(__name__)
