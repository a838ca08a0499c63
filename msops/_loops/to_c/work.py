"""The amount of arithmetic in a row, for passes that put rows into the lanes of vectors."""

from __future__ import annotations

from collections.abc import Iterable

from msops._loops.analysis.costs import computed, effort
from msops._loops.ir.nodes import Load, Stmt, Store

LEAST_WORK = 4
"""Operations for each element that a row fetches; with fewer, vectors do not pay."""


def work(inside: Iterable[Stmt]) -> int:
    """Returns about how many operations the statements of a row take; loads are none."""
    parts = [part for s in inside if isinstance(s, Store) for part in computed(s.value)]
    return sum(effort(part) for part in parts if not isinstance(part, Load))
