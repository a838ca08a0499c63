"""Reverse-mode differentiation of loop kernels, from loop IR to loop IR.

Modules: activity, algebra, ascend, contributions, emit, ends, normalise, plan, recording,
relations, rename, reverse, rules, share, tapes, transform, tree.
"""

from msops._loops.gradient.transform import adjoint as adjoint
from msops._loops.gradient.transform import tape_bytes as tape_bytes
