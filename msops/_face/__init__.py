"""MindSpore's objects on JAX arrays: Tensor, Parameter, Cell, context, gradients. It knows no ops.

May import: `_base`, `_calls`, `_jax_seam`.
Modules: argument_names, array_arithmetic, array_math, axes, cell, cell_bprop, cell_containers,
cell_hooks, changed_tensors, compiled, context, context_keywords, differentiation, gradients, jit,
jit_config, leaves, parameter, saved_tensors, tensor, tensor_data, tensor_escapes, tensor_hooks,
tensor_methods, tensor_operators, tensor_text, tensor_views, transformations.
"""
