"""Loops that add to neighbours of each position, as gradients of stencils do.

For each block of positions, one loop computes the terms. A loop for each neighbour then adds them:

    reduction j in 0 .. 600 {               reduction j_block in 0 .. 3 {
      local t: float32[] {                    local terms: float32[256] {
        t[] = f(a[j])                           parallel j in ... {
        d[j] = d[j] + t[]                         local t: float32[] {
        d[j + 1] = d[j + 1] + t[]    ->             t[] = f(a[j])
      }                                             terms[j - ...] = t[]
    }                                               ...
                                                }
                                                parallel j_1 in ... { d[j_1] = d[j_1] + terms[...] }
                                                parallel j_2 in ... { d[j_2 + 1] = ... }

Several terms of one element are summed in a variable before they are kept. A term under a condition
is such a sum, too: it stays 0 where the condition does not hold. If the condition keeps the element
in range, the loop that adds to it goes over the positions where it holds.

A loop that tests for the border of an image is cut there first, see `partitioning`. Then only the
positions between the borders are split.

The order of the terms of a sum changes.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from msops._loops.analysis.boxes import Span
from msops._loops.analysis.conditions import conjuncts, inequalities, narrow, narrowed
from msops._loops.analysis.costs import mean_trips
from msops._loops.analysis.updates import Update, update_of
from msops._loops.ir.algebra import both
from msops._loops.ir.building import integer
from msops._loops.ir.names import Names, unique_names
from msops._loops.ir.nodes import (
    Binary,
    BinaryOp,
    Buffer,
    Expr,
    For,
    If,
    Kernel,
    Load,
    Local,
    LoopKind,
    Stmt,
    Store,
    Var,
)
from msops._loops.ir.operators import is_float
from msops._loops.ir.ranges import (
    Ranges,
    is_within,
    nested_ranges,
    range_of,
)
from msops._loops.ir.walk import (
    Scope,
    buffers_of,
    is_innermost,
    loads,
    loads_in,
    map_bodies,
    rewrite_inner_loops,
    rewrite_loops,
    statements,
    stored_in,
    substitute,
    with_parts,
)
from msops._loops.passes.simplify import simplify
from msops._loops.to_c.clean.reductions import SUMMED_IN_FLOAT32
from msops._loops.to_c.facts.blocks import in_blocks, index
from msops._loops.to_c.facts.strides import is_of_its_own, step
from msops._loops.to_c.order.windows import in_positions
from msops._loops.to_c.ranges.partitioning import beside, steady, within

_FEWEST_TRIPS = 32
_BLOCK = 256
"""Positions whose terms are kept at a time: a dozen arrays of them stay in the first cache."""
_MOST_TARGETS = 32
_MOST_STATEMENTS = 1024
"""Statements of one position: gcc takes 1 to 5 s for as many; vectors make them 10x faster."""


def split_updates(kernel: Kernel) -> Kernel:
    """Returns the kernel with innermost loops that add to neighbours split into vector loops."""
    changed = rewrite_loops(kernel, _SplittingUpdates(kernel).loop, "reduction")
    return kernel if changed is kernel else unique_names(simplify(changed))


@dataclass(frozen=True)
class _Target:
    """An element that a position adds to.

    Attributes:
      is_summed: whether it gets several terms, or only some positions have one.
      guards: the conditions of loop variables that hold wherever it gets a term.
    """

    is_summed: bool
    guards: tuple[Expr, ...]


def _adds_to_elements(loop: For) -> bool:
    """Returns whether a loop may add to neighbours: cheap to say, and it seldom does."""
    return any(
        isinstance(stmt, Store)
        and stmt.indices
        and is_float(stmt.value.dtype)
        and any(load.buffer == stmt.buffer for load in loads(stmt.value))
        for stmt in statements(loop.body)
    )


class _SplittingUpdates:
    def __init__(self, kernel: Kernel) -> None:
        self._names = Names(kernel)
        self._buffers = buffers_of(kernel)

    def loop(self, loop: For, scope: Scope) -> tuple[Stmt, ...] | None:
        """Returns what replaces a loop; None to look inside of it."""
        if mean_trips(loop, scope.ranges) < _FEWEST_TRIPS or not _adds_to_elements(loop):
            return None
        written = self._written_out(loop, scope) or loop
        between = steady(written)
        split = None if between is None else self._between(loop, between, scope)
        if split is not None:
            return split
        return self._split(written, scope) if is_innermost(written) else None

    def _written_out(self, loop: For, scope: Scope) -> For | None:
        """Returns a nest with the windows of its innermost positions written out, if it has any."""
        written = in_positions(loop, scope, self._names, _MOST_STATEMENTS)
        if written is not None or len(loop.body) != 1:
            return written
        (inner,) = loop.body
        if not isinstance(inner, For) or inner.kind != "reduction":
            return None
        (inside,) = scope.inside(loop)
        written = self._written_out(inner, inside)
        return None if written is None else with_parts(loop, body=(written,))

    def _between(self, loop: For, between: Span, scope: Scope) -> tuple[Stmt, ...] | None:
        """Returns a loop split between its borders, which stay as they are; None if it stays."""
        inner = within(loop, between)
        split = self.loop(inner, scope)
        if split is None:
            rest = rewrite_inner_loops(inner, scope, self.loop, "reduction")
            split = None if rest is inner else (rest,)
        return None if split is None else beside(loop, between, split)

    # Legality.

    def _updates(self, loop: For) -> list[tuple[Store, Update, tuple[Expr, ...]]]:
        """Returns the updates to split off, with their conditions; none if the loop stays.

        A store is there once for each time that a window has it, under the conditions there.
        """
        inside = statements(loop.body)
        own = {stmt.buffer.name for stmt in inside if isinstance(stmt, Local)}
        found = []
        for store, conditions in _stores(loop.body):
            update = update_of(store) if store.buffer not in own else None
            if update is not None and (
                update.op == "add"
                and is_float(update.term.dtype)
                and update.term.dtype not in SUMMED_IN_FLOAT32
            ):
                found.append((store, update, conditions))
        updated = {update.target.buffer for _, update, _ in found}
        # Other accesses of these buffers might read incomplete sums, or write too early.
        stores = [s for s in inside if isinstance(s, Store) and s.buffer in updated]
        reads = [load for load in loads_in(loop.body) if load.buffer in updated]
        if not len(stores) == len(reads) == len(found):
            return []
        others = stored_in(loop.body) - own - updated
        if not all(is_of_its_own(name, loop) for name in others):
            return []
        steps = [step(update.target, loop, self._buffers) for _, update, _ in found]
        is_scattered = sum(moved in (1, -1) for moved in steps) > len(updated) and None not in steps
        return found if is_scattered else []

    def _is_inside(self, target: Load, guards: Sequence[Expr], ranges: Ranges) -> bool:
        """Returns whether an element certainly is in range where its guards hold."""
        known = [part for guard in guards for part in inequalities(guard, ranges, ranges) or ()]
        within = narrowed(ranges, known)
        shape = self._buffers[target.buffer].shape
        return all(
            is_within(range_of(index, within), (0, size - 1))
            for index, size in zip(target.indices, shape, strict=True)
        )

    # Rewriting.

    def _split(self, loop: For, scope: Scope) -> tuple[Stmt, ...] | None:
        """Returns a loop over blocks that computes the terms of a loop and then adds them."""
        found = self._updates(loop)
        terms: dict[Load, list[tuple[Expr, ...]]] = {}
        for _, update, conditions in found:
            terms.setdefault(update.target, []).append(conditions)
        targets = {target: _target(conditions) for target, conditions in terms.items()}
        ranges = nested_ranges((loop,), scope.ranges)
        is_inside = all(
            not any(terms[target]) or self._is_inside(target, known.guards, ranges)
            for target, known in targets.items()
        )
        if not found or not is_inside or len(targets) > _MOST_TARGETS:
            return None
        updates = {id(store): update for store, update, _ in found}

        def inside(block: For, _: Var) -> tuple[Stmt, ...]:
            return _SplitBlock(block, updates, targets, self._names, self._buffers, ranges).body()

        return (in_blocks(loop, _BLOCK, self._names, inside),)


def _stores(
    body: tuple[Stmt, ...], conditions: tuple[Expr, ...] = ()
) -> Iterator[tuple[Store, tuple[Expr, ...]]]:
    """Yields the stores of a body without loops, each with the conditions under which it runs."""
    for stmt in body:
        match stmt:
            case Store():
                yield stmt, conditions
            case Local(body=inner):
                yield from _stores(inner, conditions)
            case If(condition=condition, then=then, otherwise=otherwise):
                yield from _stores(then, (*conditions, *conjuncts(condition)))
                yield from _stores(otherwise, (*conditions, *conjuncts(condition, False)))


def _target(terms: Sequence[tuple[Expr, ...]]) -> _Target:
    """Returns what is known of an element from the conditions of each of its terms."""
    first, *others = terms
    guards = tuple(c for c in first if not loads(c) and all(c in other for other in others))
    return _Target(len(terms) > 1 or bool(first), guards)


class _SplitBlock:
    """Builds the loops over one block: one that computes the terms, and those that add them."""

    def __init__(
        self,
        block: For,
        updates: Mapping[int, Update],
        targets: Mapping[Load, _Target],
        names: Names,
        buffers: Mapping[str, Buffer],
        ranges: Ranges,
    ) -> None:
        self._block = block
        self._ranges = ranges
        self._updates = updates
        self._targets = targets
        self._names = names
        self._buffers = buffers
        self._at = index("sub", Var(block.var), block.begin)
        self._adding: list[Stmt] = []
        self._arrays: list[Buffer] = []
        self._known: dict[Expr, Buffer] = {}
        self._sums: dict[Load, Buffer] = {}

    def body(self) -> tuple[Stmt, ...]:
        """Returns the loops, with the arrays of the terms around them."""
        block = self._block
        inner = self._kept(block.body)
        for target, variable in self._sums.items():
            array = self._new_array(variable.dtype)
            self._add(target, False, array)
            total = Load(variable.name, (), variable.dtype)
            inner = (Local(variable, (*inner, Store(array.name, (self._at,), total))),)
        terms = with_parts(block, body=inner, kind="parallel")
        body: tuple[Stmt, ...] = (terms, *self._adding)
        for array in self._arrays:
            body = (Local(array, body, location=block.location),)
        return body

    def _kept(self, body: tuple[Stmt, ...]) -> tuple[Stmt, ...]:
        """Returns a body that keeps the terms instead of adding them."""
        return tuple(new for stmt in body for new in self._statement(stmt))

    def _statement(self, stmt: Stmt) -> tuple[Stmt, ...]:
        if not isinstance(stmt, Store):
            return (map_bodies(stmt, self._kept),)
        if id(stmt) in self._updates:
            return self._update(stmt, self._updates[id(stmt)])
        for term in [term for term in self._known if stmt.buffer in _read(term)]:
            del self._known[term]
        return (stmt,)

    def _update(self, store: Store, update: Update) -> tuple[Stmt, ...]:
        target, term = update.target, update.term
        if self._targets[target].is_summed:
            return (self._summed(store, update),)
        is_new = term not in self._known
        if is_new:
            self._known[term] = self._new_array(term.dtype)
        array = self._known[term]
        self._add(target, update.is_negated, array)
        return (Store(array.name, (self._at,), term, location=store.location),) * is_new

    def _summed(self, store: Store, update: Update) -> Store:
        """Returns the store that adds one of several terms of an element to a variable."""
        dtype = update.term.dtype
        if update.target not in self._sums:
            self._sums[update.target] = Buffer(self._names.fresh("sum"), (), dtype)
        name = self._sums[update.target].name
        op: BinaryOp = "sub" if update.is_negated else update.op
        total = Binary(op, Load(name, (), dtype), update.term, dtype)
        return Store(name, (), total, location=store.location)

    def _new_array(self, dtype: str) -> Buffer:
        self._arrays.append(Buffer(self._names.fresh("terms"), (_BLOCK,), dtype))
        return self._arrays[-1]

    def _add(self, target: Load, is_negated: bool, array: Buffer) -> None:
        """Appends the loop that adds the terms in an array to their elements."""
        block = self._block
        begin, end, guards = self._positions(self._targets[target].guards)
        var = self._names.fresh(block.var)
        here = {block.var: Var(var)}
        indices = tuple(substitute(i, here) for i in target.indices)
        moved = dataclasses.replace(target, indices=indices)
        value = Load(array.name, (substitute(self._at, here),), array.dtype)
        op: BinaryOp = "sub" if is_negated else "add"
        new: Stmt = Store(target.buffer, indices, Binary(op, moved, value, target.dtype))
        if guards:
            new = If(substitute(both(guards), here), (new,))
        is_fixed = step(target, block, self._buffers) == 0
        kind: LoopKind = "reduction" if is_fixed else "parallel"
        self._adding.append(For(var, begin, end, (new,), kind, location=block.location))

    def _positions(self, guards: Sequence[Expr]) -> tuple[Expr, Expr, list[Expr]]:
        """Returns where guards hold in a block: its begin and end there, and guards that are left.

        A guard of the variable alone is an end of the loop, which then has no test.
        """
        block, rest = self._block, []
        whole = self._ranges[block.var]
        within = {block.var: whole}
        for guard in guards:
            functions = inequalities(guard, {block.var}, self._ranges) or ()
            is_alone = bool(functions) and not any(f.scalars for f in functions)
            if not is_alone or not all(narrow(f, within) for f in functions):
                rest.append(guard)
        (first, last), begin, end = within[block.var], block.begin, block.end
        if first > last:
            return begin, begin, rest
        if first > whole[0]:
            begin = index("max", begin, integer(first))
        if last < whole[1]:
            end = index("min", end, integer(last + 1))
        return begin, end, rest


def _read(expr: Expr) -> set[str]:
    return {load.buffer for load in loads(expr)}
