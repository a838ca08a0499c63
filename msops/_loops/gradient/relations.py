"""Which assignments a read may see, and which ones overwrite what it has seen.

The dependences are those of a kernel in which the reads of the backward sweep stand where their
values are those of the forward sweep: those of an assignment's derivative before the assignment,
a read of its result after it.
"""

from __future__ import annotations

import dataclasses
from collections import defaultdict
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Literal, TypeAlias

from msops._loops.analysis.polyhedral.accesses import analysis
from msops._loops.analysis.polyhedral.dependences import dependences_between, is_hidden
from msops._loops.analysis.polyhedral.library import TooComplex
from msops._loops.gradient.contributions import Contribution
from msops._loops.gradient.tree import Body, Node, Tree
from msops._loops.ir.algebra import both, element_of
from msops._loops.ir.nodes import Buffer, Expr, If, Kernel, Load, Stmt, Store
from msops._loops.ir.walk import loads_in, map_bodies, read_by, statements, with_body

Role: TypeAlias = Literal["forward", "derivative", "alone", "result"]
Use: TypeAlias = tuple[Node, Role, str]
"""The reads of one buffer by a statement, by the derivative of a store, by the same without what it
stored, or of what it stored."""

_USE = "<use>"


@dataclass(frozen=True)
class Derivative:
    """The reversal of an active store.

    Attributes:
      seed: the adjoint of the element.
      contributions: what the adjoints of the elements read receive.
      result: the stored value in them, if they use it.
      alone: the contributions without the stored value: it is computed again in them.
    """

    seed: Load
    contributions: tuple[Contribution, ...]
    result: Load | None
    alone: tuple[Contribution, ...]

    def without_result(self) -> Derivative:
        """Returns the derivative that computes the stored value again."""
        return dataclasses.replace(self, contributions=self.alone, result=None)


@dataclass(frozen=True)
class Relations:
    """How reads and stores meet.

    Attributes:
      seen: the stores whose value a use may see.
      killed: the stores that may overwrite, after a use, an element that it has seen.
      hidden: for a use and such a store, those that surely overwrite the element in between.
      overwritten: the stores whose value a store may overwrite.
    """

    seen: dict[Use, set[Node]] = field(default_factory=lambda: defaultdict(set))
    killed: dict[Use, set[Node]] = field(default_factory=lambda: defaultdict(set))
    hidden: dict[tuple[Use, Node], set[Node]] = field(default_factory=dict)
    overwritten: dict[Node, set[Node]] = field(default_factory=lambda: defaultdict(set))


def relations(tree: Tree, derivatives: Mapping[Node, Derivative]) -> Relations:
    """Returns how the reads and stores of a kernel and of its derivatives meet."""
    joint, origins = _joined(tree, derivatives)
    primal = {b.name for b in (*tree.kernel.parameters, *tree.kernel.buffers)} | set(tree.locals())
    found = Relations()
    for meeting in _meetings(joint, primal):
        first, second = origins[meeting.first], origins[meeting.second]
        if meeting.first_writes and meeting.second_writes:
            found.overwritten[second[0]].add(first[0])
        elif meeting.first_writes:
            found.seen[(*second, meeting.buffer)].add(first[0])
        else:
            use = (*first, meeting.buffer)
            found.killed[use].add(second[0])
            between = {origins[order][0] for order in meeting.between}
            # Each load of a use has to be hidden.
            found.hidden[use, second[0]] = between & found.hidden.get((use, second[0]), between)
    return found


def derivative_reads(derivative: Derivative) -> set[str]:
    """Returns the buffers that a derivative reads; adjoints are among them."""
    return {load.buffer for load in loads_in(_uses(derivative.contributions))}


def _uses(parts: tuple[Contribution, ...]) -> tuple[Stmt, ...]:
    """Returns statements that read what a derivative reads, where it does."""
    return tuple(
        If(both(part.guards), (_use(part.value), *map(_use, part.element.indices)))
        if part.guards
        else _use(part.value)
        for part in parts
    ) + tuple(_use(index) for part in parts if not part.guards for index in part.element.indices)


