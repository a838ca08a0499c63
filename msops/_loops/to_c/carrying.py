"""Keeps an element that each iteration hands to the next in a variable.

    serial j in 0 .. m {                  local carried: int32[] {
      d[j + 1] = f(d[j], ...)      ->       carried[] = d[0]
    }                                       serial j in 0 .. m {
                                              carried[] = f(carried[], ...)
                                              d[j + 1] = carried[] } }

The next iteration then waits for f, not for memory to be written and read again. Compilers do the
same only where they see that no other access comes in between.
"""

from __future__ import annotations

import dataclasses

from msops._loops.analysis.ranges import Range, is_within, loop_range, range_of
from msops._loops.ir.names import Names
from msops._loops.ir.nodes import (
    INDEX_DTYPE,
    Binary,
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
from msops._loops.ir.operators import result_dtype
from msops._loops.ir.walk import loads, map_bodies, rewrite, substitute, with_body
from msops._loops.passes.simplify_expressions import difference, simplified


def carry_elements(kernel: Kernel) -> Kernel:
    """Returns the kernel with such elements of its inner loops in variables."""
    return with_body(kernel, _Carrying(kernel).body(kernel.body, {}))


class _Carrying:
    def __init__(self, kernel: Kernel) -> None:
        self._names = Names(kernel)
        self._shapes = {b.name: b.shape for b in (*kernel.parameters, *kernel.buffers)}

    def body(self, body: tuple[Stmt, ...], ranges: dict[str, Range]) -> tuple[Stmt, ...]:
        """Returns statements; `ranges` are of the loops around them."""
        return tuple(self._statement(stmt, ranges) for stmt in body)

    def _statement(self, stmt: Stmt, ranges: dict[str, Range]) -> Stmt:
        if isinstance(stmt, Local):
            self._shapes[stmt.buffer.name] = stmt.buffer.shape
        if isinstance(stmt, For):
            ranges = {**ranges, stmt.var: loop_range(stmt, ranges)}
            if stmt.kind == "serial" and len(stmt.body) == 1 and isinstance(stmt.body[0], Store):
                return self._loop(stmt, stmt.body[0], ranges)
        return map_bodies(stmt, lambda inner: self.body(inner, ranges))

    def _loop(self, loop: For, store: Store, ranges: dict[str, Range]) -> Stmt:
        """Returns a loop of one store, in a variable what it reads of the iteration before."""
        carried = self._carried(loop, store, ranges)
        if carried is None:
            return loop
        scalar = Buffer(self._names.fresh("carried"), (), carried.dtype)
        new = Load(scalar.name, (), scalar.dtype)
        value = rewrite(store.value, lambda part: new if part == carried else part)
        body = (
            dataclasses.replace(store, buffer=scalar.name, indices=(), value=value),
            dataclasses.replace(store, value=new),
        )
        at = {loop.var: loop.begin}
        first = tuple(simplified(substitute(i, at), ranges) for i in carried.indices)
        stmts = (
            Store(scalar.name, (), dataclasses.replace(carried, indices=first)),
            dataclasses.replace(loop, body=body),
        )
        around = Local(scalar, stmts, location=loop.location)
        if range_of(loop.begin, ranges)[1] < range_of(loop.end, ranges)[0]:
            return around
        # A loop without iterations reads nothing, and what it would read first may not exist.
        dtype = result_dtype("lt", INDEX_DTYPE)
        return If(Binary("lt", loop.begin, loop.end, dtype), (around,), location=loop.location)

    def _carried(self, loop: For, store: Store, ranges: dict[str, Range]) -> Load | None:
        """Returns the load of what the iteration before has stored, if it is always that."""
        if any(True for index in store.indices for _ in loads(index)):
            return None
        one = Const(1, INDEX_DTYPE)
        back = {loop.var: Binary("sub", Var(loop.var), one, INDEX_DTYPE)}
        before = tuple(substitute(index, back) for index in store.indices)
        for load in loads(store.value):
            if (
                load.buffer == store.buffer
                and all(map(_are_equal, load.indices, before, [ranges] * len(before)))
                and self._exists(store, ranges)
                and self._exists(load, ranges)
            ):
                return load
        return None

    def _exists(self, access: Load | Store, ranges: dict[str, Range]) -> bool:
        """Returns whether an access is in range in every iteration, whatever is around it."""
        shape = self._shapes[access.buffer]
        return all(
            is_within(range_of(index, ranges), (0, size - 1))
            for index, size in zip(access.indices, shape, strict=True)
        )


def _are_equal(one: Expr, other: Expr, ranges: dict[str, Range]) -> bool:
    return difference(one, other, ranges) == (0, 0)
