"""The amount of arithmetic in statements and expressions."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from msops._loops.analysis.costs import computed, effort, mean_trips
from msops._loops.ir.nodes import Expr, For, If, Load, Stmt, Store
from msops._loops.ir.ranges import Ranges
from msops._loops.ir.walk import bodies

LEAST_WORK = 4
"""Operations for each element that a row fetches; with fewer, vectors do not pay."""


MOST_EFFORT = 8
"""Quick operations that take less than the wrong guess of a branch."""


def work(inside: Iterable[Stmt]) -> int:
    """Returns about how many operations the statements of a row take; loads are none."""
    parts = [part for stmt in inside for part in _computed(stmt)]
    return sum(effort(part) for part in parts if not isinstance(part, Load))


def _computed(stmt: Stmt) -> Iterator[Expr]:
    match stmt:
        case Store(value=whole) | If(condition=whole):
            yield from computed(whole)


def work_in_loops(body: Sequence[Stmt], ranges: Ranges) -> float:
    """Returns about how many operations statements take, with the loops in them.

    Args:
      body: the statements.
      ranges: of the variables of the loops around them and in them.
    """
    total = 0.0
    for stmt in body:
        inner = sum(work_in_loops(part, ranges) for part in bodies(stmt))
        total += mean_trips(stmt, ranges) * inner if isinstance(stmt, For) else inner
    return total + work(body)


def is_quick(expr: Expr) -> bool:
    """Returns whether to evaluate an expression takes less than the wrong guess of a branch."""
    return sum(map(effort, computed(expr))) <= MOST_EFFORT
