"""Windows are written out, so that the loop over their positions is the one to vectorise.

parallel j in 0 .. 64 {                       parallel j in 0 .. 64 {
  local w: float32[9] {                         local w: float32[] {
    serial p in 0 .. 9 {                          local w_1: float32[] {
      w[p] = a[j + p]                 ->            ...
    }                                               w[] = a[j]
    ...                                             w_1[] = a[j + 1]

Each iteration of the short loops inside becomes statements, and each element of a local array
becomes a variable. Halide's schedules say `vectorize(x)`, and `unroll` for all loops inside, for
this. Sums keep their order. Longer sums of products are no windows: `products` tiles them.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Set

from msops._loops.analysis.conditions import ends_early
from msops._loops.analysis.costs import fixed_span, mean_trips
from msops._loops.ir.names import Names, unique_names
from msops._loops.ir.nodes import Buffer, Const, For, Kernel, Load, Local, Stmt, Store
from msops._loops.ir.ranges import Ranges
from msops._loops.ir.walk import (
    A,
    Scope,
    accesses_in,
    bodies,
    is_innermost,
    iterations,
    loads,
    map_accesses,
    map_bodies,
    map_expressions,
    rewrite_loops,
    statements,
    stored_in,
    with_parts,
)
from msops._loops.passes.simplify import simplify
from msops._loops.passes.simplify_expressions import simplified
from msops._loops.to_c.facts.strides import stride
from msops._loops.to_c.order.exchange import sunk
from msops._loops.to_c.order.products import products_of
from msops._loops.to_c.order.sums import FEWEST_WAITING

_MOST_STATEMENTS = 256
"""Statements of one position; GCC takes a fifth of a second to compile as many."""
_MOST_PICKED = 200
"""Elements of one position at indices that are data; of 480, GCC took 3.5 s."""
_MOST_TRIPS = 32
"""Of one loop in a window; longer sums are as fast in loops, and GCC compiles them in less time."""
_FEWEST_POSITIONS = 32
_FEWEST_IN_VECTOR = 8
"""Positions that are worth a vector where the loops inside are as short, and read more elements
that are apart."""


def write_out_windows(kernel: Kernel) -> Kernel:
    """Returns the kernel with the loops inside of vectorisable parallel ones written out."""
    written = rewrite_loops(kernel, _Windows(kernel).loop, "parallel")
    return kernel if written.body == kernel.body else unique_names(simplify(written))


def in_positions(loop: For, scope: Scope, names: Names, most: int, step: int) -> For | None:
    """Returns a loop with the windows in it written out; None: there are none.

    Args:
      loop: the loop over positions, of any kind.
      scope: the scope around it.
      names: the names of the kernel.
      most: the most statements of one position.
      step: the greatest distance in memory of what neighbouring positions touch.
    """
    return _WindowExpansion(names).written(loop, scope, most, step)


class _Windows:
    def __init__(self, kernel: Kernel) -> None:
        self._kernel = kernel
        self._names = Names(kernel)

    def loop(self, loop: For, scope: Scope) -> tuple[Stmt, ...] | None:
        """Returns what replaces a loop, with windows written out; None leaves it."""
        row = self._row_of_product(loop, scope)
        if row is not None:
            return row
        written = _WindowExpansion(self._names).written(loop, scope, _MOST_STATEMENTS)
        return None if written is None else (written,)

    def _row_of_product(self, loop: For, scope: Scope) -> tuple[Stmt, ...] | None:
        """Returns a row of a product that gains from tiles, with its loop innermost; else None."""
        if scope.outer is None or not scope.loops or is_innermost(loop):
            return None
        row = sunk(loop, self._names)
        rows = with_parts(scope.loops[-1], body=row)
        return row if products_of(self._kernel, rows, scope.outer, FEWEST_WAITING) else None


class _WindowExpansion:
    def __init__(self, names: Names) -> None:
        self._names = names

    def written(self, loop: For, scope: Scope, most: int, step: int = 1) -> For | None:
        """Returns a loop with the windows in it written out; None: it is over no positions."""
        if not is_over_positions(loop, scope, step):
            return None
        (inside,) = scope.inside(loop)
        body = written_out(loop.body, most, inside.ranges)
        if body is None or sum(map(_is_picked, accesses_in(body))) > _MOST_PICKED:
            return None
        return with_parts(loop, body=self._in_variables(body))

    def _in_variables(self, body: tuple[Stmt, ...]) -> tuple[Stmt, ...]:
        """Returns a body with the elements of its local arrays in variables."""
        return tuple(part for stmt in body for part in self._split(stmt))

    def _split(self, stmt: Stmt) -> tuple[Stmt, ...]:
        stmt = map_bodies(stmt, self._in_variables)
        if not isinstance(stmt, Local) or not stmt.buffer.shape:
            return (stmt,)
        array = stmt.buffer
        variables: dict[tuple[int, ...], Buffer] = {}
        for access in accesses_in(stmt.body):
            if access.buffer == array.name:
                at = tuple(int(i.value) for i in access.indices if isinstance(i, Const))
                if len(at) < len(array.shape) or not _is_inside(at, array.shape):
                    return (stmt,)
                if at not in variables:
                    variables[at] = Buffer(self._names.fresh(array.name), (), array.dtype)

        def in_variable(access: A) -> A:
            if access.buffer != array.name:
                return access
            at = tuple(int(i.value) for i in access.indices if isinstance(i, Const))
            return dataclasses.replace(access, buffer=variables[at].name, indices=())

        body = map_accesses(stmt.body, in_variable)
        for variable in variables.values():
            body = (Local(variable, body, location=stmt.location),)
        return body


def is_over_positions(loop: For, scope: Scope, step: int = 1) -> bool:
    """Returns whether a loop with loops inside goes over the positions of windows, in order.

    Args:
      loop: the loop.
      scope: the scope around it.
      step: the greatest distance in memory of what neighbouring positions touch.
    """
    trips = mean_trips(loop, scope.ranges)
    if is_innermost(loop) or trips < _FEWEST_IN_VECTOR:
        return False
    accesses = [access for access in accesses_in(loop.body) if access.buffer in scope.buffers]
    stores = [access for access in accesses if isinstance(access, Store)]
    steps = {stride(store, loop.var, scope.buffers) for store in stores}
    if not steps - {0} or not steps <= {*range(step + 1)}:
        return False
    apart = [access for access in accesses if _is_strided(access, loop, scope, step)]
    if not apart and trips >= _FEWEST_POSITIONS:
        return True
    inner = [stmt for stmt in statements(loop.body) if isinstance(stmt, For)]
    apart_inside = [
        access for access in accesses if any(_is_strided(access, part, scope) for part in inner)
    ]
    # Chains run in lanes of rows, see `lanes`.
    are_sums = all(
        part.kind != "serial" and mean_trips(part, scope.ranges) <= _FEWEST_IN_VECTOR
        for part in inner
    )
    return are_sums and len(apart) < len(apart_inside)


def _is_strided(access: Load | Store, loop: For, scope: Scope, most: int = 1) -> bool:
    """Returns whether neighbours in a loop are farther apart in memory.

    Elements that an index picks are gathered in any case.
    """
    return stride(access, loop.var, scope.buffers) not in (None, *range(most + 1))


def _is_picked(access: Load | Store) -> bool:
    return any(map(loads, access.indices))


def _is_inside(at: tuple[int, ...], shape: tuple[int, ...]) -> bool:
    return all(0 <= index < size for index, size in zip(at, shape, strict=True))


def written_out(
    body: tuple[Stmt, ...], most: int, ranges: Ranges, stored: Set[str] | None = None
) -> tuple[Stmt, ...] | None:
    """Returns statements with each iteration of their loops written out; None if too many.

    Args:
      body: the statements.
      most: the most statements.
      ranges: the ranges of the variables around them.
      stored: arrays; loops that store to none of them stay. None: no loop stays.
    """
    written: tuple[Stmt, ...] = ()
    for stmt in body:
        stmt = map_expressions(stmt, lambda expr: simplified(expr, ranges))
        parts = _parts(stmt, most, ranges, stored)
        if parts is None:
            return None
        written += parts
        most -= sum(1 for _ in statements(parts))
        if most < 0:
            return None
    return written


def _parts(
    stmt: Stmt, most: int, ranges: Ranges, stored: Set[str] | None
) -> tuple[Stmt, ...] | None:
    """Returns the statements that a statement becomes; None if there are too many."""
    if isinstance(stmt, For) and (stored is None or not stored.isdisjoint(stored_in((stmt,)))):
        span = fixed_span(stmt)
        # One that ends early runs in lanes of rows, too: written out, each step is a branch.
        if ends_early(stmt) or span is None or span[1] - span[0] > min(most, _MOST_TRIPS):
            return None
        return written_out(iterations(stmt, span), most, ranges, stored)
    inside = [written_out(body, most, ranges, stored) for body in bodies(stmt)]
    found = [body for body in inside if body is not None]
    if len(found) < len(inside):
        return None
    following = iter(found)
    return (map_bodies(stmt, lambda _: next(following)),)
