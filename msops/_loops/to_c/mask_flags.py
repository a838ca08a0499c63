"""Flags that conditions on picked elements set are set by masks, without a branch.

    parallel i in 0 .. 100 {                    parallel i in 0 .. 100 {
      local ok: int32[] {                         local ok: int32[] {
        ok[] = 1                                    ok[] = 1
        if (table[h[i]] == 0) { ok[] = 0 }  ->      ok[] = ok[] & (table[h[i]] == 0 ? 0 : -1)
        ...                                         ...

Where data pick the element, no processor foresees the branch. Compilers make one even of a choice
between the constant and what the variable holds.
"""

from __future__ import annotations

import dataclasses

from msops._loops.ir.building import binary, element_of
from msops._loops.ir.nodes import Const, Expr, For, If, Kernel, Select, Stmt, Store
from msops._loops.ir.operators import INTEGERS
from msops._loops.ir.scalars import identity
from msops._loops.ir.walk import (
    Scope,
    declared_in,
    is_innermost,
    loads,
    rewrite_loops,
    rewrite_statements,
    with_parts,
)


def set_flags_by_masks(kernel: Kernel) -> Kernel:
    """Returns the kernel with such variables of its inner loops set by masks."""

    def change(loop: For, scope: Scope) -> tuple[Stmt, ...] | None:
        if not is_innermost(loop):
            return None
        (inside,) = scope.inside(loop)
        # A mask also writes where the condition does not hold: no other iteration may do so.
        own = declared_in(loop.body) | {
            name
            for name, depth in inside.depths.items()
            if not any(around.kind == "parallel" for around in inside.loops[depth:])
        }

        def set_by_mask(stmt: If) -> tuple[Stmt, ...]:
            match stmt:
                case If(
                    condition=condition,
                    then=(Store(indices=(), value=Const(dtype=dtype) as value) as store,),
                    otherwise=(),
                ) if store.buffer in own and dtype in INTEGERS and _is_picked(condition):
                    zero, ones = Const(0, dtype), Const(identity("and", dtype), dtype)
                    old = binary("and", element_of(store), Select(condition, zero, ones, dtype))
                    new = Select(condition, value, zero, dtype)
                    flag = binary("or", old, new) if value.value else old
                    return (dataclasses.replace(store, value=flag),)
            return (stmt,)

        body = rewrite_statements(loop.body, set_by_mask, If)
        return None if body == loop.body else (with_parts(loop, body=body),)

    return rewrite_loops(kernel, change)


def _is_picked(condition: Expr) -> bool:
    """Returns whether a condition reads an element that data pick."""
    return any(loads(index) for load in loads(condition) for index in load.indices)
