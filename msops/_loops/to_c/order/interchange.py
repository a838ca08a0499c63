"""Interchange of loops so that each sum is completed before the next one begins.

    reduction i in 0 .. 64 {                parallel k in 0 .. 63 {
      reduction k in 0 .. i {                 reduction i in k + 1 .. 64 {
        parallel j in 0 .. 96 {                 parallel j in 0 .. 96 {
          c[k, j] = c[k, j]        ->             c[k, j] = c[k, j] + b[i, j] * a[i, k]
            + b[i, j] * a[i, k]               }
        }                                   }
      }                                     reduction i_1 in 0 .. 64 {
      ...                                     ...

Then `tile_products` computes the sums in registers, and the rest of the loop may be parallel.

The nest of such an update leaves the loop around it where dependences allow that: it runs before
all iterations of the rest, or after them. Updates of an element by one operation do not order each
other. This is loop distribution and interchange (R. Allen, K. Kennedy, TOPLAS 9(4), 1987), as in
`passes.distribute`; but the rest stays together, so that its locals stay small.
"""

from __future__ import annotations

import functools
from collections.abc import Iterator, Sequence

from msops._loops.analysis.polyhedral.dependences import Dependence, dependences
from msops._loops.analysis.polyhedral.library import TooComplex
from msops._loops.analysis.updates import update_of
from msops._loops.ir.names import unique_names
from msops._loops.ir.nodes import For, Kernel, Local, LoopKind, Stmt, Store
from msops._loops.ir.ranges import Ranges
from msops._loops.ir.walk import (
    Scope,
    accesses_of,
    has_bounds_of_data,
    loads,
    rewrite_inner_loops,
    rewrite_loops,
    rewrite_statements,
    variables,
    visit,
    with_parts,
)
from msops._loops.passes.simplify import simplify, without_stores
from msops._loops.to_c.facts.strides import coefficient, stride
from msops._loops.to_c.order.exchange import exchanged, of_its_kind
from msops._loops.to_c.order.products import products_of

_KINDS: tuple[LoopKind, ...] = ("serial", "reduction")


def interchange_updates(kernel: Kernel) -> Kernel:
    """Returns the kernel with such sums in loops of their own, if they are products."""
    interchanged = rewrite_loops(kernel, _UpdateInterchange(kernel).loop, *_KINDS)
    return kernel if interchanged.body == kernel.body else unique_names(simplify(interchanged))


class _UpdateInterchange:
    def __init__(self, kernel: Kernel) -> None:
        self._kernel = kernel
        self._gone: set[int] = set()

    @functools.cached_property
    def _dependences(self) -> tuple[Dependence, ...] | None:
        """The dependences of the kernel; None if they are too complex."""
        try:
            return dependences(self._kernel)
        except TooComplex:
            return None

    def loop(self, loop: For, scope: Scope) -> tuple[Stmt, ...] | None:
        """Returns what replaces a loop; None to look inside of it."""
        if not _is_free(loop):
            return None
        for path, store in _updates(loop.body):
            nest = _interchanged(loop, path, store, scope.ranges)
            if nest is None or not products_of(self._kernel, nest, scope):
                continue
            if id(store) in self._in_products:
                continue
            is_first = self._may_leave(loop, store, scope, first=True)
            if is_first or self._may_leave(loop, store, scope, first=False):
                self._gone.add(id(store))
                rest = self._rest(loop, store, scope)
                return (nest, *rest) if is_first else (*rest, nest)
        return None

    @functools.cached_property
    def _in_products(self) -> set[int]:
        """The stores that are sums of a product as they are, by identity."""
        return {
            id(found.store)
            for loop, scope in visit(self._kernel)
            if isinstance(loop, For) and loop.kind == "parallel"
            for found in products_of(self._kernel, loop, scope)
        }

    def _may_leave(self, loop: For, store: Store, scope: Scope, first: bool) -> bool:
        """Returns whether a store may run in a loop of its own, before the rest or after it."""
        if self._dependences is None:
            return False
        around = {outer.var for outer in scope.loops}
        for found in self._dependences:
            early, late = found.source, found.target
            if found.is_reduction or found.carrier in around or self._is_gone(found):
                continue
            own, other = (early, late) if first else (late, early)
            is_against = other.statement is store and own.statement is not store
            if is_against and any(outer.var == loop.var for outer in own.loops):
                return False
        return True

    def _rest(self, loop: For, store: Store, scope: Scope) -> tuple[Stmt, ...]:
        """Returns a loop without a store; empty if there is nothing else in it."""
        body = without_stores(loop.body, lambda each: each is store)
        if not body:
            return ()
        (rest,) = rewrite_statements((with_parts(loop, body=body),), self._of_its_kind, For)
        assert isinstance(rest, For)
        again = self.loop(rest, scope)
        return (rewrite_inner_loops(rest, scope, self.loop, *_KINDS),) if again is None else again

    def _of_its_kind(self, loop: For) -> tuple[Stmt, ...]:
        """Returns a loop with its new kind, now that some stores have left it."""
        if loop.kind == "parallel" or loop.hint == "serial":
            return (loop,)
        carried = [
            found for found in self._dependences or ()
            if found.carrier == loop.var and not self._is_gone(found)
        ]  # fmt: skip
        if not all(found.is_reduction for found in carried):
            return (loop,)
        return (with_parts(loop, kind="reduction" if carried else "parallel"),)

    def _is_gone(self, found: Dependence) -> bool:
        return any(id(a.statement) in self._gone for a in (found.source, found.target))


def _is_free(loop: For) -> bool:
    """Returns whether a loop has no hint to be serial, and no bound that depends on data."""
    return loop.hint != "serial" and not has_bounds_of_data(loop)


def _updates(
    body: tuple[Stmt, ...], path: tuple[For, ...] = (), own: frozenset[str] = frozenset()
) -> Iterator[tuple[tuple[For, ...], Store]]:
    """Yields the updates in loops inside of a body that use no locals, with these loops."""
    for stmt in body:
        match stmt:
            case Store() if path and update_of(stmt):
                if not any(access.buffer in own for access in accesses_of(stmt)):
                    yield path, stmt
            case Local():
                yield from _updates(stmt.body, path, own | {stmt.buffer.name})
            case For() if stmt.kind != "serial" and _is_free(stmt):
                yield from _updates(stmt.body, (*path, stmt), own)


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
