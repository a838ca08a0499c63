"""An op as a value: its definition, one call's structure, inference of shapes, identity.

May import: `_base`, `_jax_seam`, `_op_info`, `_toolchain`.
Modules: backend, call, identity, inference, sharding_rule, traced.
"""
