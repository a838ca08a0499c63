"""What decides over statements, and is changed by them, is kept in locals.

    if (a[0] > 0.0) {                local kept: bool[] {
      a[0] = 1.0               ->      kept[] = a[0] > 0.0
      b[0] = 2.0                       if (kept[]) { ... }
    }                                }

Afterwards each store can be moved to a nest of its own, with its conditions evaluated again there.
A condition around a single store is evaluated right before it in any case. Backwards it is needed
after the store, and so is the place of the store.
"""

from __future__ import annotations

import dataclasses
from typing import Any

from msops._loops.ir.names import Names
from msops._loops.ir.nodes import Buffer, Expr, For, If, Kernel, Load, Local, Stmt, Store
from msops._loops.ir.walk import loads, rewrite_statements, stored_in, with_body


def keep_decisions(kernel: Kernel, *, backwards: bool = False) -> Kernel:
    """Returns the kernel with what decides over a statement untouched by the statement.

    Args:
      kernel: any kernel.
      backwards: whether it is asked for after a single store, too.
    """
    names = Names(kernel)

    def kept(stmt: Store | For | If) -> tuple[Stmt, ...]:
        values: list[tuple[Buffer, Expr]] = []

        def keep(expr: Expr) -> Expr:
            read = loads(expr)
            if not read or stored_in((stmt,)).isdisjoint(load.buffer for load in read):
                return expr
            scalar = Buffer(names.fresh("kept"), (), expr.dtype)
            values.append((scalar, expr))
            return Load(scalar.name, (), scalar.dtype, location=stmt.location)

        match stmt:
            case If(then=(Store(),), otherwise=()) if not backwards:
                return (stmt,)
            case Store(indices=indices):
                parts: dict[str, Any] = {"indices": tuple(map(keep, indices))}
            case For(begin=begin, end=end):
                parts = {"begin": keep(begin), "end": keep(end)}
            case If(condition=condition):
                parts = {"condition": keep(condition)}
        if not values:
            return (stmt,)
        whole: Stmt = dataclasses.replace(stmt, **parts)
        for scalar, expr in reversed(values):
            first = Store(scalar.name, (), expr, location=stmt.location)
            whole = Local(scalar, (first, whole), location=stmt.location)
        return (whole,)

    kinds = (Store, For, If) if backwards else (For, If)
    return with_body(kernel, rewrite_statements(kernel.body, kept, *kinds))
