"""Parallel loops that hand rows on run together, strip by strip, and keep the last rows only.

    buffer t: float32[1000, 64]               parallel s in 0 .. 32 {
    parallel i in 0 .. 1000 {                   local t: float32[3, 64] {
      parallel j in 0 .. 64 {                     serial y in 32 * s - 2 .. min(32 * s + 32, 998) {
        t[i, j] = a[i, j] + a[i + 1, j]             parallel j in 0 .. 64 {
      }                                      ->       t[(y + 2) % 3, j] = a[y + 2, j] + a[y + 3, j]
    }                                               }
    parallel k in 0 .. 998 {                        if (y - 32 * s) >= 0 {
      parallel l in 0 .. 64 {                         parallel l in 0 .. 64 {
        b[k, l] = t[k, l] * t[k + 2, l]                 b[y, l] = t[y % 3, l] * t[(y + 2) % 3, l]

A temporary array is written to memory and read again, which takes longer than stencils compute.
Here a row of it is read while it is in a cache, and its memory is used again for a later row. Rows
that two strips need are computed by both. Halide calls this a sliding window (``store_at`` the
strip, ``compute_at`` the row), and overlapped tiles.

Every strip reads the values that the loops would have read if all of this holds:

- The iterations of each loop are independent, and its bounds are constants.
- One loop writes the temporary and does not read it; its iteration i writes only row i + w. Later
  loops of the group read rows i + r, and the first loop writes all of these. Rows that a condition
  keeps from being read do not count. Nothing else uses the temporary.
- The same positions are written in every row, whatever conditions hold, and each time that a loop
  around runs the group. So a position that is read was written in its own row, or in none and is 0.
- Any other array that the group writes is used by the loop that writes it and by no other. That
  loop writes no temporary, so it runs each iteration once. Hence an iteration that runs in two
  strips reads the same values in both.
"""

from __future__ import annotations

import dataclasses
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from msops._loops.analysis.costs import CACHE_BYTES, FIRST_CACHE_BYTES, fixed_span
from msops._loops.ir.algebra import binary, both, integer
from msops._loops.ir.names import Names
from msops._loops.ir.nodes import Buffer, Expr, For, If, Kernel, Load, Local, Stmt, Store, Var
from msops._loops.ir.operators import size_bytes
from msops._loops.ir.walk import (
    A,
    Scope,
    accesses_in,
    declared_in,
    is_innermost,
    map_accesses,
    map_bodies_within,
    stored_in,
    with_value,
)
from msops._loops.passes.simplify import simplify
from msops._loops.to_c import cost
from msops._loops.to_c.facts.blocks import index
from msops._loops.to_c.facts.rows import reads_rows, writes_alike
from msops._loops.to_c.facts.strides import offset

_STRIPS, _FEWEST_STRIPS = 8, 4
LEAST_ROW_SECONDS = 2e-8
"""Seconds of a row in each loop, beside which going from loop to loop takes little."""
LEAST_BYTES = FIRST_CACHE_BYTES
"""Bytes of all temporaries; fewer stay in a cache without fusion."""
_ROWS_PER_SHARED = 16
"""Rows of a strip for each row that the next strip computes, too."""
_FEWEST_ROWS_PER_SHARED = 4
LEAST_GAIN = 1.5
"""Seconds saved for each that rows take which two strips compute, as estimated."""
_MOST_LOOPS = 16


def fuse_rows(kernel: Kernel) -> Kernel:
    """Returns the kernel with parallel loops fused that hand temporaries on by rows."""
    temporaries = [
        buffer
        for buffer in kernel.buffers
        if buffer.name not in kernel.results and len(buffer.shape) > 1
    ]
    if sum(map(size_bytes, temporaries)) <= LEAST_BYTES:
        return kernel
    fusion = _Fusion(kernel, temporaries)
    body = fusion.body(kernel.body, Scope.of(kernel))
    if not fusion.kept:
        return kernel
    buffers = tuple(b for b in kernel.buffers if b.name not in fusion.kept)
    return simplify(dataclasses.replace(kernel, buffers=buffers, body=body))


@dataclass(frozen=True)
class _Stage:
    """A loop over rows, one of a group.

    Attributes:
      loop: the loop.
      begin: its first row.
      end: the one after its last.
    """

    loop: For
    begin: int
    end: int

    def row(self, access: Load | Store) -> int | None:
        """Returns the distance of an access's row from the variable; None: it has none."""
        return offset(access.indices[0], self.loop.var)

    def rows(self, name: str, kind: type[Load] | type[Store]) -> set[int | None]:
        """Returns the results of `row` for the loads or the stores of an array."""
        return {
            self.row(access)
            for access in accesses_in(self.loop.body)
            if access.buffer == name and isinstance(access, kind)
        }


