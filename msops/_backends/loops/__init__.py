"""func_types "akg" and "hybrid": a Python loop nest.

Modules: backend, gradients, kernels, timing.
"""
