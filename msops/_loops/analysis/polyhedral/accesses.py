"""The reads and writes of a kernel as relations from iterations to elements.

A quasi-affine access is exact; another one may touch the whole range of each dimension whose index
is not quasi-affine. The elements of a `Local` have the iterations of the loops around it as first
dimensions, since each iteration has a buffer of its own.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from dataclasses import dataclass, field

from msops._loops.analysis.polyhedral.library import isl
from msops._loops.analysis.polyhedral.scope import Scope
from msops._loops.analysis.ranges import is_within, range_of
from msops._loops.ir.nodes import (
    Binary,
    Buffer,
    Expr,
    For,
    If,
    Kernel,
    Load,
    Local,
    Select,
    Stmt,
    Store,
)
from msops._loops.ir.walk import loads, operands


@dataclass(frozen=True, eq=False)
class Access:
    """A load, or the write of a store, in all iterations.

    Attributes:
      node: the load or store.
      declared: the buffer it accesses.
      statement: what evaluates it: a store, the condition of an `If`, or the bounds of a `For`.
      order: the place of the statement in the text, counted over the kernel.
      is_write: the write of a store.
      scope: where it happens.
      relation: from iterations to elements.
      is_exact: each iteration touches exactly these elements (else: at most these).
    """

    node: Load | Store
    declared: Buffer
    statement: Stmt
    order: int
    is_write: bool
    scope: Scope
    relation: isl.Map
    is_exact: bool

    @property
    def buffer(self) -> str:
        """The name of the buffer."""
        return self.node.buffer

    @property
    def private_loops(self) -> int:
        """The number of loops around the `Local` of the buffer; 0 for one of the kernel."""
        return int(self.relation.dim(isl.dim_type.out)) - len(self.declared.shape)

    @property
    def loops(self) -> tuple[For, ...]:
        """The enclosing loops, outermost first."""
        return self.scope.loops


def accesses(kernel: Kernel, context: isl.Context) -> tuple[Access, ...]:
    """Returns all accesses of a kernel in the order of the text, reads before the write."""
    reader = _Reader({b.name: (b, 0) for b in (*kernel.parameters, *kernel.buffers)})
    return tuple(reader.body(kernel.body, Scope.outermost(context)))


@dataclass(frozen=True)
class _Reader:
    """Walks a kernel; `buffers` holds each buffer with the number of loops around it."""

    buffers: dict[str, tuple[Buffer, int]]
    numbers: Iterator[int] = field(default_factory=itertools.count)

    def body(self, body: tuple[Stmt, ...], scope: Scope) -> Iterator[Access]:
        for stmt in body:
            order = next(self.numbers)
            match stmt:
                case Store():
                    for expr in (*stmt.indices, stmt.value):
                        yield from self.reads(expr, scope, stmt, order)
                    yield self.access(stmt, scope, stmt, order)
                case For():
                    for expr in (stmt.begin, stmt.end):
                        yield from self.reads(expr, scope, stmt, order)
                    yield from self.body(stmt.body, scope.inside(stmt))
                case If():
                    yield from self.reads(stmt.condition, scope, stmt, order)
                    yield from self.body(stmt.then, scope.where(stmt.condition))
                    if stmt.otherwise:
                        yield from self.body(stmt.otherwise, scope.where(stmt.condition, True))
                case Local():
                    self.buffers[stmt.buffer.name] = (stmt.buffer, len(scope.loops))
                    yield from self.body(stmt.body, scope)

    def reads(self, expr: Expr, scope: Scope, stmt: Stmt, order: int) -> Iterator[Access]:
        if not any(True for _ in loads(expr)):
            return
        parts: list[tuple[Expr, Scope]]
        match expr:
            case Select(condition=condition, then=then, otherwise=otherwise):
                chosen, rest = scope.where(condition), scope.where(condition, True)
                parts = [(condition, scope), (then, chosen), (otherwise, rest)]
            case Binary(op=("land" | "lor") as op, left=left, right=right):
                parts = [(left, scope), (right, scope.where(left, op == "lor"))]
            case _:
                parts = [(operand, scope) for operand in operands(expr)]
        for part, inner in parts:
            yield from self.reads(part, inner, stmt, order)
        if isinstance(expr, Load):
            yield self.access(expr, scope, stmt, order)

    def access(self, node: Load | Store, scope: Scope, stmt: Stmt, order: int) -> Access:
        buffer, private = self.buffers[node.buffer]
        elements = [isl.Map.from_pw_aff(scope.iterator(depth)) for depth in range(private)]
        is_exact = scope.is_exact
        for index, size in zip(node.indices, buffer.shape, strict=True):
            element = _element(index, size, scope, isinstance(node, Store))
            is_exact = is_exact and element is not None
            elements.append(_anywhere(scope, size) if element is None else element)
        relation = isl.Map.from_domain(isl.Set.universe(scope.domain.get_space()))
        for element in elements:
            relation = relation.flat_range_product(element)
        relation = relation.intersect_domain(scope.domain)
        is_write = isinstance(node, Store)
        return Access(node, buffer, stmt, order, is_write, scope, relation, is_exact)


def _element(index: Expr, size: int, scope: Scope, is_store: bool) -> isl.Map | None:
    """Returns the relation of one dimension, or None if the index is not quasi-affine.

    In an exact scope an index out of range is an error, found elsewhere. In another one a load
    clamps and a store is dropped.
    """
    value = scope.expression(index)
    if value is None:
        return None
    relation = isl.Map.from_pw_aff(value)
    if scope.is_exact or is_within(range_of(index, scope.ranges), (0, size - 1)):
        return relation
    if is_store:
        return relation.intersect_range(_interval(scope, size))
    first, last = scope.constant(0), scope.constant(max(size - 1, 0))
    return isl.Map.from_pw_aff(value.max(first).min(last))


def _anywhere(scope: Scope, size: int) -> isl.Map:
    universe = isl.Set.universe(scope.domain.get_space())
    return isl.Map.from_domain_and_range(universe, _interval(scope, size))


def _interval(scope: Scope, size: int) -> isl.Set:
    return box(scope.domain.get_ctx(), (size,))


def box(context: isl.Context, shape: tuple[int, ...]) -> isl.Set:
    """Returns the elements of a buffer of some shape."""
    space = isl.Space.set_alloc(context, 0, len(shape))
    axes = isl.LocalSpace.from_space(space)
    elements = isl.Set.universe(space)
    for axis, size in enumerate(shape):
        position = isl.PwAff.from_aff(isl.Aff.var_on_domain(axes, isl.dim_type.set, axis))
        first, end = (
            isl.PwAff.from_aff(isl.Aff.val_on_domain(axes, isl.Val.int_from_si(context, bound)))
            for bound in (0, size)
        )
        elements = elements.intersect(position.ge_set(first)).intersect(position.lt_set(end))
    return elements
