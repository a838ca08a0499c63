"""MindSpore's ``common`` namespace: Tensor, Parameter, dtypes and jit."""

from msops._jit import jit
from msops._names import missing_names
from msops._parameter import Parameter, ParameterTuple
from msops._tensor import Tensor
from msops.common import dtype

__all__ = ["Parameter", "ParameterTuple", "Tensor", "dtype", "jit"]

__getattr__ = missing_names(__name__)
