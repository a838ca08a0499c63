"""Loops that add to neighbours of each position, as gradients of windows do, or to both of a pair.

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

A sum stays 0 where conditions leave out all of its terms. It is added where its element exists.

The order of the terms of a sum changes. This is loop distribution with expansion of the sums, as in
deferring.py.
"""

from __future__ import annotations

from collections.abc import Sequence

from msops._loops.analysis.costs import mean_trips
from msops._loops.analysis.updates import update_of
from msops._loops.ir.algebra import binary, both, element_of, integer
from msops._loops.ir.names import Names, unique_names
from msops._loops.ir.nodes import Buffer, Expr, For, If, Kernel, Load, Stmt, Store, Var
from msops._loops.ir.operators import is_float
from msops._loops.ir.ranges import Ranges, nested_ranges, range_of
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
from msops._loops.passes.elements import exists
from msops._loops.passes.simplify import simplify
from msops._loops.to_c.clean.reductions import SUMMED_IN_FLOAT32, stores_of
from msops._loops.to_c.facts.blocks import in_blocks, index
from msops._loops.to_c.facts.strides import is_of_its_own, step
from msops._loops.to_c.order.windows import in_positions
from msops._loops.to_c.reduce.neighbours import gather_from_neighbours

_FEWEST_TRIPS = 32
_BLOCK = 256
"""Positions whose terms are kept at a time: a dozen arrays of them stay in the first cache."""
_MOST_TARGETS = 32
_MOST_STEP = 4
"""Elements from one position to the next that vectors pick or put one by one."""
_MOST_STATEMENTS = 1024
"""Statements of one position: a compiler takes seconds for as many; vectors are 10x faster."""


def sum_over_neighbours(kernel: Kernel) -> Kernel:
    """Returns the kernel with elements that gather their terms, and with other such loops split."""
    return split_updates(gather_from_neighbours(kernel))


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
        written = in_positions(loop, scope, self._names, _MOST_STATEMENTS, _MOST_STEP) or loop
        ranges = nested_ranges((written,), scope.ranges)
        targets = self._targets(written, ranges) if is_innermost(written) else []
        return self._split(written, targets, ranges) if 0 < len(targets) <= _MOST_TARGETS else None

    def _targets(self, loop: For, ranges: Ranges) -> list[Load]:
        """Returns the elements that a position adds to; none if the loop stays as it is."""
        own = declared_in(loop.body)
        guarded: dict[Load, list[bool]] = {}
        for store, is_guarded in stores_of(loop.body):
            update = update_of(store)
            if store.buffer in own or update is None or update.op != "add":
                continue
            if is_float(update.term.dtype) and update.term.dtype not in SUMMED_IN_FLOAT32:
                guarded.setdefault(update.target, []).append(is_guarded)
        updated = {target.buffer for target in guarded}
        others = stored_in(loop.body) - own - updated
        # Other accesses of these buffers might read incomplete sums, or write too early.
        stores = sum(isinstance(s, Store) and s.buffer in updated for s in statements(loop.body))
        reads = sum(load.buffer in updated for load in loads_in(loop.body))
        steps = {target: step(target, loop, self._buffers) for target in guarded}
        moving = {target.buffer for target, moved in steps.items() if moved}
        picking = (load for target in guarded for index in target.indices for load in loads(index))
        if (
            not stores == reads == sum(map(len, guarded.values()))
            or None in steps.values()
            # Else no iterations meet.
            or all(sum(target.buffer == name for target in guarded) == 1 for name in moving)
            or not all(is_of_its_own(name, loop) for name in others)
            # What picks an element may exist only under its conditions.
            or not all(exists(load, ranges, self._buffers) for load in picking)
        ):
            return []
        return [*guarded]

    # Rewriting.

    def _split(self, loop: For, targets: Sequence[Load], ranges: Ranges) -> tuple[Stmt, ...]:
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
            if limits := self._limits(target, ranges):
                new = If(both(limits), (new,), location=block.location)
            is_fixed = step(target, loop, self._buffers) == 0
            return with_parts(block, body=(new,), kind="reduction" if is_fixed else "parallel")

        return (in_blocks(loop, _BLOCK, self._names, inside),)

    def _limits(self, target: Load, ranges: Ranges) -> list[Expr]:
        """Returns the conditions under which an element exists."""
        shape = self._buffers[target.buffer].shape
        found: list[Expr] = []
        for at, size in zip(target.indices, shape, strict=True):
            low, high = range_of(at, ranges)
            found += [binary("ge", at, integer(0))] * (low < 0)
            found += [binary("lt", at, integer(size))] * (high >= size)
        return found


def _adds_to_elements(loop: For) -> bool:
    """Returns whether a loop may add to neighbours: cheap to say, and it seldom does."""
    return any(
        isinstance(stmt, Store)
        and stmt.indices
        and is_float(stmt.value.dtype)
        and any(load.buffer == stmt.buffer for load in loads(stmt.value))
        for stmt in statements(loop.body)
    )


def _scalar(buffer: Buffer) -> Load:
    return Load(buffer.name, (), buffer.dtype)
