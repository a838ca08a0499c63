"""Loops over the bits of a word that count those which are 1 become calls of `popcount`.

    serial b in 0 .. 31 {
      n[] = n[] + (((x[i] ^ y[i]) >> b) & 1)   ->   n[] = n[] + popcount((x[i] ^ y[i]) & 2147483647)
    }

Processors and XLA have an instruction for it. C compilers recognise only loops that clear the
lowest 1 of a word until none is left.
"""

from __future__ import annotations

import dataclasses

from msops._base.dtypes import as_dtype
from msops._loops.analysis.costs import fixed_span
from msops._loops.analysis.updates import update_of
from msops._loops.ir.algebra import cast
from msops._loops.ir.building import binary
from msops._loops.ir.nodes import (
    Binary,
    BinaryOp,
    Cast,
    Const,
    Expr,
    For,
    FunctionCall,
    If,
    Kernel,
    Stmt,
    Store,
    Var,
)
from msops._loops.ir.operators import INTEGERS
from msops._loops.ir.ranges import dtype_range
from msops._loops.ir.walk import Scope, rewrite_loops, variables


def count_bits(kernel: Kernel) -> Kernel:
    """Returns the kernel with such loops, of one statement, replaced."""
    return rewrite_loops(kernel, _counted)


def _counted(loop: For, scope: Scope) -> tuple[Stmt, ...] | None:
    span, store = fixed_span(loop), _addition(loop.body)
    if span is None or store is None or store.value.dtype not in INTEGERS:
        return None
    update = update_of(store)
    if update is None or update.op != "add" or update.is_negated:
        return None
    word = _word(update.term, loop.var)
    is_sum = not any(loop.var in variables(index) for index in store.indices)
    if word is None or word.dtype not in INTEGERS or not is_sum:
        return None
    begin, end = span
    width = as_dtype(word.dtype).dtype.itemsize * 8
    if not 0 <= begin < end <= width:
        return None
    if end - begin < width:
        bits = (1 << end) - (1 << begin)
        high = dtype_range(word.dtype)[1]
        mask = Const(bits if bits <= high else bits - (1 << width), word.dtype)
        word = binary("and", word, mask)
    count = cast(FunctionCall("popcount", (word,), word.dtype), store.value.dtype)
    counted = dataclasses.replace(store, value=binary("add", update.target, count))
    if isinstance(loop.body[0], If) and store.indices:
        # Where no bit is 1 the element may be out of range.
        return (If(binary("ne", word, Const(0, word.dtype)), (counted,)),)
    return (counted,)


def _addition(body: tuple[Stmt, ...]) -> Store | None:
    """Returns the only store of a body; where a condition guards it, with the condition as term."""
    match body:
        case (Store() as store,):
            return store
        case (If(condition=condition, then=(Store() as store,), otherwise=()),):
            update = update_of(store)
            if update and update.op == "add" and update.term == Const(1, update.target.dtype):
                term = Cast(condition, update.target.dtype)
                value = binary("sub" if update.is_negated else "add", update.target, term)
                return dataclasses.replace(store, value=value)
    return None


def _word(value: Expr, var: str) -> Expr | None:
    """Returns the word whose bit at a variable is a value, 0 or 1 or a bool; None: it is none."""
    match value:
        case Cast(operand=bit) | Binary(op="eq", left=bit, right=Const(value=1)):
            return _word(bit, var)
        case (
            Binary(op="and", left=shifted, right=Const(value=1))
            | Binary(op="and", left=Const(value=1), right=shifted)
            | Binary(op="mod", left=shifted, right=Const(value=2))
        ):
            return _shifted(shifted, var)
        case Binary(
            op="ne",
            left=Binary(op="and", left=word, right=Binary(op="shl", left=Const(value=1), right=at)),
            right=Const(value=0),
        ) if _is_variable(at, var):
            return _unchanged(word, var)
        case Binary(op="ne", left=bit, right=Const(value=0)):
            return _word(bit, var)
        case Binary(op="and" | "or" | "xor" | "ne" as op, left=left, right=right):
            return _combined("xor" if op == "ne" else op, _word(left, var), _word(right, var))
    return None


def _shifted(value: Expr, var: str) -> Expr | None:
    """Returns the word whose bit at a variable is the lowest one of a value."""
    match value:
        case Cast(operand=operand) if operand.dtype in INTEGERS:
            return _shifted(operand, var)
        case Binary(op="shr", left=word, right=at) if _is_variable(at, var):
            return _unchanged(word, var)
        case Binary(op="and" | "or" | "xor" as op, left=left, right=right):
            return _combined(op, _shifted(left, var), _shifted(right, var))
    return None


def _combined(op: BinaryOp, left: Expr | None, right: Expr | None) -> Expr | None:
    return binary(op, left, right) if left and right and left.dtype == right.dtype else None


def _unchanged(word: Expr, var: str) -> Expr | None:
    return None if var in variables(word) else word


def _is_variable(distance: Expr, var: str) -> bool:
    return distance in (Var(var), Cast(Var(var), distance.dtype))
