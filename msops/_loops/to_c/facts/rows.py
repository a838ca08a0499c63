"""Rows that statements read, and positions of a row that they write."""

from __future__ import annotations

from msops._loops.ir.nodes import Expr, For, If, Kernel, Load, Local, Stmt, Store
from msops._loops.ir.ranges import Range, Ranges, is_within, range_of
from msops._loops.ir.walk import bodies, loads, statements, stored_in, variables, visit_accesses
from msops._loops.passes.simplify_expressions import where


def reads_rows(name: str, loop: For, limits: Ranges, rows: Range) -> bool:
    """Returns whether the rows of an array that a loop reads are within a range.

    Args:
      name: the name of the array.
      loop: the loop.
      limits: the range of its variable.
      rows: the first and the last row.
    """
    for site in visit_accesses(Kernel("rows", (), (), (), (loop,))):
        if isinstance(site.access, Load) and site.access.buffer == name:
            ranges: Ranges = {**site.scope.ranges, **limits}
            held = [part.condition for part in site.scope.path if isinstance(part, If)]
            for condition in (*held, *site.conditions):
                ranges = where(condition, ranges)
            if not is_within(range_of(site.access.indices[0], ranges), rows):
                return False
    return True


def writes_alike(name: str, loop: For) -> bool:
    """Returns whether all iterations of a loop write the same positions, each time it runs."""
    inside = {stmt.var for stmt in statements(loop.body) if isinstance(stmt, For)}

    def is_alike(expr: Expr) -> bool:
        return variables(expr) <= inside and not loads(expr)

    def visit(body: tuple[Stmt, ...]) -> bool:
        for stmt in body:
            if name not in stored_in((stmt,)):
                continue
            match stmt:
                case Store(indices=indices) if all(map(is_alike, indices[1:])):
                    continue
                case For(begin=begin, end=end) if not (is_alike(begin) and is_alike(end)):
                    return False
                case For() | Local():
                    if not all(map(visit, bodies(stmt))):
                        return False
                case _:
                    return False
        return True

    return visit(loop.body)
