"""Finds reductions that are written as conditions: ``if a[i] > m: m = a[i]``.

    if (n[i] > p[]) {                      p[] = max(p[], n[i])
      p[] = n[i]                    ->
    }
    if (c[i] && (a[i] > m[])) {            if (c[i]) {
      m[] = a[i]                             m[] = (a[i] > m[]) ? a[i] : m[]
    }                                      }

A comparison with NaN does not hold, and of 0 and -0 the first stays, so an extreme of floats keeps
its comparison: `kept_extreme_of` knows it as an update. An element that only one iteration changes,
as in ``if x < 0: x = 0``, keeps its condition: at a tie, the gradient of a maximum is another one.
Where other elements are stored under the same condition (the index of the maximum), search.py
splits the loop. The pass comes before the loops are distributed, which then sees updates.
"""

from __future__ import annotations

import dataclasses

from msops._loops.ir.algebra import element_of
from msops._loops.ir.names import Names
from msops._loops.ir.nodes import (
    Binary,
    BinaryOp,
    Expr,
    For,
    If,
    Kernel,
    Select,
    Stmt,
    Store,
    Unary,
)
from msops._loops.ir.operators import REDUCIBLE
from msops._loops.ir.walk import Scope, index_variables, rewrite_loops, rewrite_statements, visit
from msops._loops.passes.extremes import find_extreme, is_element, reads
from msops._loops.passes.search import split_search


def rewrite_conditional_reductions(kernel: Kernel) -> Kernel:
    """Returns the kernel with conditional updates in loops as plain ones."""
    names = Names(kernel)
    reduced = {
        (stmt.buffer, stmt.indices)
        for stmt, scope in visit(kernel)
        if isinstance(stmt, Store) and _is_reduced(stmt, scope)
    }

    def change(stmt: Store | For | If) -> tuple[Stmt, ...]:
        match stmt:
            case Store(buffer=buffer, indices=indices) if (buffer, indices) in reduced:
                return (_from_choice(stmt),)
            case If(then=(Store(buffer=buffer, indices=indices),), otherwise=()) if (
                buffer,
                indices,
            ) in reduced:
                return (_from_condition(stmt),)
            case For():
                return split_search(stmt, names) or (stmt,)
        return (stmt,)

    def outermost(loop: For, _: Scope) -> tuple[Stmt, ...]:
        return rewrite_statements((loop,), change, Store, For, If)

    return rewrite_loops(kernel, outermost)


def _is_reduced(store: Store, scope: Scope) -> bool:
    """Returns whether several iterations of a loop store to one element."""
    moving = index_variables(store)
    loops = scope.loops[scope.depths.get(store.buffer, 0) :]
    return any(loop.var not in moving for loop in loops)


# Updates of one element.


def _from_choice(store: Store) -> Stmt:
    """Turns `m = (c ? e : m)` into `if c: m = e`, and chains of one operation into updates."""
    match store.value:
        case Select(condition=condition, then=then, otherwise=otherwise):
            if is_element(otherwise, store):
                kept = dataclasses.replace(store, value=then)
            elif is_element(then, store):
                kept = dataclasses.replace(store, value=otherwise)
                condition = Unary("not", condition, "bool")
            else:
                return store
            return _from_condition(If(condition, (kept,), location=store.location))
    return _isolated(store)


def _from_condition(stmt: If) -> Stmt:
    """Turns `if e > m: m = e` into an update."""
    (store,) = stmt.then
    assert isinstance(store, Store)
    found = find_extreme(stmt.condition, store)
    if found is None:
        return stmt
    update = found.update(store)
    return If(found.guard, (update,), location=stmt.location) if found.guard else update


# Chains.


def _isolated(store: Store) -> Store:
    """Turns `s = (s + a) - b` into `s = s + (a - b)`."""
    value = store.value
    if not isinstance(value, Binary) or is_element(value.left, store):
        return store
    op = "add" if value.op == "sub" else value.op
    if op not in REDUCIBLE:
        return store
    rest = _without(value, op, store)
    if rest is None or reads(rest, {store.buffer}):
        return store
    old = element_of(store)
    return dataclasses.replace(store, value=Binary(op, old, rest, value.dtype))


def _without(expr: Expr, op: BinaryOp, store: Store) -> Expr | None:
    """Returns what a chain of one operation combines the stored element with."""
    if not isinstance(expr, Binary) or expr.op not in (op, "sub" if op == "add" else op):
        return None
    left, right, dtype = expr.left, expr.right, expr.dtype
    is_difference = expr.op == "sub"
    if is_element(left, store):
        return Unary("neg", right, dtype) if is_difference else right
    if is_element(right, store) and not is_difference:
        return left
    rest = _without(left, op, store)
    if rest is not None:
        return Binary(expr.op, rest, right, dtype)
    rest = None if is_difference else _without(right, op, store)
    return None if rest is None else Binary(op, left, rest, dtype)
