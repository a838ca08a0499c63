"""MindSpore's internal operators that published scripts import."""

from msops._base.missing_names import missing_names
from msops.ops._table import INNER_PRIMITIVES

ConvertToDynamic = INNER_PRIMITIVES["ConvertToDynamic"]

__all__ = ["ConvertToDynamic"]

__getattr__ = missing_names(__name__)
