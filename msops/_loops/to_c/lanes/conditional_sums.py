"""Sums under conditions add a choice between their term and zero.

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

A condition that leaves out one iteration (`if i != j`) guards a whole body. Vectors would load
under a mask, which compilers cannot do of records. So the body is computed in any case, and there
its sums add zero.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Set

from msops._loops.analysis.updates import sum_of
from msops._loops.ir.algebra import number
from msops._loops.ir.building import binary, element_of
from msops._loops.ir.elements import exists
from msops._loops.ir.nodes import (
    Binary,
    BinaryOp,
    Buffer,
    Const,
    Expr,
    For,
    If,
    Kernel,
    Select,
    Stmt,
    Store,
)
from msops._loops.ir.operators import is_float
from msops._loops.ir.walk import (
    Scope,
    buffers_of,
    declared_in,
    is_innermost,
    loads,
    loads_in,
    operands,
    rewrite_loops,
    rewrite_statements,
    stored_in,
    with_parts,
    within_locals,
)
from msops._loops.to_c.facts.bodies import without_locals
from msops._loops.to_c.facts.strides import coefficient
from msops._loops.to_c.facts.work import is_cheap


def add_choices(kernel: Kernel) -> Kernel:
    """Returns the kernel with cheap terms of sums in its inner loops computed in any case."""
    buffers = buffers_of(kernel)

    def change(loop: For, scope: Scope) -> tuple[Stmt, ...] | None:
        if not is_innermost(loop):
            return None
        (inside,) = scope.inside(loop)
        own = declared_in(loop.body)

        def chosen(stmt: Stmt, condition: Expr) -> Store | None:
            if not isinstance(stmt, Store) or stmt.indices or stmt.buffer in own:
                return None
            update = sum_of(stmt)
            if update is None or not is_cheap(update.term, loop, buffers):
                return None
            may_be_read = all(exists(x, inside.ranges, buffers) for x in loads(update.term))
            return _chosen(stmt, condition) if may_be_read else None

        def add(stmt: If) -> tuple[Stmt, ...]:
            condition, then = stmt.condition, stmt.then
            if stmt.otherwise or not loads(condition) or _changes(then, condition):
                return (stmt,)
            sums = tuple(new for inner in then if (new := chosen(inner, condition)))
            # Of one sum of integers compilers make a choice themselves.
            is_better = len(sums) > 1 or any(is_float(store.value.dtype) for store in sums)
            return sums if is_better and len(sums) == len(then) else (stmt,)

        body = _without_branch(loop, inside, buffers)
        if body is None:
            body = rewrite_statements(loop.body, add, If)
        return None if body == loop.body else (with_parts(loop, body=body),)

    return rewrite_loops(kernel, change, "reduction")


def _chosen(store: Store, condition: Expr) -> Store | None:
    """Returns a sum that adds zero where a condition fails; None for another store."""
    update, dtype = sum_of(store), store.value.dtype
    if update is None or update.op != "add":
        return None
    zero = number(0, dtype) if is_float(dtype) else Const(0, dtype)
    term = Select(condition, update.term, zero, dtype)
    op: BinaryOp = "sub" if update.is_negated else "add"
    return dataclasses.replace(store, value=binary(op, element_of(store), term))


def _without_branch(
    loop: For, inside: Scope, buffers: Mapping[str, Buffer]
) -> tuple[Stmt, ...] | None:
    """Returns the body of a loop of which one iteration does nothing, computed in any case.

    Args:
      loop: the loop.
      inside: the scope of its body.
      buffers: the buffers of the kernel, locals too, by name.

    Returns:
      None for another loop, and if an element might not exist in that iteration.
    """
    match loop.body:
        case (If(condition=Binary(op="ne") as condition, then=then, otherwise=()),):
            sides = [coefficient(side, loop.var) for side in operands(condition)]
            if None in sides or sides[0] == sides[1] or _changes(then, condition):
                return None
        case _:
            return None
    own = declared_in(then)
    found: list[Stmt] = []
    body, variables = without_locals(then)
    for stmt in body:
        new = _in_any_case(stmt, condition, own)
        if not new:
            return None
        found += new
    read = [load for load in loads_in(then) if load.buffer not in own]
    if not all(exists(load, inside.ranges, buffers) for load in read):
        return None
    return within_locals(variables, tuple(found))


def _in_any_case(stmt: Stmt, condition: Expr, own: Set[str]) -> list[Store]:
    """Returns a statement without the condition around it; nothing if it needs that.

    Args:
      stmt: the statement.
      condition: the condition.
      own: the variables that nothing outside of the condition reads.
    """
    match stmt:
        case Store(buffer=buffer) if buffer in own:
            return [stmt]
        case Store(indices=()):
            chosen = _chosen(stmt, condition)
            return [chosen] if chosen else []
        case If(condition=more, then=then, otherwise=()) if not (
            own & stored_in(then) or _changes(then, more)
        ):
            both = binary("and", condition, more)
            sums = [_in_any_case(inner, both, own) for inner in then]
            return [store for stores in sums for store in stores] if all(sums) else []
    return []


def _changes(body: tuple[Stmt, ...], condition: Expr) -> bool:
    """Returns whether statements store to what a condition reads: each sum evaluates it again."""
    return not stored_in(body).isdisjoint(load.buffer for load in loads(condition))
