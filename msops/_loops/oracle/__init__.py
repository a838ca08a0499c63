"""The meaning of kernels, for tests and for checks between passes.

parse.py, tokens.py  text to kernel
rules.py, verify.py  what a legal kernel is
interpret.py         runs a kernel in numpy
"""
