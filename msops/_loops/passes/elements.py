"""Elements of arrays: two that are surely the same one, or surely not; whether one exists."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from msops._loops.ir.algebra import binary, integer
from msops._loops.ir.nodes import Binary, Buffer, Const, Expr, For, Load, Store, Var
from msops._loops.ir.ranges import Ranges, is_within, range_of
from msops._loops.ir.walk import loads, substitute, variables
from msops._loops.passes.simplify_expressions import difference


def are_apart(
    one: Sequence[Expr], other: Sequence[Expr], ranges: Ranges, loops: Sequence[For] = ()
) -> bool:
    """Returns whether two elements always differ, in each iteration of the loops around.

    Args:
      one: the indices of an element.
      other: the indices of another element of the same array.
      ranges: the ranges of all variables.
      loops: loops whose bounds may prove it, as those of ``for j in range(k + 1, n)`` prove it for
        j and k; outermost first.
    """
    return any(_differ(i, j, ranges, loops) for i, j in zip(one, other, strict=True))


def are_same(one: Sequence[Expr], other: Sequence[Expr], ranges: Ranges) -> bool:
    """Returns whether two elements of an array are always the same one."""
    return all(difference(i, j, ranges) == (0, 0) for i, j in zip(one, other, strict=True))


def _differ(left: Expr, right: Expr, ranges: Ranges, loops: Sequence[For]) -> bool:
    """Returns whether two indices always differ."""
    span = difference(left, right, ranges)
    if span is not None and not span[0] <= 0 <= span[1]:
        return True
    if _differ_around(left, right, ranges) or _differ_around(right, left, ranges):
        return True
    if not loops:
        return False
    *outer, loop = loops
    if loop.var not in variables(left) | variables(right):
        return _differ(left, right, ranges, outer)
    # From here on the variable is a distance: from the first iteration, or from the last.
    (first, _), (_, end) = range_of(loop.begin, ranges), range_of(loop.end, ranges)
    inside = {**ranges, loop.var: (0, max(0, end - 1 - first))}
    distance = Var(loop.var)
    last = binary("sub", loop.end, integer(1))
    for value in (binary("add", loop.begin, distance), binary("sub", last, distance)):
        here = {loop.var: value}
        if _differ(substitute(left, here), substitute(right, here), inside, outer):
            return True
    return False


def _differ_around(left: Expr, right: Expr, ranges: Ranges) -> bool:
    """Returns whether indices differ as `(i + 1) % n` and `i % n`, or an `i` in 0 .. n, do."""
    match left, right:
        case Binary(op="mod", right=Const(value=size)), Binary(op="mod", right=Const(value=other)):
            is_around = size == other
            right = right.left
        case Binary(op="mod", right=Const(value=size)), _:
            is_around = is_within(range_of(right, ranges), (0, int(size) - 1))
        case _:
            return False
    if not is_around or size <= 0:
        return False
    span = difference(left.left, right, ranges)
    return span is not None and span[0] == span[1] and span[0] % int(size) != 0


def exists(access: Load | Store, ranges: Ranges, buffers: Mapping[str, Buffer]) -> bool:
    """Returns whether an access is in range wherever these ranges hold, whatever is around it.

    Elements that its indices read exist there, too. Of arrays that are not among the buffers, as
    those of an iteration of a loop inside, this is not known.
    """
    buffer = buffers.get(access.buffer)
    if buffer is None:
        return not access.indices
    return all(
        is_within(range_of(index, ranges), (0, size - 1))
        and all(exists(load, ranges, buffers) for load in loads(index))
        for index, size in zip(access.indices, buffer.shape, strict=True)
    )
