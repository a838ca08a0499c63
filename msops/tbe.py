"""Ascend's data formats, in which kernels of func_type "tbe" get their tensors."""

from msops._ascend.tbe import formats as _formats
from msops._ascend.tbe.formats import FORMATS, format_shape
from msops._base.missing_names import missing_names
from msops._face.tensor import lift as _lift

__all__ = ["FORMATS", "format_shape", "from_format", "to_format"]

to_format = _lift(_formats.to_format)
from_format = _lift(_formats.from_format)

__getattr__ = missing_names(__name__)
