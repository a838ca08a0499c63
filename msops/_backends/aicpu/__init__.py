"""func_type "aicpu": a C++ class derived from ``aicpu::CpuKernel``.

Modules: backend, libraries.
"""
