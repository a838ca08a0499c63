"""func_type "aot": a C, C++ or CUDA function of MindSpore's C ABI, or an operator of Ascend.

func_type "ffi": a handler of XLA's FFI, which is found and built alike.

A gradient is the op's own `bprop`: `_primitive/reverse_mode.py`.

Modules: backend, handler_options, handlers, infer_functions, operators.
"""
