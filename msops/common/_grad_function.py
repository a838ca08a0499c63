"""MindSpore's ``common._grad_function``: autograd functions in Python."""

from msops._extension.python_functions import _Function

__all__ = ["_Function"]
