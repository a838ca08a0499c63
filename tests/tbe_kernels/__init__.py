"""Kernels in the form of MindSpore's own: one file each, with TBE's imports at the top."""
