"""Reverse-mode differentiation of loop kernels: the passes of `pipeline.passes_to_gradient`.

Modules: boundary, contributions, costs, decisions, emit, explicit_indices, extremes,
gather_windows, operands, plan, recording, relations, reverse, rules, sweeps, tidying, tree.
"""
