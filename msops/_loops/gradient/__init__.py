"""Reverse-mode differentiation of loop kernels, from loop IR to loop IR."""

from msops._loops.gradient.transform import adjoint as adjoint
from msops._loops.gradient.transform import tape_bytes as tape_bytes
