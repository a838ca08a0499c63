"""Bounds of loops, which count in int32, and ranges whose bounds may be beyond that.

for v in range(a[0], a[1]):     ->     if a[0] and a[1] are int32 numbers: the loop itself
    y[0] += int64(v)                   else: start = a[0]; count = a[1] - a[0], in 64 bits
                                           for part in range(count / 2**30, rounded up):
                                               for v in range(what is left of it):
                                                   y[0] += start + part * 2**30 + v
"""

from __future__ import annotations

import functools
from collections.abc import Callable

from msops._loops.ir import scalars
from msops._loops.ir.algebra import binary
from msops._loops.ir.nodes import (
    INDEX_DTYPE,
    Binary,
    Buffer,
    Cast,
    Const,
    Expr,
    For,
    Load,
    Local,
    Location,
    Select,
    Stmt,
    Store,
    Var,
)
from msops._loops.ir.ranges import Ranges, dtype_range, range_of
from msops._loops.ir.walk import guarded_loads, own_expressions

_COUNT = "uint64"
"""The dtype of a number of iterations, which two of int64 may be apart."""
_PART = 1 << 30
"""How many iterations one loop makes."""


def as_bound(value: Expr) -> Expr:
    """Returns an integer as a bound of a loop: the nearest int32."""
    least, greatest = dtype_range(INDEX_DTYPE)
    if isinstance(value, Const):
        return Const(min(max(int(value.value), least), greatest), INDEX_DTYPE)
    dtype = value.dtype
    if dtype == INDEX_DTYPE:
        return value
    low, high = range_of(value, {})
    if low < least:
        value = Binary("max", value, Const(least, dtype), dtype)
    if high > greatest:
        value = Binary("min", value, Const(greatest, dtype), dtype)
    return Cast(value, INDEX_DTYPE)


def fits(bounds: tuple[Expr, ...], ranges: Ranges) -> Expr:
    """Returns the condition that the bounds of a range are numbers of `INDEX_DTYPE`."""
    conditions: list[Expr] = []
    least, greatest = dtype_range(INDEX_DTYPE)
    for bound in bounds:
        low, high = range_of(bound, ranges)
        if high < least or low > greatest:
            return Const(False, "bool")
        if low < least:
            conditions.append(binary("ge", bound, Const(least, bound.dtype)))
        if high > greatest:
            conditions.append(binary("le", bound, Const(greatest, bound.dtype)))
    if not conditions:
        return Const(True, "bool")
    return functools.reduce(lambda one, other: Binary("land", one, other, "bool"), conditions)


def has_element_at(body: tuple[Stmt, ...], place: Expr) -> bool:
    """Returns whether statements certainly read or write an element next to an index."""

    def is_next(index: Expr) -> bool:
        match index:
            case Binary(op="add" | "sub", left=left, right=Const()) if left == place:
                return True
        return index == place

    for statement in body:
        accesses: list[Load | Store] = [statement] if isinstance(statement, Store) else []
        for part in own_expressions(statement):
            accesses += [load for load, conditions in guarded_loads(part, ()) if not conditions]
        if any(is_next(index) for access in accesses for index in access.indices):
            return True
        match statement:
            case Local(body=inner) if has_element_at(inner, place):
                return True
            case For(begin=Const(value=begin), end=Const(value=end), body=inner) if begin < end:
                if has_element_at(inner, place):
                    return True
    return False


def far_loop(
    span: tuple[Expr, Expr, int],
    name: str,
    fresh: Callable[[str], str],
    inner: Callable[[Expr, str, Expr], tuple[Stmt, ...]],
    location: Location | None,
) -> tuple[Stmt, ...]:
    """Returns the loops of a range that counts in 64 bits; nothing if their body is nothing.

    Args:
      span: begin, end and step of the range.
      name: of its variable.
      fresh: returns a name like another one that is not in use.
      inner: makes a loop over a part of the range, from the value of the variable, the name that
        the loop counts by from 0, and its end.
      location: where in the source.
    """
    begin, end, step = span
    start = Buffer(fresh(f"{name}_begin"), (), "uint64" if begin.dtype == "uint64" else "int64")
    count = Buffer(fresh(f"{name}_count"), (), _COUNT)
    first, iterations = (Load(buffer.name, (), buffer.dtype) for buffer in (start, count))
    part, place = Var(fresh(f"{name}_part")), Var(fresh(name))
    body = inner(_value(first, step, part, place), place.name, _left(iterations, part))
    if not body:
        return ()
    zero = Const(0, INDEX_DTYPE)
    whole = For(part.name, zero, _parts(iterations), body, location=location)
    stored = Store(start.name, (), wide(begin, start.dtype))
    counted = Store(count.name, (), _count(begin, end, step))
    held = Local(count, (stored, counted, whole), location=location)
    return (Local(start, (held,), location=location),)


def _count(begin: Expr, end: Expr, step: int) -> Expr:
    """Returns the number of values of a range, in 64 bits."""
    first, last = (begin, end) if step > 0 else (end, begin)
    one, zero = Const(1, _COUNT), Const(0, _COUNT)
    distance = binary("sub", wide(last, _COUNT), wide(first, _COUNT))  # wraps to what is right
    steps = binary("floordiv", binary("sub", distance, one), Const(abs(step), _COUNT))
    return Select(_is_less(first, last), binary("add", steps, one), zero, _COUNT)


def _parts(count: Expr) -> Expr:
    """Returns how many loops a number of iterations takes; the last one may be empty."""
    whole = binary("floordiv", count, Const(_PART, _COUNT))
    return as_bound(binary("add", whole, Const(1, _COUNT)))


def _left(count: Expr, part: Var) -> Expr:
    """Returns how many iterations the loop of a number makes."""
    done = binary("mul", Cast(part, _COUNT), Const(_PART, _COUNT))
    return as_bound(binary("min", binary("sub", count, done), Const(_PART, _COUNT)))


def _value(start: Expr, step: int, part: Var, place: Var) -> Expr:
    """Returns the value of a range at a place of one of its loops."""
    dtype = start.dtype
    before = binary("mul", Cast(part, dtype), Const(_PART, dtype))
    steps = binary("mul", binary("add", before, Cast(place, dtype)), Const(abs(step), dtype))
    return binary("add" if step > 0 else "sub", start, steps)


def wide(value: Expr, dtype: str) -> Expr:
    """Returns an integer in a dtype of 64 bits."""
    if isinstance(value, Const):
        return Const(scalars.cast("int64", dtype)(value.value), dtype)
    return value if value.dtype == dtype else Cast(value, dtype)


def _is_less(one: Expr, other: Expr) -> Expr:
    """Returns whether an integer is below one that may be of another signedness."""
    if "uint64" not in (one.dtype, other.dtype):
        return binary("lt", wide(one, "int64"), wide(other, "int64"))
    less = binary("lt", wide(one, _COUNT), wide(other, _COUNT))
    if one.dtype != "uint64":
        is_negative = binary("lt", wide(one, "int64"), Const(0, "int64"))
        return Binary("lor", is_negative, less, "bool")
    if other.dtype != "uint64":
        is_positive = binary("ge", wide(other, "int64"), Const(0, "int64"))
        return Binary("land", is_positive, less, "bool")
    return less
