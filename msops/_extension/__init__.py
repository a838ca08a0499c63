"""C++ written for MindSpore's extension API, on JAX.

Each user module is a separate pybind11 module. It calls `msops._native` through a table of C
functions, and `msops._native` calls the functions of verbs.py.

May import: `_ascend`, `_base`, `_calls`, `_face`, `_jax_seam`, `_op`, `_sharding`,
`_toolchain`.
Modules: builder, calls, functions, handles, loader, methods, operators, options, runners, verbs.
"""

from msops._extension.builder import CustomOpBuilder

__all__ = ["CustomOpBuilder"]
