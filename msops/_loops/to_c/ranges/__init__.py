"""Ranges: loops split where an index or a condition is proven, versions for the rest.

Decides: where a loop is split, so that in each part a condition has one value or an index is inside
its array; which nests get a second version that is chosen when the kernel runs (`passes`).
From: the ranges of variables, and conditions that compare sums of them (`ir.ranges`,
`analysis.affine`).
Literature: Halide's PartitionLoops, LLVM's inductive range check elimination.

padded_windows.py  loops around padded windows, split where parts lie outside
partitioning.py    loops, split into their borders and what lies between
"""

from msops._loops.passes.version_ragged_rows import version_ragged_rows
from msops._loops.to_c.ranges.padded_windows import partition_windows
from msops._loops.to_c.ranges.partitioning import partition_loops, partition_rows

WINDOWS = (("version ragged rows", version_ragged_rows), ("partition windows", partition_windows))
"""Of nests as the author ordered them."""

ROWS = (("partition rows", partition_rows),)
"""Of loops around rows that run in order."""

INDICES = (("partition loops", partition_loops),)
"""Of loops in their final order."""
