"""Reverse-mode differentiation of loop kernels: the passes of `pipeline.passes_to_gradient`.

Modules: activity, ascend, boundary, contributions, costs, emit, extremes, gather_windows,
normalise, operands, plan, recording, relations, reverse, rules, share, starts, sweeps, tapes, tree.
"""
