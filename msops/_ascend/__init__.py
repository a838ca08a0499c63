"""Ascend's languages and operators on JAX: the TBE DSL, and operators by their names.

May import: `_base`, `_loops`, `_toolchain`.
Modules: aclnn, libraries, tbe.
"""
