"""Loops that do nothing but combine terms into one element, which then can be kept in a register.

    reduction j in 0 .. 8 { s[i] = s[i] + a[i, j] }

becomes, for one thread,

    local t: float32[] {
      t[] = s[i]
      reduction j in 0 .. 8 { t[] = t[] + a[i, j] }
      s[i] = t[]
    }
"""

from __future__ import annotations

import dataclasses
import math
from dataclasses import dataclass

from msops._loops.analysis.ranges import dtype_range
from msops._loops.analysis.updates import Update, update_of
from msops._loops.ir.intrinsics import is_float
from msops._loops.ir.nodes import (
    Binary,
    Buffer,
    Const,
    Expr,
    For,
    If,
    Load,
    Local,
    Stmt,
    Store,
    Var,
)
from msops._loops.ir.walk import expressions, loads, own_expressions


@dataclass(frozen=True)
class Accumulation:
    """A nest of loops and ifs around one update of an element that is the same for all iterations.

    Attributes:
      nest: the whole.
      store: the store in it.
      update: what the store does.
      loops: the loops, outermost first.
      is_certain: the store is run at least once.
    """

    nest: For
    store: Store
    update: Update
    loops: tuple[For, ...]
    is_certain: bool

    @property
    def is_reduction(self) -> bool:
        """Its updates may run in any order."""
        return all(loop.kind == "reduction" for loop in self.loops)


def accumulation_of(nest: For) -> Accumulation | None:
    """Returns a loop as an accumulation, or None if it is none."""
    loops: list[For] = []
    is_certain = True
    exprs: list[Expr] = []
    stmt: Stmt = nest
    while not isinstance(stmt, Store):
        exprs.extend(own_expressions(stmt))
        match stmt:
            case For(begin=begin, end=end, body=(inner,)):
                loops.append(stmt)
                is_certain &= _runs(begin, end)
            case If(then=(inner,), otherwise=()):
                is_certain = False
            case _:
                return None
        stmt = inner
    update = update_of(stmt)
    if update is None or not loops:
        return None
    names = {loop.var for loop in loops}
    moves = any(
        isinstance(part, Var) and part.name in names
        for index in stmt.indices
        for part in expressions(index)
    )
    reads = any(load.buffer == stmt.buffer for expr in exprs for load in loads(expr))
    if moves or reads:
        return None
    return Accumulation(nest, stmt, update, tuple(loops), is_certain)


def _runs(begin: Expr, end: Expr) -> bool:
    return isinstance(begin, Const) and isinstance(end, Const) and begin.value < end.value


def redirected(accumulation: Accumulation, register: str, touched: str = "") -> For:
    """Returns the nest with a scalar of that name in place of the element.

    Args:
      accumulation: the nest.
      register: the scalar's name.
      touched: name of a bool scalar that is set where the store runs; empty for none.
    """
    update, store = accumulation.update, accumulation.store
    old = Load(register, (), update.target.dtype)
    op = "sub" if update.is_negated else update.op
    stores: tuple[Stmt, ...] = (Store(register, (), Binary(op, old, update.term, old.dtype)),)
    if touched:
        stores += (Store(touched, (), Const(True, "bool")),)

    def rebuilt(stmt: Stmt) -> tuple[Stmt, ...]:
        if stmt is store:
            return stores
        if isinstance(stmt, For):
            return (dataclasses.replace(stmt, body=rebuilt(stmt.body[0])),)
        assert isinstance(stmt, If)
        return (dataclasses.replace(stmt, then=rebuilt(stmt.then[0])),)

    (nest,) = rebuilt(accumulation.nest)
    assert isinstance(nest, For)
    return nest


def in_register(accumulation: Accumulation, register: str, touched: str) -> Local | None:
    """Returns the nest working on a scalar, or None if it must work on the element itself.

    What is not certain to run may neither be read (its index may be out of range) nor written
    (another thread may be writing there) unless it did run. The scalar then starts without the
    element, which is another order of the updates: that of reduction loops does not matter.
    """
    store, target = accumulation.store, accumulation.update.target
    scalar = Buffer(register, (), target.dtype)
    total = Load(register, (), target.dtype)
    if accumulation.is_certain:
        write = dataclasses.replace(store, value=total)
        return Local(
            scalar, (Store(register, (), target), redirected(accumulation, register), write)
        )
    if not accumulation.is_reduction:
        return None
    op = accumulation.update.op
    write = dataclasses.replace(store, value=Binary(op, target, total, target.dtype))
    start = Store(register, (), identity(op, target.dtype))
    nest = redirected(accumulation, register, touched)
    body = (start, nest, If(Load(touched, (), "bool"), (write,)))
    return Local(scalar, (Local(Buffer(touched, (), "bool"), body),))


def identity(op: str, dtype: str) -> Const:
    """Returns the value that changes nothing when it is combined."""
    if op in ("land", "and") and dtype == "bool":
        return Const(True, dtype)
    if dtype == "bool":
        return Const(False, dtype)
    if op in ("min", "max"):
        if is_float(dtype):
            return Const(math.inf if op == "min" else -math.inf, dtype)
        return Const(dtype_range(dtype)[op == "min"], dtype)
    number = 1 if op == "mul" else 0
    if op == "and":
        low, high = dtype_range(dtype)
        number = high if low == 0 else -1
    return Const(float(number) if is_float(dtype) else number, dtype)
