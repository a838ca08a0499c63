"""MindSpore's ``common.parameter`` namespace."""

from msops._names import missing_names
from msops._parameter import Parameter, ParameterTuple

__all__ = ["Parameter", "ParameterTuple"]

__getattr__ = missing_names(__name__)
