"""Counts the operations of a kernel, by the kinds that XLA's cost analysis has.

Arithmetic on elements of arrays, and on values computed from them, counts. The arithmetic of
indices and bounds does not, nor do comparisons, choices and conversions. An operation counts as
often as its statement runs: isl counts the iterations. A condition on data counts as its longer
branch.
"""

from __future__ import annotations

import functools
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import TypeAlias, TypeVar

from msops._loops.analysis.costs import fixed_trips
from msops._loops.analysis.polyhedral.accesses import limited
from msops._loops.analysis.polyhedral.domain import Domain
from msops._loops.analysis.polyhedral.library import TooComplex, count, isl
from msops._loops.ir.functions import FUNCTIONS
from msops._loops.ir.nodes import (
    Binary,
    Expr,
    For,
    FunctionCall,
    If,
    Kernel,
    Load,
    Local,
    Select,
    Stmt,
    Store,
    Unary,
)
from msops._loops.ir.operators import COMPARISONS, LOGICAL, is_float
from msops._loops.ir.walk import (
    Scope,
    expressions,
    operands,
    own_expressions,
    statements,
    variables,
)

_MOST_STEPS = 30_000_000
"""Steps of isl for one kernel: 4 seconds, in which it counts a Cholesky of 2,000 rows."""


def count_operations(kernel: Kernel) -> dict[str, int]:
    """Returns the number of "flops" and of "transcendentals".

    Empty if data decides the trips of a loop, or isl cannot count them in time.
    """
    try:
        context = isl.Context()
        with limited(context, _MOST_STEPS):
            found = _in_body(kernel.body, _Region(Domain.of(Scope.of(kernel), context)))
    except (TooComplex, _DependsOnData):
        return {}
    return {kind: found[kind] for kind in ("flops", "transcendentals")}


class _DependsOnData(Exception):
    """Data decides the number of iterations of a loop."""


Counts: TypeAlias = "Counter[str]"
"""Operations by kind; `+` adds them, `|` takes the greater number of each kind."""

_Part = TypeVar("_Part")


def _kind(expr: Expr) -> str | None:
    """Returns the kind of an expression's last operation; None if it does not count."""
    match expr:
        case Unary(op=op) if op != "not":
            return "flops"
        case Binary(op="pow"):
            return "transcendentals"
        case Binary(op=op) if op not in (*COMPARISONS, *LOGICAL):
            return "flops"
        case FunctionCall(function=function) if not FUNCTIONS[function].to_bool:
            return "transcendentals" if FUNCTIONS[function].is_transcendental else "flops"
    return None


@dataclass(frozen=True)
class _Region:
    """Iterations in which something runs.

    Attributes:
      domain: the iterations, without the loops whose variables decide nothing inside.
      factor: the product of the trips of those loops.
    """

    domain: Domain
    factor: int = 1

    @functools.cached_property
    def size(self) -> int:
        """The number of iterations."""
        return self.factor * count(self.domain.points)

    def inside(self, loop: For) -> _Region:
        """Returns the region of the body of a loop."""
        trips = fixed_trips(loop)
        if trips is not None and not _decides(loop):
            return _Region(self.domain, self.factor * trips)
        (scope,) = self.domain.scope.inside(loop)
        domain = self.domain.inside(scope)
        if not domain.is_exact:
            raise _DependsOnData
        return _Region(domain, self.factor)

    def branches(self, condition: Expr) -> tuple[_Region, _Region] | None:
        """Returns the regions where a condition holds and fails; None if data decides."""
        holds = self.domain.where(condition)
        if not holds.is_exact:
            return None
        fails = self.domain.where(condition, negated=True)
        return _Region(holds, self.factor), _Region(fails, self.factor)


def _decides(loop: For) -> bool:
    """Returns whether a bound or a condition inside a loop depends on its variable."""
    return any(
        loop.var in variables(expr) for stmt in statements(loop.body) for expr in _deciding(stmt)
    )


def _deciding(stmt: Stmt) -> Iterator[Expr]:
    own = own_expressions(stmt)
    if isinstance(stmt, For | If):
        yield from own
    for part in (part for expr in own for part in expressions(expr)):
        if isinstance(part, Select):
            yield part.condition


def _in_body(body: tuple[Stmt, ...], region: _Region) -> Counts:
    return sum((_in_statement(stmt, region) for stmt in body), Counter())


def _in_statement(stmt: Stmt, region: _Region) -> Counts:
    match stmt:
        case Store(value=value):
            return _in_expression(value, region)
        case For(body=body):
            return _in_body(body, region.inside(stmt))
        case Local(body=body):
            return _in_body(body, region)
        case If(condition=condition, then=then, otherwise=otherwise):
            return _in_choice(_in_body, condition, then, otherwise, region)


def _in_expression(expr: Expr, region: _Region) -> Counts:
    match expr:
        case Load():
            # The indices are part of the address.
            return Counter()
        case Select(condition=condition, then=then, otherwise=otherwise):
            return _in_choice(_in_expression, condition, then, otherwise, region)
    found = sum((_in_expression(operand, region) for operand in operands(expr)), Counter())
    kind = _kind(expr)
    if kind and (is_float(expr.dtype) or any(isinstance(p, Load) for p in expressions(expr))):
        found[kind] += region.size
    return found


def _in_choice(
    counted: Callable[[_Part, _Region], Counts],
    condition: Expr,
    then: _Part,
    otherwise: _Part,
    region: _Region,
) -> Counts:
    own, branches = _in_expression(condition, region), region.branches(condition)
    if branches is None:
        return own + (counted(then, region) | counted(otherwise, region))
    return own + counted(then, branches[0]) + counted(otherwise, branches[1])
