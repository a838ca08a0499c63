"""Ascend's languages and operators on JAX: the TBE DSL, and operators by their aclnn names.

May import: `_base`, `_loops`, `_toolchain`.
Modules: aclnn, tbe.
"""
