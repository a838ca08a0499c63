"""Code of this process as custom calls of XLA: libraries, AICPU kernels, CUDA, Python functions.

May import: `_base`, `_jax_seam`, `_loops`, `_op`, `_toolchain`.
Modules: aicpu_call, cuda_call, host_callback, host_function, host_round_trip, library_call,
process_objects, python_call.
"""
