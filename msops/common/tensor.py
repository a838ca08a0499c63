"""MindSpore's ``common.tensor`` namespace."""

from msops._base.missing_names import missing_names
from msops._face.tensor import Tensor

__all__ = ["Tensor"]

__getattr__ = missing_names(__name__)
