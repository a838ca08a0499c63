"""How far apart in memory the elements are that the iterations of a loop touch."""

from __future__ import annotations

import math
from collections.abc import Mapping

from msops._loops.ir.nodes import Binary, Buffer, Const, Expr, Load, Store, Var
from msops._loops.ir.walk import expressions


def stride(access: Load | Store, var: str, buffers: Mapping[str, Buffer]) -> int | None:
    """Returns by how many elements an access moves with a variable; None if not evenly."""
    shape = buffers[access.buffer].shape
    total = 0
    for axis, index in enumerate(access.indices):
        step = coefficient(index, var)
        if step is None:
            return None
        total += step * math.prod(shape[axis + 1 :])
    return total


def coefficient(expr: Expr, var: str) -> int | None:
    """Returns what an index is multiplied by, if it is affine in a variable."""
    match expr:
        case Var(name=name):
            return int(name == var)
        case Binary(op="add" | "sub" as op, left=left, right=right):
            one, other = coefficient(left, var), coefficient(right, var)
            if one is None or other is None:
                return None
            return one + other if op == "add" else one - other
        case (
            Binary(op="mul", left=Const(value=factor), right=operand)
            | Binary(op="mul", left=operand, right=Const(value=factor))
        ):
            inner = coefficient(operand, var)
            return None if inner is None else inner * int(factor)
    return None if any(part == Var(var) for part in expressions(expr)) else 0
