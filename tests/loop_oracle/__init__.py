"""The meaning of kernels, which every pass and every way out is compared with.

parse.py, tokens.py  text to kernel
rules.py, verify.py  what a legal kernel is
interpret.py         runs a kernel in numpy
"""
