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

from msops._loops.ir.names import Names
from msops._loops.ir.nodes import Buffer, Expr, For, If, Kernel, Load, Local, Stmt, Store
from msops._loops.ir.walk import loads, rewrite_statements, stored_in, with_body


def materialise_guards(kernel: Kernel) -> Kernel:
    """Returns the kernel in which no body stores to what its conditions and bounds read."""
    names = Names(kernel)

    def change(stmt: For | If) -> tuple[Stmt, ...]:
        return (_steady(stmt, names),)

    return with_body(kernel, rewrite_statements(kernel.body, change, For, If))


def _steady(stmt: For | If, names: Names) -> Stmt:
    match stmt:
        case If(condition=condition, then=then, otherwise=otherwise):
            is_single = len(then) == 1 and isinstance(then[0], Store) and not otherwise
            if is_single or not _reads_stored(condition, (*then, *otherwise)):
                return stmt
            guard = Load(names.fresh("guard"), (), condition.dtype, location=stmt.location)
            return _held(condition, guard, dataclasses.replace(stmt, condition=guard))
        case For(var=var, begin=begin, end=end, body=body):
            held: list[tuple[Expr, Load]] = []
            if _reads_stored(begin, body):
                first = Load(names.fresh(f"{var}_begin"), (), begin.dtype, location=stmt.location)
                held.append((begin, first))
                stmt = dataclasses.replace(stmt, begin=first)
            if _reads_stored(end, body):
                last = Load(names.fresh(f"{var}_end"), (), end.dtype, location=stmt.location)
                held.append((end, last))
                stmt = dataclasses.replace(stmt, end=last)
            whole: Stmt = stmt
            for expr, load in held:
                whole = _held(expr, load, whole)
            return whole
    return stmt


def _reads_stored(expr: Expr, body: tuple[Stmt, ...]) -> bool:
    return not {load.buffer for load in loads(expr)}.isdisjoint(stored_in(body))


def _held(expr: Expr, load: Load, stmt: Stmt) -> Local:
    """Returns a statement in a local that holds a value, which `load` reads."""
    store = Store(load.buffer, (), expr, location=load.location)
    buffer = Buffer(load.buffer, (), load.dtype)
    return Local(buffer, (store, stmt), location=load.location)
