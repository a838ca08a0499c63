"""Code of this process as custom calls of XLA: libraries, AICPU kernels, CUDA, Python functions.

May import: `_base`, `_jax_seam`, `_loops`, `_op`, `_toolchain`.
Modules: cuda_call, exported_function, exporting, function_digest, handlers, host_callback,
host_function, index_check, kept_views, library_call, lowering, opaque, process_objects,
python_call.
"""
