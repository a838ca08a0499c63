"""C++ written for MindSpore's extension API, on JAX. The core, its modules and how they meet:

    builder.py    CustomOpBuilder
    options.py    its arguments, checked
    loader.py     from the built library to a Python module
    calls.py      one call of a function of a module: its face, and Tensors it changed
    handles.py    what a tensor of C++ refers to
    verbs.py      what C++ can ask for, in the order of its function table
    operators.py  launches of aclnn operators
    methods.py    methods of ms::Tensor, and functions that make tensors
    runners.py    PyboostRunner, eagerly and as a custom call of XLA
    functions.py  Function::Apply as a jax.custom_vjp

A module is a pybind11 module of its own, built from the user's sources and the headers in
xla_kernels/include. It reaches this package through a table of C functions (decision 21) in
msops._native, which forwards to verbs.py; xla_kernels/src/runner_handlers.cc launches runners when
a compiled program runs, without Python.
"""

from msops._extension.builder import CustomOpBuilder

__all__ = ["CustomOpBuilder"]
