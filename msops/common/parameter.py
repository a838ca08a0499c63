"""MindSpore's ``common.parameter`` namespace."""

from msops._base.missing_names import missing_names
from msops._face.parameter import Parameter, ParameterTuple

__all__ = ["Parameter", "ParameterTuple"]

__getattr__ = missing_names(__name__)
