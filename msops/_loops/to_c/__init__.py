"""Loop IR as C: the back end for CPUs.

    source.py      c_source: what is done to a kernel, and the translation unit around its loops
    merging.py     conditions with one store in each branch
    unrolling.py   short inner loops
    sinking.py     parallel loops that belong innermost
    tiling.py      pairs of parallel loops that cross through memory
    partial_sums.py  long reductions, for threads
    jamming.py     rows in order, side by side
    carrying.py    elements that one iteration hands to the next
    blocks.py, strides.py  what these share
    storage.py     where each buffer lives
    printer.py     statements
    threads.py     parallel loops, split for threads
    reductions.py  sums in variables
    language.py    where C differs from CUDA C
    functions.py   mathematical functions that vectorise
    halves.py      float16
    library.py     what is used of the C library
    cost.py        what it will take

What it shares with CUDA is in text/.
"""

from msops._loops.to_c.source import (
    CSource,
    arrange,
    arranged_source,
    c_source,
    print_kernel,
)

__all__ = ["CSource", "arrange", "arranged_source", "c_source", "print_kernel"]
