"""Materialise: a value is computed at one level of a nest and kept in an array.

Decides: for a value that loops compute again and again, the loop before which it is computed once,
and the layout of the array that keeps it; whether rows that one loop hands to the next are kept
whole or a few at a time; which arrays are on the stack.
From: which loops change a value; the estimate of its cost (`cost`) beside that of the array.
Literature: Halide's compute_at and store_at, and its sliding windows (Ragan-Kelley and others, PLDI
2013).

alternating.py      alternation of an array and its copy, step by step of a time loop
tables.py           what a loop around does not change, from tables
row_values.py       values that several loops compute for the same iterations
columns.py          sums over windows, from the sums of their columns
window_columns.py   windows whose terms depend on a column
transposing.py      factors of long sums, copied so that vectors run over an outer loop
axis_copies.py      arrays with another axis last
fusing.py           parallel loops that hand rows on, fused strip by strip
workspaces.py       arrays on the stack or in workspaces
"""

from msops._loops.passes.forward_locals import forward_terms
from msops._loops.to_c.materialise.alternating import alternate_arrays
from msops._loops.to_c.materialise.columns import sum_columns
from msops._loops.to_c.materialise.fusing import fuse_rows
from msops._loops.to_c.materialise.tables import tabulate_values
from msops._loops.to_c.materialise.transposing import transpose_factors
from msops._loops.to_c.materialise.workspaces import place_arrays

VALUES = (
    ("alternate arrays", alternate_arrays),
    ("tabulate values", tabulate_values),
    ("forward terms", forward_terms),
    ("sum columns", sum_columns),
    ("transpose factors", transpose_factors),
)
"""Of values in loops as the author ordered them."""

BUFFERS = (
    ("fuse rows", fuse_rows),
    ("place arrays", place_arrays),
)
"""Of what loops in their final order hand on, and where arrays are."""
