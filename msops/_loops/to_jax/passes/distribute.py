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
from dataclasses import dataclass, field

from msops._loops.analysis.polyhedral.dependences import dependences
from msops._loops.analysis.updates import kept_extreme_of
from msops._loops.ir.algebra import binary, integer
from msops._loops.ir.names import Names, unique_names
from msops._loops.ir.nodes import INDEX_DTYPE, Buffer, Expr, For, If, Kernel, Load, Stmt, Store, Var
from msops._loops.ir.ranges import Ranges
from msops._loops.ir.walk import loads, nested, ranges_of, variables
from msops._loops.to_jax.passes.sites import Edge, Site, edges_of, read_first, sites_of
from msops._loops.to_jax.raising.nests import LONGEST_HULL


def distribute(kernel: Kernel) -> Kernel:
    """Returns the kernel as a sequence of nests, in the raised form: each has one store.

    The kernel has no locals, and no body stores to what its conditions and bounds read.

    Raises:
      TooComplex: isl did not finish within its limit.
    """
    found = dependences(kernel, finds_kept=True)
    sites = sites_of(kernel)
    distribution = _Distribution(ranges_of(kernel), Names(kernel))
    body = distribution.nests(sites, edges_of(found, kernel, sites), ())
    buffers = (*kernel.buffers, *distribution.buffers)
    return unique_names(dataclasses.replace(kernel, buffers=buffers, body=body))


_LONGEST_MASKED = 1 << 10
"""Steps that all are run where data say how many a row has. Where there may be more, the end of the
longest row is found first."""


@dataclass(frozen=True)
class _Distribution:
    """Makes nests of stores.

    Attributes:
      ranges: the range of each loop variable.
      names: for temporaries.
      buffers: temporaries added so far.
    """

    ranges: Ranges
    names: Names
    buffers: list[Buffer] = field(default_factory=list)

    def nests(
        self, sites: Sequence[Site], edges: frozenset[Edge], postponed: tuple[For | If, ...]
    ) -> tuple[Stmt, ...]:
        """Returns nests that run the sites inside what is postponed, which carries no order."""
        numbers = {site.order: n for n, site in enumerate(sites)}
        ordering = [
            (numbers[edge.source], numbers[edge.target])
            for edge in edges
            if not _may_be_reordered(edge)
        ]
        nests: list[Stmt] = []
        for component in components(len(sites), ordering):
            group = [sites[n] for n in component]
            inside = {site.order for site in group}
            own = frozenset(e for e in edges if e.source in inside and e.target in inside)
            nests += self.component(group, own, postponed)
        return tuple(nests)

    def component(
        self, group: Sequence[Site], edges: frozenset[Edge], postponed: tuple[For | If, ...]
    ) -> tuple[Stmt, ...]:
        """Returns nests for stores that depend on each other in a cycle, or for a single one."""
        if len(group) > 1:
            return self.cycle(group, _keeping_extremes(group, edges), postponed)
        site = dataclasses.replace(group[0], path=(*postponed, *group[0].path))
        if all(map(_may_be_reordered, edges)):
            return _vector_nest(site, edges)
        split = read_first(site, edges, self.ranges, self.names)
        if split is not None:
            buffer, reading, writing = split
            self.buffers.append(buffer)
            return tuple(
                nest
                for store in (reading, writing)
                for nest in _vector_nest(dataclasses.replace(site, store=store), ())
            )
        return self.cycle(group, edges, postponed)

    def cycle(
        self, group: Sequence[Site], edges: frozenset[Edge], postponed: tuple[For | If, ...]
    ) -> tuple[Stmt, ...]:
        """Returns nests with a serial loop for stores that depend on each other."""
        # A cycle has an edge that a loop around all its stores carries: the first one is common.
        depth = next(n for n, part in enumerate(group[0].path) if isinstance(part, For))
        guards, loop = group[0].path[:depth], group[0].path[depth]
        assert isinstance(loop, For)
        inner = [dataclasses.replace(site, path=site.path[depth + 1 :]) for site in group]
        if not any(e.carrier == loop.var and not _may_be_reordered(e) for e in edges):
            return self.nests(inner, edges, (*postponed, *guards, loop))
        rest = frozenset(edge for edge in edges if edge.carrier != loop.var)
        free = {part.var for part in postponed if isinstance(part, For)}
        outside = tuple(g for g in guards if isinstance(g, If) and not _uses(g.condition, free))
        postponed = (*postponed, *(guard for guard in guards if guard not in outside))
        if not _uses(loop.begin, free) and not _uses(loop.end, free):
            body = self.nests(inner, rest, postponed)
            return nested(body, (*outside, _serial(loop)))
        low, high = self.ranges[loop.var]
        hull = dataclasses.replace(loop, begin=integer(low), end=integer(high + 1))
        around: tuple[For | If, ...] = (_serial(hull),)
        ahead: tuple[Stmt, ...] = ()
        if high - low >= _LONGEST_MASKED and loads(loop.end) and not _uses(loop.begin, free):
            last, ahead = self.longest(loop, postponed)
            # Reverse mode needs a number of steps that is known.
            around = (*around, If(binary("lt", Var(loop.var), last), ()))
            if high - low >= LONGEST_HULL:
                around = (_serial(dataclasses.replace(loop, end=last)),)
        elif high - low >= LONGEST_HULL:
            # The postponed loops stay outside, where they may run in order as well.
            body = self.nests(inner, rest, ())
            kept = (_serial(part) if isinstance(part, For) else part for part in postponed)
            return nested(body, (*outside, *kept, _serial(loop)))
        body = self.nests(inner, rest, (*postponed, *_bounds(loop)))
        return nested((*ahead, *nested(body, around)), outside)

    def longest(self, loop: For, around: Sequence[For | If]) -> tuple[Expr, tuple[Stmt, ...]]:
        """Returns the last of a loop's ends, and the statements that find it.

        Args:
          loop: a loop that begins at the same number for all rows around it.
          around: the loops over rows, and conditions.
        """
        buffer = Buffer(self.names.fresh(f"{loop.var}_end"), (), INDEX_DTYPE)
        self.buffers.append(buffer)
        last = Load(buffer.name, (), INDEX_DTYPE)
        start = Store(buffer.name, (), loop.begin)
        store = Store(buffer.name, (), binary("max", last, loop.end), location=loop.location)
        rows = [
            dataclasses.replace(part, kind="reduction") if isinstance(part, For) else part
            for part in around
        ]
        return last, (start, *nested((store,), rows))


