"""Sums of terms from neighbours: each element gathers its terms, in one loop for all of them.

    reduction i in 1 .. 99 {                parallel i in 0 .. 1 { if ... }
      d[i - 1] = d[i - 1] + w[i]            parallel i_1 in 1 .. 98 {
      d[i] = d[i] - w[i] * 2.0       ->       d[i_1] = d[i_1]
      d[i + 1] = d[i + 1] + w[i]                + w[i_1 + 1] - w[i_1] * 2.0 + w[i_1 - 1]
    }                                       }
                                            parallel i_2 in 98 .. 100 { if ... }

Gradients of stencils are such loops. As written, their iterations add to the same elements, so they
run in order, and every term reads and writes its element. A loop that computes the sums element by
element is a stencil again: its iterations are independent, each element is written once, and it is
not read where it is 0 before. At the edges some neighbours are missing, so there each term has a
condition. See Hueckelheim et al., Automatic
differentiation for adjoint stencil loops (ICPP 2019).

Terms that several nests add to an array, one after the other, are one sum. The terms of a sum are
added up in another order.
"""

from __future__ import annotations

import dataclasses
import itertools
from collections.abc import Callable, Mapping, Sequence, Set
from functools import partial

from msops._loops.analysis.boxes import Box, Span, common, hull
from msops._loops.analysis.costs import fixed_span, mean_trips
from msops._loops.ir.algebra import add, both, sub
from msops._loops.ir.building import binary, integer
from msops._loops.ir.names import Names, unique_names
from msops._loops.ir.nodes import (
    Buffer,
    Const,
    Expr,
    For,
    If,
    Kernel,
    Load,
    Local,
    Stmt,
    Store,
    Var,
)
from msops._loops.ir.walk import (
    Scope,
    accesses_in,
    bodies,
    iterations,
    loads,
    map_bodies,
    map_bodies_within,
    stored_in,
    substitute,
    with_parts,
)
from msops._loops.passes.simplify import simplify
from msops._loops.to_c.facts.blocks import index
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
            outer = {*scope.buffers}
            if _written_out_length(inner.body, outer) > _MOST_STATEMENTS:
                continue
            nest = (*around, with_parts(inner, body=_updates_written_out(inner.body, outer)))
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
        groups: dict[Box, dict[str, list[Term]]] = {}
        for name in [name for name in pending if name in names]:
            terms = pending.pop(name)
            groups.setdefault(_elements(terms, hull), {})[name] = terms
        found: list[Stmt] = []
        for whole, sums in groups.items():
            every = [term for terms in sums.values() for term in terms]
            # If most elements do not get the terms of all arrays, each array has its own nest.
            parts = (
                [sums] if _share_most(every) else [{name: terms} for name, terms in sums.items()]
            )
            for part in parts:
                nest = _BoxNest(part, whole, scope, self._zero, self._names)
                found += nest.axis(())
                self._zero -= part.keys()
        return tuple(found)


def _updates_written_out(body: tuple[Stmt, ...], outer: Set[str]) -> tuple[Stmt, ...]:
    """Returns statements with each iteration of the loops written out that store to some arrays."""
    found: list[Stmt] = []
    for stmt in body:
        inner = map_bodies(stmt, partial(_updates_written_out, outer=outer))
        if isinstance(inner, For) and (span := _span_of_updates(inner, outer)):
            found += iterations(inner, span)
        else:
            found.append(inner)
    return tuple(found)


def _written_out_length(body: tuple[Stmt, ...], outer: Set[str]) -> int:
    """Returns how many statements `_updates_written_out` returns, those inside others too."""
    length = 0
    for stmt in body:
        inner = sum(_written_out_length(each, outer) for each in bodies(stmt))
        span = _span_of_updates(stmt, outer) if isinstance(stmt, For) else None
        length += inner * len(range(*span)) if span else 1 + inner
    return length


def _span_of_updates(loop: For, outer: Set[str]) -> Span | None:
    """Returns the iterations of a loop that is written out: it stores to some arrays."""
    return None if outer.isdisjoint(stored_in((loop,))) else fixed_span(loop)


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
        or any(load.buffer in written for term in terms for load in loads(term.value))
    }


