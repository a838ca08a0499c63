"""Commands for users: `run`, `doctor`, `cache`, and the cell magic.

May import: `_ascend`, `_backends`, `_base`, `_calls`, `_custom`, `_extension`, `_face`,
`_jax_seam`, `_op_info`, `_toolchain`.
Modules: cache, doctor, missing_in_script, notebook, run.
"""
