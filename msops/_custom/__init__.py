"""The user's arguments: `Custom`, its options, `kernel`, and `explain`.

May import: `_backends`, `_base`, `_face`, `_jax_seam`, `_loops`, `_op`, `_op_info`, `_primitive`.
Modules: custom, explain, help, kernel, language, options, parameters, pickling, short_forms.
"""
