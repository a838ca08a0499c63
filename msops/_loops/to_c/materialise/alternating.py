"""Steps that copy their result back: every other step computes into the array itself.

    serial s in 0 .. 8 {                       parallel at in 0 .. 100 {
      parallel i in 1 .. 99 {                    w[at] = a[at]
        w[i] = a[i - 1] + a[i + 1]             }
      }                                  ->    serial s in 0 .. 4 {
      parallel k in 1 .. 99 {                    parallel i in 1 .. 99 {
        a[k] = w[k]                                w[i] = a[i - 1] + a[i + 1]
      }                                          }
    }                                            parallel i_1 in 1 .. 99 {
                                                   a[i_1] = w[i_1 - 1] + w[i_1 + 1]

A step of a stencil moves little more memory than the copy does. Programmers swap two pointers here.
Loops have no pointers, so two steps are written out, as Devito does for the two buffers of a time
loop.

The values stay the same if all of this holds for each array that is copied back:

- It has the same shape and dtype as its copy, an array that nothing outside of the steps uses.
- Each step writes the same box of the copy, whole and under no condition, and does not read it. At
  its end the step copies that box back, and writes nothing else to the array.
"""

from __future__ import annotations

import dataclasses
import functools
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from msops._loops.analysis.boxes import Box, Span
from msops._loops.analysis.costs import fixed_span
from msops._loops.ir.algebra import integer
from msops._loops.ir.names import Names, over_box, unique_names
from msops._loops.ir.nodes import Buffer, Expr, For, Kernel, Load, Local, Stmt, Store, Var
from msops._loops.ir.walk import (
    A,
    Scope,
    accesses_in,
    loads_in,
    map_accesses,
    rewrite_loops,
    statements,
    with_parts,
    with_value,
    within_locals,
)
from msops._loops.passes.simplify import simplify
from msops._loops.to_c import cost
from msops._loops.to_c.facts.blocks import index
from msops._loops.to_c.facts.bodies import without_locals

LEAST_SHARE = 0.05
"""Share of a step that its copies take, as estimated; less is not worth doubling the code."""
_FEWEST_STEPS = 4
"""Steps of a loop: the array is copied once before them, and once more if their number is odd."""


def alternate_arrays(kernel: Kernel) -> Kernel:
    """Returns the kernel with loops that compute into an array and its copy by turns."""
    changed = rewrite_loops(kernel, _Alternation(kernel).loop, "serial")
    return kernel if changed is kernel else unique_names(simplify(changed))


@dataclass(frozen=True)
class _WholeStore:
    """A store that writes each element of a box."""

    store: Store
    box: Box


