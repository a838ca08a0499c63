"""An op on several devices and in several processes.

May import: `_calls`, `_face`, `_jax_seam`, `_op`.
Modules: explicit_mesh, partitioning, tiling.
"""
