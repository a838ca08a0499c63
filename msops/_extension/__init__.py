"""MindSpore's extension API on JAX: modules of C++, and autograd functions of both languages.

builder.py compiles a module (options.py: with what), loader.py loads it. Its C++ calls `_native`,
which calls verbs.py. calls.py has one call of a function of it and handles.py the tensors there;
methods.py, what ``ms::Tensor`` computes; operators.py, launches of aclnn operators; runners.py,
runs of the user's kernels; applied_functions.py, ``Function<T>`` and its gradients;
python_functions.py, the same for Python's `_Function`; graph/, operators that YAML files define.

May import: `_ascend`, `_base`, `_calls`, `_face`, `_jax_seam`, `_op`, `_sharding`,
`_toolchain`.
"""

from msops._extension.builder import CustomOpBuilder

__all__ = ["CustomOpBuilder"]
