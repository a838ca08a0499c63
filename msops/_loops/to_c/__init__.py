"""Loop IR as C: the back end for CPUs.

borders.py writes zeros around what a kernel writes of large results, ahead of the passes.

Passes, in the order of `pipeline.PASSES_TO_C`:

    fresh_results.py parameters that are read as given, instead of copies of them
    merging.py       one store of a chosen value instead of a store in each branch
    alternating.py   alternation of an array and its copy, step by step of a time loop
    neighbours.py    sums of terms from neighbours, gathered element by element
    scattering.py    loops that add to neighbours, split for vectors
    invariants.py    what a loop does not change, computed once for all its iterations
    tables.py        what a loop around does not change, from tables
    repeats.py       values of rows that several loops compute, from arrays
    columns.py       sums over windows, from the sums of their columns
    deferring.py     sums that a loop only adds to, after it
    transposing.py   factors of long sums, copied so that vectors run over an outer loop
    padded_windows.py  loops around padded windows, split where parts lie outside
    widening.py      sums in variables, with an element for each position
    row_blocks.py    rows that take each step, and each product, together
    windows.py       loops over small windows, written out as statements
    unrolling.py     short inner loops, written out as statements
    networks.py      networks and chains of extremes that look for NaN only where values leave
    eliminating.py   sums over earlier elements, as updates of the later ones
    outwards.py      parallel loops that move around serial ones
    sinking.py       parallel loops that move innermost
    tiling.py        tiles of two parallel loops that cross through memory
    interchange.py   interchange of loops so that each sum is completed before the next
    products.py      tiles of registers for sums that share what they read
    triangles.py     rows that read all rows before them, block by block
    separating.py    loops that add to rows beside their own, split for threads
    partial_sums.py  long reductions, split into partial sums for threads
    partitioning.py  loops, split into their borders and what lies between
    searching.py     searches for an extreme element, in loops of their own and in lanes
    lanes.py         rows that run in order, one in each lane of a vector
    diagonals.py     rows that read the row before, in lanes along diagonals
    grouping.py      several terms added to an element at once
    jamming.py       rows that run in order, side by side in one loop
    rejoining.py     loops that were split at a pivot, as one loop
    carrying.py      elements that one iteration hands to the next, in variables
    reductions.py    sums of innermost reductions, in variables
    conditional_sums.py  sums of a term or zero, without a branch
    versioning.py    a version with proven indices for loops whose indices depend on data
    fusing.py        parallel loops that hand rows on, fused strip by strip
    functions_ahead.py  functions that loops without vectors call, in vectors
    workspaces.py    arrays on the stack or in workspaces
    sharing.py       loops that threads share
    tails.py         short loops in whole vectors, of which the last two overlap
    masked_sums.py   sums whose length is data, in vectors whose last lanes may be off
    lane_sums.py     sums in variables, with a sum for each lane of a few vectors
    vectors.py       loops that run in vectors, marked for the compiler
    registers.py     local arrays that are values of vector types
    early_ends.py    loops that are left once their condition is false
    whole_conditions.py  conditions of two cheap parts, without a branch between them

What the passes share:

    neighbour_terms.py  terms that a nest adds to neighbours
    window_columns.py   windows whose terms depend on a column
    column_places.py    the columns of positions and of windows
    column_loops.py     loops that sum columns
    sums.py             sums that fit tiles, and the sizes of tiles
    tiles.py            statements of one sum in a tile
    axis_copies.py      arrays with another axis last
    packing.py          factors of products in the order of their tiles
    choosing.py         choices of values instead of conditions
    copying.py          local copies of elements that are read often
    owning.py           local copies of rows that only one iteration touches
    lane_groups.py      groups of rows, one in each lane of a vector
    reordering.py       loops whose accesses gcc would put in another order
    work.py             the amount of arithmetic in statements and expressions
    skewing.py          rows that run side by side with a lag
    rows.py             rows that a loop reads, positions that it writes
    apart.py            elements that are surely not the same
    blocks.py           loops over blocks and groups of iterations
    moving.py           indices that move evenly with a loop
    strides.py          distances in memory between the elements that a loop touches

The printer:

    source.py      the translation unit
    storage.py     the place of each buffer
    printer.py     statements
    lane_loops.py  reductions of floats, a result for each lane of a vector
    masked_rows.py  neighbours under conditions, which gcc loads wrongly in vectors
    records.py     elements of records, which gcc takes into vectors one by one
    thread_calls.py  calls that split a loop over threads
    dialect.py     C where it differs from CUDA C
    functions.py   mathematical functions that vectorise
    fused.py       products added to vectors in one rounding
    halves.py      float16
    library.py     declarations of the C library

cost.py estimates the time of the code, for passes and for the choice of a form.

text/ prints what C and CUDA C have in common. CUDA also uses early_ends.py, reductions.py,
storage.py, whole_conditions.py and workspaces.py.
"""

from msops._loops.to_c.source import CSource, c_source

__all__ = ["CSource", "c_source"]
