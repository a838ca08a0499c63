"""func_type "aot": a C, C++ or CUDA function of MindSpore's C ABI.

Modules: backend.
"""
