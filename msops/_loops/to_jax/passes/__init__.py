"""The passes that only the way to JAX has: from a kernel to distributed loop nests; know no JAX.

Modules: conditional_reductions, count_windows, distribute, drop_starts, expand_carried,
expand_locals, sites.
"""