class _Alternation:
    def __init__(self, kernel: Kernel) -> None:
        self._kernel = kernel

    @functools.cached_property
    def _names(self) -> Names:
        return Names(self._kernel)

    def loop(self, loop: For, scope: Scope) -> tuple[Stmt, ...] | None:
        """Returns what replaces a loop; None if it stays."""
        span = fixed_span(loop)
        if span is None or span[1] - span[0] < _FEWEST_STEPS:
            return None
        first, steps = span[0], span[1] - span[0]
        body, locals_ = without_locals(loop.body)
        own = {buffer.name: buffer for buffer in locals_}
        work, back = _split(body)
        taken = {found.store.buffer: _source(found) for found in _whole_stores(back, {})}
        usable = {**self._temporaries(loop, scope), **own}
        if not _may_alternate(work, back, own, usable, {**scope.buffers, **own}):
            return None
        if not self._is_worth(loop, back, scope):
            return None

        def step(body: tuple[Stmt, ...], at: Expr) -> tuple[Stmt, ...]:
            rest = [buffer for name, buffer in own.items() if name not in taken.values()]
            return with_value(within_locals(rest, body), loop.var, at)

        pair = Var(self._names.fresh(loop.var))
        at = index("add", index("mul", pair, integer(2)), integer(first))
        swap = {**taken, **{source: target for target, source in taken.items()}}
        twice = (*step(work, at), *step(_renamed(work, swap), index("add", at, integer(1))))
        whole = [self._copy(target, usable[source]) for target, source in taken.items()]
        whole.append(
            with_parts(loop, var=pair.name, begin=integer(0), end=integer(steps // 2), body=twice)
        )
        if steps % 2:
            whole += step(body, integer(first + steps - 1))
        declared = [own[source] for source in taken.values() if source in own]
        return within_locals(declared, tuple(whole))

    @functools.cached_property
    def _accesses(self) -> Counter[str]:
        return Counter(access.buffer for access in accesses_in(self._kernel.body))

    def _temporaries(self, loop: For, scope: Scope) -> dict[str, Buffer]:
        """Returns the arrays around a loop that nothing outside of it uses."""
        used = Counter(access.buffer for access in accesses_in(loop.body))
        outer = {*(b.name for b in self._kernel.parameters), *self._kernel.results}
        return {
            name: scope.buffers[name]
            for name, count in used.items()
            if name in scope.buffers and name not in outer and count == self._accesses[name]
        }

    def _is_worth(self, loop: For, back: Sequence[Stmt], scope: Scope) -> bool:
        """Returns whether the copies are a good part of a step."""
        costs = cost.NativeCosts(self._kernel)
        (inside,) = scope.inside(loop)
        seconds = sum(costs.loop(copy, inside) for copy in back if isinstance(copy, For))
        return seconds >= LEAST_SHARE * costs.iteration(loop, scope)

    def _copy(self, source: str, target: Buffer) -> Stmt:
        """Returns a loop nest that copies a whole array."""

        def copied(at: tuple[Expr, ...]) -> Stmt:
            return Store(target.name, at, Load(source, at, target.dtype))

        spans = [(0, size) for size in target.shape]
        return over_box(spans, ["at"] * len(spans), self._names.fresh, copied)


def _split(body: tuple[Stmt, ...]) -> tuple[tuple[Stmt, ...], tuple[Stmt, ...]]:
    """Returns the statements of a body before the copies at its end, and the copies."""
    count = len(body)
    while count and _copies(body[count - 1]):
        count -= 1
    return body[:count], body[count:]


def _copies(stmt: Stmt) -> bool:
    """Returns whether a statement copies boxes to the same indices, and does nothing else."""
    inside = [inner for inner in statements((stmt,)) if not isinstance(inner, For)]
    stores = [found.store for found in _whole_stores((stmt,), {})]
    return len(stores) == len(inside) > 0 and all(
        isinstance(store.value, Load) and store.value.indices == store.indices for store in stores
    )


def _may_alternate(
    work: tuple[Stmt, ...],
    back: tuple[Stmt, ...],
    own: Mapping[str, Buffer],
    usable: Mapping[str, Buffer],
    buffers: Mapping[str, Buffer],
) -> bool:
    """Returns whether steps may compute into arrays and their copies by turns.

    Args:
      work: the statements of a step before the copies.
      back: the copies at its end.
      own: the arrays of a step.
      usable: these, and those around that only the steps use.
      buffers: all arrays.
    """
    copies = list(_whole_stores(back, {}))
    sources = {_source(copy) for copy in copies}
    targets = {copy.store.buffer for copy in copies}
    if not copies or len(sources | targets) < 2 * len(copies) or not sources <= usable.keys():
        return False
    if targets & own.keys() or any(load.buffer in sources for load in loads_in(work)):
        return False
    stored = Counter(stmt.buffer for stmt in statements(work) if isinstance(stmt, Store))
    whole = {found.store.buffer: found.box for found in _whole_stores(work, {})}
    return all(
        stored[_source(copy)] == 1
        and not stored[copy.store.buffer]
        and whole.get(_source(copy)) == copy.box
        and buffers[_source(copy)].dtype == buffers[copy.store.buffer].dtype
        and buffers[_source(copy)].shape == buffers[copy.store.buffer].shape
        and _is_inside(copy.box, buffers[copy.store.buffer])
        for copy in copies
    )


def _is_inside(box: Box, buffer: Buffer) -> bool:
    sizes = zip(box, buffer.shape, strict=True)
    return all(low >= 0 and high <= size for (low, high), size in sizes)


def _whole_stores(body: tuple[Stmt, ...], ranges: Mapping[str, Span]) -> Iterator[_WholeStore]:
    """Yields the unconditional stores for which each index is the variable of one loop."""
    for stmt in body:
        match stmt:
            case For() if (span := fixed_span(stmt)) and span[0] < span[1]:
                yield from _whole_stores(stmt.body, {**ranges, stmt.var: span})
            case Local():
                yield from _whole_stores(stmt.body, ranges)
            case Store():
                names = [part.name for part in stmt.indices if isinstance(part, Var)]
                is_whole = len(set(names)) == len(stmt.indices) and ranges.keys() >= set(names)
                if is_whole:
                    yield _WholeStore(stmt, tuple(ranges[name] for name in names))


def _source(copy: _WholeStore) -> str:
    assert isinstance(copy.store.value, Load)
    return copy.store.value.buffer


def _renamed(body: tuple[Stmt, ...], names: Mapping[str, str]) -> tuple[Stmt, ...]:
    def change(access: A) -> A:
        return dataclasses.replace(access, buffer=names.get(access.buffer, access.buffer))

    return map_accesses(body, change)