class _BoxNest:
    """Builds the loop nest that computes the sums of some arrays over one box."""

    def __init__(
        self,
        sums: Mapping[str, Sequence[Term]],
        whole: Box,
        scope: Scope,
        zero: Set[str],
        names: Names,
    ) -> None:
        self._sums = sums
        self._hull = whole
        every = [term for terms in sums.values() for term in terms]
        self._middle = _elements(every, common)
        self._buffers = scope.buffers
        self._zero = zero
        self._names = names
        self._bases = next(iter(sums.values()))[0].variables

    def axis(self, at: tuple[Expr, ...]) -> tuple[Stmt, ...]:
        """Returns the loops over the axes that are left.

        Args:
          at: the indices along the axes before; their elements get every term.
        """
        number = len(at)
        if number == len(self._hull):
            return tuple(self._sum(name, at, terms) for name, terms in self._sums.items())
        whole, middle = self._hull[number], self._middle[number]
        if whole != middle and number == len(self._hull) - 1:
            every = [term for terms in self._sums.values() for term in terms]
            # The elements between two cuts all get the same terms.
            cuts = sorted({cut for term in every for cut in term.elements[number]})
            parts = [self._part(at, number, span) for span in itertools.pairwise(cuts)]
            return tuple(itertools.chain.from_iterable(parts))
        var = self._variable(number)
        inner = self.axis((*at, var))
        if whole != middle:
            inside = both(_limits(var, whole, middle))
            inner = (If(inside, inner, self._edge((*at, var))),)
        return (_parallel(var, whole, inner),)

    def _part(self, at: tuple[Expr, ...], number: int, span: Span) -> tuple[Stmt, ...]:
        """Returns the loop over a part of the last axis whose elements all get the same terms."""
        low, high = span
        var = self._variable(number)
        element: Expr = integer(low) if high == low + 1 else var
        stmts = tuple(
            self._sum(name, (*at, element), given)
            for name, terms in self._sums.items()
            if (given := [term for term in terms if _is_in(low, term, number)])
        )
        return stmts if element != var or not stmts else (_parallel(var, span, stmts),)

    def _sum(self, name: str, at: tuple[Expr, ...], terms: Sequence[Term]) -> Stmt:
        """Returns the store of one element."""
        total: Expr = Const(0.0, self._buffers[name].dtype)
        for term in terms:
            total = _with_term(total, term, at)
        return Store(name, at, add(self._old(name, at), total))

    def _old(self, name: str, at: tuple[Expr, ...]) -> Expr:
        dtype = self._buffers[name].dtype
        return Const(0.0, dtype) if name in self._zero else Load(name, at, dtype)

    def _edge(self, at: tuple[Expr, ...]) -> tuple[Stmt, ...]:
        """Returns the loops over the axes that are left, for elements that may miss terms.

        Each term has loops of its own, over the elements that get it. Few rows need these loops.
        """
        first = len(at)
        found: list[Stmt] = []
        for name, terms in self._sums.items():
            rest = self._hull[first:]
            shape = tuple(end - begin for begin, end in rest)
            row = Buffer(self._names.fresh("row"), shape, self._buffers[name].dtype)

            def element(indices: tuple[Expr, ...], row: Buffer = row) -> Load:
                moves = zip(indices[first:], self._hull[first:], strict=True)
                at_row = tuple(index("sub", e, integer(low)) for e, (low, _) in moves)
                return Load(row.name, at_row, row.dtype)

            def added(indices: tuple[Expr, ...], term: Term) -> Stmt:
                old = element(indices)
                return Store(old.buffer, old.indices, _with_term(old, term, indices))

            def written(indices: tuple[Expr, ...], name: str = name) -> Stmt:
                return Store(name, indices, add(self._old(name, indices), element(indices)))

            stmts: list[Stmt] = []
            for term in terms:
                spans = term.elements
                loops = self._loops(at, spans[first:], partial(added, term=term))
                conditions = _limits(at[-1], self._hull[first - 1], spans[first - 1])
                stmts.append(If(both(conditions), (loops,)) if conditions else loops)
            found.append(Local(row, (*stmts, self._loops(at, rest, written))))
        return tuple(found)

    def _loops(
        self,
        at: tuple[Expr, ...],
        spans: Sequence[Span],
        make: Callable[[tuple[Expr, ...]], Stmt],
    ) -> Stmt:
        """Returns loops over the axes that are left around the statement that `make` builds."""
        if not spans:
            return make(at)
        var = self._variable(len(at))
        return _parallel(var, spans[0], (self._loops((*at, var), spans[1:], make),))

    def _variable(self, number: int) -> Var:
        return Var(self._names.fresh(self._bases[number]))


def _with_term(total: Expr, term: Term, at: tuple[Expr, ...]) -> Expr:
    """Returns a sum plus or minus a term, for the element at some indices."""
    moves = zip(term.variables, at, term.offsets, strict=True)
    position = {var: index("sub", e, integer(away)) for var, e, away in moves}
    value = substitute(term.value, position)
    return sub(total, value) if term.is_negated else add(total, value)


def _is_in(index: int, term: Term, axis: int) -> bool:
    """Returns whether the elements with an index along an axis get a term."""
    begin, end = term.elements[axis]
    return begin <= index < end


def _limits(at: Expr, known: Span, wanted: Span) -> list[Expr]:
    """Returns the conditions under which an index of a known span is in a wanted span."""
    conditions: list[Expr] = []
    if wanted[0] > known[0]:
        conditions.append(binary("ge", at, integer(wanted[0])))
    if wanted[1] < known[1]:
        conditions.append(binary("lt", at, integer(wanted[1])))
    return conditions


def _parallel(var: Var, span: Span, body: tuple[Stmt, ...]) -> For:
    return For(var.name, integer(span[0]), integer(span[1]), body, "parallel")
