"""An op as a value: its definition, one call's structure, inference of shapes, identity.

May import: `_base`, `_jax_seam`, `_op_info`.
Modules: arrays, backend, call, definition, identity, inference, outputs, process_call, protocols,
request, sharding_rule, sorting, traced, variables.
"""
