"""Sums that conditions compare, and that are indices where these hold, get a variable.

    if ((j + dx[3] >= 0)                  local at: int32[] {
        && (j + dx[3] < 1000)) {            at[] = j + dx[3]
      y[j] = y[j] + z[j + dx[3]]    ->      if ((at[] >= 0) && (at[] < 1000)) {
    }                                         y[j] = y[j] + z[at[]]
                                            }
                                          }

`proving` follows variables. It does not see that two sums with elements are the same. A kernel
whose author named the sum has this form from the start.
"""

from __future__ import annotations

from collections.abc import Iterable

from msops._loops.ir.elements import exists
from msops._loops.ir.names import Names
from msops._loops.ir.nodes import (
    INDEX_DTYPE,
    Binary,
    Buffer,
    Cast,
    Expr,
    If,
    Kernel,
    Load,
    Local,
    Stmt,
    Store,
)
from msops._loops.ir.operators import COMPARISONS
from msops._loops.ir.walk import (
    Scope,
    accesses_in,
    expressions,
    loads,
    map_bodies_within,
    own_expressions,
    rewrite_all,
    statements,
    stored_in,
    with_body,
)


def name_compared_indices(kernel: Kernel) -> Kernel:
    """Returns the kernel with variables for such sums."""
    if not _compared_sums(statements(kernel.body)):
        return kernel
    names = Names(kernel)

    def statement(stmt: Stmt, scope: Scope) -> Stmt:
        index = _compared_index(stmt, scope) if isinstance(stmt, If | Store) else None
        if index is None:
            return map_bodies_within(stmt, scope, body)
        at = Buffer(names.fresh("at"), (), index.dtype)
        held = Load(at.name, (), index.dtype)
        inner = rewrite_all((stmt,), lambda part: held if part == index else part)
        return statement(Local(at, (Store(at.name, (), index), *inner)), scope)

    def body(stmts: tuple[Stmt, ...], scope: Scope) -> tuple[Stmt, ...]:
        return tuple(statement(stmt, scope) for stmt in stmts)

    return with_body(kernel, body(kernel.body, Scope.of(kernel)))


def _compared_index(stmt: If | Store, scope: Scope) -> Expr | None:
    """Returns a sum with elements that a statement both compares and uses as an index, or None."""
    compared = _compared_sums([stmt])
    changing = stored_in((stmt,))
    for access in accesses_in((stmt,)):
        for index in access.indices:
            whole = index.operand if isinstance(index, Cast) else index
            if (
                whole in compared
                and changing.isdisjoint(load.buffer for load in loads(whole))
                and all(exists(load, scope.ranges, scope.buffers) for load in loads(whole))
            ):
                return whole
    return None


def _compared_sums(stmts: Iterable[Stmt]) -> set[Expr]:
    """Returns the sums with elements that statements themselves compare."""
    sides = (
        side.operand if isinstance(side, Cast) else side
        for stmt in stmts
        for own in own_expressions(stmt)
        for part in expressions(own)
        if isinstance(part, Binary) and part.op in COMPARISONS
        for side in (part.left, part.right)
    )
    return {
        side
        for side in sides
        if isinstance(side, Binary)
        and side.dtype == INDEX_DTYPE
        and any(load.indices for load in loads(side))
    }
