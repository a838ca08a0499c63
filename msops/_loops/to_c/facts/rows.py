"""Rows that statements read, and positions of a row that they write."""

from __future__ import annotations

import itertools
from collections.abc import Sequence

from msops._loops.analysis.boxes import Box, common, hull, size
from msops._loops.analysis.costs import fixed_trips
from msops._loops.ir.nodes import Expr, For, If, Kernel, Load, Local, Stmt, Store
from msops._loops.ir.ranges import Range, Ranges, is_within, loop_range, range_of
from msops._loops.ir.walk import bodies, loads, statements, stored_in, variables, visit_accesses
from msops._loops.passes.simplify_expressions import where
from msops._loops.to_c.facts.strides import offset


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
                case If() if _box(name, (stmt,), {}) is not None:
                    continue
                case _:
                    return False
        return True

    return visit(loop.body)


def _box(name: str, body: tuple[Stmt, ...], ranges: Ranges) -> Box | None:
    """Returns the positions of a row that a body surely writes; None if they are no box."""
    boxes: list[Box | None] = []
    for stmt in body:
        match stmt:
            case _ if name not in stored_in((stmt,)):
                continue
            case Store():
                boxes.append(_written(stmt.indices[1:], ranges))
            case For() if fixed_trips(stmt):
                inside = {**ranges, stmt.var: loop_range(stmt, {})}
                boxes.append(_box(name, stmt.body, inside))
            case Local():
                boxes.append(_box(name, stmt.body, ranges))
            case If():
                then, otherwise = (_box(name, part, ranges) for part in bodies(stmt))
                boxes.append(then if then == otherwise else None)
            case _:
                boxes.append(None)
    found = [box for box in boxes if box is not None]
    if not found or len(found) < len(boxes):
        return None
    whole = hull(found)
    are_apart = not any(size(common(pair)) for pair in itertools.combinations(found, 2))
    return whole if are_apart and sum(map(size, found)) == size(whole) else None


def _written(indices: Sequence[Expr], ranges: Ranges) -> Box | None:
    """Returns the positions that a store in some loops writes; None if they are no box."""
    moving = [variables(at) for at in indices]
    if sum(map(len, moving)) > len(set().union(*moving)) or any(map(loads, indices)):
        return None
    for at, names in zip(indices, moving, strict=True):
        if len(names) > 1 or not names <= ranges.keys():
            return None
        if any(offset(at, name) is None for name in names):
            return None
    return tuple((low, high + 1) for low, high in (range_of(at, ranges) for at in indices))
