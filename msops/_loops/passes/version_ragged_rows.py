"""Rows whose lengths are data get a version in which these are known to be in range.

    parallel b in 0 .. 4 {             parallel b in 0 .. 4 {
      parallel i in 0 .. 8 {             if ((n[b] >= 0) && (n[b] <= 96)) @usual {
        serial j in 0 .. n[b] {            parallel i in 0 .. 8 {
          serial k in 0 .. 9 {               parallel j in 0 .. within(n[b], 0, 96) {
            y[b, i, j] = ...      ->           ...
                                         } else {
                                           serial i_1 in 0 .. 8 {
                                             serial j_1 in 0 .. n[b] {
                                               ...

Beyond the end of an array a load is clamped and a store is dropped (rule 3 of `_loops/README.md`).
So iterations of a row of any length may touch one element, and run in order. With a greatest length
they touch their own, and a row is to other passes what a row of a triangle is. The other version is
for lengths that are out of range, and runs in order. Innermost loops have versions of their own,
see `to_c/ranges/versioning.py`; where they end as a loop around others does, they get these too.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from typing import TypeAlias

from msops._loops.analysis.affine import INDEX_DTYPES, affine
from msops._loops.analysis.kinds import find_kinds
from msops._loops.ir.algebra import binary, both
from msops._loops.ir.names import unique_names
from msops._loops.ir.nodes import Const, Expr, For, If, Kernel, Stmt, Var, Within
from msops._loops.ir.ranges import Range, dtype_range, is_known, is_within, range_of
from msops._loops.ir.walk import (
    Scope,
    accesses_in,
    is_innermost,
    loads,
    rewrite_statements,
    statements,
    stored_in,
    variables,
    visit,
    with_body,
    with_parts,
)
from msops._loops.passes.elements import exists

_MOST_STATEMENTS = 100
"""Statements of a kernel that gets two versions."""

_Path: TypeAlias = tuple[str, ...]
"""The variables of the loops around a statement, outermost first."""


def version_ragged_rows(kernel: Kernel) -> Kernel:
    """Returns the kernel with two versions of the nests over ragged rows."""
    rows = _ragged_rows(kernel)
    if not rows or len(statements(kernel.body)) > _MOST_STATEMENTS:
        return kernel
    limits = {end: limit for ends in rows.values() for end, limit in ends.items()}

    def limited(loop: For) -> tuple[Stmt, ...]:
        end = Within(loop.end, *limits[loop.end]) if loop.end in limits else loop.end
        return (with_parts(loop, end=end),)

    def marked(loop: For) -> tuple[Stmt, ...]:
        return (with_parts(loop, kind=kinds[loop.var]),)

    def serial(loop: For) -> tuple[Stmt, ...]:
        return (with_parts(loop, kind="serial"),)

    def versions(body: tuple[Stmt, ...], ends: dict[Expr, Range]) -> tuple[Stmt, ...]:
        conditions = [test for end, limit in ends.items() for test in _in_range(end, limit)]
        then = rewrite_statements(rewrite_statements(body, limited, For), marked, For)
        return (If(both(conditions), then, rewrite_statements(body, serial, For), is_usual=True),)

    def replaced(loop: For) -> tuple[Stmt, ...]:
        ends = of_loops.get(loop.var)
        return (loop if ends is None else with_parts(loop, body=versions(loop.body, ends)),)

    kinds = find_kinds(with_body(kernel, rewrite_statements(kernel.body, limited, For))).by_variable
    of_loops = {path[-1]: ends for path, ends in rows.items() if path}
    body = rewrite_statements(kernel.body, replaced, For)
    return unique_names(with_body(kernel, versions(body, rows[()]) if () in rows else body))


def _in_range(end: Expr, limit: Range) -> Iterator[Expr]:
    """Yields what holds where an end is within its limits, but for what its dtype says."""
    low, high = dtype_range(end.dtype)
    if low < limit[0]:
        yield binary("ge", end, Const(limit[0], end.dtype))
    if limit[1] < high:
        yield binary("le", end, Const(limit[1], end.dtype))


def _ragged_rows(kernel: Kernel) -> dict[_Path, dict[Expr, Range]]:
    """Returns the lengths of rows and their limits, by the loops that a length depends on.

    Only loops around a nest of rows are among them, and of these the outermost.
    """
    steady = {buffer.name for buffer in kernel.parameters} - stored_in(kernel.body)
    rows: dict[_Path, dict[Expr, Range]] = defaultdict(dict)
    nests: set[_Path] = set()
    for stmt, scope in visit(kernel):
        limit = _limit(stmt, scope) if isinstance(stmt, For) else None
        if not isinstance(stmt, For) or limit is None:
            continue
        used = loads(stmt.end)
        if not all(x.buffer in steady and exists(x, scope.ranges, scope.buffers) for x in used):
            continue
        path = tuple(loop.var for loop in scope.loops)
        while path and path[-1] not in variables(stmt.end):
            path = path[:-1]
        low, high = rows[path].get(stmt.end, limit)
        rows[path][stmt.end] = (max(low, limit[0]), min(high, limit[1]))
        if not is_innermost(stmt):
            nests.add(path)
    return {
        path: ends
        for path, ends in rows.items()
        if path in nests and not any(path[:count] in rows for count in range(len(path)))
    }


def _limit(loop: For, scope: Scope) -> Range | None:
    """Returns the least and greatest end of a loop over data that only touches what is in range."""
    first = range_of(loop.begin, scope.ranges)
    if not is_known(first) or not loads(loop.end):
        return None
    ends = [
        size - moving.constant
        for access in accesses_in(loop.body)
        if access.buffer in scope.buffers
        for index, size in zip(access.indices, scope.buffers[access.buffer].shape, strict=True)
        if index.dtype in INDEX_DTYPES
        and (moving := affine(index, {loop.var}))
        and moving.terms == {Var(loop.var): 1}
    ]
    if not ends or min(ends) <= first[1]:
        return None
    limit = (min(0, first[0]), min(ends))
    return None if is_within(range_of(loop.end, scope.ranges), limit) else limit
