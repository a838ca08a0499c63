"""Sums that a loop only adds to are computed for many of its iterations at once.

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

This is loop distribution with expansion of what the parts share (R. Allen, K. Kennedy, "Optimizing
Compilers for Modern Architectures", 5.3 and 6.2).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import TypeAlias

from msops._loops.analysis.costs import CACHE_BYTES
from msops._loops.analysis.updates import update_of
from msops._loops.ir.building import integer
from msops._loops.ir.elements import exists
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
from msops._loops.ir.operators import LOGICAL
from msops._loops.ir.ranges import Ranges, is_known, nested_ranges
from msops._loops.ir.sizes import size_bytes
from msops._loops.ir.walk import (
    Scope,
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
    with_parts,
    with_value,
)
from msops._loops.passes.simplify import simplify
from msops._loops.passes.simplify_expressions import difference, simplified
from msops._loops.to_c.facts.blocks import from_zero, in_even_blocks, index
from msops._loops.to_c.facts.strides import coefficient
from msops._loops.to_c.order.interchange import orders
from msops._loops.to_c.order.products import products_of
from msops._loops.to_c.order.sinking import of_its_kind

_FEWEST_ROWS = 32
"""Iterations of a block; the sums of fewer gain little from tiles."""
_MOST_BYTES = CACHE_BYTES // 2
"""Bytes of the rows of a block: they stay in a cache, beside the sums."""


def defer_sums(kernel: Kernel) -> Kernel:
    """Returns the kernel with such sums after the loops, if they are products."""
    deferred = rewrite_loops(kernel, _Deferral(kernel).loop, "serial", "reduction")
    return kernel if deferred.body == kernel.body else unique_names(simplify(deferred))


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

    def loop(self, loop: For, scope: Scope) -> tuple[Stmt, ...] | None:
        """Returns what replaces a loop; None to look inside of it."""
        fewest, most = difference(loop.end, loop.begin, scope.ranges) or (0, 0)
        if fewest < _FEWEST_ROWS or loop.hint == "serial" or has_bounds_of_data(loop):
            return None
        (inside,) = scope.inside(loop)
        found = list(_updates(loop, inside.ranges, self._buffers))
        kept = {(kept.load, kept.axes): kept for each in found for kept in each.kept}
        row = sum(size_bytes(each.rows("", 1)) for each in kept.values())
        size = min(most, _MOST_BYTES // max(1, row))
        if not found or size < _FEWEST_ROWS:
            return None

        def split(block: For, rows: int, around: Scope) -> tuple[Stmt, ...]:
            return self._split(block, found, rows, around)

        return in_even_blocks(loop, scope, (_FEWEST_ROWS, size), self._names, split)

    def _split(
        self, loop: For, found: Sequence[_Deferred], size: int, scope: Scope
    ) -> tuple[Stmt, ...]:
        """Returns a loop without some sums, and after it these; empty if none is a product.

        Args:
          loop: the loop.
          found: the sums that may leave it.
          size: the greatest number of its iterations.
          scope: the scope around the loop.
        """
        tried = {
            kept: kept.rows(self._names.fresh("rows"), size) for each in found for kept in each.kept
        }
        found = [each for each in found if self._product(each, loop, tried, scope)]
        if not found:
            return ()
        keeping = _Keeping(loop, found, size, self._names)
        body = keeping.body(loop.body, {})
        rest = of_its_kind(with_parts(loop, body=body))
        run: tuple[Stmt, ...] = (from_zero(rest, scope.ranges),)
        for each in found:
            nests = self._product(each, loop, keeping.rows, scope)
            assert nests
            run += nests
        for rows in {id(buffer): buffer for buffer in keeping.rows.values()}.values():
            run = (Local(rows, run, location=loop.location),)
        return run

    def _product(
        self, found: _Deferred, loop: For, rows: Mapping[_Kept, Buffer], scope: Scope
    ) -> tuple[For, ...] | None:
        """Returns the loops of a sum over all iterations of a loop; None if it is no product.

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
        return None


_Live: TypeAlias = dict[tuple[Load, tuple[Expr, ...]], Buffer]


