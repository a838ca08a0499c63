"""func_type "aot": a C, C++ or CUDA function of MindSpore's C ABI, or an operator of Ascend.

A gradient is the op's own `bprop`: `_primitive/reverse_mode.py`.

Modules: backend, infer_functions, operators.
"""
