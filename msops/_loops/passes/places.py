"""A kernel as its stores with what is around each, and the orders between them."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

from msops._loops.ir.nodes import For, If, Kernel, Stmt, Store, Unary

if TYPE_CHECKING:
    from msops._loops.analysis.polyhedral.dependences import Dependence


@dataclass(frozen=True)
class Place:
    """A store with what is around it.

    Attributes:
      order: the number of the store in the text, as `Access.order`.
      store: the store.
      path: the loops and conditions around it that are not printed yet, outermost first and
        without their bodies; a condition holds where the store runs.
      orders: the numbers of the store, and of all loops and conditions around it.
    """

    order: int
    store: Store
    path: tuple[For | If, ...]
    orders: frozenset[int]


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


def places_of(kernel: Kernel) -> list[Place]:
    """Returns the stores of a kernel without locals, in the order of the text."""
    found: list[Place] = []
    count = 0

    def visit(body: Iterable[Stmt], path: tuple[For | If, ...], orders: frozenset[int]) -> None:
        nonlocal count
        for stmt in body:
            inner = orders | {count}
            count += 1
            match stmt:
                case Store():
                    found.append(Place(count - 1, stmt, path, inner))
                case For():
                    visit(stmt.body, (*path, dataclasses.replace(stmt, body=())), inner)
                case If(condition=condition):
                    holds = dataclasses.replace(stmt, then=(), otherwise=())
                    fails = dataclasses.replace(holds, condition=Unary("not", condition, "bool"))
                    visit(stmt.then, (*path, holds), inner)
                    visit(stmt.otherwise, (*path, fails), inner)

    visit(kernel.body, (), frozenset())
    return found


def edges_of(found: Iterable[Dependence], places: Sequence[Place]) -> frozenset[Edge]:
    """Returns the orders between stores.

    What a loop or `If` evaluates counts for each store inside, which will evaluate it again.
    """
    owners: dict[int, list[int]] = {}
    for place in places:
        for order in place.orders:
            owners.setdefault(order, []).append(place.order)
    return frozenset(
        Edge(source, target, dependence.carrier, dependence.kind, dependence.is_reduction)
        for dependence in found
        for source in owners.get(dependence.source.order, ())
        for target in owners.get(dependence.target.order, ())
        if dependence.carrier is not None or source != target
    )


def wrapped(body: tuple[Stmt, ...], parts: Sequence[For | If]) -> tuple[Stmt, ...]:
    """Returns statements inside loops and conditions, given outermost first."""
    for part in reversed(parts):
        if isinstance(part, For):
            body = (dataclasses.replace(part, body=body),)
        else:
            body = (dataclasses.replace(part, then=body),)
    return body
