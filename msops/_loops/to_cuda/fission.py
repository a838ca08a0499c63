"""Parallel loops taken apart, so that the nests inside them become perfect and can be boxed.

    parallel i in 0 .. 64 {                 parallel i in 0 .. 64 { a[i] = ... }
      a[i] = ...                      ->    parallel i in 0 .. 64 {
      parallel j in 0 .. 64 { ... }           parallel j in 0 .. 64 { ... }
    }                                       }

Iterations of a parallel loop do not depend on each other, so running the first statement in all of
them before the second is as good. Variables then have several loops, which no printer minds.
"""

from __future__ import annotations

import dataclasses

from msops._loops.analysis.ranges import Range, loop_range
from msops._loops.ir.nodes import For, Stmt
from msops._loops.ir.walk import map_bodies
from msops._loops.to_cuda import costs
from msops._loops.to_cuda.costs import width


def taken_apart(body: tuple[Stmt, ...], ranges: dict[str, Range]) -> tuple[Stmt, ...]:
    """Returns a body with those parallel loops taken apart that have wide nests inside."""
    return tuple(part for stmt in body for part in _parts_of(stmt, ranges))


def _parts_of(stmt: Stmt, ranges: dict[str, Range]) -> tuple[Stmt, ...]:
    inside = ranges | {stmt.var: loop_range(stmt, ranges)} if isinstance(stmt, For) else ranges
    stmt = map_bodies(stmt, lambda body: taken_apart(body, inside))
    if (
        isinstance(stmt, For)
        and stmt.kind == "parallel"
        and len(stmt.body) > 1
        and width(stmt.body, inside) >= costs.LEAST_SHARED
    ):
        return tuple(dataclasses.replace(stmt, body=(part,)) for part in stmt.body)
    return (stmt,)
