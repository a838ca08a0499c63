"""Loops that add to neighbours of each position, as gradients of windows do.

For each block of positions, one loop computes the sum that each neighbour gets. A loop for each
neighbour then adds these:

    reduction j in 0 .. 600 {               reduction j_block in 0 .. 3 {
      local t: float32[] {                    local terms: float32[256] {
        t[] = f(a[j])                           parallel j in ... {
        d[j] = d[j] + t[]                         local sum: float32[] {
        d[j + 1] = d[j + 1] + t[]    ->             local t: float32[] {
      }                                               t[] = f(a[j])
    }                                                 sum[] = sum[] + t[]
                                                      ...
                                                    terms[j - ...] = sum[]
                                                }
                                                parallel j_1 in ... { d[j_1] = d[j_1] + terms[...] }
                                                parallel j_2 in ... { d[j_2 + 1] = ... }

A sum stays 0 where conditions leave out all of its terms. Conditions on loop variables that all of
them have may keep the element in range, so they stay around the element, too.

The order of the terms of a sum changes. This is loop distribution with expansion of the sums, as in
deferring.py.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import TypeAlias

from msops._loops.analysis.conditions import conjuncts, inequalities, narrowed
from msops._loops.analysis.costs import mean_trips
from msops._loops.analysis.updates import update_of
from msops._loops.ir.algebra import both
from msops._loops.ir.building import binary, element_of
from msops._loops.ir.names import Names, unique_names
from msops._loops.ir.nodes import Buffer, Expr, For, If, Kernel, Load, Local, Stmt, Store, Var
from msops._loops.ir.operators import is_float
from msops._loops.ir.ranges import Ranges, is_within, nested_ranges, range_of
from msops._loops.ir.walk import (
    Scope,
    buffers_of,
    declared_in,
    is_innermost,
    loads,
    loads_in,
    rewrite_loops,
    rewrite_statements,
    statements,
    stored_in,
    with_parts,
    within_locals,
)
from msops._loops.passes.simplify import simplify
from msops._loops.to_c.clean.reductions import SUMMED_IN_FLOAT32
from msops._loops.to_c.facts.blocks import in_blocks, index
from msops._loops.to_c.facts.strides import is_of_its_own, step
from msops._loops.to_c.order.windows import in_positions

_FEWEST_TRIPS = 32
_BLOCK = 256
"""Positions whose terms are kept at a time: a dozen arrays of them stay in the first cache."""
_MOST_TARGETS = 32
_MOST_STATEMENTS = 1024
"""Statements of one position: gcc takes 1 to 5 s for as many; vectors make them 10x faster."""

_Guards: TypeAlias = tuple[Expr, ...]


def split_updates(kernel: Kernel) -> Kernel:
    """Returns the kernel with innermost loops that add to neighbours split into vector loops."""
    changed = rewrite_loops(kernel, _SplittingUpdates(kernel).loop, "reduction")
    return kernel if changed is kernel else unique_names(simplify(changed))


class _SplittingUpdates:
    def __init__(self, kernel: Kernel) -> None:
        self._names = Names(kernel)
        self._buffers = buffers_of(kernel)

    def loop(self, loop: For, scope: Scope) -> tuple[Stmt, ...] | None:
        """Returns what replaces a loop; None to look inside of it."""
        if mean_trips(loop, scope.ranges) < _FEWEST_TRIPS or not _adds_to_elements(loop):
            return None
        written = in_positions(loop, scope, self._names, _MOST_STATEMENTS) or loop
        targets = self._targets(written) if is_innermost(written) else {}
        ranges = nested_ranges((written,), scope.ranges)
        if not 0 < len(targets) <= _MOST_TARGETS or not all(
            is_certain or self._is_inside(target, guards, ranges)
            for target, (is_certain, guards) in targets.items()
        ):
            return None
        return self._split(written, {target: guards for target, (_, guards) in targets.items()})

    # Legality.

    def _targets(self, loop: For) -> dict[Load, tuple[bool, _Guards]]:
        """Returns the elements that a position adds to; none if the loop stays as it is.

        With each one, whether it gets a term in any case, and the conditions on loop variables that
        all of its terms have.
        """
        own = declared_in(loop.body)
        conditions: dict[Load, list[_Guards]] = {}
        for store, around in _stores(loop.body):
            update = update_of(store)
            if store.buffer in own or update is None or update.op != "add":
                continue
            if is_float(update.term.dtype) and update.term.dtype not in SUMMED_IN_FLOAT32:
                conditions.setdefault(update.target, []).append(around)
        updated = {target.buffer for target in conditions}
        others = stored_in(loop.body) - own - updated
        # Other accesses of these buffers might read incomplete sums, or write too early.
        inside = [s for s in statements(loop.body) if isinstance(s, Store) and s.buffer in updated]
        count = sum(map(len, conditions.values()))
        reads = sum(load.buffer in updated for load in loads_in(loop.body))
        steps = [step(target, loop, self._buffers) for target in conditions]
        moving = sum(abs(moved or 0) == 1 for moved in steps)
        if (
            not len(inside) == reads == count
            or None in steps
            or moving <= len(updated)
            or not all(is_of_its_own(name, loop) for name in others)
        ):
            return {}
        return {target: (not all(each), _shared(each)) for target, each in conditions.items()}

    def _is_inside(self, target: Load, guards: _Guards, ranges: Ranges) -> bool:
        """Returns whether an element certainly is in range where its guards hold."""
        known = [part for guard in guards for part in inequalities(guard, ranges, ranges) or ()]
        within = narrowed(ranges, known)
        shape = self._buffers[target.buffer].shape
        return all(
            is_within(range_of(at, within), (0, size - 1))
            for at, size in zip(target.indices, shape, strict=True)
        )

    # Rewriting.

    def _split(self, loop: For, targets: Mapping[Load, _Guards]) -> tuple[Stmt, ...]:
        """Returns a loop over blocks that computes sums of terms, and then adds them."""
        sums = {t: Buffer(self._names.fresh("sum"), (), t.dtype) for t in targets}
        terms = {t: Buffer(self._names.fresh("terms"), (_BLOCK,), t.dtype) for t in targets}

        def summed(store: Store) -> tuple[Stmt, ...]:
            update = update_of(store)
            if update is None or element_of(store) not in sums:
                return (store,)
            total = _scalar(sums[update.target])
            value = binary("sub" if update.is_negated else "add", total, update.term)
            return (Store(total.buffer, (), value, location=store.location),)

        body = rewrite_statements(loop.body, summed, Store)

        def inside(block: For, _: Var) -> tuple[Stmt, ...]:
            at = (index("sub", Var(block.var), block.begin),)
            kept = tuple(Store(terms[t].name, at, _scalar(sums[t])) for t in targets)
            first = with_parts(
                block, body=within_locals(sums.values(), (*body, *kept)), kind="parallel"
            )
            return within_locals(terms.values(), (first, *(add(block, t, at) for t in targets)))

        def add(block: For, target: Load, at: tuple[Expr, ...]) -> Stmt:
            """Returns the loop that adds the terms of a block to their elements."""
            value = binary("add", target, Load(terms[target].name, at, target.dtype))
            new: Stmt = Store(target.buffer, target.indices, value, location=block.location)
            if targets[target]:
                new = If(both(targets[target]), (new,))
            is_fixed = step(target, loop, self._buffers) == 0
            return with_parts(block, body=(new,), kind="reduction" if is_fixed else "parallel")

        return (in_blocks(loop, _BLOCK, self._names, inside),)


def _adds_to_elements(loop: For) -> bool:
    """Returns whether a loop may add to neighbours: cheap to say, and it seldom does."""
    return any(
        isinstance(stmt, Store)
        and stmt.indices
        and is_float(stmt.value.dtype)
        and any(load.buffer == stmt.buffer for load in loads(stmt.value))
        for stmt in statements(loop.body)
    )


def _stores(body: tuple[Stmt, ...], conditions: _Guards = ()) -> Iterator[tuple[Store, _Guards]]:
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


def _shared(conditions: Sequence[_Guards]) -> _Guards:
    """Returns the conditions on loop variables that all terms of an element have."""
    first, *others = conditions
    return tuple(c for c in first if not loads(c) and all(c in other for other in others))


def _scalar(buffer: Buffer) -> Load:
    return Load(buffer.name, (), buffer.dtype)
