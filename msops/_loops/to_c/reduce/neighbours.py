"""Sums of terms from neighbours: each element gathers its terms, in one loop for all of them.

    reduction i in 1 .. 99 {                parallel i_1 in 0 .. 100 {
      d[i - 1] = d[i - 1] + w[i]              d[i_1] = d[i_1]
      d[i] = d[i] - w[i] * 2.0       ->         + ((i_1 < 98) ? w[i_1 + 1] : -0.0)
      d[i + 1] = d[i + 1] + w[i]                - ((i_1 >= 1 && i_1 < 99) ? w[i_1] * 2.0 : 0.0)
    }                                           + ((i_1 >= 2) ? w[i_1 - 1] : -0.0)
                                            }

Gradients of stencils are such loops. As written, their iterations add to the same elements, so they
run in order, and every term reads and writes its element. A loop that computes the sums element by
element is a stencil again: its iterations are independent, each element is written once, and it is
not read where it is 0 before. At the edges some neighbours are missing: terms have conditions, at
which `partitioning` splits long loops. See Hueckelheim et al., Automatic differentiation for
adjoint stencil loops (ICPP 2019).

Terms that several nests add to an array, one after the other, are one sum. The terms of a sum are
added up in another order.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Mapping, Sequence, Set

from msops._loops.analysis.boxes import Box, common, hull
from msops._loops.analysis.costs import fixed_span, mean_trips
from msops._loops.ir.algebra import add, both, sub
from msops._loops.ir.names import Names, over_box, unique_names
from msops._loops.ir.nodes import Buffer, Const, Expr, For, Kernel, Load, Select, Stmt, Store, Var
from msops._loops.ir.walk import Scope, accesses_in, map_bodies_within, stored_in, with_parts
from msops._loops.passes.simplify import simplify
from msops._loops.to_c.order.windows import written_out
from msops._loops.to_c.reduce.neighbour_terms import (
    MOST_TERMS,
    NeighbourTerms,
    Term,
    neighbour_terms,
)

_FEWEST_TRIPS = 16
"""Iterations of the innermost loop; fewer are too little work to gain from this."""
_MOST_STATEMENTS = 256


def gather_from_neighbours(kernel: Kernel) -> Kernel:
    """Returns the kernel with sums of terms from neighbours computed element by element."""
    sums = _NeighbourSums(kernel)
    body = sums.body(kernel.body, Scope.of(kernel))
    if not sums.is_changed:
        return kernel
    buffers = (*kernel.buffers, *sums.buffers)
    return unique_names(simplify(dataclasses.replace(kernel, buffers=buffers, body=body)))


class _NeighbourSums:
    """Attributes: buffers: the new buffers; is_changed: whether the kernel has such sums."""

    def __init__(self, kernel: Kernel) -> None:
        self._names = Names(kernel)
        self._zero = {buffer.name for buffer in kernel.buffers}
        self.buffers: list[Buffer] = []
        self.is_changed = False

    def body(self, body: tuple[Stmt, ...], scope: Scope) -> tuple[Stmt, ...]:
        """Returns a body with its sums gathered, and those inside its serial loops."""
        found: list[Stmt] = []
        pending: dict[str, list[Term]] = {}
        for stmt in body:
            nest = self._terms(stmt, scope)
            added = nest.terms if nest else {}
            found += self._gathered(pending, _disturbed(pending, stmt, added), scope)
            if nest is None:
                found.append(self._other(stmt, scope))
                continue
            self.is_changed = True
            self.buffers += nest.kept
            self._touch(nest.rest)
            found += nest.rest
            for name, terms in nest.terms.items():
                pending[name] = [*pending.get(name, ()), *terms]
        return (*found, *self._gathered(pending, {*pending}, scope))

    def _terms(self, stmt: Stmt, scope: Scope) -> NeighbourTerms | None:
        """Returns the terms that a statement adds to neighbours; None if it adds none."""
        if any(loop.kind != "serial" for loop in scope.loops):
            return None
        loops: list[For] = []
        scopes: list[Scope] = [scope]
        while isinstance(stmt, For) and stmt.kind != "serial" and fixed_span(stmt):
            loops.append(stmt)
            scopes += scopes[-1].inside(stmt)
            if len(stmt.body) != 1:
                break
            (stmt,) = stmt.body
        if all(loop.kind == "parallel" for loop in loops):
            # Each iteration touches elements of its own.
            return None
        for count in range(len(loops), 0, -1):
            *around, inner = loops[:count]
            if mean_trips(inner, scopes[count - 1].ranges) < _FEWEST_TRIPS:
                continue
            (inside,) = scopes[count - 1].inside(inner)
            body = written_out(inner.body, _MOST_STATEMENTS, inside.ranges, {*scope.buffers})
            if body is None:
                continue
            nest = (*around, with_parts(inner, body=body))
            found = neighbour_terms(nest, scope, self._names)
            if found and all(_share_most(terms) for terms in found.terms.values()):
                return found
        return None

    def _other(self, stmt: Stmt, scope: Scope) -> Stmt:
        """Returns a statement that adds no terms, with the sums inside of it gathered."""
        if isinstance(stmt, For):
            # In a later iteration of a loop its arrays are no longer 0.
            self._touch((stmt,))
        if not isinstance(stmt, For) or stmt.kind == "serial":
            stmt = map_bodies_within(stmt, scope, self.body)
        self._touch((stmt,))
        return stmt

    def _touch(self, body: tuple[Stmt, ...]) -> None:
        self._zero -= {access.buffer for access in accesses_in(body)}

    # Rewriting.

    def _gathered(
        self, pending: dict[str, list[Term]], names: Set[str], scope: Scope
    ) -> tuple[Stmt, ...]:
        """Returns the nests that add up the pending terms of some arrays."""
        found: list[Stmt] = []
        for name in [name for name in pending if name in names]:
            found.append(self._sum(scope.buffers[name], pending.pop(name)))
            self._zero.discard(name)
        return tuple(found)

    def _sum(self, array: Buffer, terms: Sequence[Term]) -> Stmt:
        """Returns the nest that adds up the terms of each element of an array."""
        box = _elements(terms, hull)
        elements = [
            (max(low, 0), min(high, size))
            for (low, high), size in zip(box, array.shape, strict=True)
        ]
        is_zero = array.name in self._zero
        # Where a term is missing, a sum that is -0 stays so.
        zero = Const(0.0 if is_zero else -0.0, array.dtype)

        def total(at: tuple[Var, ...]) -> Stmt:
            # Terms under the same conditions are added first.
            parts: dict[tuple[Expr, ...], Expr] = {}
            for term in terms:
                conditions, value = term.at(at, elements)
                add_or_sub = sub if term.is_negated else add
                parts[conditions] = add_or_sub(parts.get(conditions, zero), value)
            result: Expr = zero if is_zero else Load(array.name, at, array.dtype)
            for conditions, part in parts.items():
                chosen = Select(both(conditions), part, zero, array.dtype) if conditions else part
                result = add(result, chosen)
            return Store(array.name, at, result)

        return over_box(elements, terms[0].variables, self._names.fresh, total)


def _elements(terms: Sequence[Term], together: Callable[[Sequence[Box]], Box]) -> Box:
    """Returns the `hull` of the elements that get each term, or what they have in `common`."""
    return together([term.elements for term in terms])


def _share_most(terms: Sequence[Term]) -> bool:
    """Returns whether most of the elements get every term."""
    sizes = zip(_elements(terms, hull), _elements(terms, common), strict=True)
    return len(terms) <= MOST_TERMS and all(
        2 * (e - b) > high - low for (low, high), (b, e) in sizes
    )


def _disturbed(
    pending: Mapping[str, Sequence[Term]], stmt: Stmt, added: Mapping[str, Sequence[Term]]
) -> set[str]:
    """Returns the arrays whose pending terms must be added up before a statement runs.

    The statement uses such an array, or writes an element that a pending term reads.

    Args:
      pending: the terms that are not yet added, by array.
      stmt: the statement.
      added: the terms that it adds itself, by array; it uses these arrays in no other way.
    """
    used = {access.buffer for access in accesses_in((stmt,))}
    written = stored_in((stmt,))
    return {
        name
        for name, terms in pending.items()
        if (name in used and not (name in added and _share_most([*terms, *added[name]])))
        or any(not written.isdisjoint(term.read) for term in terms)
    }
