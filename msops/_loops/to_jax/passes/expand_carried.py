"""Gives an element that a serial loop carries along one of its own per iteration.

    serial j in 0 .. n {        serial j in 0 .. n {
      s[] = s[] + a[j]            s_each[j] = ((j == 0) ? s[] : s_each[j - 1]) + a[j]
      c[j] = s[]          ->    }
    }                           parallel j_1 in 0 .. n { c[j_1] = s_each[j_1] }
                                s[] = s_each[n - 1]

The first loop is then a scan, and nothing else is order-bound. The pass works on distributed
kernels and leaves alone what it would not turn into scans.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from dataclasses import dataclass

from msops._loops.analysis.costs import fixed_span, fixed_trips
from msops._loops.ir.algebra import binary, integer, sub
from msops._loops.ir.names import Names
from msops._loops.ir.nodes import Buffer, Expr, For, Kernel, Load, Select, Stmt, Store, Var
from msops._loops.ir.ranges import Range, is_within, loop_range, nested_ranges, range_of
from msops._loops.ir.walk import (
    Scope,
    is_loaded,
    loads,
    rewrite_all,
    rewrite_loops,
    rewrite_statements,
    substitute,
    variables,
    with_parts,
    with_value,
)
from msops._loops.to_jax.raising.nests import Chain, chain
from msops._loops.to_jax.raising.recurrences import find_recurrence


def expand_carried(kernel: Kernel) -> Kernel:
    """Returns the kernel with carried elements expanded where that makes a scan of a loop."""
    names = Names(kernel)
    buffers = {buffer.name: buffer for buffer in (*kernel.parameters, *kernel.buffers)}
    added: list[Buffer] = []

    def change(loop: For, _: Scope) -> tuple[Stmt, ...] | None:
        expanded = _expand(loop, buffers, names)
        if expanded is None:
            return None
        added.append(expanded[0])
        return expanded[1]

    changed = rewrite_loops(kernel, change, "serial")
    return with_parts(changed, buffers=(*kernel.buffers, *added))


def _expand(
    loop: For, buffers: dict[str, Buffer], names: Names
) -> tuple[Buffer, tuple[Stmt, ...]] | None:
    if not fixed_trips(loop) or len(loop.body) < 2:
        return None
    for position, stmt in enumerate(loop.body):
        parts = chain(stmt)
        if parts is None:
            return None
        carried = buffers[parts.store.buffer]
        if (
            is_loaded(carried.name, (stmt,))
            and _run_apart(loop, position)
            and _are_all_carried(loop, parts)
        ):
            return _split(loop, position, parts, carried, names)
    return None


def _run_apart(loop: For, position: int) -> bool:
    """Returns whether the other nests of a loop could run at once, given the elements of one.

    Each must store to a buffer of its own that no nest of the loop reads, at an element of its
    own per iteration.
    """
    stores = [parts.store for stmt in loop.body if (parts := chain(stmt))]
    written = [store.buffer for store in stores]
    if len(stores) < len(loop.body) or len(set(written)) < len(written):
        return False
    for index, store in enumerate(stores):
        if index == position:
            if any(loop.var in variables(index) for index in store.indices):
                return False
        elif Var(loop.var) not in store.indices or is_loaded(store.buffer, loop.body):
            return False
    return True


def _are_all_carried(loop: For, parts: Chain) -> bool:
    """Returns whether each iteration leaves every element of the buffer that the loop reads."""
    if parts.guards or not all(map(fixed_span, parts.loops)):
        return False
    stored: list[Expr | Range] = []
    free = {inner.var: loop_range(inner, {}) for inner in parts.loops}
    for index in parts.store.indices:
        if isinstance(index, Var) and index.name in free:
            stored.append(free.pop(index.name))
        elif not variables(index) & set(free):
            stored.append(index)
        else:
            return False
    nests = [found for stmt in loop.body if (found := chain(stmt))]
    return all(
        _is_one_of(read, stored, nest.loops)
        for nest in nests
        for expr in (*nest.guards, *nest.store.indices, nest.store.value)
        for read in loads(expr)
        if read.buffer == parts.store.buffer
    )


def _is_one_of(read: Load, stored: Sequence[Expr | Range], loops: Sequence[For]) -> bool:
    """Returns whether an element is among those stored: the same index, or one in a range."""
    ranges = nested_ranges(loops, {})
    return all(
        is_within(range_of(index, ranges), own) if isinstance(own, tuple) else index == own
        for index, own in zip(read.indices, stored, strict=True)
    )


def _split(
    loop: For, position: int, parts: Chain, carried: Buffer, names: Names
) -> tuple[Buffer, tuple[Stmt, ...]] | None:
    span = fixed_span(loop)
    assert span is not None
    begin, end = span
    each = Buffer(names.fresh(f"{carried.name}_each"), (*carried.shape, end - begin), carried.dtype)
    elements = _Elements(carried.name, each.name, loop.var, begin)
    scan = _moved(loop, loop.body[position], elements, after=False)
    if not find_recurrence(scan, ()):
        return None
    rest = [
        _renamed(_moved(loop, stmt, elements, after=i > position), names)
        for i, stmt in enumerate(loop.body)
        if i != position
    ]
    return each, (scan, *rest, _last(parts, each, carried, names))


@dataclass(frozen=True)
class _Elements:
    """Where the carried elements are: `each[..., var - begin]` is what an iteration leaves."""

    carried: str
    each: str
    var: str
    begin: int

    def load(self, old: Load, after: bool) -> Expr:
        """Returns what a load of the carried buffer reads, before or after the update."""
        here = Load(self.each, (*old.indices, self._at(self.begin)), old.dtype)
        if after:
            return here
        before = dataclasses.replace(here, indices=(*old.indices, self._at(self.begin + 1)))
        is_first = binary("eq", Var(self.var), integer(self.begin))
        return Select(is_first, old, before, old.dtype)

    def store(self, old: Store) -> Store:
        """Returns the store that leaves the element."""
        return dataclasses.replace(
            old, buffer=self.each, indices=(*old.indices, self._at(self.begin))
        )

    def _at(self, shift: int) -> Expr:
        return sub(Var(self.var), integer(shift))


def _moved(loop: For, stmt: Stmt, elements: _Elements, after: bool) -> For:
    """Returns the loop over one of its nests, with the carried elements read from `each`."""

    def load(expr: Expr) -> Expr:
        if isinstance(expr, Load) and expr.buffer == elements.carried:
            return elements.load(expr, after)
        return expr

    def store(old: Store) -> tuple[Stmt, ...]:
        return (elements.store(old) if old.buffer == elements.carried else old,)

    return dataclasses.replace(
        loop, body=rewrite_statements(rewrite_all((stmt,), load), store, Store)
    )


def _renamed(loop: For, names: Names) -> For:
    """Returns a loop with a variable of its own, and in any order."""
    var = Var(names.fresh(loop.var))
    body = with_value(loop.body, loop.var, var)
    return dataclasses.replace(loop, var=var.name, body=body, kind="parallel")


def _last(parts: Chain, each: Buffer, carried: Buffer, names: Names) -> Stmt:
    """Returns the loops that leave the last elements in the carried buffer."""
    fresh: dict[str, Expr] = {loop.var: Var(names.fresh(loop.var)) for loop in parts.loops}
    indices = tuple(substitute(index, fresh) for index in parts.store.indices)
    last = integer(each.shape[-1] - 1)
    stmt: Stmt = Store(carried.name, indices, Load(each.name, (*indices, last), carried.dtype))
    for loop in reversed(parts.loops):
        var = fresh[loop.var]
        assert isinstance(var, Var)
        stmt = dataclasses.replace(loop, var=var.name, body=(stmt,), kind="parallel")
    return stmt
