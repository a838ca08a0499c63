"""Which cases of a table `make test` runs; `make test-all` runs all of them."""

from __future__ import annotations

from collections.abc import Iterable
from itertools import product
from typing import Any

import pytest
from _pytest.mark import ParameterSet


def case_of(*parts: Any, quick: bool) -> Any:
    """Returns the case of these parts: values or ``pytest.param``; it is slow if not quick."""
    params = [part if isinstance(part, ParameterSet) else pytest.param(part) for part in parts]
    values = [value for param in params for value in param.values]
    marks = [mark for param in params for mark in param.marks]
    named = any(param.id for param in params)
    name = "-".join(param.id or "-".join(map(str, param.values)) for param in params)
    return pytest.param(
        *values, marks=marks + [pytest.mark.slow] * (not quick), id=name if named else None
    )


def one_in(count: int, cases: Iterable[Any], first: int = 0) -> list[Any]:
    """Returns the cases, slow but for every `count`-th from number `first` on.

    Tests of one table begin at different numbers: together they have every row. A case is a value,
    a tuple of values, or a ``pytest.param``.
    """
    parts = (case if type(case) is tuple else (case,) for case in cases)
    return [case_of(*part, quick=n % count == first) for n, part in enumerate(parts)]


def in_turn(rows: Iterable[Any], columns: Iterable[Any]) -> list[Any]:
    """Returns each row with each column, slow but for those pairs whose turn it is.

    Each row and each column is in a pair that is not slow.
    """
    rows, columns = list(rows), list(columns)
    turns = min(len(rows), len(columns))
    return [
        case_of(row, column, quick=(r - c) % turns == 0)
        for (r, row), (c, column) in product(enumerate(rows), enumerate(columns))
    ]
