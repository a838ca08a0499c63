"""func_type "aot": a C, C++ or CUDA function of MindSpore's C ABI, or an operator of Ascend.

Modules: backend, infer_functions, operators.
"""
