"""Local copies of elements that every iteration of a loop reads again.

    serial j in 0 .. 16 {                 local copy: float32[8] {
      reduction t in 0 .. 8 {               parallel t_1 in 0 .. 8 {
        d[] = d[] + f(x[i, t], ...)           copy[t_1] = x[i, t_1]
      }                           ->        }
      ...                                   serial j in 0 .. 16 {
    }                                         reduction t in 0 .. 8 {
                                                d[] = d[] + f(copy[t], ...)

For rows in the lanes of vectors, the lanes are the last axis of a copy. A vector of its elements is
then read at once, although the original elements are apart in memory.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

from msops._base.dtypes import as_dtype
from msops._loops.analysis.costs import fixed_trips
from msops._loops.ir.algebra import integer
from msops._loops.ir.names import Names
from msops._loops.ir.nodes import Buffer, Expr, For, Load, Local, Stmt, Store, Var
from msops._loops.ir.ranges import Ranges, loop_range
from msops._loops.ir.walk import Scope, loads, rewrite_all, statements, substitute, variables
from msops._loops.passes.elements import exists
from msops._loops.to_c.facts.blocks import index


def may_be_copied(load: Load, loop: For, scope: Scope, most_bytes: int) -> bool:
    """Returns whether the elements that a load in a loop reads may be copied before the loop.

    Args:
      load: a load of an array that nothing in the loop stores to.
      loop: the loop.
      scope: the scope around the loop.
      most_bytes: the largest size of the copy.
    """
    inner = _loops_of(load, loop)
    used = {var for at in load.indices for var in variables(at)}
    if loop.var in used or any(loads(at) for at in load.indices) or None in map(fixed_trips, inner):
        return False
    ranges: Ranges = {**scope.ranges, **{part.var: loop_range(part, {}) for part in inner}}
    size = math.prod(map(_size, inner)) * as_dtype(load.dtype).dtype.itemsize
    return size <= most_bytes and exists(load, ranges, scope.buffers)


def with_copies(loop: For, copied: Sequence[Load], names: Names) -> tuple[Stmt, ...]:
    """Returns statements that make copies, and then a loop that reads them in place of some loads.

    Args:
      loop: the loop.
      copied: the loads; `may_be_copied` holds for them.
      names: the names of the kernel.
    """
    elements: dict[Load, Load] = {}
    copies: list[tuple[Buffer, Stmt]] = []
    for load in copied:
        inner = _loops_of(load, loop)
        buffer = Buffer(names.fresh("copy"), tuple(map(_size, inner)), load.dtype)
        elements[load] = Load(buffer.name, tuple(map(_position, inner)), load.dtype)
        copies.append((buffer, _copy(load, buffer, inner, names)))

    def change(part: Expr) -> Expr:
        return elements.get(part, part) if isinstance(part, Load) else part

    (changed,) = rewrite_all((loop,), change)
    body: tuple[Stmt, ...] = (*(copy for _, copy in copies), changed)
    for buffer, _ in copies:
        body = (Local(buffer, body, location=loop.location),)
    return body


def _copy(load: Load, buffer: Buffer, inner: Sequence[For], names: Names) -> Stmt:
    """Returns the loops that copy the elements that a load reads."""
    fresh = {loop.var: names.fresh(loop.var) for loop in inner}
    at: dict[str, Expr] = {
        loop.var: index("add", loop.begin, Var(fresh[loop.var])) for loop in inner
    }
    source = Load(load.buffer, tuple(substitute(i, at) for i in load.indices), load.dtype)
    copy: Stmt = Store(buffer.name, tuple(Var(fresh[loop.var]) for loop in inner), source)
    for loop in reversed(inner):
        copy = For(fresh[loop.var], integer(0), integer(_size(loop)), (copy,), "parallel")
    return copy


def _loops_of(load: Load, loop: For) -> list[For]:
    """Returns the loops in a loop whose variables are in the indices of a load."""
    used = {var for at in load.indices for var in variables(at)}
    return [s for s in statements(loop.body) if isinstance(s, For) and s.var in used]


def _size(loop: For) -> int:
    trips = fixed_trips(loop)
    assert trips is not None
    return trips


def _position(loop: For) -> Expr:
    return Var(loop.var) if loop.begin == integer(0) else index("sub", Var(loop.var), loop.begin)
