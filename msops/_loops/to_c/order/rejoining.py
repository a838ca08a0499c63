"""Loops that were split where they pass a pivot, as one loop of a fixed length again.

    parallel j in 0 .. k {                            held[] = p[i, k]
      p[i, j] = f(p[i, j], p[i, k])                   next[] = f(held[], held[])
    }                                                 parallel j in 0 .. 64 {
    p[i, k] = f(p[i, k], p[i, k])             ->        p[i, j] = f(p[i, j],
    parallel j in k + 1 .. 64 {                                     (j <= k ? held[] : next[]))
      p[i, j] = f(p[i, j], p[i, k])                   }
    }

`split_at_pivots` did so to find out that the parts are parallel. In short rows most of their
iterations fill no vector. The whole row does. Each of its iterations chooses the pivot's old or
new value, which takes little where the row is in the first cache. A long row stays in parts.
"""

from __future__ import annotations

from collections.abc import Iterator

from msops._loops.ir.building import binary, element_of
from msops._loops.ir.names import Names
from msops._loops.ir.nodes import Buffer, Expr, For, Kernel, Load, Select, Stmt, Store, Var
from msops._loops.ir.walk import (
    Scope,
    loads,
    map_bodies_within,
    rewrite,
    variables,
    with_body,
    with_parts,
    with_value,
    within_locals,
)
from msops._loops.passes.simplify_expressions import difference
from msops._loops.to_c.facts.apart import are_apart

_MOST_TRIPS = 256
"""Iterations of a row. Measured of shortest paths, with as many rows: rows of 64 take 0.34 of the
time of their parts, of 200 0.81, of 256 0.71, of 320 1.20, of 400 1.27, of 500 1.18 to 1.64."""


def rejoin_at_pivots(kernel: Kernel) -> Kernel:
    """Returns the kernel with such parts as one loop."""
    body = _Rejoining(Names(kernel)).body(kernel.body, Scope.of(kernel))
    return kernel if body == kernel.body else with_body(kernel, body)


class _Rejoining:
    def __init__(self, names: Names) -> None:
        self._names = names

    def body(self, body: tuple[Stmt, ...], scope: Scope) -> tuple[Stmt, ...]:
        """Returns statements with parts of loops joined, also inside of others."""
        return tuple(
            map_bodies_within(stmt, scope, self.body) for stmt in self._joined(body, scope)
        )

    def _joined(self, body: tuple[Stmt, ...], scope: Scope) -> Iterator[Stmt]:
        ahead = list(body)
        while ahead:
            match ahead[:3]:
                case [
                    For(kind="parallel", body=(Store(),)) as before,
                    Store() as at,
                    For(kind="parallel", body=(Store(),)) as after,
                ] if _is_split(before, at, after, scope):
                    yield from self._whole(before, at, after)
                    del ahead[:3]
                case _:
                    yield ahead.pop(0)

    def _whole(self, before: For, at: Store, after: For) -> tuple[Stmt, ...]:
        """Returns the loop of which these are the parts, and the variables that it reads."""
        pivot = element_of(at)
        held, later = (Buffer(self._names.fresh(n), (), pivot.dtype) for n in ("held", "next"))
        value, new = Load(held.name, (), held.dtype), Load(later.name, (), later.dtype)

        def with_pivot(expr: Expr, chosen: Expr) -> Expr:
            return rewrite(expr, lambda part: chosen if part == pivot else part)

        is_old = binary("le", Var(before.var), before.end)
        (store,) = before.body
        assert isinstance(store, Store)
        either = Select(is_old, value, new, pivot.dtype)
        whole = with_parts(store, value=with_pivot(store.value, either))
        return within_locals(
            (held, later),
            (
                Store(held.name, (), pivot),
                Store(later.name, (), with_pivot(at.value, value)),
                with_parts(before, end=after.end, body=(whole,)),
            ),
        )


def _is_split(before: For, at: Store, after: For, scope: Scope) -> bool:
    """Returns whether statements are the parts of a loop before a pivot, there and after it.

    Of what it stores an iteration may read its own element, the pivot, and what none of them store.
    """
    (store,), pivot, ranges = before.body, before.end, scope.ranges
    if not isinstance(store, Store) or before.hint == "serial":
        return False
    # Nor may a store change where the pivot is.
    if not variables(pivot) or loads(pivot):
        return False
    moving = [axis for axis, i in enumerate(store.indices) if before.var in variables(i)]
    if len(moving) != 1 or store.indices[moving[0]] != Var(before.var):
        return False
    if with_value(before.body, before.var, pivot) != (at,):
        return False
    if with_value(before.body, before.var, Var(after.var)) != after.body:
        return False
    ends = (difference(pivot, before.begin, ranges), difference(after.end, after.begin, ranges))
    if difference(after.begin, pivot, ranges) != (1, 1) or not all(d and d[0] >= 0 for d in ends):
        return False
    whole = difference(after.end, before.begin, ranges)
    if whole is None or whole[1] > _MOST_TRIPS:
        return False
    read = [load for load in loads(store.value) if load.buffer == store.buffer]
    others = [load for load in read if load.indices not in (store.indices, at.indices)]

    def fixed(access: Load | Store) -> tuple[Expr, ...]:
        return tuple(index for axis, index in enumerate(access.indices) if axis not in moving)

    is_apart = all(are_apart(fixed(load), fixed(store), ranges, scope.loops) for load in others)
    return is_apart and any(load.indices == at.indices for load in read)
