"""Factors of long sums are transposed so that vectors run over an outer loop.

    parallel o in 0 .. 64 {                      local w_columns: float32[32, 3, 64] {
      parallel i in 0 .. 28 {                      ...
        local s: float32[] {                       parallel i in 0 .. 28 {
          reduction c in 0 .. 32 {                   local s: float32[64] {
            reduction p in 0 .. 3 {                    reduction c in 0 .. 32 {
              s[] = s[]                                  reduction p in 0 .. 3 {
                + x[c, 2 * i + p] * w[o, c, p]    ->       parallel o in 0 .. 64 {
            }                                                s[o] = s[o] + x[c, 2 * i + p]
          }                                                    * w_columns[c, p, o]
          out[o, i] = s[]                              ...
        }                                              parallel o_1 in 0 .. 64 {
      ...                                                out[o_1, i] = s[o_1]

In a convolution whose image comes first channel by channel, elements of the image that neighbouring
positions read may be apart, there may be few positions in a row, and the first and last ones have
fewer terms. None of this matters to vectors of channels: each of their terms has one element of the
image, and as many of the filter. These are apart in memory, so the filter is copied once, with the
channels as its last axis. The sums become those of an image whose channels come last, for which
`products` makes tiles.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace

from msops._loops.analysis.costs import fixed_trips, mean_trips
from msops._loops.analysis.updates import Update, update_of
from msops._loops.ir.algebra import element_of
from msops._loops.ir.names import Names, unique_names
from msops._loops.ir.nodes import Buffer, For, If, Kernel, Load, Local, Stmt, Store
from msops._loops.ir.operators import itemsize
from msops._loops.ir.walk import (
    Scope,
    buffers_of,
    declared_in,
    loads,
    map_accesses,
    rewrite_loops,
    statements,
    stored_in,
    variables,
    with_body,
    with_parts,
)
from msops._loops.passes.simplify import simplify
from msops._loops.to_c.facts.blocks import can_swap, in_blocks, is_alike
from msops._loops.to_c.facts.bodies import without_locals
from msops._loops.to_c.facts.strides import stride, tells_apart
from msops._loops.to_c.materialise.axis_copies import FEWEST_READS, AxisCopies, Factor, factor_of
from msops._loops.to_c.order.exchange import sunk
from msops._loops.to_c.order.packing import fill_once
from msops._loops.to_c.order.products import DTYPES
from msops._loops.to_c.order.sums import FEWEST_WAITING
from msops._loops.to_c.order.widening import Widening, in_arrays

_FEWEST_COLUMNS = 16
"""Columns, or terms, that fill vectors."""
_FEWEST_IN_TILES = 32
"""Terms of sums in tiles that gain from vectors in common; see windows.py for short sums."""
_MOST_BYTES = 1 << 12
"""Bytes of the sums of a row: those of a tile's rows stay in the first-level cache."""


def transpose_factors(kernel: Kernel) -> Kernel:
    """Returns the kernel with such sums in vectors over outer loops."""
    transposing = _Transposing(kernel)
    changed = rewrite_loops(kernel, transposing.loop, "parallel")
    if not transposing.copies.made:
        return kernel
    filled = fill_once(changed.body, transposing.copies.made)
    return unique_names(simplify(with_body(changed, filled)))


