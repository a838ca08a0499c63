"""MindSpore's ``common.tensor`` namespace."""

from msops._names import missing_names
from msops._tensor import Tensor

__all__ = ["Tensor"]

__getattr__ = missing_names(__name__)
