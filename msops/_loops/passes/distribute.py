"""Splits a kernel into nests of one store each, as far as dependences allow (Allen and Kennedy).

    serial i in 1 .. 8 {                    parallel i in 1 .. 8 {
      b[i] = a[i] * 2.0                       b[i] = a[i] * 2.0
      c[i] = c[i - 1] + b[i]       ->       }
    }                                       serial i_1 in 1 .. 8 {
                                              c[i_1] = c[i_1 - 1] + b[i_1]

Stores that depend on each other in a cycle stay together in a serial loop, the outermost one that
carries such a dependence; inside it the rest is split again. Loops around it that carry none of the
cycle's dependences move inwards, so that what is run in order is outside and each step works on
whole arrays. Repeated updates of an element by one operation do not order each other.

Source: R. Allen, K. Kennedy, "Automatic Translation of FORTRAN Programs to Vector Form",
TOPLAS 9(4), 1987.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from msops._loops.errors import NotRaised
from msops._loops.ir import INDEX_DTYPE, Binary, Const, Expr, For, If, Kernel, Stmt, Store
from msops._loops.ir import Unary, Var
from msops._loops.passes.graph import components
from msops._loops.passes.rename import rename_loops
from msops._loops.ranges import Ranges, dtype_range, loop_range
from msops._loops.walk import expressions, with_body

if TYPE_CHECKING:
    from msops._loops.polyhedral.dependences import Dependence


@dataclass(frozen=True)
class _Place:
    """A store with what is around it, outermost first; an `If` of the path has no bodies.

    Attributes:
      order: the number of the store in the text, as `Access.order`.
      store: the store.
      path: loops and conditions around it that are not printed yet.
      orders: the numbers of the store, and of all loops and conditions around it.
    """

    order: int
    store: Store
    path: tuple[For | If, ...]
    orders: frozenset[int]


@dataclass(frozen=True)
class _Edge:
    """An order between two stores, by their numbers; see `Dependence` for the others."""

    source: int
    target: int
    carrier: str | None
    is_reduction: bool


def distribute(kernel: Kernel) -> Kernel:
    """Returns the kernel as a sequence of nests, in the raised form of the package's README.

    The kernel has no locals, and no body stores to what its conditions and bounds read.

    Raises:
      NotRaised: the dependences are too complex to analyse.
    """
    # At the first compile, not with `import msops`.
    from msops._loops.polyhedral.dependences import dependences
    from msops._loops.polyhedral.library import TooComplex

    try:
        found = dependences(kernel)
    except TooComplex:
        raise NotRaised("its dependences are too complex to analyse") from None
    places = _places(kernel)
    body = _Distribution(_ranges(kernel)).nests(places, _edges(found, places), ())
    return rename_loops(with_body(kernel, body))


def _places(kernel: Kernel) -> list[_Place]:
    found: list[_Place] = []
    count = 0

    def visit(body: Iterable[Stmt], path: tuple[For | If, ...], orders: frozenset[int]) -> None:
        nonlocal count
        for stmt in body:
            order = count
            count += 1
            inner = orders | {order}
            match stmt:
                case Store():
                    found.append(_Place(order, stmt, path, inner))
                case For():
                    visit(stmt.body, (*path, dataclasses.replace(stmt, body=())), inner)
                case If(condition=condition):
                    holds = dataclasses.replace(stmt, then=(), otherwise=())
                    fails = dataclasses.replace(holds, condition=Unary("not", condition, "bool"))
                    visit(stmt.then, (*path, holds), inner)
                    visit(stmt.otherwise, (*path, fails), inner)

    visit(kernel.body, (), frozenset())
    return found


def _ranges(kernel: Kernel) -> dict[str, tuple[int, int]]:
    ranges: dict[str, tuple[int, int]] = {}

    def visit(body: Iterable[Stmt]) -> None:
        for stmt in body:
            match stmt:
                case For():
                    ranges[stmt.var] = loop_range(stmt, ranges)
                    visit(stmt.body)
                case If():
                    visit((*stmt.then, *stmt.otherwise))

    visit(kernel.body)
    return ranges


def _edges(found: Iterable[Dependence], places: Sequence[_Place]) -> frozenset[_Edge]:
    """Returns the order between stores; those inside a loop or `If` do what it evaluates."""
    owners: dict[int, list[int]] = {}
    for place in places:
        for order in place.orders:
            owners.setdefault(order, []).append(place.order)
    return frozenset(
        _Edge(source, target, dependence.carrier, dependence.is_reduction)
        for dependence in found
        for source in owners.get(dependence.source.order, ())
        for target in owners.get(dependence.target.order, ())
        if dependence.carrier is not None or source != target
    )


@dataclass(frozen=True)
class _Distribution:
    """Prints places as nests; `ranges` has the interval of each loop variable."""

    ranges: Ranges

    def nests(
        self, places: Sequence[_Place], edges: frozenset[_Edge], postponed: tuple[For | If, ...]
    ) -> tuple[Stmt, ...]:
        """Returns nests that run the places inside what is postponed, which carries no order."""
        numbers = {place.order: n for n, place in enumerate(places)}
        ordering = [
            (numbers[edge.source], numbers[edge.target])
            for edge in edges
            if not (edge.is_reduction and edge.carrier)
        ]
        nests: list[Stmt] = []
        for component in components(len(places), ordering):
            group = [places[n] for n in component]
            inside = {place.order for place in group}
            own = frozenset(e for e in edges if e.source in inside and e.target in inside)
            if all(edge.is_reduction for edge in own) and len(group) == 1:
                nests.append(_vector_nest(group[0], own, postponed))
            else:
                nests.extend(self.cycle(group, own, postponed))
        return tuple(nests)

    def cycle(
        self, group: Sequence[_Place], edges: frozenset[_Edge], postponed: tuple[For | If, ...]
    ) -> tuple[Stmt, ...]:
        """Returns nests for stores that depend on each other, or one that depends on itself."""
        # A cycle needs an edge that a common loop carries, so there is one and it is the same.
        depth = next(n for n, part in enumerate(group[0].path) if isinstance(part, For))
        loop = group[0].path[depth]
        guards = group[0].path[:depth]
        assert isinstance(loop, For)
        inner = [dataclasses.replace(place, path=place.path[depth + 1 :]) for place in group]
        if not any(edge.carrier == loop.var and not edge.is_reduction for edge in edges):
            return self.nests(inner, edges, (*postponed, *guards, loop))
        rest = frozenset(edge for edge in edges if edge.carrier != loop.var)
        free = {part.var for part in postponed if isinstance(part, For)}
        outside = tuple(guard for guard in guards if not _uses(guard.condition, free))
        postponed = (*postponed, *(guard for guard in guards if guard not in outside))
        if not _uses(loop.begin, free) and not _uses(loop.end, free):
            body = self.nests(inner, rest, postponed)
            return (_wrapped((_as(loop, "serial", body),), outside),)
        low, high = self.ranges[loop.var]
        if not _is_known(low, high):
            # The postponed loops stay outside, where they may run in order as well.
            body = self.nests(inner, rest, ())
            serial = tuple(
                dataclasses.replace(part, kind="serial") if isinstance(part, For) else part
                for part in postponed
            )
            return (_wrapped((_as(loop, "serial", body),), (*outside, *serial)),)
        body = self.nests(inner, rest, (*postponed, *_bounds(loop)))
        hull = dataclasses.replace(
            loop, begin=Const(low, INDEX_DTYPE), end=Const(high + 1, INDEX_DTYPE)
        )
        return (_wrapped((_as(hull, "serial", body),), outside),)


def _vector_nest(place: _Place, edges: Iterable[_Edge], postponed: tuple[For | If, ...]) -> Stmt:
    reductions = {edge.carrier for edge in edges}
    parts = tuple(
        dataclasses.replace(part, kind="reduction" if part.var in reductions else "parallel")
        if isinstance(part, For)
        else part
        for part in (*postponed, *place.path)
    )
    return _wrapped((place.store,), parts)


def _as(loop: For, kind: str, body: tuple[Stmt, ...]) -> For:
    return dataclasses.replace(loop, kind=kind, body=body)


def _wrapped(body: tuple[Stmt, ...], parts: Sequence[For | If]) -> Stmt:
    """Returns statements inside loops and conditions, given outermost first."""
    for part in reversed(parts):
        if isinstance(part, For):
            body = (dataclasses.replace(part, body=body),)
        else:
            body = (dataclasses.replace(part, then=body),)
    (stmt,) = body
    return stmt


def _uses(expr: Expr, variables: Iterable[str]) -> bool:
    return any(isinstance(part, Var) and part.name in variables for part in expressions(expr))


def _is_known(low: int, high: int) -> bool:
    """Tells whether a range is narrower than what is assumed of unknown values."""
    first, last = dtype_range(INDEX_DTYPE)
    return low > first and high + 1 < last


def _bounds(loop: For) -> tuple[If, ...]:
    variable = Var(loop.var)
    return tuple(
        If(Binary(op, limit, value, "bool"), (), location=loop.location)
        for op, limit, value in (("le", loop.begin, variable), ("lt", variable, loop.end))
    )