class _Transposing:
    def __init__(self, kernel: Kernel) -> None:
        self._kernel = kernel
        self._names = Names(kernel)
        self.copies = AxisCopies(self._names, buffers_of(kernel))

    def loop(self, loop: For, scope: Scope) -> tuple[Stmt, ...] | None:
        """Returns what replaces a nest of parallel loops; None to look inside of it."""
        nest, body = _nest(loop)
        if len(nest) < 2:
            return None
        for part in nest:
            (scope,) = scope.inside(part)
        if not without_locals(body)[1]:
            body = self._in_variable(body, scope)
        for columns in sorted(nest, key=lambda part: -(fixed_trips(part) or 0)):
            if _may_be_columns(columns, nest, body):
                factors = self._factors(columns, nest, body, scope)
                if factors and not self._has_columns(nest, body, scope):
                    return self._in_columns(columns, nest, body, factors)
        return None

    # What may be transposed.

    def _in_variable(self, body: tuple[Stmt, ...], scope: Scope) -> tuple[Stmt, ...]:
        """Returns a body with the sum of an element in a variable, if that is all it does."""
        stores = [stmt for stmt in statements(body) if isinstance(stmt, Store)]
        if len({(store.buffer, store.indices) for store in stores}) != 1:
            return body
        element = element_of(stores[0])
        around = [part.var for part in scope.loops if part.kind == "parallel"]
        inner = {part.var for part in statements(body) if isinstance(part, For)}
        # No other iteration may touch an element that this one only reads and writes back.
        is_own = all(any(tells_apart(at, var) for at in element.indices) for var in around)
        if not is_own or inner & variables(element) or not all(map(update_of, stores)):
            return body
        total = Buffer(self._names.fresh("total"), (), element.dtype)
        value = Load(total.name, (), total.dtype)
        added = map_accesses(
            body,
            lambda access: (
                replace(access, buffer=total.name, indices=())
                if access.buffer == element.buffer
                else access
            ),
        )
        last = Store(element.buffer, element.indices, value)
        return (Local(total, (Store(total.name, (), element), *added, last)),)

    def _factors(
        self, columns: For, nest: Sequence[For], body: tuple[Stmt, ...], scope: Scope
    ) -> set[Factor]:
        """Returns the factors of sums whose columns are apart; none if vectors gain nothing.

        Args:
          columns: the loop over columns.
          nest: this loop and others.
          body: what is in them.
          scope: the scope of the body.
        """
        changing = stored_in(body) | declared_in(body)
        path, update = _sum(body)
        if update is None or update.op != "add" or update.target.dtype not in DTYPES:
            return set()
        read = [load for load in loads(update.term) if load.buffer not in changing]
        steps = {load: stride(load, columns.var, scope.buffers) for load in read}
        factors = {factor_of(load, columns) for load, step in steps.items() if step not in (0, 1)}
        terms = math.prod(mean_trips(part, scope.ranges) for part in path)
        if not factors or 0 not in steps.values() or terms < FEWEST_WAITING:
            return set()
        runs = terms * math.prod(mean_trips(part, scope.ranges) for part in nest)
        are_read_often = all(
            factor and runs >= FEWEST_READS * factor.elements(scope.buffers) for factor in factors
        )
        return {factor for factor in factors if factor} if are_read_often else set()

    def _has_columns(self, nest: Sequence[For], body: tuple[Stmt, ...], scope: Scope) -> bool:
        """Returns whether vectors over the innermost loop of a nest compute its sums as well.

        Args:
          nest: the nest.
          body: what is in it.
          scope: the scope of the body.
        """
        *_, rows, columns = nest
        if (fixed_trips(columns) or _FEWEST_COLUMNS) < _FEWEST_COLUMNS:
            return False
        path, update = _sum(body)
        steps = {
            tuple(stride(load, part.var, scope.buffers) for part in (columns, rows))
            for load in (loads(update.term) if update else ())
        }
        if {along for along, _ in steps} <= {0, 1}:
            # The rows of a tile should have vectors in common.
            terms = math.prod(mean_trips(part, scope.ranges) for part in path)
            return terms < _FEWEST_IN_TILES or (1, 0) in steps
        assert scope.outer
        inner = with_parts(columns, body=body)
        return Widening(self._kernel).loop(inner, scope.outer) is not None

    # Rewriting.

    def _in_columns(
        self, columns: For, nest: Sequence[For], body: tuple[Stmt, ...], factors: set[Factor]
    ) -> tuple[Stmt, ...]:
        """Returns a nest with a loop over columns innermost, and copies of the factors."""
        inner, own = without_locals(body)
        names = {buffer.name for buffer in own}
        inner, copies = self.copies.read(factors, inner)
        trips = fixed_trips(columns) or 0
        size = min(trips, _MOST_BYTES // max(itemsize(buffer.dtype) for buffer in own))

        def block(part: For) -> tuple[Stmt, ...]:
            run = sunk(in_arrays(with_parts(part, body=inner), names), self._names)
            for buffer in own:
                run = (Local(replace(buffer, shape=(*buffer.shape, size)), run),)
            for around in reversed(nest):
                run = (with_parts(around, body=run),) if around is not columns else run
            return run

        if size == trips:
            run = block(columns)
        else:
            run = (in_blocks(columns, size, self._names, lambda part, _: block(part)),)
        return self.copies.filled(copies, run)


def _may_be_columns(columns: For, nest: Sequence[For], body: tuple[Stmt, ...]) -> bool:
    """Returns whether a loop of a nest may go innermost, past reductions and conditions."""
    if (fixed_trips(columns) or 0) < _FEWEST_COLUMNS:
        return False
    if not all(can_swap(part, columns) and can_swap(columns, part) for part in nest):
        return False

    def is_passed(stmt: Stmt) -> bool:
        match stmt:
            case For(kind="reduction"):
                return can_swap(columns, stmt)
            case If(condition=condition):
                return is_alike(condition, columns)
        return isinstance(stmt, Store)

    inner, _ = without_locals(body)
    return all(map(is_passed, statements(inner)))


def _sum(body: tuple[Stmt, ...]) -> tuple[tuple[For, ...], Update | None]:
    """Returns the reductions around the sum that some statements compute, and its update.

    There is no update unless all reductions and conditions are around one store to a local.
    """
    path: list[For] = []
    inner, own = without_locals(body)
    found: tuple[Stmt, ...] = tuple(stmt for stmt in inner if not isinstance(stmt, Store))
    while len(found) == 1:
        match found[0]:
            case For(kind="reduction", body=found) as reduction:
                path.append(reduction)
            case If(then=found, otherwise=()):
                pass
            case Store(buffer=name) as store if path and name in {each.name for each in own}:
                return tuple(path), update_of(store)
            case _:
                break
    return (), None


def _nest(loop: For) -> tuple[list[For], tuple[Stmt, ...]]:
    """Returns a loop, and the parallel ones that are each alone in the one before."""
    nest = [loop]
    while True:
        match nest[-1].body:
            case (For(kind="parallel") as inner,):
                nest.append(inner)
            case body:
                return nest, body
