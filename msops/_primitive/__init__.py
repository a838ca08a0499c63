"""An op as JAX sees it: one primitive, its compiled programs, and its rules.

May import: `_base`, `_face`, `_jax_seam`, `_op`, `_op_info`, `_sharding`.
Modules: batching, forward_mode, operator, own_calls, programs, reverse_mode, traced, transposition.
"""
