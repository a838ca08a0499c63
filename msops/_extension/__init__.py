"""C++ written for MindSpore's extension API, on JAX.

A module of a user is a pybind11 module of its own. It reaches this package through a table of C
functions (decision 21) in `msops._native`, which forwards to verbs.

May import: `_ascend`, `_base`, `_calls`, `_face`, `_jax_seam`, `_op`, `_toolchain`.
Modules: builder, calls, functions, handles, loader, methods, operators, options, runners, verbs.
"""

from msops._extension.builder import CustomOpBuilder

__all__ = ["CustomOpBuilder"]
