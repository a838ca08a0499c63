"""The slope of the extreme of many elements, without a tape.

    reduction j in 0 .. n {           best[] = <the greatest of top[] and all x[j]>
      top[] = max(top[], x[j])        ties[] = <how many of them equal it>
    }                                 top[] = (top[] == best[]) ? top[] / ties[] : 0
                                ->    reduction j in 0 .. n {
                                        top[] = top[] + ((x[j] == best[]) ? x[j] / ties[] : 0)
                                      }

Backwards each iteration of the loop on the left needs what the one before left in `top`: all of
these are on a tape, and the loop runs in order. On the right no slope goes through `best` and
`ties`, and the last loop runs in any order. Equal elements share the slope, as in `jax.numpy.max`.
A nest of loops is one reduction, also under conditions, as of windows that reach beyond an image;
where another loop around repeats it for one element, the tape stays. An extreme that is NaN stays
NaN, and has no slope. The mean may differ from the elements in its last bit, so an extreme that
something is decided by, as by `x[j] == top[]`, keeps its tape.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Set
from typing import TypeAlias

from msops._loops.analysis.updates import update_of
from msops._loops.gradient.contributions import active_buffers
from msops._loops.ir.algebra import binary, cast, element_of, number
from msops._loops.ir.functions import FUNCTIONS
from msops._loops.ir.names import Names, unique_names
from msops._loops.ir.nodes import (
    Binary,
    BinaryOp,
    Buffer,
    Cast,
    Expr,
    For,
    FunctionCall,
    If,
    Kernel,
    Load,
    Local,
    Select,
    Stmt,
    Store,
    Within,
)
from msops._loops.ir.operators import is_float
from msops._loops.ir.walk import (
    Scope,
    accesses_in,
    declared_in,
    expressions,
    index_variables,
    loads,
    nested,
    own_expressions,
    rewrite_loops,
    statements,
    stored_in,
    with_parts,
    within_locals,
)
from msops._loops.passes.forward_locals import is_quick

_COUNTING = ("float32", "float64")
"""Dtypes that hold the number of ties."""


def share_extremes(kernel: Kernel) -> Kernel:
    """Returns the kernel with the extremes of many elements as means of those that equal them."""
    names = Names(kernel)
    floats = {buffer.name for buffer in kernel.parameters if is_float(buffer.dtype)}
    active = active_buffers(kernel, floats)

    def change(loop: For, scope: Scope) -> tuple[Stmt, ...] | None:
        nest, body = _nest(loop)
        loops = [part for part in nest if isinstance(part, For)]
        if any(part.kind != "reduction" for part in loops):
            return None
        rest, last = _split(body)
        if not isinstance(last, Store) or last.buffer not in active:
            return None
        if last.value.dtype not in _COUNTING:
            return None
        update = update_of(last)
        if update is None or update.op not in ("min", "max") or not is_quick(update.term):
            return None
        placing = index_variables(last)
        around = scope.loops[scope.depths.get(last.buffer, 0) :]
        if not placing.isdisjoint(part.var for part in loops):
            return None
        if any(part.var not in placing for part in around):
            return None  # It would compare with the mean that the run before left.
        if any(access.buffer == last.buffer for access in accesses_in(rest)):
            return None
        tested = {x.buffer for part in nest if isinstance(part, If) for x in loads(part.condition)}
        if not tested.isdisjoint(stored_in((loop,)) | declared_in((loop,))):
            return None
        read = {load.buffer for expr in (update.term, *last.indices) for load in loads(expr)}
        if not declared_in(rest).isdisjoint(read) or _decides(kernel, last):
            return None
        before = nested(rest, nest) if rest else ()
        return (*before, *_shared(nest, last, update.term, update.op, names))

    changed = rewrite_loops(kernel, change)
    return kernel if changed.body == kernel.body else unique_names(changed)


_Nest: TypeAlias = tuple[For | If, ...]


def _nest(loop: For) -> tuple[_Nest, tuple[Stmt, ...]]:
    """Returns a loop with the loops and conditions that are all in it, and what they run."""
    nest: list[For | If] = [loop]
    body = loop.body
    while True:
        match body:
            case (For() as inner,):
                body = inner.body
            case (If(otherwise=()) as inner,):
                body = inner.then
            case _:
                return tuple(nest), body
        nest.append(inner)


def _split(body: tuple[Stmt, ...]) -> tuple[tuple[Stmt, ...], Stmt]:
    """Returns statements without the one that runs last, and that one."""
    *rest, last = body
    if not isinstance(last, Local) or not last.body:
        return tuple(rest), last
    inner, stmt = _split(last.body)
    return (*rest, *((with_parts(last, body=inner),) if inner else ())), stmt


def _decides(kernel: Kernel, update: Store) -> bool:
    """Returns whether an extreme, or what depends on it, is compared or picks an element."""
    depending, size = {update.buffer}, 0
    after = _after(kernel, update)
    everything = statements(kernel.body)

    def reading(buffers: set[str]) -> Iterator[Stmt]:
        for stmt in everything:
            if stmt is not update and any(
                load.buffer in buffers and (load.buffer != update.buffer or id(stmt) in after)
                for expr in own_expressions(stmt)
                for load in loads(expr)
            ):
                yield stmt

    while len(depending) != size:
        size = len(depending)
        depending |= {stmt.buffer for stmt in reading(depending) if isinstance(stmt, Store)}
    return any(_is_decision(stmt, depending) for stmt in reading(depending))


def _after(kernel: Kernel, update: Store) -> set[int]:
    """Returns the ids of the statements that may read what an update leaves."""
    everything = statements(kernel.body)

    def inside(stmt: For | Local) -> list[Stmt]:
        found = statements(stmt.body)
        return found if any(part is update for part in found) else []

    for stmt in everything:
        if not isinstance(stmt, Local) or stmt.buffer.name != update.buffer:
            continue
        own = inside(stmt)
        if sum(bool(inside(part)) for part in own if isinstance(part, For)) == 1:
            # The local is new in each iteration of other loops around.
            last = next(number for number, part in enumerate(own) if part is update)
            return {id(part) for part in own[last:]}
    return {id(stmt) for stmt in everything}


def _is_decision(stmt: Stmt, buffers: Set[str]) -> bool:
    """Returns whether the last bit of some buffers may change more than last bits."""

    def reads(*exprs: Expr) -> bool:
        return any(load.buffer in buffers for expr in exprs for load in loads(expr))

    if not isinstance(stmt, Store):
        return True
    return reads(*stmt.indices) or any(
        reads(part) for part in expressions(stmt.value) if not _is_smooth(part)
    )


def _is_smooth(part: Expr) -> bool:
    """Returns whether an operation has no steps and no kinks."""
    match part:
        case Binary(op=op):
            return op in ("add", "sub", "mul", "div", "pow")
        case FunctionCall(function=function):
            return function != "abs" and FUNCTIONS[function].derivative not in ((), ("0",))
        case Cast(operand=operand, dtype=dtype):
            return is_float(dtype) and is_float(operand.dtype)
    return not isinstance(part, Within)


def _shared(
    nest: _Nest, store: Store, element: Expr, op: BinaryOp, names: Names
) -> tuple[Stmt, ...]:
    """Returns what stores the extreme of a nest's elements and of the one that was there before.

    Args:
      nest: the loops.
      store: its last statement.
      element: the element of an iteration.
      op: "min" or "max".
      names: gives names.
    """
    old = element_of(store)
    best = Buffer(names.fresh(f"{store.buffer}_best"), (), old.dtype)
    ties = Buffer(names.fresh(f"{store.buffer}_ties"), (), "int32")
    part = Buffer(names.fresh(f"{store.buffer}_part"), (), old.dtype)
    extreme = Load(best.name, (), best.dtype)

    def equals(value: Expr) -> Expr:
        return binary("eq", value, extreme)

    def count(value: Expr) -> Expr:
        return Cast(equals(value), ties.dtype)

    def share(value: Expr, otherwise: Expr) -> Expr:
        # One quotient for all elements.
        shared = binary("mul", value, Load(part.name, (), part.dtype))
        return Select(equals(value), shared, otherwise, value.dtype)

    def reduced(target: Buffer, first: Expr, op: BinaryOp, term: Expr) -> tuple[Stmt, ...]:
        value = Load(target.name, (), target.dtype)
        each = Store(target.name, (), binary(op, value, term))
        return (Store(target.name, (), first), *nested((each,), nest))

    zero = number(0, old.dtype)
    unless_nan = Select(equals(extreme), zero, number(math.nan, old.dtype), old.dtype)
    number_of_ties = cast(Load(ties.name, (), ties.dtype), old.dtype)
    stmts = (
        *reduced(best, old, op, element),
        *reduced(ties, count(old), "add", count(element)),
        Store(part.name, (), binary("div", number(1, old.dtype), number_of_ties)),
        with_parts(store, value=share(old, unless_nan)),
        *nested((with_parts(store, value=binary("add", old, share(element, zero))),), nest),
    )
    return within_locals((part, ties, best), stmts)
