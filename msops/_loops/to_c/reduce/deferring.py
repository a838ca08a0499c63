"""Sums that a loop adds to leave it, and are computed for many of its iterations at once.

    serial t in 0 .. 512 {                  serial t_block in 0 .. 4 {
      local d: float32[96] {                  local d_rows: float32[128, 96] {
        ...                                     local h_rows: float32[128, 64] {
        parallel i in 0 .. 64 {                   serial t in 128 * t_block .. {
          parallel j in 0 .. 96 {                   local d: float32[96] {
            u[i, j] = u[i, j]        ->               ...
              + h[i] * d[j]                           d_rows[t - ..., j] = d[j]
          }                                           h_rows[t - ..., i] = h[i]
        }                                             h[...] = ...
        h[...] = ...                                }
      }                                           }
    }                                             parallel i { reduction row { parallel j {
                                                    u[i, j] = u[i, j]
                                                      + h_rows[row, i] * d_rows[row, j]

Nothing else in the loop reads such a sum, so its terms may be added after all iterations of a
block. What they read of values that the loop changes is kept, with a row for each iteration. The
gradient of a weight in a recurrent network is such a sum. As written, each step updates the whole
gradient. After the loop it is a product of matrices, which products.py computes in tiles.

A sum that reads nothing that the loop changes, as in the gradient of a product, leaves the whole
loop where dependences allow that: it runs after all iterations of the rest, or before them. Updates
of an element by one operation do not order each other.

This is loop distribution with expansion of what the parts share (R. Allen, K. Kennedy, "Optimizing
Compilers for Modern Architectures", 5.3 and 6.2).
"""

from __future__ import annotations

import functools
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from msops._loops.analysis.costs import CACHE_BYTES
from msops._loops.analysis.polyhedral.dependences import Dependence, dependences
from msops._loops.analysis.polyhedral.library import TooComplex
from msops._loops.analysis.updates import update_of
from msops._loops.ir.algebra import integer
from msops._loops.ir.names import Names, unique_names
from msops._loops.ir.nodes import (
    Binary,
    Buffer,
    Expr,
    For,
    Kernel,
    Load,
    Local,
    Select,
    Stmt,
    Store,
    Var,
)
from msops._loops.ir.operators import LOGICAL, size_bytes
from msops._loops.ir.ranges import Ranges, is_known, nested_ranges
from msops._loops.ir.walk import (
    Scope,
    accesses_of,
    bodies,
    buffers_of,
    declared_in,
    expressions,
    has_bounds_of_data,
    loads,
    loads_in,
    map_bodies,
    map_expressions,
    map_operands,
    operands,
    rewrite_loops,
    statements,
    stored_in,
    substitute,
    variables,
    visit,
    with_parts,
    with_value,
)
from msops._loops.passes.elements import exists
from msops._loops.passes.simplify import simplify
from msops._loops.passes.simplify_expressions import difference, simplified
from msops._loops.to_c.facts.blocks import from_zero, in_even_blocks, index
from msops._loops.to_c.facts.strides import coefficient
from msops._loops.to_c.order.exchange import of_its_kind, orders
from msops._loops.to_c.order.products import products_of

_FEWEST_ROWS = 32
"""Iterations of a block; the sums of fewer gain little from tiles."""
_MOST_BYTES = CACHE_BYTES // 2
"""Bytes of the rows of a block: they stay in a cache, beside the sums."""


def defer_sums(kernel: Kernel) -> Kernel:
    """Returns the kernel with such sums in loops of their own, if they are products."""
    deferred = rewrite_loops(kernel, _Deferral(kernel).loop, "serial", "reduction")
    if deferred.body == kernel.body:
        return kernel
    # What is left of a loop may have such sums inside.
    return defer_sums(unique_names(simplify(deferred)))


@dataclass(frozen=True, eq=False)
class _Kept:
    """A value that a loop changes, and that a sum reads.

    Attributes:
      load: the value.
      before: the loop or store before which it is kept.
      inside: the loops in `before` that it has an element for.
      shape: of the elements that one iteration keeps.
      axes: the index of an element.
    """

    load: Load
    before: For | Store
    inside: tuple[For, ...]
    shape: tuple[int, ...]
    axes: tuple[Expr, ...]

    def rows(self, name: str, count: int) -> Buffer:
        """Returns a buffer for a number of iterations."""
        return Buffer(name, (count, *self.shape), self.load.dtype)

    def store(self, rows: Buffer, row: Expr) -> Stmt:
        """Returns what stores the value, or one for each iteration of the loops inside."""
        stmt: Stmt = Store(rows.name, (row, *self.axes), self.load)
        for part in reversed(self.inside):
            stmt = with_parts(part, body=(stmt,), kind="parallel", hint="")
        return stmt


@dataclass(frozen=True)
class _Deferred:
    """A sum that leaves a loop.

    Attributes:
      store: its store.
      path: the loops around the store, inside of the loop.
      kept: what it reads of values that the loop changes.
    """

    store: Store
    path: tuple[For, ...]
    kept: tuple[_Kept, ...]


