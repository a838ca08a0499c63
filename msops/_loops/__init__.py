"""The loop compiler: loop nests in Python, TVM compute or IR builder to JAX, C, CUDA C, gradients.

README.md has its map and what a kernel means. `Specialisation.choice` decides between operations of
XLA and native code, by the estimates in choice.py.

May import: `_base`, `_jax_seam`, `_toolchain`.
Modules: analysis, choice, frontends, gradient, ir, passes, pipeline, specialisation, to_c, to_cuda,
to_jax.
"""
