"""The printer: a kernel in its final form as a translation unit of C.

source.py        the translation unit
storage.py       the place of each buffer
printer.py       statements
lane_loops.py    reductions of floats, a result for each lane of a vector
masked_rows.py   neighbours under conditions, which gcc loads wrongly in vectors
records.py       elements of records, which gcc takes into vectors one by one
thread_calls.py  calls that split a loop over threads
dialect.py       C where it differs from CUDA C
functions.py     mathematical functions that vectorise
fused.py         products added to vectors in one rounding
halves.py        float16
library.py       declarations of the C library
"""
