"""Ranges: loops split where an index or a condition is proven, versions for the rest.

Decides: where a loop is split, so that in each part a condition has one value or an index is inside
its array; which nests get a second version that is chosen when the kernel runs.
From: the ranges of variables, and conditions that compare sums of them (`ir.ranges`,
`analysis.affine`).
Literature: Halide's PartitionLoops, LLVM's inductive range check elimination; proofs of indices
from conditions (Bodik, Gupta, Sarkar, PLDI 2000).

padded_windows.py  loops around padded windows, split where parts lie outside
partitioning.py    loops, split into their borders and what lies between
versioning.py      a version with proven indices for loops whose indices depend on data
"""

from msops._loops.passes.version_ragged_rows import version_ragged_rows
from msops._loops.to_c.ranges.padded_windows import partition_windows
from msops._loops.to_c.ranges.partitioning import partition_loops, partition_rows
from msops._loops.to_c.ranges.versioning import version_loops_over_data

WINDOWS = (("version ragged rows", version_ragged_rows), ("partition windows", partition_windows))
"""Of nests as the author ordered them."""

ROWS = (("partition rows", partition_rows),)
"""Of loops around rows that run in order."""

INDICES = (
    ("version loops over data", version_loops_over_data),
    ("partition loops", partition_loops),
)
"""Of loops in their final order."""