def _use(expr: Expr) -> Stmt:
    return Store(_USE, (), expr)


def _joined(
    tree: Tree, derivatives: Mapping[Node, Derivative]
) -> tuple[Kernel, list[tuple[Node, Role]]]:
    """Returns the kernel with the derivatives' reads, and where each statement comes from."""
    origins: list[tuple[Node, Role]] = []

    def added(node: Node, role: Role, stmts: tuple[Stmt, ...]) -> tuple[Stmt, ...]:
        origins.extend((node, role) for _ in statements(stmts))
        return stmts

    def change(body: Body) -> Iterator[Stmt]:
        for node in body:
            derivative = derivatives.get(node)
            if derivative:
                yield from added(node, "derivative", _uses(derivative.contributions))
            if derivative and derivative.result:
                yield from added(node, "alone", _uses(derivative.alone))
            origins.append((node, "forward"))
            yield rebuilt(node, *(tuple(change(inner)) for inner in node.bodies))
            if derivative and derivative.result:
                yield from added(node, "result", (_use(element_of(node.store)),))

    body = tuple(change(tree.body))
    seeds = {d.seed.buffer: d.seed for d in derivatives.values()}
    # Values of any dtype are stored to it. The contents of a buffer of floats are not analysed.
    stand_ins = [Buffer(_USE, (), "float64")]
    stand_ins += [Buffer(n, (0,) * len(seed.indices), seed.dtype) for n, seed in seeds.items()]
    stand_ins += [Buffer(d.result.buffer, (), d.result.dtype) for d in derivatives.values()
                  if d.result]  # fmt: skip
    kernel = dataclasses.replace(tree.kernel, buffers=(*tree.kernel.buffers, *stand_ins))
    return with_body(kernel, body), origins


def rebuilt(node: Node, *inner: tuple[Stmt, ...]) -> Stmt:
    """Returns the statement of a node with other bodies."""
    remaining = iter(inner)
    return map_bodies(node.stmt, lambda _: next(remaining))


@dataclass(frozen=True)
class _Meeting:
    """Two accesses of an element, the first one first.

    Attributes:
      buffer: the buffer.
      first: the number of the statement of the first.
      second: that of the second.
      first_writes: whether the first one writes.
      second_writes: whether the second one does.
      between: the statements that surely write the element between a read and a write of it.
    """

    buffer: str
    first: int
    second: int
    first_writes: bool
    second_writes: bool
    between: frozenset[int] = frozenset()


def _meetings(joint: Kernel, primal: set[str]) -> Iterator[_Meeting]:
    """Yields the pairs of accesses that meet."""
    try:
        with analysis(joint) as accesses:
            every = dependences_between(tuple(a for a in accesses if a.buffer in primal))
            # A pair has a dependence for each loop that carries one.
            meeting = {(id(found.source), id(found.target)): found for found in every}
            writes = {id(found.source): found.source for found in every if found.source.is_write}
            for (first, second), found in meeting.items():
                a, b = found.source, found.target
                between = frozenset(
                    write.order
                    for key, write in writes.items()
                    if found.kind == "anti"
                    and write is not b
                    and (first, key) in meeting
                    and (key, second) in meeting
                    and is_hidden(a, b, write)
                )
                yield _Meeting(a.buffer, a.order, b.order, a.is_write, b.is_write, between)
    except TooComplex:
        touched = [touch for touch in _touches(joint) if touch[1] in primal]
        for first, name, writes_first in touched:
            for second, other, writes_second in touched:
                if name == other and (writes_first or writes_second):
                    yield _Meeting(name, first, second, writes_first, writes_second)


def _touches(kernel: Kernel) -> Iterator[tuple[int, str, bool]]:
    """Yields the number of the statement of each access, its buffer, and whether it writes."""
    for order, stmt in enumerate(statements(kernel.body)):
        yield from ((order, name, False) for name in read_by(stmt))
        if isinstance(stmt, Store):
            yield order, stmt.buffer, True
