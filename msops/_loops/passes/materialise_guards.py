"""Stores conditions and bounds that their body may change to locals.

    if (a[0] > 0.0) {                local g: bool[] {
      a[0] = 1.0               ->      g[] = a[0] > 0.0
      b[0] = 2.0                       if (g[]) { ... }
    }                                }

Afterwards each store can be moved to a nest of its own with its conditions evaluated again there.
A condition around a single store is evaluated right before it in any case.
"""

from __future__ import annotations

import dataclasses

from msops._loops.ir import Buffer, Expr, For, If, Kernel, Load, Local, Stmt, Store
from msops._loops.names import Names
from msops._loops.walk import loads, map_bodies, statements, with_body


def materialise_guards(kernel: Kernel) -> Kernel:
    """Returns the kernel in which no body stores to what its conditions and bounds read."""
    names = Names(kernel)

    def change(body: tuple[Stmt, ...]) -> tuple[Stmt, ...]:
        return tuple(_steady(map_bodies(stmt, change), names) for stmt in body)

    return with_body(kernel, change(kernel.body))


def _steady(stmt: Stmt, names: Names) -> Stmt:
    match stmt:
        case If(condition=condition, then=then, otherwise=otherwise):
            is_single = len(then) == 1 and isinstance(then[0], Store) and not otherwise
            if is_single or not _reads_stored(condition, (*then, *otherwise)):
                return stmt
            return _held(condition, names.fresh("guard"), stmt, "condition")
        case For(var=var, body=body):
            held: Stmt = stmt
            for bound in ("begin", "end"):
                expr = getattr(stmt, bound)
                if _reads_stored(expr, body):
                    held = _held(expr, names.fresh(f"{var}_{bound}"), held, bound)
            return held
    return stmt


def _reads_stored(expr: Expr, body: tuple[Stmt, ...]) -> bool:
    sources = {load.buffer for load in loads(expr)}
    return bool(sources) and any(
        isinstance(stmt, Store) and stmt.buffer in sources for stmt in statements(body)
    )


def _held(expr: Expr, name: str, stmt: Stmt, field: str) -> Local:
    """Returns `stmt` with a field that a local holds."""
    buffer = Buffer(name, (), expr.dtype)
    location = stmt.location
    if isinstance(stmt, Local):
        # The other bound of the same loop is held already.
        first, loop = stmt.body
        body: tuple[Stmt, ...] = (first, _held(expr, name, loop, field))
        return dataclasses.replace(stmt, body=body)
    held = dataclasses.replace(stmt, **{field: Load(name, (), expr.dtype, location=location)})
    return Local(buffer, (Store(name, (), expr, location=location), held), location=location)
