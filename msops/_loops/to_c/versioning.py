"""Loops whose bounds are data get a version in which the indices are proven to be in range.

    serial k in first[i] .. first[i + 1] {       if (first[i] >= 0 && first[i + 1] <= 90) {
      y[i] = y[i] + value[k]                       serial k in max(first[i], 0)
    }                                      ->                  .. min(first[i + 1], 90) {
                                                     y[i] = y[i] + value[k]
                                                   }
                                                 } else {
                                                   serial k_1 in first[i] .. first[i + 1] { ... }
                                                 }

An index that may be out of range is clamped at each access (rule 3 of `_loops/README.md`). Under
its condition, the first version has the same iterations as the loop, and its bounds show that
`value[k]` is in range. The other version keeps the guarded accesses. Compilers call this loop
versioning.
"""

from __future__ import annotations

from msops._loops.ir.algebra import both
from msops._loops.ir.building import binary, integer
from msops._loops.ir.names import unique_names
from msops._loops.ir.nodes import INDEX_DTYPE, Expr, For, If, Kernel, Stmt
from msops._loops.ir.ranges import Range, dtype_range, range_of
from msops._loops.ir.walk import (
    Scope,
    accesses_in,
    is_innermost,
    loads,
    rewrite_loops,
    stored_in,
    with_parts,
)
from msops._loops.to_c.strides import offset


def version_loops_over_data(kernel: Kernel) -> Kernel:
    """Returns the kernel with two versions of its innermost loops whose bounds are data."""
    changed = rewrite_loops(kernel, _versions)
    return kernel if changed is kernel else unique_names(changed)


def _versions(loop: For, scope: Scope) -> tuple[Stmt, ...] | None:
    bounding = {load.buffer for bound in (loop.begin, loop.end) for load in loads(bound)}
    if not bounding or bounding & stored_in(loop.body) or not is_innermost(loop):
        return None
    first, last = _in_range(loop, scope)
    conditions: list[Expr] = []
    begin, end = loop.begin, loop.end
    if range_of(begin, scope.ranges)[0] < first:
        conditions.append(binary("ge", begin, integer(first)))
        begin = binary("max", begin, integer(first))
    if range_of(end, scope.ranges)[1] > last + 1:
        conditions.append(binary("le", end, integer(last + 1)))
        end = binary("min", end, integer(last + 1))
    if not conditions or first > last:
        return None
    inside = with_parts(loop, begin=begin, end=end)
    return (If(both(conditions), (inside,), (loop,), location=loop.location),)


def _in_range(loop: For, scope: Scope) -> Range:
    """Returns the first and last value of a loop's variable for which its indices are in range.

    Only indices that are the variable plus a constant count. The last value is less than the
    greatest value of the dtype, so that the next value can be the end of a loop.
    """
    first, last = dtype_range(INDEX_DTYPE)
    last -= 1
    for access in accesses_in(loop.body):
        shape = scope.buffers[access.buffer].shape if access.buffer in scope.buffers else ()
        for index, size in zip(access.indices, shape, strict=False):
            moved = offset(index, loop.var)
            if moved is not None:
                first, last = max(first, -moved), min(last, size - 1 - moved)
    return first, last
