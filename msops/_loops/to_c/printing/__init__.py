"""The printer: a kernel in its final form as a translation unit of C++.

source.py        the translation unit
storage.py       the place of each buffer
printer.py       statements
lane_code.py     loops as explicit vector code
lane_statements.py  their statements
lane_values.py   their expressions
lane_conditions.py  conditions in them
lane_elements.py  elements of arrays in them
vector_types.py  the types of vectors; how vectors are made, moved and joined
vector_helpers.py  templates of functions on vectors
vector_functions.py  functions on vectors, by name
vectors_in_order.py  what gcc may not do with loops in order around vectors
thread_calls.py  calls that split a loop over threads
dialect.py       C where it differs from CUDA C
functions.py     mathematical functions of our own
halves.py        float16
library.py       declarations of the C library
"""
