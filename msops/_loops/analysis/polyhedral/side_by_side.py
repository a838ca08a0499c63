"""Whether loops of a nest may be interchanged, run side by side, or read in advance."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from dataclasses import dataclass

from msops._loops.analysis.polyhedral.accesses import Access, analysis
from msops._loops.analysis.polyhedral.dependences import IN, OUT
from msops._loops.analysis.polyhedral.library import TooComplex, isl
from msops._loops.ir.nodes import Expr, For, Kernel, Load, Store


def least_lag(
    kernel: Kernel, outer: For, inner: For, most: int, *, apart: bool = False
) -> int | None:
    """Returns the iterations of `inner` by which one of `outer` must lag behind the one before.

    With this lag, iterations of `outer` may take turns: each runs one iteration of `inner`, the
    earlier ones first. That is unroll-and-jam of skewed loops. The lag is 0 if no iteration of
    `outer` touches an element that an earlier one touches at a later iteration of `inner`, where
    one of the two writes.

    Args:
      kernel: the kernel.
      outer: a loop of it.
      inner: the only loop in that one.
      most: the largest lag to look for.
      apart: whether iterations in the same turn must be free to run in any order, as in a vector.

    Returns:
      The lag; None if it is larger, or not known.
    """
    try:
        with analysis(kernel) as accesses:
            inside = [a for a in accesses if _is_inside(a, outer, inner)]
            lag = 0
            for first, second in itertools.combinations_with_replacement(inside, 2):
                meetings = _meetings(first, second, outer)
                # Each pair of accesses that meet needs a lag; the largest serves all pairs.
                while meetings and _turns_back(meetings, lag, apart):
                    lag += 1
                    if lag > most:
                        return None
            return lag
    except TooComplex:
        return None


def _is_inside(access: Access, outer: For, inner: For) -> bool:
    variables = [loop.var for loop in access.loops]
    return (outer.var, inner.var) in itertools.pairwise(variables)


@dataclass(frozen=True)
class _Meetings:
    """Iterations in which two accesses of a nest touch one element.

    Attributes:
      pairs: the map from iterations of the first access to those of the second.
      depth: the depth of the outer loop of the nest; variables of loops around it are equal.
    """

    pairs: isl.Map
    depth: int


def _meetings(first: Access, second: Access, outer: For) -> _Meetings | None:
    """Returns the meetings of two accesses; None if they share no buffer, or neither writes."""
    if first.buffer != second.buffer or not (first.is_write or second.is_write):
        return None
    depth = [loop.var for loop in first.loops].index(outer.var)
    both = first.relation.apply_range(second.relation.reverse())
    for level in range(depth):
        both = both.equate(IN, level, OUT, level)
    return _Meetings(both, depth)


def _turns_back(meetings: _Meetings, lag: int, apart: bool) -> bool:
    """Returns whether accesses meet forwards in the outer loop and backwards in the inner one.

    Iterations of the inner loop are compared after each iteration of the outer one is delayed by
    `lag`. With `apart`, meeting at the same iteration of the inner loop counts as backwards, too.
    """
    both, depth = meetings.pairs, meetings.depth
    if lag:
        both = both.apply_domain(_skew(both, IN, depth, lag))
        both = both.apply_range(_skew(meetings.pairs, OUT, depth, lag))
    forwards = both.order_lt(IN, depth, OUT, depth)
    backwards = both.order_gt(IN, depth, OUT, depth)
    inside = (IN, depth + 1, OUT, depth + 1)
    if apart:
        forwards, backwards = forwards.order_ge(*inside), backwards.order_le(*inside)
    else:
        forwards, backwards = forwards.order_gt(*inside), backwards.order_lt(*inside)
    return not (forwards.is_empty() and backwards.is_empty())


def _skew(both: isl.Map, side: isl.dim_type, depth: int, lag: int) -> isl.Map:
    """Returns the map that delays the inner loop by `lag` times the variable of the outer one."""
    names = [f"i{number}" for number in range(both.dim(side))]
    skewed = [*names]
    skewed[depth + 1] += f" + {lag} * {names[depth]}"
    return isl.Map(f"{{ [{', '.join(names)}] -> [{', '.join(skewed)}] }}", both.get_ctx())


def never_meet(kernel: Kernel, serial: For, parallel: Sequence[For]) -> bool:
    """Returns whether nested loops may go around the serial loop whose whole body they are.

    They may if no two of their iterations touch an element that one of the two writes, in the same
    iteration of `serial` or in different ones.
    """
    nest = tuple(loop.var for loop in (serial, *parallel))
    try:
        with analysis(kernel) as accesses:
            inside = [a for a in accesses if _nest_of(a, nest) == nest]
            pairs = itertools.combinations_with_replacement(inside, 2)
            return not any(_meet(*pair, serial, len(parallel)) for pair in pairs)
    except TooComplex:
        return False


def _nest_of(access: Access, nest: tuple[str, ...]) -> tuple[str, ...]:
    variables = [loop.var for loop in access.loops]
    if nest[0] not in variables:
        return ()
    start = variables.index(nest[0])
    return tuple(variables[start : start + len(nest)])


def _meet(first: Access, second: Access, serial: For, loops: int) -> bool:
    """Returns whether two accesses meet in different iterations of the loops in a serial one."""
    meetings = _meetings(first, second, serial)
    if meetings is None:
        return False
    both = meetings.pairs
    for level in range(meetings.depth + 1, meetings.depth + 1 + loops):
        before, after = both.order_lt(IN, level, OUT, level), both.order_gt(IN, level, OUT, level)
        if not (before.is_empty() and after.is_empty()):
            return True
    return False


def may_be_read_early(kernel: Kernel, loop: For, store: Store, target: Load) -> bool:
    """Returns whether a store in a loop may read its elements before several iterations of it.

    It may if no iteration of the loop writes an element that the store reads in that iteration or a
    later one. Only iterations of the loops inside that both of them have count.

    Args:
      kernel: the kernel.
      loop: a loop of it.
      store: a store in the loop, in loops inside.
      target: a load of the store that is exempt.
    """
    try:
        with analysis(kernel) as accesses:
            read = [
                a for a in accesses
                if a.statement is store and not a.is_write and a.node != target
            ]  # fmt: skip
            written = [a for a in accesses if a.is_write and _depth(a, loop) is not None]
            return not any(
                write.buffer == early.buffer and _is_written_before(write, early, loop)
                for write, early in itertools.product(written, read)
            )
    except TooComplex:
        return False


def may_run_ahead(kernel: Kernel, rows: For, columns: For, block: Expr, ahead: Expr) -> bool:
    """Returns whether all rows of a block may run some columns before its first row runs the rest.

    They run them column by column, the rows of a column in any order. They may if no row of the
    block touches an element before that a later one touches in such a column, where one writes.

    Args:
      kernel: the kernel.
      rows: a loop of it.
      columns: a loop that is a statement of that one.
      block: the number of a row's block, in terms of the variable of `rows`.
      ahead: the condition that holds for the columns, in terms of both variables.
    """
    try:
        with analysis(kernel) as accesses:
            inside = [a for a in accesses if _depth(a, rows) is not None]
            early = [a for a in inside if _is_inside(a, rows, columns)]
            pairs = itertools.product(inside, early)
            return not any(_is_overtaken(*pair, rows, columns, block, ahead) for pair in pairs)
    except TooComplex:
        return False


def _is_overtaken(
    first: Access, second: Access, rows: For, columns: For, block: Expr, ahead: Expr
) -> bool:
    """Returns whether an access meets one of a later row that would run before it."""
    meetings = _meetings(first, second, rows)
    if meetings is None:
        return False
    depth = meetings.depth
    both = meetings.pairs.order_lt(IN, depth, OUT, depth)
    own, other = (access.domain.expression(block) for access in (first, second))
    if own is not None and other is not None:
        number, later = isl.Map.from_pw_aff(own), isl.Map.from_pw_aff(other)
        both = both.intersect(number.apply_range(later.reverse()))
    if _is_inside(first, rows, columns):
        both = both.order_ge(IN, depth + 1, OUT, depth + 1)
    return not both.intersect_range(second.domain.where(ahead).points).is_empty()


def _depth(access: Access, loop: For) -> int | None:
    variables = [outer.var for outer in access.loops]
    return variables.index(loop.var) if loop.var in variables else None


def _is_written_before(write: Access, early: Access, loop: For) -> bool:
    """Returns whether an iteration of a loop writes an element that it or a later one reads."""
    depth = _depth(early, loop)
    assert depth is not None
    points = early.relation.domain()
    # From each iteration of the read to the iterations that are the same but for earlier rows.
    earlier = isl.Map.from_domain_and_range(points, points).order_ge(IN, depth, OUT, depth)
    for level in range(len(early.loops)):
        if level != depth:
            earlier = earlier.equate(IN, level, OUT, level)
    rows = earlier.project_out(OUT, depth + 1, len(early.loops) - depth - 1)
    inside = len(write.loops) - depth - 1
    writes = write.relation.project_out(IN, depth + 1, inside)
    return not rows.apply_range(writes).intersect(early.relation).is_empty()