def _keeping_extremes(group: Sequence[Site], edges: Iterable[Edge]) -> frozenset[Edge]:
    """Returns orders in which what keeps an extreme is no reduction: a loop inside may move out."""
    kept = {site.order for site in group if kept_extreme_of(site.store)}
    return frozenset(
        dataclasses.replace(e, is_reduction=e.is_reduction and e.source not in kept) for e in edges
    )


def _may_be_reordered(edge: Edge) -> bool:
    return edge.is_reduction and edge.carrier is not None


def _vector_nest(site: Site, edges: Iterable[Edge]) -> tuple[Stmt, ...]:
    reductions = {edge.carrier for edge in edges}
    parts = tuple(
        dataclasses.replace(part, kind="reduction" if part.var in reductions else "parallel")
        if isinstance(part, For)
        else part
        for part in site.path
    )
    return nested((site.store,), parts)


def _serial(loop: For) -> For:
    return dataclasses.replace(loop, kind="serial")


def _uses(expr: Expr, names: set[str]) -> bool:
    return not names.isdisjoint(variables(expr))


def _bounds(loop: For) -> tuple[If, ...]:
    variable = Var(loop.var)
    tests = (
        binary("le", loop.begin, variable),
        binary("lt", variable, loop.end),
    )
    return tuple(If(test, (), location=loop.location) for test in tests)


def components(count: int, edges: Iterable[tuple[int, int]]) -> list[list[int]]:
    """Returns the strongly connected components of the graph of nodes 0 .. count - 1.

    Each component comes after those with edges into it, otherwise in the order of their least
    nodes; the nodes of one are sorted.
    """
    behind = _reached(count, edges)
    left = dict.fromkeys(range(count))
    ordered: list[list[int]] = []
    while left:
        # What all that leads to it is led to by: the component, and nothing before it.
        first = next(n for n in left if all(behind[n] >> m & 1 for m in left if behind[m] >> n & 1))
        ordered.append([n for n in left if behind[first] >> n & 1 and behind[n] >> first & 1])
        for node in ordered[-1]:
            del left[node]
    return ordered


def _reached(count: int, edges: Iterable[tuple[int, int]]) -> list[int]:
    """Returns the nodes that paths from each node lead to, and itself, as bits of a number."""
    reached = [1 << node for node in range(count)]
    for source, target in edges:
        reached[source] |= 1 << target
    for middle in range(count):
        for node in range(count):
            if reached[node] >> middle & 1:
                reached[node] |= reached[middle]
    return reached
