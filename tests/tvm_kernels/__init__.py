"""Kernels in TVM compute, topi and the IR builder, by language."""
