"""Ascend's data formats, in which kernels of func_type "tbe" get their tensors."""

from msops._names import missing_names
from msops._tbe.formats import FORMATS, format_shape, from_format, to_format

__all__ = ["FORMATS", "format_shape", "from_format", "to_format"]

__getattr__ = missing_names(__name__)