class _Keeping:
    """Keeps what sums read, and takes these out of a loop.

    Attributes:
      rows: the buffers that have what is kept, with a row for each iteration.
    """

    def __init__(self, loop: For, found: Sequence[_Deferred], size: int, names: Names) -> None:
        self._row = index("sub", Var(loop.var), loop.begin)
        self._size = size
        self._names = names
        self._gone = {id(each.store) for each in found}
        self._kept: dict[int, list[_Kept]] = {}
        for each in found:
            for kept in each.kept:
                self._kept.setdefault(id(kept.before), []).append(kept)
        self.rows: dict[_Kept, Buffer] = {}

    def body(self, body: tuple[Stmt, ...], live: _Live) -> tuple[Stmt, ...]:
        """Returns a body without the sums.

        Args:
          body: the body.
          live: what is kept already, and has not changed since then.
        """
        done: list[Stmt] = []
        for stmt in body:
            for kept in self._kept.get(id(stmt), ()):
                done += self._keep(kept, live)
            if id(stmt) in self._gone:
                continue
            # What changes in a loop is kept there with an element for each iteration of it.
            inner = map_bodies(stmt, partial(self.body, live=live))
            if isinstance(stmt, Store) or any(bodies(inner)):
                done.append(inner)
            changed = stored_in((stmt,)) | declared_in((stmt,))
            for key in [key for key in live if changed & {load.buffer for load in loads(key[0])}]:
                del live[key]
        return tuple(done)

    def _keep(self, kept: _Kept, live: _Live) -> Iterator[Stmt]:
        """Yields the store of a value, unless it is kept already."""
        key = (kept.load, kept.axes)
        if key in live:
            self.rows[kept] = live[key]
            return
        rows = kept.rows(self._names.fresh(f"{kept.load.buffer}_rows"), self._size)
        self.rows[kept] = live[key] = rows
        body: tuple[Stmt, ...] = (Store(rows.name, (self._row, *kept.axes), kept.load),)
        for part in reversed(kept.inside):
            body = (with_parts(part, body=body, kind="parallel", hint=""),)
        yield from body


def _updates(loop: For, ranges: Ranges, buffers: Mapping[str, Buffer]) -> Iterator[_Deferred]:
    """Yields the sums that a loop only adds to, and that read what it changes."""
    own = declared_in(loop.body)
    changing = own | stored_in(loop.body)
    stores = [stmt for stmt in statements(loop.body) if isinstance(stmt, Store)]
    sums = {id(stmt) for stmt in stores if (update := update_of(stmt)) and update.op == "add"}
    # What reads a sum at another place than its own needs it as it is then.
    read = Counter(load.buffer for load in loads_in(loop.body))
    summed = Counter(stmt.buffer for stmt in stores if id(stmt) in sums)
    stored = Counter(stmt.buffer for stmt in stores)
    free = {name for name in stored if read[name] == stored[name] == summed[name]} - own
    for path, store in stores_in(loop.body):
        if store.buffer in free:
            within = nested_ranges(path, ranges)
            kept = _kept(path, store, changing, within)
            # It is kept before the loops that it is read in, which may not run at all.
            if kept and all(exists(each.load, within, buffers) for each in kept):
                yield _Deferred(store, path, kept)


def stores_in(
    body: tuple[Stmt, ...], path: tuple[For, ...] = ()
) -> Iterator[tuple[tuple[For, ...], Store]]:
    """Yields the stores in loops inside of a body that always run, with these loops."""
    for stmt in body:
        match stmt:
            case Store() if path:
                yield path, stmt
            case Local():
                yield from stores_in(stmt.body, path)
            case For() if not has_bounds_of_data(stmt):
                yield from stores_in(stmt.body, (*path, stmt))


def _kept(
    path: tuple[For, ...], store: Store, changing: set[str], ranges: Ranges
) -> tuple[_Kept, ...]:
    """Returns what a sum reads of values that change, each once; empty if it cannot be kept."""
    update = update_of(store)
    assert update
    over = {part.var for part in path}
    if any(load.buffer in changing for at in store.indices for load in loads(at)):
        return ()
    if any(over & (variables(part.begin) | variables(part.end)) for part in path):
        return ()
    for part in expressions(update.term):
        # What is not chosen may not exist.
        if isinstance(part, Select) or (isinstance(part, Binary) and part.op in LOGICAL):
            return ()
    found: list[_Kept] = []
    for load in dict.fromkeys(_changing_loads(update.term, changing)):
        read = {part.buffer for part in loads(load)}
        changes = [bool(read & (stored_in(p.body) | declared_in(p.body))) for p in path]
        depth = sum(changes)
        inside = tuple(part for part in path[depth:] if part.var in variables(load))
        axes = (*path[:depth], *inside)
        limits = [ranges[part.var] for part in axes]
        if len(axes) == len(path) or not all(map(is_known, limits)):
            return ()
        shape = tuple(high - low + 1 for low, high in limits)
        at = tuple(
            index("sub", Var(part.var), integer(low))
            for part, (low, _) in zip(axes, limits, strict=True)
        )
        before = path[depth] if depth < len(path) else store
        found.append(_Kept(load, before, inside, shape, at))
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
