"""The statements of a kernel as a tree that knows its way up, with identity instead of equality.

Two statements that look the same are the same value in the IR; what a reversal finds out about them
(is it on the tape?) differs.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import TypeAlias

from msops._loops.ir.nodes import Buffer, For, Kernel, Local, Stmt, Store
from msops._loops.ir.walk import bodies

Body: TypeAlias = "tuple[Node, ...]"


@dataclass(eq=False)
class Node:
    """A statement of a kernel, with its surroundings.

    Attributes:
      stmt: the statement.
      ancestors: the statements around it, outermost first.
      bodies: its own bodies.
    """

    stmt: Stmt
    ancestors: tuple[Node, ...]
    bodies: tuple[Body, ...] = field(init=False, repr=False)

    def __post_init__(self) -> None:
        around = (*self.ancestors, self)
        self.bodies = tuple(
            tuple(Node(inner, around) for inner in body) for body in bodies(self.stmt)
        )

    @property
    def store(self) -> Store:
        """The statement, which is a store."""
        assert isinstance(self.stmt, Store)
        return self.stmt

    @property
    def local(self) -> Buffer:
        """The buffer of the statement, which is a `Local`."""
        assert isinstance(self.stmt, Local)
        return self.stmt.buffer

    @property
    def loops(self) -> tuple[For, ...]:
        """The loops around it, outermost first."""
        return tuple(node.stmt for node in self.ancestors if isinstance(node.stmt, For))

    def is_in(self, region: Node | None) -> bool:
        """Returns whether it stands inside a statement; everything is in the kernel, None."""
        return region is None or region in self.ancestors


@dataclass(frozen=True)
class Tree:
    """A kernel with its statements as nodes."""

    kernel: Kernel
    body: Body

    def nodes(self) -> Iterator[Node]:
        """Yields all nodes in the order of the text."""
        return _nodes(self.body)

    def stores(self, region: Node | None = None) -> list[Node]:
        """Returns the stores inside a node, or in the whole kernel."""
        inside = self.nodes() if region is None else (n for b in region.bodies for n in _nodes(b))
        return [node for node in inside if isinstance(node.stmt, Store)]

    def locals(self) -> dict[str, Node]:
        """Returns the `Local` of each local buffer."""
        return {n.local.name: n for n in self.nodes() if isinstance(n.stmt, Local)}


def tree_of(kernel: Kernel) -> Tree:
    """Returns the tree of a kernel."""
    return Tree(kernel, tuple(Node(stmt, ()) for stmt in kernel.body))


def _nodes(body: Body) -> Iterator[Node]:
    for node in body:
        yield node
        for inner in node.bodies:
            yield from _nodes(inner)
