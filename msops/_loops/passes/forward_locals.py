"""Puts the value of a local that is written once where it is read.

    local t: float32[] {             y[i] = exp(x[i]) * 2.0
      t[] = exp(x[i])          ->
      y[i] = t[] * 2.0
    }

The store must come first and always run, and what its value reads must stay as it is until the
last read of the local. Products of a contraction become visible this way, and indices that are held
in locals become affine.
"""

from __future__ import annotations

from collections.abc import Callable

from msops._loops.analysis.costs import arithmetic
from msops._loops.analysis.updates import sum_of
from msops._loops.ir.nodes import (
    Binary,
    Const,
    Expr,
    For,
    FunctionCall,
    Kernel,
    Load,
    Local,
    Stmt,
    Store,
    Var,
)
from msops._loops.ir.walk import (
    Scope,
    expressions,
    is_innermost,
    loads,
    loads_in,
    rewrite_all,
    rewrite_loops,
    rewrite_statements,
    size_of,
    statements,
    stored_in,
    with_body,
    with_parts,
)

SIZE_LIMIT = 400
"""Nodes a forwarded value may have in all its copies; beyond, expanding the local is cheaper."""
_TERM_LIMIT = 4
"""Operations that a part of a term may have in all its copies."""


def forward_locals(kernel: Kernel) -> Kernel:
    """Returns the kernel with every local forwarded that can be, unless it grows too much."""
    return with_body(kernel, forwarded(kernel.body))


def forwarded(body: tuple[Stmt, ...]) -> tuple[Stmt, ...]:
    """Returns statements as `forward_locals` does."""
    return _forwarded(body, lambda value, reads: reads <= 1 or size_of(value) * reads <= SIZE_LIMIT)


def forward_terms(kernel: Kernel) -> Kernel:
    """Returns the kernel with locals forwarded that are parts of the terms of a sum.

    So `t[] = a[i, k] - b[j, k]` and `s[] = s[] + t[] * t[]` are one sum, as of a product. A
    compiler computes the difference once.
    """

    def wants(value: Expr, reads: int) -> bool:
        return reads <= 1 or is_quick(value, reads)

    def loop(loop: For, _: Scope) -> tuple[Stmt, ...] | None:
        match _forwarded(loop.body, wants):
            case (Store() as store,) if sum_of(store) and loop.body != (store,):
                return (with_parts(loop, body=(store,)),)
        return None

    return rewrite_loops(kernel, loop, "reduction")


def quick_values_forwarded(body: tuple[Stmt, ...]) -> tuple[Stmt, ...]:
    """Returns statements with locals forwarded whose values take few operations each time."""
    return _forwarded(body, is_quick)


def forward_indices(kernel: Kernel) -> Kernel:
    """Returns the kernel with locals forwarded that hold indices: whole numbers without loads.

    This costs nothing in any printer and makes accesses affine. Sums with a variable, as the
    columns x0[] - 7 + j of a window, are forwarded, too.
    """

    def wants(value: Expr, reads: int) -> bool:
        if value.dtype not in ("int32", "int64"):
            return False
        is_small = size_of(value) * reads <= SIZE_LIMIT
        return not loads(value) or (is_small and _is_near_a_variable(value))

    return with_body(kernel, _forwarded(kernel.body, wants))


def _is_near_a_variable(value: Expr) -> bool:
    """Returns whether a value is made of scalars, loop variables and constants by sums alone."""
    match value:
        case Load(indices=()) | Var() | Const():
            return True
        case Binary(op="add" | "sub", left=left, right=right):
            return _is_near_a_variable(left) and _is_near_a_variable(right)
    return False


def forward_lengths(kernel: Kernel) -> Kernel:
    """Returns the kernel with locals forwarded that hold the ends of loops with loops inside.

    So `n[] = lengths[b]` says of the rows that end at n what their length depends on.
    """
    ends = {
        load.buffer
        for loop in statements(kernel.body)
        if isinstance(loop, For) and not is_innermost(loop)
        for load in loads(loop.end)
    }

    def replaced(local: Local) -> tuple[Stmt, ...]:
        return _without(local, is_quick) if local.buffer.name in ends else (local,)

    return with_body(kernel, rewrite_statements(kernel.body, replaced, Local)) if ends else kernel


def is_quick(value: Expr, reads: int = 1) -> bool:
    """Returns whether a value takes few operations, however often it is read."""
    is_call = any(isinstance(part, FunctionCall) for part in expressions(value))
    return not is_call and arithmetic(value) * reads <= _TERM_LIMIT


def _forwarded(body: tuple[Stmt, ...], wants: Callable[[Expr, int], bool]) -> tuple[Stmt, ...]:
    return rewrite_statements(body, lambda local: _without(local, wants), Local)


def _without(local: Local, wants: Callable[[Expr, int], bool]) -> tuple[Stmt, ...]:
    """Returns the body of a local without it, or the local itself in a tuple."""
    name = local.buffer.name
    found = only_value(local)
    if found is None:
        return (local,)
    position, value = found
    rest = local.body[position + 1 :]
    if not wants(value, _reads(rest, name)) or not _is_steady(value, rest, name):
        return (local,)
    forwarded = rewrite_all(
        rest, lambda part: value if isinstance(part, Load) and part.buffer == name else part
    )
    return (*local.body[:position], *forwarded)


def only_value(local: Local) -> tuple[int, Expr] | None:
    """Returns the value of a scalar local that is written once, before all reads; else None.

    The number before it is the position of the store in the body of the local.
    """
    name = local.buffer.name
    if local.buffer.shape != ():
        return None
    stores = [s for s in statements(local.body) if isinstance(s, Store) and s.buffer == name]
    position = next((n for n, stmt in enumerate(local.body) if stmt in stores), None)
    if len(stores) != 1 or position is None or _reads(local.body[: position + 1], name):
        return None
    return position, stores[0].value


def _reads(body: tuple[Stmt, ...], name: str) -> int:
    return sum(load.buffer == name for load in loads_in(body))


def _is_steady(value: Expr, body: tuple[Stmt, ...], name: str) -> bool:
    """Returns whether nothing that `value` reads is stored to before the last read of a local."""
    sources = {load.buffer for load in loads(value)}
    last = max((n for n, stmt in enumerate(body) if _reads((stmt,), name)), default=-1)
    for number, stmt in enumerate(body[: last + 1]):
        # A store evaluates what it reads before it writes.
        if number == last and isinstance(stmt, Store):
            return True
        if not sources.isdisjoint(stored_in((stmt,))):
            return False
    return True
