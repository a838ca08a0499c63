"""The reads and writes of a kernel as relations from iterations to elements.

A quasi-affine access is exact; another one may touch the whole range of each dimension whose index
is not quasi-affine. The elements of a `Local` have the iterations of the loops around it as first
dimensions, since each iteration has a buffer of its own.
"""

from __future__ import annotations

import contextlib
import functools
import threading
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass

from msops._loops.analysis.polyhedral import library
from msops._loops.analysis.polyhedral.domain import Domain, box
from msops._loops.analysis.polyhedral.library import TooComplex, isl
from msops._loops.analysis.polyhedral.uniform import UniformAccess, uniform
from msops._loops.ir.nodes import Buffer, Expr, For, Kernel, Load, Stmt, Store
from msops._loops.ir.ranges import is_within, range_of
from msops._loops.ir.walk import AccessSite, Scope, visit_accesses


@dataclass(frozen=True, eq=False)
class Access:
    """A load, or the write of a store, over all iterations.

    Attributes:
      node: the load or store.
      declared: the buffer it accesses.
      statement: the statement that evaluates it: a store, or an `If` or `For` with its condition or
        bounds.
      order: the number of the statement in the text, counted over the kernel.
      is_write: whether it is the write of a store.
      domain: the iterations in which it happens.
      uniform: the access without isl; None if that is not possible.
      related: from iterations to elements; None if `uniform` says it.
      is_exact: whether each iteration touches exactly these elements; else at most these.
    """

    node: Load | Store
    declared: Buffer
    statement: Stmt
    order: int
    is_write: bool
    domain: Domain
    uniform: UniformAccess | None
    related: isl.Map | None
    is_exact: bool

    @functools.cached_property
    def relation(self) -> isl.Map:
        """From iterations to elements."""
        if self.related is not None:
            return self.related
        indices = map(self.domain.expression, self.node.indices)
        elements = (isl.Map.from_pw_aff(index) for index in indices if index is not None)
        return _relation(self.domain, self.private_loops, elements)

    @functools.cached_property
    def buffer(self) -> str:
        """The name of the buffer."""
        return self.node.buffer

    @functools.cached_property
    def private_loops(self) -> int:
        """The number of loops around the `Local` of the buffer; 0 for a buffer of the kernel."""
        return self.domain.scope.depths.get(self.buffer, 0)

    @functools.cached_property
    def loops(self) -> tuple[For, ...]:
        """The enclosing loops, outermost first."""
        return self.domain.scope.loops


class _Latest(threading.local):
    """The accesses of the last kernel that a thread asked for; most passes leave it as it is."""

    kernel: Kernel | None = None
    context: isl.Context
    accesses: tuple[Access, ...]


_latest = _Latest()


@contextmanager
def analysis(kernel: Kernel) -> Iterator[tuple[Access, ...]]:
    """Gives all accesses of a kernel to a block, and stops the block past isl's limit.

    They are in the order of the text, reads before the write.

    Raises:
      TooComplex: the limit was reached.
    """
    if _latest.kernel is not kernel:
        context = isl.Context()
        with limited(context):
            found = accesses_at(visit_accesses(kernel), context)
        _latest.kernel, _latest.context, _latest.accesses = kernel, context, found
    with limited(_latest.context):
        yield _latest.accesses


@contextmanager
def analysis_of(sites: Iterable[AccessSite]) -> Iterator[tuple[Access, ...]]:
    """Gives the accesses at some sites of a kernel to a block, as `analysis` does all of them."""
    context = isl.Context()
    with limited(context):
        yield accesses_at(sites, context)


@contextmanager
def limited(context: isl.Context, limit: int | None = None) -> Iterator[None]:
    """Counts isl's steps in a context from 0 and stops it past a limit.

    Args:
      context: the context.
      limit: the most steps; None for `library.OPERATION_LIMIT`.

    Raises:
      TooComplex: the limit was reached.
    """
    context.reset_operations()
    context.set_max_operations(library.OPERATION_LIMIT if limit is None else limit)
    try:
        yield
    except isl.Error as error:
        if "maximal number of operations" in str(error):
            raise TooComplex from error
        raise
    finally:
        context.set_max_operations(0)
        context.reset_operations()


def first_iteration(iterations: isl.Set, loops: Sequence[For]) -> tuple[isl.Point, dict[str, int]]:
    """Returns the first of some iterations of loops, also by loop variable."""
    # isl fails at some sets with floors; then any of the iterations is an example.
    with contextlib.suppress(isl.Error):
        iterations = iterations.lexmin()
    first = iterations.sample_point()
    coordinates = {
        loop.var: first.get_coordinate_val(isl.dim_type.set, depth).to_python()
        for depth, loop in enumerate(loops)
    }
    return first, coordinates


def accesses_at(sites: Iterable[AccessSite], context: isl.Context) -> tuple[Access, ...]:
    """Returns the accesses at some sites of a kernel, in a context of isl."""
    domains: dict[Scope, Domain] = {}

    def domain_of(scope: Scope) -> Domain:
        if scope not in domains:
            outer = scope.outer
            domains[scope] = domain_of(outer).inside(scope) if outer else Domain.of(scope, context)
        return domains[scope]

    return tuple(
        _access(site, functools.reduce(Domain.where, site.conditions, domain_of(site.scope)))
        for site in sites
    )


def _access(site: AccessSite, domain: Domain) -> Access:
    node, scope = site.access, site.scope
    buffer, is_write = scope.buffers[node.buffer], isinstance(node, Store)
    made = functools.partial(Access, node, buffer, site.statement, site.order, is_write, domain)
    known = uniform(node, buffer.shape, domain.spans)
    if known is not None:
        return made(known, None, True)
    is_exact = domain.is_exact
    elements = []
    for index, size in zip(node.indices, buffer.shape, strict=True):
        element = _element(index, size, domain, is_write)
        is_exact = is_exact and element is not None
        elements.append(_anywhere(domain, size) if element is None else element)
    return made(None, _relation(domain, scope.depths.get(node.buffer, 0), elements), is_exact)


def _relation(domain: Domain, private: int, elements: Iterable[isl.Map]) -> isl.Map:
    """Returns a relation of all dimensions from those of the indices."""
    relation = isl.Map.from_domain(isl.Set.universe(domain.space))
    own = (isl.Map.from_pw_aff(domain.iterator(depth)) for depth in range(private))
    for element in (*own, *elements):
        relation = relation.flat_range_product(element)
    return relation.intersect_domain(domain.points)


def _element(index: Expr, size: int, domain: Domain, is_store: bool) -> isl.Map | None:
    """Returns the relation of one dimension, or None if the index is not quasi-affine.

    In an exact domain an index out of range is an error, found elsewhere. In another domain a load
    clamps and a store is dropped.
    """
    value = domain.expression(index)
    if value is None:
        return None
    relation = isl.Map.from_pw_aff(value)
    if domain.is_exact or is_within(range_of(index, domain.scope.ranges), (0, size - 1)):
        return relation
    if is_store:
        return relation.intersect_range(_interval(domain, size))
    first, last = domain.constant(0), domain.constant(max(size - 1, 0))
    return isl.Map.from_pw_aff(value.max(first).min(last))


def _anywhere(domain: Domain, size: int) -> isl.Map:
    universe = isl.Set.universe(domain.space)
    return isl.Map.from_domain_and_range(universe, _interval(domain, size))


def _interval(domain: Domain, size: int) -> isl.Set:
    return box(domain.context, [(0, size)])
