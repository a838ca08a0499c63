"""Reverse-mode differentiation of loop kernels: the passes of `pipeline.passes_to_gradient`.

Modules: activity, algebra, ascend, contributions, emit, ends, normalise, plan, recording,
relations, reverse, rules, share, sweeps, tapes, tree.
"""
