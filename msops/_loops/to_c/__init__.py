"""Loop IR as C: the back end for CPUs.

Six mechanisms change a kernel, in the stages of `pipeline.STAGES_TO_C`. Each is a folder whose
docstring says what it decides, from which facts, and where to read about it:

    clean/        values that statements hand to one another, in variables
    reduce/       updates that many iterations make, as sums of their own
    materialise/  values that are computed once and kept in arrays
    ranges/       loops split where indices and conditions are proven
    order/        the order of loops, tiles, threads
    lanes/        iterations as lanes of vectors

facts/ is what they ask about a kernel, and cost.py an estimate of the time of the code, for them
and for the choice of a form. printing/ prints the C, text/ what C and CUDA C have in common. CUDA
also uses sums in variables, early ends, storage and workspaces.
"""

from msops._loops.to_c.printing.source import CSource, c_source

__all__ = ["CSource", "c_source"]
