"""MindSpore's ``common.api`` namespace."""

from msops._jit import jit
from msops._names import missing_names

__all__ = ["jit", "ms_function"]

# The name of jit before MindSpore 2.0.
ms_function = jit

__getattr__ = missing_names(__name__)
