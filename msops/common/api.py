"""MindSpore's ``common.api`` namespace."""

from msops._base.missing_names import missing_names
from msops._face.jit import jit

__all__ = ["jit", "ms_function"]

# The name of jit before MindSpore 2.0.
ms_function = jit

__getattr__ = missing_names(__name__)