@dataclass(frozen=True)
class _Row:
    """A temporary that is kept by rows.

    Attributes:
      buffer: the temporary.
      writer: the number of the stage that writes it.
      written: the distance of the row that it writes from its variable.
      read: for each stage that reads it, the distances of the first and last row read.
    """

    buffer: Buffer
    writer: int
    written: int
    read: Mapping[int, tuple[int, int]]


class _Fusion:
    """Attributes: kept: the names of the temporaries that are kept by rows."""

    def __init__(self, kernel: Kernel, temporaries: Sequence[Buffer]) -> None:
        self.kept: set[str] = set()
        self._names = Names(kernel)
        self._costs = cost.NativeCosts(kernel)
        self._uses = Counter(access.buffer for access in accesses_in(kernel.body))
        self._temporaries = {buffer.name: buffer for buffer in temporaries}

    def body(self, body: tuple[Stmt, ...], scope: Scope) -> tuple[Stmt, ...]:
        """Returns a body with groups of its loops fused, also those inside serial loops."""
        found: list[Stmt] = []
        first = 0
        while first < len(body):
            stages = list(_stages(body[first : first + _MOST_LOOPS]))
            for count in range(len(stages), 1, -1):
                fused = self._fused(stages[:count], scope)
                if fused is not None:
                    found.append(fused)
                    first += count
                    break
            else:
                stmt = body[first]
                is_serial = not isinstance(stmt, For) or stmt.kind == "serial"
                found.append(map_bodies_within(stmt, scope, self.body) if is_serial else stmt)
                first += 1
        return tuple(found)

    def _fused(self, stages: Sequence[_Stage], scope: Scope) -> Stmt | None:
        """Returns the loop that replaces a group of loops; None if the group stays."""
        rows = self._rows(stages)
        producers = {row.writer for row in rows}
        if 0 not in producers or not _are_apart(stages, rows):
            return None
        if sum(size_bytes(row.buffer) for row in rows) <= LEAST_BYTES:
            return None
        if any(self._costs.iteration(s.loop, scope) < LEAST_ROW_SECONDS for s in stages):
            return None
        lows, highs = _reaches(len(stages), rows)
        last_stages = [s for n, s in enumerate(stages) if n not in producers]
        first = min(stage.begin for stage in last_stages)
        last = max(stage.end for stage in last_stages)
        shared = max(high - low for low, high in zip(lows, highs, strict=True))
        rest = -(-(last - first) // _STRIPS)
        height = max(1, shared * _FEWEST_ROWS_PER_SHARED, min(shared * _ROWS_PER_SHARED, rest))
        if height * _FEWEST_STRIPS > last - first:
            return None
        twice = sum(
            (high - low) * self._costs.iteration(stage.loop, scope)
            for stage, low, high in zip(stages, lows, highs, strict=True)
        )
        if height * sum(map(_saved_seconds, rows)) < LEAST_GAIN * twice:
            return None
        self.kept |= {row.buffer.name for row in rows}
        return self._strips(stages, rows, lows, highs, first, last, height)

    def _rows(self, stages: Sequence[_Stage]) -> list[_Row]:
        """Returns the temporaries of a group of loops that can be kept by rows."""
        uses = Counter(access.buffer for s in stages for access in accesses_in(s.loop.body))
        found = {
            name: row
            for name, count in uses.items()
            if name in self._temporaries and count == self._uses[name]
            for row in [_row(self._temporaries[name], stages)]
            if row is not None
        }
        # A loop that also writes other arrays must run each iteration once: it keeps no rows.
        while True:
            kept = {
                name: row
                for name, row in found.items()
                if _outer_stores(stages[row.writer]) <= found.keys()
            }
            if len(kept) == len(found):
                return list(kept.values())
            found = kept

    def _strips(
        self,
        stages: Sequence[_Stage],
        rows: Sequence[_Row],
        lows: Sequence[int],
        highs: Sequence[int],
        first: int,
        last: int,
        height: int,
    ) -> Stmt:
        """Returns the loop over strips.

        While the last stages compute row y, each stage runs its iteration y + high. So it finds the
        rows that the stages before have computed, and reads them as early as possible.
        """
        strip = Var(self._names.fresh("strip"))
        wave = Var(self._names.fresh("row"))
        begin = index("mul", strip, integer(height))
        # The variable counts from 0: the remainder of a number >= 0 is one instruction.
        start = min(low - high for low, high in zip(lows, highs, strict=True))
        waves = last - first - start
        heights = {row.buffer.name: _kept_rows(row, highs) for row in rows}
        body: list[Stmt] = []
        for stage, low, high in zip(stages, lows, highs, strict=True):
            ahead = first + start + high
            conditions = []
            if ahead < stage.begin:
                conditions.append(binary("ge", wave, integer(stage.begin - ahead)))
            if waves + ahead > stage.end:
                conditions.append(binary("lt", wave, integer(stage.end - ahead)))
            if low - high > start:
                until = integer(low - high - start)
                conditions.append(binary("ge", index("sub", wave, begin), until))
            at = index("add", wave, integer(ahead))
            inside = with_value(_in_rows(stage.loop.body, heights), stage.loop.var, at)
            body += _under(conditions, inside)
        end = index("min", index("add", begin, integer(height - start)), integer(waves))
        location = stages[0].loop.location
        whole: Stmt = For(wave.name, begin, end, tuple(body), "serial", location=location)
        for row in rows:
            shape = (heights[row.buffer.name], *row.buffer.shape[1:])
            whole = Local(dataclasses.replace(row.buffer, shape=shape), (whole,), location=location)
        count = integer(-(-(last - first) // height))
        return For(strip.name, integer(0), count, (whole,), "parallel", location=location)


def _stages(body: Sequence[Stmt]) -> Iterator[_Stage]:
    """Yields the parallel loops over rows that a body begins with."""
    for stmt in body:
        if not isinstance(stmt, For) or stmt.kind != "parallel" or is_innermost(stmt):
            return
        span = fixed_span(stmt)
        if span is None or span[0] >= span[1]:
            return
        yield _Stage(stmt, *span)


def _row(buffer: Buffer, stages: Sequence[_Stage]) -> _Row | None:
    """Returns an array as a temporary that is kept by rows; None if it may not be."""
    name = buffer.name
    writers = [n for n, stage in enumerate(stages) if name in stored_in((stage.loop,))]
    if len(writers) != 1:
        return None
    (writer,) = writers
    source = stages[writer]
    (written, *others) = source.rows(name, Store)
    if written is None or others or not writes_alike(name, source.loop):
        return None
    if source.begin + written < 0 or source.end + written > buffer.shape[0]:
        return None
    read: dict[int, tuple[int, int]] = {}
    for number, stage in enumerate(stages):
        found = stage.rows(name, Load)
        offsets = [offset for offset in found if offset is not None]
        if len(offsets) < len(found):
            return None
        if not found:
            continue
        low, high = min(offsets), max(offsets)
        rows = (source.begin + written, source.end + written - 1)
        limits = {stage.loop.var: (stage.begin, stage.end - 1)}
        if number <= writer or not reads_rows(name, stage.loop, limits, rows):
            return None
        read[number] = (low, high)
    return _Row(buffer, writer, written, read) if read else None


def _saved_seconds(row: _Row) -> float:
    """Returns the seconds that a row takes from a loop to the next one by way of its array."""
    size = size_bytes(row.buffer)
    is_near = size <= CACHE_BYTES
    each = cost.SECONDS_PER_SECOND_CACHE / 4 if is_near else cost.SECONDS_PER_STREAMED
    return 2 * each * size / row.buffer.shape[0]


def _outer_stores(stage: _Stage) -> set[str]:
    """Returns the arrays that a stage stores to, without its locals."""
    own = declared_in(stage.loop.body)
    return stored_in((stage.loop,)) - own


def _are_apart(stages: Sequence[_Stage], rows: Sequence[_Row]) -> bool:
    """Returns whether each array that is not kept by rows is used by one loop alone."""
    kept = {row.buffer.name for row in rows}
    used = [{access.buffer for access in accesses_in(stage.loop.body)} for stage in stages]
    return all(
        name in kept or sum(name in names for names in used) == 1
        for stage in stages
        for name in _outer_stores(stage)
    )


def _reaches(count: int, rows: Sequence[_Row]) -> tuple[list[int], list[int]]:
    """Returns the first and last rows of each stage that the rows of a strip need.

    They are relative to the first and last row of the strip.
    """
    lows, highs = [0] * count, [0] * count
    for number in reversed(range(count)):
        needed = [
            (lows[reader] + low - row.written, highs[reader] + high - row.written)
            for row in rows
            if row.writer == number
            for reader, (low, high) in row.read.items()
        ]
        if needed:
            lows[number] = min(low for low, _ in needed)
            highs[number] = max(high for _, high in needed)
    return lows, highs


def _kept_rows(row: _Row, highs: Sequence[int]) -> int:
    """Returns the number of rows to keep: from the newest row to the oldest that is still read."""
    oldest = min(highs[reader] + low for reader, (low, _) in row.read.items())
    return highs[row.writer] + row.written - oldest + 1


def _in_rows(body: tuple[Stmt, ...], heights: Mapping[str, int]) -> tuple[Stmt, ...]:
    """Returns a body in which arrays have the given heights, and rows share their memory."""

    def change(access: A) -> A:
        height = heights.get(access.buffer)
        if height is None:
            return access
        row = index("mod", access.indices[0], integer(height)) if height > 1 else integer(0)
        return dataclasses.replace(access, indices=(row, *access.indices[1:]))

    return map_accesses(body, change)


def _under(conditions: Sequence[Expr], body: tuple[Stmt, ...]) -> tuple[Stmt, ...]:
    if not conditions:
        return body
    return (If(both(conditions), body),)
