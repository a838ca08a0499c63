"""Loop IR as C: the back end for CPUs.

Passes, which `pipeline.PASSES_TO_C` lists in their order, and what several of them share:

    alternating.py  steps that copy their result back
    merging.py     conditions with one store in each branch
    neighbours.py  sums of terms from neighbours
    neighbour_terms.py  these terms
    scattering.py  loops that add to neighbours otherwise
    widening.py    sums in variables, with an element for each position
    windows.py     loops over small windows
    unrolling.py   short inner loops
    networks.py    where sorting networks look for NaN
    outwards.py    parallel loops that belong around serial ones
    sinking.py     parallel loops that belong innermost
    tiling.py      pairs of parallel loops that cross through memory
    gathering.py   sums that each iteration adds a term to
    products.py    sums of several iterations, in tiles of registers
    tiles.py, sums.py  such a tile, and its sums
    packing.py     what tiles read, in their order
    partial_sums.py  long reductions, for threads
    lanes.py       rows in order, in the lanes of vectors
    choosing.py    without conditions
    copying.py     with copies of what they read often
    work.py        how much they compute
    diagonals.py   rows that follow one another, there too
    grouping.py    several terms added to an element at once
    jamming.py     rows in order, side by side
    skewing.py     each behind the one before
    carrying.py    elements that one iteration hands to the next
    reductions.py  sums in variables
    versioning.py  loops whose bounds are data
    fusing.py      loops that hand rows on
    rows.py        which rows and positions they use
    workspaces.py  arrays on the stack or in workspaces
    sharing.py     which loops are split over threads
    vectors.py     which loops run in vectors, and how C says so
    registers.py   which local arrays are values of vector types
    blocks.py, strides.py  what these share

The printer:

    source.py      the translation unit
    storage.py     where each buffer is
    printer.py     statements
    threads.py     calls that split a loop over threads
    dialect.py     where C differs from CUDA C
    functions.py   mathematical functions that vectorise
    halves.py      float16
    library.py     what is used of the C library

cost.py estimates what the code will take, for passes and for the choice of a form.

What is printed as in CUDA is in text/; CUDA also uses reductions.py, storage.py and workspaces.py.
"""

from msops._loops.to_c.source import CSource, c_source

__all__ = ["CSource", "c_source"]
