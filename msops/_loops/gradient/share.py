"""Names what several expressions have in common, so that it is computed once."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator

from msops._loops.ir.nodes import Binary, Buffer, Expr, FunctionCall, Load, Select
from msops._loops.ir.operators import is_float
from msops._loops.ir.walk import exchanged, expressions, operands, size_of


def share(
    values: list[Expr], fresh: Callable[[str], str]
) -> tuple[list[tuple[Buffer, Expr]], list[Expr]]:
    """Returns scalars to define, in order, and the values in terms of them.

    Only float operations evaluated more than once are named, and only where one evaluation is
    outside the branches of a `Select`: what a choice leaves out may be out of range.
    """
    named: list[tuple[Buffer, Expr]] = []
    while repeated := _largest_repeated([*(expr for _, expr in named), *values]):
        scalar = Buffer(fresh("v"), (), repeated.dtype)
        load = Load(scalar.name, (), scalar.dtype)

        named = [(buffer, exchanged(expr, repeated, load)) for buffer, expr in named]
        values = [exchanged(value, repeated, load) for value in values]
        named.insert(0, (scalar, repeated))
    return named, values


def _largest_repeated(values: list[Expr]) -> Expr | None:
    counts = Counter(part for value in values for part in _operations(value))
    certain = {part for value in values for part in _certain(value)}
    repeated = [part for part, count in counts.items() if count > 1 and part in certain]
    return max(repeated, key=size_of, default=None)


def _operations(expr: Expr) -> Iterator[Expr]:
    return (
        p for p in expressions(expr) if isinstance(p, Binary | FunctionCall) and is_float(p.dtype)
    )


def _certain(expr: Expr) -> Iterator[Expr]:
    """Yields the parts that are evaluated whatever is chosen."""
    yield expr
    for part in (expr.condition,) if isinstance(expr, Select) else operands(expr):
        yield from _certain(part)
