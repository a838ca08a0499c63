"""A kernel as its stores with what is around each, and the orders between them."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass
from typing import Literal

from msops._loops.analysis.polyhedral.dependences import Dependence
from msops._loops.ir.algebra import binary, integer
from msops._loops.ir.names import Names
from msops._loops.ir.nodes import Buffer, Expr, For, If, Kernel, Load, Store, Var
from msops._loops.ir.ranges import Ranges
from msops._loops.ir.walk import loads, own_expressions, statements, visit
from msops._loops.to_jax.passes.expand_locals import ELEMENT_LIMIT


@dataclass(frozen=True)
class Site:
    """A store with what is around it.

    Attributes:
      order: the number of the store in the text, as `Access.order`.
      store: the store.
      path: the loops and conditions around it that are not printed yet, outermost first and
        without their bodies; a condition holds where the store runs.
    """

    order: int
    store: Store
    path: tuple[For | If, ...]


@dataclass(frozen=True)
class Edge:
    """An order between two stores.

    Attributes:
      source: the number of the store that comes first.
      target: the number of the other one, or of the same.
      carrier: the loop whose iterations it orders; None: the same iteration of common loops.
      kind: of the dependence.
      is_reduction: both are updates that may be reordered.
    """

    source: int
    target: int
    carrier: str | None
    kind: Literal["flow", "anti", "output"]
    is_reduction: bool


def sites_of(kernel: Kernel) -> list[Site]:
    """Returns the stores of a kernel without locals, in the order of the text."""
    return [
        Site(order, stmt, scope.path)
        for order, (stmt, scope) in enumerate(visit(kernel))
        if isinstance(stmt, Store)
    ]


def edges_of(found: Iterable[Dependence], kernel: Kernel, sites: Sequence[Site]) -> frozenset[Edge]:
    """Returns the orders between stores.

    What a loop or `If` evaluates counts for each store inside, which will evaluate it again.
    """
    # The statements inside one follow it in the text.
    last = [n + sum(1 for _ in statements((s,))) for n, s in enumerate(statements(kernel.body))]
    stores = {
        order: [site.order for site in sites if order <= site.order < end]
        for order, end in enumerate(last)
    }
    return frozenset(
        Edge(source, target, dependence.carrier, dependence.kind, dependence.is_reduction)
        for dependence in found
        for source in stores[dependence.source.order]
        for target in stores[dependence.target.order]
        if dependence.carrier is not None or source != target
    )


def read_first(
    site: Site, edges: Collection[Edge], ranges: Ranges, names: Names
) -> tuple[Buffer, Store, Store] | None:
    """Returns a temporary, a store to it of all values, and a store of these to their elements.

    None if other orders remain than of reading before writing, or a condition around the store
    would be changed by it, or the number of values is unknown or too large.
    """
    if any(edge.kind != "anti" or edge.is_reduction for edge in edges):
        return None
    store = site.store
    around = (expr for part in site.path for expr in own_expressions(part))
    evaluated_again = (*around, *store.indices)
    if any(load.buffer == store.buffer for expr in evaluated_again for load in loads(expr)):
        return None
    bounds = {part.var: ranges[part.var] for part in site.path if isinstance(part, For)}
    shape = tuple(max(high - low + 1, 0) for low, high in bounds.values())
    if math.prod(shape) > ELEMENT_LIMIT:
        return None
    buffer = Buffer(names.fresh(f"{store.buffer}_new"), shape, store.value.dtype)
    element: tuple[Expr, ...] = tuple(
        binary("sub", Var(var), integer(low)) for var, (low, _) in bounds.items()
    )
    value = Load(buffer.name, element, buffer.dtype, location=store.location)
    return (
        buffer,
        dataclasses.replace(store, buffer=buffer.name, indices=element),
        dataclasses.replace(store, value=value),
    )
