"""Two loops in the other order, where their bounds allow it.

No iteration of a parallel loop depends on another. So the loop may be split into one loop for each
statement of its body, and each of these may be exchanged with the loops inside it whose bounds do
not depend on its variable. The iterations of a reduction meet only in updates, whose order is free.
So a reduction may be split and exchanged, too, and a part without updates is parallel.

Where the inner loop's bounds move with the outer loop, as those of the pairs of a triangle do, the
two may be exchanged as well: `i in 0 .. n { j in i + 1 .. n` are also `j in 1 .. n { i in 0 .. j`.

A sum in several loops may be completed for one row after the other, if rows go outside and terms
inside: that is the form of a product of matrices.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator, Sequence
from functools import partial, reduce

from msops._loops.ir.algebra import integer
from msops._loops.ir.names import Names
from msops._loops.ir.nodes import Expr, For, If, Stmt, Store, Var
from msops._loops.ir.ranges import Ranges, is_known, nested_ranges, range_of
from msops._loops.ir.walk import (
    Scope,
    declared_in,
    loads,
    map_bodies,
    stored_in,
    substitute,
    variables,
    with_parts,
    with_value,
)
from msops._loops.passes.simplify_expressions import simplified
from msops._loops.to_c.facts.blocks import can_swap, index, is_alike
from msops._loops.to_c.facts.strides import coefficient, is_of_its_own, stride


def sunk(loop: For, names: Names, triangles: Ranges | None = None) -> tuple[Stmt, ...]:
    """Returns a parallel loop or reduction as innermost loops, one for each statement in it.

    Args:
      loop: the loop.
      names: the names of the kernel.
      triangles: the ranges around the loop, if it may move past a loop that goes over a triangle
        with it.
    """
    unused = [loop.var]

    def around(stmt: Stmt, loop: For) -> Stmt:
        if isinstance(stmt, For) and (pair := exchanged(loop, stmt, triangles)) is not None:
            outer, inner = pair
            outer = with_parts(outer, body=tuple(around(part, inner) for part in stmt.body))
            if loop.kind == "reduction" and outer.kind == "parallel":
                # Its iterations may meet in those of the reduction.
                outer = of_its_kind(with_parts(outer, kind="reduction"))
            return outer
        if isinstance(stmt, If) and is_alike(stmt.condition, loop):
            return map_bodies(stmt, lambda body: tuple(around(part, loop) for part in body))
        var = unused.pop() if unused else names.fresh(loop.var)
        body = (stmt,) if var == loop.var else with_value((stmt,), loop.var, Var(var))
        return of_its_kind(dataclasses.replace(loop, var=var, body=body))

    return tuple(around(stmt, loop) for stmt in loop.body)


def of_its_kind(loop: For) -> For:
    """Returns a part of a reduction as a parallel loop if its iterations do not meet."""
    own = declared_in(loop.body)
    if all(is_of_its_own(name, loop) for name in stored_in(loop.body) - own):
        return dataclasses.replace(loop, kind="parallel")
    return loop


def exchanged(outer: For, inner: For, triangles: Ranges | None = None) -> tuple[For, For] | None:
    """Returns two loops in exchanged order; None if their bounds forbid it, or are not known.

    Args:
      outer: the loop around.
      inner: the loop inside.
      triangles: the ranges around both, if the two may go over a triangle.

    Returns:
      The inner loop as it runs around, and the outer one as it runs inside.
    """
    if can_swap(outer, inner):
        return inner, outer
    if triangles is None or any(map(loads, (inner.begin, inner.end))):
        return None
    factors = coefficient(inner.begin, outer.var), coefficient(inner.end, outer.var)
    if not {*factors} <= {-1, 0, 1}:
        return None
    last = index("sub", outer.end, integer(1))

    def at(bound: Expr, value: Expr) -> Expr:
        return simplified(substitute(bound, {outer.var: value}), triangles)

    begin = at(inner.begin, last if factors[0] == -1 else outer.begin)
    end = at(inner.end, outer.begin if factors[1] == -1 else last)
    around = with_parts(inner, begin=begin, end=end)
    inside = nested_ranges((with_parts(around, body=()),), triangles)
    begins, ends = [outer.begin], [outer.end]
    for is_begin, bound, factor in (
        (True, inner.begin, factors[0]), (False, inner.end, factors[1]),
    ):  # fmt: skip
        # Where outer.var + fixed, or fixed - outer.var, is that of the inner loop.
        fixed = substitute(bound, {outer.var: integer(0)})
        if factor == 1:
            past = index("add", index("sub", Var(inner.var), fixed), integer(1))
            (ends if is_begin else begins).append(past)
        elif factor == -1:
            (begins if is_begin else ends).append(index("sub", fixed, Var(inner.var)))
    bounds = (reduce(partial(index, "max"), begins), reduce(partial(index, "min"), ends))
    first, past = (simplified(bound, inside) for bound in bounds)
    is_exact = all(is_known(range_of(bound, inside)) for bound in (begin, end, first, past))
    return (around, with_parts(outer, begin=first, end=past)) if is_exact else None


def orders(over_rows: For, scope: Scope) -> Iterator[For]:
    """Yields the loops of a sum in the orders that a product may have.

    Args:
      over_rows: a loop, and in it loops around one store. If the bounds of an inner one depend on
        another inner one, there is no order.
      scope: the scope around the loop.
    """
    path: list[For] = []
    stmt: Stmt = over_rows
    while isinstance(stmt, For):
        path.append(stmt)
        (stmt,) = stmt.body
    assert isinstance(stmt, Store)
    store, (terms, *inner) = stmt, path
    over = {part.var for part in inner}
    if any(over & (variables(part.begin) | variables(part.end)) for part in inner):
        return
    for last in inner:
        if stride(store, last.var, scope.buffers) != 1:
            continue
        columns = with_parts(last, body=(store,), kind="parallel")
        others = [part for part in inner if part is not last]
        for row in others:
            rest = (*(part for part in others if part is not row), columns)
            nest = _interchanged(terms, (row, *rest), store, scope.ranges)
            if nest:
                yield nest
        if any(
            coefficient(at, terms.var) and not variables(at) & {p.var for p in inner}
            for at in store.indices
        ):
            body: tuple[Stmt, ...] = (columns,)
            for part in reversed(others):
                body = (with_parts(part, body=body),)
            yield with_parts(terms, body=body, kind="parallel")


def _interchanged(loop: For, path: Sequence[For], store: Store, ranges: Ranges) -> For | None:
    """Returns the nest of an update by rows, each a sum over a loop; None if rows may meet.

    Args:
      loop: the loop, each iteration of which updates the same elements.
      path: the loops in it around the update; the first one goes over rows.
      store: the update.
      ranges: the ranges of the variables around the loop.
    """
    row, *inner = path
    moving = {loop.var, *(part.var for part in inner)}
    if any(loads(at) or loop.var in variables(at) for at in store.indices):
        return None
    if not any(coefficient(at, row.var) and not variables(at) & moving for at in store.indices):
        return None
    swapped = exchanged(loop, row, ranges)
    if swapped is None:
        return None
    body: tuple[Stmt, ...] = (store,)
    for part in reversed(inner):
        # Another sum, which stays behind, may have been what made it a reduction.
        body = (of_its_kind(with_parts(part, body=body)),)
    outside, inside = swapped
    terms = with_parts(inside, kind="reduction", body=body)
    return with_parts(outside, kind="parallel", body=(terms,))
