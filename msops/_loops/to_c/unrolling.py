"""Short inner loops become statements, so that the loop around them is the one to vectorise.

parallel j in 0 .. 64 {                       parallel j in 0 .. 64 {
  reduction k in 0 .. 2 {                       b[j] = max(b[j], a[2 * j])
    b[j] = max(b[j], a[2 * j + k])      ->      b[j] = max(b[j], a[2 * j + 1])
"""

from __future__ import annotations

from msops._loops.ir.nodes import Const, For, Kernel, Local, Stmt
from msops._loops.ir.walk import map_bodies, rewrite_all, statements, substitute, with_body
from msops._loops.passes.simplify import simplify

_MOST_TRIPS = 4
_MOST_STATEMENTS = 16


def unroll_short_loops(kernel: Kernel) -> Kernel:
    """Returns the kernel with short innermost loops inside of others unrolled."""
    return simplify(with_body(kernel, _unrolled(kernel.body, is_inside=False)))


def _unrolled(body: tuple[Stmt, ...], is_inside: bool) -> tuple[Stmt, ...]:
    return tuple(new for stmt in body for new in _statement(stmt, is_inside))


def _statement(stmt: Stmt, is_inside: bool) -> tuple[Stmt, ...]:
    in_loop = is_inside or (isinstance(stmt, For) and not _is_short(stmt))
    stmt = map_bodies(stmt, lambda body: _unrolled(body, in_loop))
    if not (isinstance(stmt, For) and is_inside and _is_short(stmt)):
        return (stmt,)
    assert isinstance(stmt.begin, Const)
    assert isinstance(stmt.end, Const)
    values = range(int(stmt.begin.value), int(stmt.end.value))
    inner = list(statements(stmt.body))
    # Names are unique in a kernel, so what declares one cannot be repeated.
    if any(isinstance(part, For | Local) for part in inner):
        return (stmt,)
    if len(inner) * len(values) > _MOST_STATEMENTS:
        return (stmt,)
    return tuple(part for value in values for part in _at(stmt.body, stmt.var, value))


def _is_short(loop: For) -> bool:
    match loop:
        case For(begin=Const(value=begin), end=Const(value=end)):
            return end - begin <= _MOST_TRIPS
    return False


def _at(body: tuple[Stmt, ...], var: str, value: int) -> tuple[Stmt, ...]:
    values = {var: Const(value, "int32")}
    return rewrite_all(body, lambda expr: substitute(expr, values))
