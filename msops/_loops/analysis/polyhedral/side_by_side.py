"""Whether rows of a loop nest may run side by side."""

from __future__ import annotations

import itertools

from msops._loops.analysis.polyhedral.accesses import Access, analysis
from msops._loops.analysis.polyhedral.dependences import IN, OUT
from msops._loops.analysis.polyhedral.library import TooComplex
from msops._loops.ir.nodes import For, Kernel


def may_run_side_by_side(kernel: Kernel, outer: For, inner: For) -> bool:
    """Returns whether a loop and the only loop in it give the same with the outer one innermost.

    They do if no iteration of `outer` needs, or overwrites, what an earlier one does at a later
    iteration of `inner`. Then several iterations of `outer` may also run in turns, one iteration of
    `inner` each: in unroll-and-jam.
    """
    try:
        with analysis(kernel) as accesses:
            inside = [a for a in accesses if _is_inside(a, outer, inner)]
            pairs = itertools.combinations_with_replacement(inside, 2)
            return not any(_turns_back(first, second, outer) for first, second in pairs)
    except TooComplex:
        return False


def _is_inside(access: Access, outer: For, inner: For) -> bool:
    variables = [loop.var for loop in access.loops]
    return (outer.var, inner.var) in itertools.pairwise(variables)


def _turns_back(first: Access, second: Access, outer: For) -> bool:
    """Returns whether two accesses meet forwards in `outer` and backwards in the next loop."""
    if first.buffer != second.buffer or not (first.is_write or second.is_write):
        return False
    depth = [loop.var for loop in first.loops].index(outer.var)
    both = first.relation.apply_range(second.relation.reverse())
    for level in range(depth):
        both = both.equate(IN, level, OUT, level)
    forwards = both.order_lt(IN, depth, OUT, depth).order_gt(IN, depth + 1, OUT, depth + 1)
    backwards = both.order_gt(IN, depth, OUT, depth).order_lt(IN, depth + 1, OUT, depth + 1)
    return not (forwards.is_empty() and backwards.is_empty())
