"""Lanes: the iterations of one loop as the lanes of vectors.

Decides: the loop whose iterations run side by side in vectors (innermost, around rows that run in
order, or along a diagonal); what is computed under a mask instead of behind a branch; how a sum has
a result for each lane; how the last iterations fill a vector.
From: the kinds of loops; the distances in memory between their iterations (`facts.strides`); the
width of the vectors; what a lane that is off may compute all the same.
Literature: conditions as masks (Allen, Kennedy, Porterfield, Warren, POPL 1983); loops around
others as lanes (Pharr and Mark, ISPC, InPar 2012; Karrenberg and Hack, CGO 2011); Halide's
VectorizeLoops.

searching.py   searches for an extreme element, in loops of their own and in lanes
lane_rows.py   rows that run in order, one in each lane of a vector
lane_groups.py groups of rows, one in each lane of a vector
copying.py     local copies of elements that are read often
diagonals.py   rows that read the row before, in lanes along diagonals
vectors.py     loops that run in vectors, marked for the printer
"""

from msops._loops.to_c.lanes.lane_rows import put_rows_in_lanes
from msops._loops.to_c.lanes.searching import split_searches
from msops._loops.to_c.lanes.vectors import mark_vectors

OUTER = (
    ("split searches", split_searches),
    ("put rows in lanes", put_rows_in_lanes),
)
"""Of loops around others."""

INNERMOST = (("mark vectors", mark_vectors),)
"""Of innermost loops."""
