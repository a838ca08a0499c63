"""Sums under conditions that data decide add a choice between their term and zero.

    reduction b in 0 .. 13 {                  reduction b in 0 .. 13 {
      local q: float32[] {                      local q: float32[] {
        q[] = f(x[b])                             q[] = f(x[b])
        if (q[] > 0) {                  ->        s[] = s[] + (q[] > 0 ? q[] * q[] : 0)
          s[] = s[] + q[] * q[]                 }
        }                                     }
      }
    }

No processor foresees such a branch, and a wrong guess takes longer than a cheap term does. Of a
choice between a term and zero compilers make a mask. A term that takes long, or reads from anywhere
in memory, keeps its branch.
"""

from __future__ import annotations

import dataclasses

from msops._loops.analysis.updates import sum_of
from msops._loops.ir.algebra import number
from msops._loops.ir.building import binary, element_of
from msops._loops.ir.nodes import BinaryOp, For, If, Kernel, Select, Stmt, Store
from msops._loops.ir.operators import is_float
from msops._loops.ir.ranges import exists
from msops._loops.ir.walk import (
    Scope,
    buffers_of,
    declared_in,
    is_innermost,
    loads,
    rewrite_loops,
    rewrite_statements,
    with_parts,
)
from msops._loops.to_c.work import is_cheap


def add_choices(kernel: Kernel) -> Kernel:
    """Returns the kernel with cheap terms of sums in its inner loops computed in any case."""
    buffers = buffers_of(kernel)

    def change(loop: For, scope: Scope) -> tuple[Stmt, ...] | None:
        if not is_innermost(loop):
            return None
        (inside,) = scope.inside(loop)
        own = declared_in(loop.body)

        def add(stmt: If) -> tuple[Stmt, ...]:
            match stmt:
                case If(condition=condition, then=(Store(indices=()) as store,), otherwise=()):
                    update = sum_of(store)
                    if (
                        update is not None
                        and store.buffer not in own
                        and update.op == "add"
                        and is_float(store.value.dtype)
                        and loads(condition)
                        and is_cheap(update.term, loop, buffers)
                        and all(exists(x, inside.ranges, buffers) for x in loads(update.term))
                    ):
                        dtype = store.value.dtype
                        term = Select(condition, update.term, number(0, dtype), dtype)
                        op: BinaryOp = "sub" if update.is_negated else "add"
                        value = binary(op, element_of(store), term)
                        return (dataclasses.replace(store, value=value),)
            return (stmt,)

        body = rewrite_statements(loop.body, add, If)
        return None if body == loop.body else (with_parts(loop, body=body),)

    return rewrite_loops(kernel, change, "reduction")
