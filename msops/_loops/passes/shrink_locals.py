"""Drops dimensions of locals in which each iteration uses one element only.

    parallel i in 0 .. 8 {                  parallel i in 0 .. 8 {
      local m: float32[8] {                   local m: float32[] {
        m[i] = a[i, 0]               ->         m[] = a[i, 0]
        ...                                     ...

An author's temporary of one element per iteration is such a local once it is private to the loop.
"""

from __future__ import annotations

from collections import defaultdict

from msops._loops.ir.nodes import Expr, Kernel, Local
from msops._loops.ir.ranges import Ranges, is_within, range_of
from msops._loops.ir.walk import accesses_in, loads, variables, visit
from msops._loops.passes.axes import keep_axes


def shrink_locals(kernel: Kernel) -> Kernel:
    """Returns the kernel with locals of the dimensions they need."""
    used: dict[str, set[tuple[Expr, ...]]] = defaultdict(set)
    for access in accesses_in(kernel.body):
        used[access.buffer].add(access.indices)
    kept = {
        stmt.buffer.name: [
            axis
            for axis, size in enumerate(stmt.buffer.shape)
            if not _is_one_element(
                {indices[axis] for indices in used[stmt.buffer.name]}, size, scope.ranges
            )
        ]
        for stmt, scope in visit(kernel)
        if isinstance(stmt, Local)
    }
    return keep_axes(kernel, kept)


def _is_one_element(indices: set[Expr], size: int, ranges: Ranges) -> bool:
    """Returns whether an index is the same, and in range, wherever a local is used."""
    if len(indices) != 1:
        return False
    (index,) = indices
    # What is read from memory may change, and other variables are those of loops inside.
    is_fixed = variables(index) <= set(ranges) and not loads(index)
    return is_fixed and is_within(range_of(index, ranges), (0, size - 1))
