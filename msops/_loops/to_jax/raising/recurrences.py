"""Serial loops that XLA can run as scans: cumulative operations and linear recurrences."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Mapping, Sequence
from typing import Literal, TypeAlias

from msops._loops.analysis.affine import Affine, affine
from msops._loops.analysis.conditions import decide
from msops._loops.analysis.updates import kept_extreme
from msops._loops.ir.algebra import integer
from msops._loops.ir.nodes import Binary, Const, Expr, For, Load, Select, Store, Unary
from msops._loops.ir.operators import is_float
from msops._loops.ir.ranges import Range
from msops._loops.ir.walk import loads, rewrite, rewrite_all, substitute
from msops._loops.to_jax.raising.nests import Axis, Chain, Nest, chain, nest
from msops._loops.to_jax.raising.steps import Accumulate, Recur, Step

ACCUMULATED = ("add", "mul", "min", "max")
_LAST = 2**31 - 1


def find_recurrence(loop: For, outer: tuple[Axis, ...]) -> tuple[Step, ...]:
    """Returns a serial loop with constant bounds as the steps of a scan; no steps if it is none."""
    parts = chain(loop.body[0]) if len(loop.body) == 1 else None
    if parts is None:
        return ()
    own = For(loop.var, loop.begin, loop.end, loop.body, "parallel")
    within = Chain((own, *parts.loops), parts.guards, parts.store)
    box = nest(within, outer)
    if box is None or box.mask or box.reduced or loop.var not in box.extents:
        return ()
    first = box.ranges[loop.var][0]
    store, initial = _without_first(box.store, loop.var, first)
    before = _element_before(store, loop.var, set(box.extents))
    if before is None:
        return ()
    if initial is None:
        initial = before
    elif any(load.buffer == store.buffer for load in loads(initial)):
        return ()
    box = dataclasses.replace(box, store=store)
    at_first: dict[str, Expr] = {loop.var: integer(first)}
    step = _scan(box, before, loop.var, substitute(initial, at_first))
    return (step,) if step else ()


def _without_first(store: Store, var: str, first: int) -> tuple[Store, Expr | None]:
    """Returns the store as it is after the first iteration, and what the first one begins with.

    `(i == 0 ? s : h[i - 1]) + a[i]` begins with s, and continues with h[i - 1].
    """
    found: list[Expr] = []

    def unwrap(expr: Expr) -> Expr:
        if not isinstance(expr, Select):
            return expr
        begins = _choice(expr, {var: (first, first)})
        continues = _choice(expr, {var: (first + 1, _LAST)})
        if begins is None or not isinstance(continues, Load) or continues.buffer != store.buffer:
            return expr
        found.append(begins)
        return continues

    value = rewrite(store.value, unwrap)
    if not found or any(begins != found[0] for begins in found):
        return store, None
    return dataclasses.replace(store, value=value), found[0]


def without_choices(loop: For, axis: Axis) -> For | None:
    """Returns a loop over part of its range, without the choices that are the same for all of it.

    None: there are none.
    """

    def unwrap(expr: Expr) -> Expr:
        chosen = _choice(expr, {axis.var: axis.interval}) if isinstance(expr, Select) else None
        return chosen or expr

    body = rewrite_all(loop.body, unwrap)
    begin, end = (integer(bound) for bound in (axis.begin, axis.end))
    return None if body == loop.body else dataclasses.replace(loop, begin=begin, end=end, body=body)


def _choice(expr: Select, ranges: Mapping[str, Range]) -> Expr | None:
    """Returns the branch of a choice that is taken everywhere in the ranges of variables."""
    truth = decide(expr.condition, ranges)
    return None if truth is None else expr.then if truth else expr.otherwise


def _element_before(store: Store, var: str, axes: set[str]) -> Load | None:
    """Returns the load of what the previous iteration stored; None if other elements are read."""
    stored = [affine(index, axes) for index in store.indices]
    known = [function for function in stored if function is not None]
    if len(known) < len(stored) or sum(var in dict(f.along) for f in known) != 1:
        return None
    found: Load | None = None
    for load in loads(store.value):
        if load.buffer != store.buffer or load.indices == store.indices:
            continue
        if found not in (None, load) or not _is_one_before(load, known, var, axes):
            return None
        found = load
    return found


def _is_one_before(load: Load, stored: Sequence[Affine], var: str, axes: set[str]) -> bool:
    for index, function in zip(load.indices, stored, strict=True):
        read = affine(index, axes)
        step = Affine.of_constant(dict(function.along).get(var, 0))
        if read is None or function - read != step:
            return False
    return True


def _scan(box: Nest, before: Load, var: str, initial: Expr) -> Accumulate | Recur | None:
    value = box.store.value
    if isinstance(value, Binary) and value.op in ACCUMULATED:
        for one, other in ((value.left, value.right), (value.right, value.left)):
            if one == before and before not in loads(other):
                return Accumulate(box, var, initial, value.op, other)
    kept = kept_extreme(value, before)
    if kept is not None and before not in loads(kept.term):
        return Accumulate(box, var, initial, kept.op, kept.term, kept.keeps)
    if not is_float(value.dtype):
        return None
    terms = _linear_in(value, before)
    if terms is None:
        return None
    nothing = Const(0.0, value.dtype)
    return Recur(box, var, initial, value, before, terms[0] or nothing, terms[1] or nothing)


_Terms: TypeAlias = tuple[Expr | None, Expr | None]


def _linear_in(expr: Expr, before: Load) -> _Terms | None:
    """Returns a and b of a * before + b; None if the expression is not linear in it.

    A term that is not there is None. As a zero, which other factors multiply, it would be NaN where
    one of these is infinite.
    """
    dtype = expr.dtype
    if expr == before:
        return Const(1.0, dtype), None
    if before not in loads(expr):
        return None, expr

    def each(terms: _Terms | None, change: Callable[[Expr], Expr]) -> _Terms | None:
        return terms and (terms[0] and change(terms[0]), terms[1] and change(terms[1]))

    match expr:
        case Unary(op="neg", operand=operand):
            return each(_linear_in(operand, before), lambda term: Unary("neg", term, dtype))
        case Binary(op="add" | "sub" as op, left=left, right=right):
            one, other = _linear_in(left, before), _linear_in(right, before)
            if one is None or other is None:
                return None
            return _combined(op, one[0], other[0]), _combined(op, one[1], other[1])
        case Binary(op="mul" | "div" as op, left=left, right=right) if before not in loads(right):
            inner = _linear_in(left, before)
            return each(inner, lambda term: Binary(op, term, right, dtype))
        case Binary(op="mul", left=left, right=right) if before not in loads(left):
            inner = _linear_in(right, before)
            return each(inner, lambda term: Binary("mul", left, term, dtype))
    return None


def _combined(op: Literal["add", "sub"], one: Expr | None, other: Expr | None) -> Expr | None:
    """Returns the sum or difference of two terms that may not be there."""
    if one is None:
        return Unary("neg", other, other.dtype) if other and op == "sub" else other
    return Binary(op, one, other, one.dtype) if other else one