class _Deferral:
    def __init__(self, kernel: Kernel) -> None:
        self._kernel = kernel
        self._names = Names(kernel)
        self._buffers = buffers_of(kernel)

    @functools.cached_property
    def _dependences(self) -> tuple[Dependence, ...] | None:
        """The dependences of the kernel; None if they are too complex."""
        try:
            return dependences(self._kernel)
        except TooComplex:
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

    def loop(self, loop: For, scope: Scope) -> tuple[Stmt, ...] | None:
        """Returns what replaces a loop; None to look inside of it."""
        if loop.hint == "serial" or has_bounds_of_data(loop):
            return None
        (inside,) = scope.inside(loop)
        fewest, most = difference(loop.end, loop.begin, scope.ranges) or (0, 0)
        found = _Sums(loop, inside.ranges, self._buffers).found
        free = [each for each in found if not each.kept]
        if free and (run := self._split(loop, free, most, scope)):
            return run
        found = [each for each in found if each.kept]
        kept = {kept for each in found for kept in each.kept}
        row = sum(size_bytes(each.rows("", 1)) for each in kept)
        size = min(most, _MOST_BYTES // max(1, row))
        if not found or min(fewest, size) < _FEWEST_ROWS:
            return None

        def split(block: For, rows: int, around: Scope) -> tuple[Stmt, ...]:
            return self._split(block, found, rows, around)

        return in_even_blocks(loop, scope, (_FEWEST_ROWS, size), self._names, split)

    def _split(
        self, loop: For, found: Sequence[_Deferred], size: int, scope: Scope
    ) -> tuple[Stmt, ...]:
        """Returns a loop without some sums, and these; empty if none that may leave is a product.

        Args:
          loop: the loop.
          found: the sums that may leave it.
          size: the greatest number of its iterations.
          scope: the scope around the loop.
        """
        rows = {
            kept: kept.rows(self._names.fresh(f"{kept.load.buffer}_rows"), size)
            for each in found
            for kept in each.kept
        }
        products: dict[int, tuple[For, ...]] = {}
        before: tuple[Stmt, ...] = ()
        after: tuple[Stmt, ...] = ()
        for each in found:
            product = self._product(each, loop, rows, scope)
            if not product or (not each.kept and id(each.store) in self._in_products):
                continue
            if each.kept or self._may_leave(loop, each.store, scope, first=False):
                after += product
            elif self._may_leave(loop, each.store, scope, first=True):
                before += product
            else:
                continue
            products[id(each.store)] = product
        if not products:
            return ()
        needed = dict.fromkeys(
            kept for each in found if id(each.store) in products for kept in each.kept
        )
        row = index("sub", Var(loop.var), loop.begin)

        def left(body: tuple[Stmt, ...]) -> tuple[Stmt, ...]:
            done: list[Stmt] = []
            for stmt in body:
                done += [kept.store(rows[kept], row) for kept in needed if kept.before is stmt]
                inner = map_bodies(stmt, left)
                if any(bodies(inner)) or (isinstance(stmt, Store) and id(stmt) not in products):
                    done.append(inner)
            return tuple(done)

        rest = of_its_kind(with_parts(loop, body=left(loop.body)))
        run: tuple[Stmt, ...] = (*before, from_zero(rest, scope.ranges), *after)
        for kept in needed:
            run = (Local(rows[kept], run, location=loop.location),)
        return run

    def _may_leave(self, loop: For, store: Store, scope: Scope, *, first: bool) -> bool:
        """Returns whether a store may run in a loop of its own, before the rest or after it."""
        around = {outer.var for outer in scope.loops}
        for found in self._dependences or ():
            early, late = found.source, found.target
            if found.is_reduction or found.carrier in around:
                continue
            own, other = (early, late) if first else (late, early)
            is_against = other.statement is store and own.statement is not store
            if is_against and any(outer.var == loop.var for outer in own.loops):
                return False
        return self._dependences is not None

    def _product(
        self, found: _Deferred, loop: For, rows: Mapping[_Kept, Buffer], scope: Scope
    ) -> tuple[For, ...]:
        """Returns the loops of a sum over all iterations of a loop; none if it is no product.

        Args:
          found: the sum.
          loop: the loop.
          rows: the buffers that have what is kept.
          scope: the scope around the loop.
        """
        row = self._names.fresh(f"{loop.var}_row")
        values = {
            kept.load: Load(rows[kept].name, (Var(row), *kept.axes), kept.load.dtype)
            for kept in found.kept
        }

        def now(expr: Expr) -> Expr:
            if isinstance(expr, Load) and expr in values:
                return values[expr]
            return map_operands(expr, now)

        store = map_expressions(found.store, now)
        body: tuple[Stmt, ...] = (store,)
        for part in reversed(found.path):
            body = (with_parts(part, body=body, kind="reduction", hint=""),)
        body = with_value(body, loop.var, index("add", loop.begin, Var(row)))
        span = simplified(index("sub", loop.end, loop.begin), scope.ranges)
        over_rows = For(row, integer(0), span, body, "reduction", location=loop.location)
        for buffer in rows.values():
            (scope,) = scope.inside(Local(buffer, ()))
        for nest in orders(over_rows, scope):
            parts = _parted(nest, scope.ranges)
            if any(products_of(self._kernel, part, scope) for part in parts):
                return parts
        return ()


class _Sums:
    """The sums that a loop adds to.

    Attributes:
      found: the sums. One that is kept values of is nowhere else read in the loop. Those that read
        a value which does not change between them share it.
    """

    def __init__(self, loop: For, ranges: Ranges, buffers: Mapping[str, Buffer]) -> None:
        self._own = declared_in(loop.body)
        self._ranges, self._buffers = ranges, buffers
        self._changing = self._own | stored_in(loop.body)
        stores = [stmt for stmt in statements(loop.body) if isinstance(stmt, Store)]
        # What reads a sum at another place than its own needs it as it is then.
        read = Counter(load.buffer for load in loads_in(loop.body))
        summed = Counter(s.buffer for s in stores if (u := update_of(s)) and u.op == "add")
        stored = Counter(stmt.buffer for stmt in stores)
        self._only_added_to = {n for n in stored if read[n] == stored[n] == summed[n]}
        # What is kept already, and has not changed since then.
        self._live: dict[tuple[Load, tuple[Expr, ...]], _Kept] = {}
        self.found: list[_Deferred] = []
        self._find(loop.body, ())

    def _find(self, body: tuple[Stmt, ...], path: tuple[For, ...]) -> None:
        """Finds the sums of a body that always runs, in loops inside of the loop."""
        for stmt in body:
            match stmt:
                case Store() if path and update_of(stmt):
                    self._find_sum(stmt, path)
                case Local():
                    self._find(stmt.body, path)
                case For() if not has_bounds_of_data(stmt):
                    self._find(stmt.body, (*path, stmt))
            changed = stored_in((stmt,)) | declared_in((stmt,))
            for key in [key for key in self._live if changed & {x.buffer for x in loads(key[0])}]:
                del self._live[key]

    def _find_sum(self, store: Store, path: tuple[For, ...]) -> None:
        if not any(access.buffer in self._own for access in accesses_of(store)):
            self.found.append(_Deferred(store, path, ()))
        if store.buffer in self._only_added_to - self._own:
            kept = self._kept(path, store, nested_ranges(path, self._ranges))
            if kept:
                self.found.append(_Deferred(store, path, kept))

    def _kept(self, path: tuple[For, ...], store: Store, ranges: Ranges) -> tuple[_Kept, ...]:
        """Returns what a sum reads of values that change, each once; empty if it cannot be kept."""
        update = update_of(store)
        assert update
        if any(load.buffer in self._changing for at in store.indices for load in loads(at)):
            return ()
        for part in expressions(update.term):
            # What is not chosen may not exist.
            if isinstance(part, Select) or (isinstance(part, Binary) and part.op in LOGICAL):
                return ()
        found: list[_Kept] = []
        for load in dict.fromkeys(_changing_loads(update.term, self._changing)):
            read = {part.buffer for part in loads(load)}
            changes = [bool(read & (stored_in(p.body) | declared_in(p.body))) for p in path]
            depth = sum(changes)
            inside = tuple(part for part in path[depth:] if part.var in variables(load))
            axes = (*path[:depth], *inside)
            limits = [ranges[part.var] for part in axes]
            # It is kept before the loops that it is read in, which may not run at all.
            if (
                len(axes) == len(path)
                or not all(map(is_known, limits))
                or not exists(load, ranges, self._buffers)
            ):
                return ()
            shape = tuple(high - low + 1 for low, high in limits)
            at = tuple(
                index("sub", Var(part.var), integer(low))
                for part, (low, _) in zip(axes, limits, strict=True)
            )
            before = path[depth] if depth < len(path) else store
            new = _Kept(load, before, inside, shape, at)
            found.append(self._live.setdefault((load, at), new))
        return tuple(found)


def _changing_loads(expr: Expr, changing: set[str]) -> Iterator[Load]:
    """Yields the outermost loads that read what changes."""
    if isinstance(expr, Load) and any(load.buffer in changing for load in loads(expr)):
        yield expr
        return
    for part in operands(expr):
        yield from _changing_loads(part, changing)


def _parted(nest: For, ranges: Ranges) -> tuple[For, ...]:
    """Returns the rows of a sum in parts in which the first term of a row is affine."""
    (terms,) = nest.body
    assert isinstance(terms, For)
    match terms.begin:
        case Binary(op="max", left=left, right=right):
            fixed, moving = (left, right) if coefficient(left, nest.var) == 0 else (right, left)
            if coefficient(fixed, nest.var) != 0 or coefficient(moving, nest.var) != 1:
                return (nest,)
            first = index("sub", fixed, substitute(moving, {nest.var: integer(0)}))
            middle = index("min", index("max", first, nest.begin), nest.end)
            middle = simplified(middle, ranges)
            return (
                with_parts(nest, end=middle, body=(with_parts(terms, begin=fixed),)),
                with_parts(nest, begin=middle, body=(with_parts(terms, begin=moving),)),
            )
    return (nest,)
