"""Tapes, and where they are recorded: at home, or in one iteration of a loop of unknown length.

A tape has an entry for each iteration, so it needs bounds of the loops around what it saves. Where
a loop's bounds are read from data it has none: then the values that the loop starts with are saved
instead, and each iteration is brought back by running the loop again up to it. The tape holds that
one iteration. This takes quadratic time and constant memory (the simplest of the checkpointing
schedules in Griewank & Walther, chapter 12).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence, Set
from dataclasses import dataclass
from typing import TypeAlias

from msops._loops.gradient.tree import Node
from msops._loops.ir.algebra import integer, sub
from msops._loops.ir.nodes import Buffer, Expr, For, Load, Store, Var
from msops._loops.ir.ranges import nested_ranges
from msops._loops.ir.walk import accesses_in, has_bounds_of_data, variables

LONGEST = 2**24
"""The most iterations a tape has entries for: far more than a loop whose bounds are known runs, and
far less than the range of an int32 that is read from data."""

Saved: TypeAlias = tuple[Node, str]
"""A buffer saved at a statement: the element a store overwrites, a local at the end of its scope,
or a whole buffer at the start of a loop that is restarted."""


@dataclass(frozen=True)
class Recording:
    """Who records what.

    Attributes:
      recorders: the home, or the loop in it, that records something; None is the kernel.
      restarted: the loops that are restarted, with the buffers they change.
    """

    recorders: dict[Saved, Node | None]
    restarted: dict[Node, frozenset[str]]


def recording_of(
    saved: Set[Saved],
    homes: dict[str, Node | None],
    rerun: dict[Node | None, set[Node]],
    declared: dict[str, Node],
) -> Recording:
    """Returns who records what is saved, and what restarted loops need saved besides.

    Args:
      saved: by stores and at the ends of locals.
      homes: of the locals; that of other buffers is the kernel. Locals that only restarted loops
        need are added.
      rerun: the stores that are run again in each home.
      declared: the statement of each local.
    """
    found = Recording({}, {})
    work = sorted(saved, key=lambda item: item[1])
    while work:
        node, name = work.pop()
        if (node, name) in found.recorders:
            continue
        if name in declared and name not in homes:
            # No derivative uses it: it is computed again for others, where these are.
            homes[name] = _home_beside(node, name, rerun)
        home = homes.get(name)
        recorder = next(_unbounded(node, home), home)
        found.recorders[node, name] = recorder
        if recorder is not home and recorder not in found.restarted:
            assert recorder is not None
            changed = _changed(recorder, rerun, declared)
            found.restarted[recorder] = changed
            work += [(recorder, buffer) for buffer in sorted(changed)]
    return found


def _home_beside(node: Node, name: str, rerun: dict[Node | None, set[Node]]) -> Node | None:
    """Returns the home around a statement whose run changes a buffer."""
    return next(
        home
        for home in homes_around(node, rerun)
        if any(store.store.buffer == name for store in rerun[home])
    )


def homes_around(node: Node, rerun: dict[Node | None, set[Node]]) -> list[Node | None]:
    """Returns the homes that a statement is in."""
    return [home for home in rerun if node.is_in(home)]


def _unbounded(node: Node, home: Node | None) -> Iterator[Node]:
    """Yields the loops between a statement and a home that have no bounds, innermost first."""
    ranges = nested_ranges(node.loops, {})
    entries = 1
    for outer in reversed(node.ancestors):
        if isinstance(outer.stmt, For) and outer.is_in(home):
            low, high = ranges[outer.stmt.var]
            # Two loops over 16-bit lengths from data are as bad as one over a 32-bit length.
            entries *= max(1, high - low) if has_bounds_of_data(outer.stmt) else 1
            if max(entries, high - low) >= LONGEST:
                yield outer


def _changed(
    loop: Node, rerun: dict[Node | None, set[Node]], declared: dict[str, Node]
) -> frozenset[str]:
    """Returns the buffers from outside a loop that change when it is run again."""
    return frozenset(
        store.store.buffer
        for home in homes_around(loop, rerun)
        for store in rerun[home]
        if store.is_in(loop)
        and not (store.store.buffer in declared and declared[store.store.buffer].is_in(loop))
    )


@dataclass(frozen=True)
class Tape:
    """Where the values at one point of a kernel are saved: an entry for each iteration around it.

    A tape is dense over the bounding box of the iterations, so the backward sweep finds its entry
    by the loop variables alone: no counter orders the iterations, and loops that were parallel stay
    so. Its last axis is the one along which most of the arrays beside it are accessed, so that the
    same order of loops suits all of them.

    Attributes:
      buffer: the tape.
      entry: shape and dtype of what is saved at a time.
      indices: the entry of an iteration, in terms of the loops around that point.
    """

    buffer: Buffer
    entry: Buffer
    indices: tuple[Expr, ...]

    def save(self, value: Load, rest: tuple[Expr, ...] = ()) -> Store:
        """Returns what writes a value, of an element if a whole array is saved."""
        return Store(self.buffer.name, (*self.indices, *rest), value)

    def saved(self, rest: tuple[Expr, ...] = ()) -> Load:
        """Returns the value saved."""
        return Load(self.buffer.name, (*self.indices, *rest), self.buffer.dtype)


def tape_for(name: str, entry: Buffer, loops: Sequence[For], around: Sequence[For]) -> Tape:
    """Returns a tape with an entry for each iteration of some loops.

    Args:
      name: of the tape.
      entry: shape and dtype of an entry.
      loops: those between where the tape is declared and where it is written, outermost first.
      around: all loops around where it is written.
    """
    ranges = nested_ranges(around, {})
    extents = tuple(max(0, ranges[loop.var][1] - ranges[loop.var][0] + 1) for loop in loops)
    indices = tuple(sub(Var(loop.var), integer(ranges[loop.var][0])) for loop in loops)
    return Tape(Buffer(name, (*extents, *entry.shape), entry.dtype), entry, indices)


def in_order_of_memory(loops: Sequence[For], innermost: Sequence[For]) -> list[For]:
    """Returns loops with the one last that moves most of what is accessed along its last axis.

    Args:
      loops: those of the axes of a tape.
      innermost: the loop around what is saved, if there is one.
    """
    last = Counter(
        name
        for access in accesses_in(tuple(stmt for loop in innermost for stmt in loop.body))
        if access.indices
        for name in variables(access.indices[-1])
    )
    most = max(loops, key=lambda loop: (last[loop.var], loop is loops[-1]), default=None)
    return [
        *(loop for loop in loops if loop is not most),
        *(loop for loop in loops if loop is most),
    ]
