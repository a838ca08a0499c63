"""Distances in memory between the elements that the iterations of a loop touch."""

from __future__ import annotations

import math
from collections.abc import Mapping

from msops._loops.ir.algebra import integer
from msops._loops.ir.nodes import Binary, Buffer, Cast, Const, Expr, For, Load, Store, Var, Within
from msops._loops.ir.ranges import range_of
from msops._loops.ir.walk import (
    accesses_in,
    declared_in,
    expressions,
    loads,
    statements,
    stored_in,
    substitute,
    variables,
)


def step(access: Load | Store, loop: For, buffers: Mapping[str, Buffer]) -> int | None:
    """Returns the number of elements by which an access moves from one iteration to the next.

    Other values count as constants if the loop does not change them. These are the variables of the
    loops around it and inside it, and loads of buffers that it neither stores to nor declares.

    Args:
      access: a load or store in the body of the loop.
      loop: the loop.
      buffers: the buffers of the kernel, locals too, by name.

    Returns:
      0 if all iterations touch the same element; n if the elements of any two iterations differ,
      by n for one iteration; None if nothing is known, for example where the loop sets a local
      that an index reads, or declares the buffer that is accessed.
    """
    own = declared_in(loop.body)
    changing = own | stored_in(loop.body)
    read = {load.buffer for index in access.indices for load in loads(index)}
    if access.buffer in own or read & changing:
        return None
    moved = stride(access, loop.var, buffers)
    # Several indices may move and cancel out; an index that is clamped would break that.
    is_fixed = all(coefficient(index, loop.var) == 0 for index in access.indices)
    return moved if moved != 0 or is_fixed else None


def is_of_its_own(name: str, loop: For) -> bool:
    """Returns whether no two iterations of a loop touch the same element of a buffer."""
    own = declared_in(loop.body)
    if name in own:
        return False
    changing = own | stored_in(loop.body)
    inner = {stmt.var for stmt in statements(loop.body) if isinstance(stmt, For)}

    def moves(index: Expr) -> bool:
        is_fixed = variables(index).isdisjoint(inner) and changing.isdisjoint(
            load.buffer for load in loads(index)
        )
        return is_fixed and coefficient(index, loop.var) not in (None, 0)

    accesses = [access for access in accesses_in(loop.body) if access.buffer == name]
    axes = zip(*(access.indices for access in accesses), strict=True)
    return any(len(set(axis)) == 1 and moves(axis[0]) for axis in axes)


def tells_apart(index: Expr, var: str) -> bool:
    """Returns whether an index differs between any two iterations of a loop."""
    return bool(coefficient(index, var)) and variables(index) == {var} and not loads(index)


def stride(access: Load | Store, var: str, buffers: Mapping[str, Buffer]) -> int | None:
    """Returns the number of elements by which an access moves with a variable; None if uneven.

    Loads in its indices count as constants unless the variable is in them. So this may decide what
    is fast, but not what is legal: for that use `step`.
    """
    shape = buffers[access.buffer].shape
    total = 0
    for axis, index in enumerate(access.indices):
        factor = coefficient(index, var)
        if factor is None:
            return None
        total += factor * math.prod(shape[axis + 1 :])
    return total


def coefficient(expr: Expr, var: str) -> int | None:
    """Returns the factor of a variable in an index; None if the index is not affine in it.

    A load counts as a constant unless the variable is in its indices, although a loop over the
    variable may store to what is loaded.
    """
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
        case Within(operand=operand) | Cast(operand=Var() as operand, dtype="int64"):
            return coefficient(operand, var)
    return None if any(part == Var(var) for part in expressions(expr)) else 0


def offset(expr: Expr, var: str) -> int | None:
    """Returns c if an index is var + c, else None."""
    if coefficient(expr, var) != 1 or variables(expr) != {var}:
        return None
    low, high = range_of(substitute(expr, {var: integer(0)}), {})
    return low if low == high else None
