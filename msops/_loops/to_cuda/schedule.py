"""Which launches a kernel becomes, and what the threads of each do.

Statements of the kernel's body become regions, each of which is one launch:

- a parallel nest becomes a grid: a point of its box is the work of a thread, or of a block whose
  threads share out the nests inside;
- a loop that must run in order, with wide parallel nests inside, becomes a loop on the host around
  their launches; with narrower ones it becomes one block, whose threads meet at barriers;
- all else is run by one block, of one thread if nothing in it can be shared out.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Literal, TypeAlias

from msops._loops.analysis.ranges import Range, loop_range
from msops._loops.ir.nodes import Buffer, Const, Expr, For, If, Local, Stmt, Store, Unary
from msops._loops.ir.walk import loads, statements
from msops._loops.to_cuda import costs
from msops._loops.to_cuda.axes import Box, box_of
from msops._loops.to_cuda.costs import is_shared_out, ordered, points, prefers_blocks
from msops._loops.to_cuda.fission import taken_apart


@dataclass(frozen=True)
class Region:
    """One launch.

    Attributes:
      box: its points are shared out over the grid; None for a single block.
      unit: what runs a point.
      body: what is run at a point.
      guards: conditions under which the region is run, the same for all threads.
    """

    box: Box | None
    unit: Literal["thread", "block"]
    body: tuple[Stmt, ...]
    guards: tuple[Expr, ...]


@dataclass(frozen=True)
class HostLoop:
    """Parts run in order for each value of a loop's variable."""

    loop: For
    begin: int
    end: int
    parts: tuple[Part, ...]


@dataclass(frozen=True)
class Zero:
    """A temporary set to zero."""

    buffer: Buffer


Part: TypeAlias = Region | HostLoop | Zero


@dataclass(frozen=True)
class Schedule:
    """A kernel as launches.

    Attributes:
      parts: what is run, in order.
      temporaries: locals that several launches share.
    """

    parts: tuple[Part, ...]
    temporaries: tuple[Buffer, ...]


def schedule(body: tuple[Stmt, ...]) -> Schedule:
    """Returns the launches that a kernel's body becomes, the kinds of its loops being marked."""
    scheduler = _Scheduler()
    parts = scheduler.parts(body, {}, ())
    return Schedule(parts, tuple(scheduler.temporaries))


class _Scheduler:
    def __init__(self) -> None:
        self.temporaries: list[Buffer] = []

    def parts(
        self, body: tuple[Stmt, ...], ranges: dict[str, Range], guards: tuple[Expr, ...]
    ) -> tuple[Part, ...]:
        """Returns a body's parts, what needs only one block put together."""
        found = [part for stmt in body for part in self._parts_of(stmt, ranges, guards)]
        return tuple(_merged(found))

    def _parts_of(
        self, stmt: Stmt, ranges: dict[str, Range], guards: tuple[Expr, ...]
    ) -> tuple[Part, ...]:
        if not is_shared_out(stmt, ranges):
            return (Region(None, "block", (stmt,), guards),)
        match stmt:
            case For(kind="parallel"):
                return (self._grid(stmt, ranges, guards),)
            case For() if _belongs_on_host(stmt, ranges):
                return (self._host_loop(stmt, ranges, guards),)
            case If() if not _disturbs(stmt):
                negated = Unary("not", stmt.condition, "bool")
                return (
                    *self.parts(stmt.then, ranges, (*guards, stmt.condition)),
                    *self.parts(stmt.otherwise, ranges, (*guards, negated)),
                )
            case Local():
                self.temporaries.append(stmt.buffer)
                return (Zero(stmt.buffer), *self.parts(stmt.body, ranges, guards))
        return (_one_block(stmt, ranges, guards),)

    def _grid(self, loop: For, ranges: dict[str, Range], guards: tuple[Expr, ...]) -> Region:
        box = box_of(loop, ("parallel",), ranges)
        if box is None:
            return _one_block(loop, ranges, guards)
        if prefers_blocks(box, ranges):
            return Region(box, "block", box.body, guards)
        return Region(ordered(box), "thread", box.body, guards)

    def _host_loop(self, loop: For, ranges: dict[str, Range], guards: tuple[Expr, ...]) -> HostLoop:
        low, high = loop_range(loop, ranges)
        inner = ranges | {loop.var: (low, high)}
        return HostLoop(loop, low, high + 1, self.parts(loop.body, inner, guards))


def _one_block(stmt: Stmt, ranges: dict[str, Range], guards: tuple[Expr, ...]) -> Region:
    return Region(None, "block", taken_apart((stmt,), ranges), guards)


def _belongs_on_host(loop: For, ranges: dict[str, Range]) -> bool:
    """Tells whether a loop's rounds are wide enough to be launches of their own."""
    if not (isinstance(loop.begin, Const) and isinstance(loop.end, Const)):
        return False
    inner = ranges | {loop.var: loop_range(loop, ranges)}
    return loop.begin.value < loop.end.value and points(loop.body, inner) >= costs.LEAST_LAUNCHED


def _disturbs(stmt: If) -> bool:
    """Tells whether an if writes what its condition reads."""
    read = {load.buffer for load in loads(stmt.condition)}
    bodies = (*stmt.then, *stmt.otherwise)
    return any(isinstance(s, Store) and s.buffer in read for s in statements(bodies))


def _merged(parts: Iterable[Part]) -> Iterable[Part]:
    """Yields the parts with neighbours that are single blocks made one."""
    last: Part | None = None
    for part in parts:
        if isinstance(last, Region) and isinstance(part, Region) and _can_merge(last, part):
            last = dataclasses.replace(last, body=(*last.body, *part.body))
            continue
        if last is not None:
            yield last
        last = part
    if last is not None:
        yield last


def _can_merge(one: Region, other: Region) -> bool:
    return one.box is None and other.box is None and not one.guards and not other.guards
