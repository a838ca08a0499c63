"""Loop IR as C: the back end for CPUs.

    source.py      c_source: the translation unit around the loops
    storage.py     where each buffer lives
    threads.py     parallel loops, split for threads
    loops.py       inner loops, for vector units
    reductions.py  sums in variables
    functions.py   mathematical functions that vectorise

What it shares with CUDA is in ../print_clike.py and ../clike_*.py.
"""

from msops._loops.print_c.source import CSource, c_source

__all__ = ["CSource", "c_source"]
