"""The state of one translation: what names are bound to, and the statements made so far."""

from __future__ import annotations

import ast
import contextlib
from collections.abc import Iterator
from dataclasses import dataclass, field

from msops._loops.frontends.hybrid.names import Path, ResolvedNames, ScopedName
from msops._loops.frontends.hybrid.typing import Retype, Typing
from msops._loops.frontends.hybrid.values import Value
from msops._loops.frontends.reporting import Reporter
from msops._loops.ir.names import Names
from msops._loops.ir.nodes import Buffer, Local, Location, Stmt
from msops._loops.ir.ranges import Range

RESERVED = ("true", "false", "inf", "nan")
"""Words of the IR's text form that a name may not be."""


@dataclass
class Block:
    """A body in the making.

    Attributes:
      path: the author's block it is made from.
      is_inlined: it is run whenever the body around it is: a branch chosen at compile time.
      statements: what it holds so far.
      locals: buffers that live from a statement on: its index, the buffer, where it is declared.
    """

    path: Path
    is_inlined: bool = False
    statements: list[Stmt] = field(default_factory=list)
    locals: list[tuple[int, Buffer, Location]] = field(default_factory=list)

    def finish(self) -> tuple[Stmt, ...]:
        """Returns the body, each local around the statements from its declaration on."""
        body = tuple(self.statements)
        for index, buffer, location in reversed(self.locals):
            if body[index:]:
                body = (*body[:index], Local(buffer, body[index:], location=location))
        return body


@dataclass
class Translation:
    """The state that the functions of a translation share.

    Attributes:
      names: the kernel's names, resolved.
      report: makes the errors.
      typing: makes operands agree.
      retyped: types of scalars that start as a constant, found by an earlier attempt.
      taken: names in use in the IR.
      values: what symbols are bound to.
      blocks: the bodies in the making, outermost first.
      buffers: outputs and temporaries of the whole kernel.
      ranges: those of the loop variables so far.
      scalars: by the names of their locals, the names that the author assigns scalars to.
    """

    names: ResolvedNames
    report: Reporter
    typing: Typing
    retyped: dict[ScopedName, Retype]
    taken: Names
    values: dict[ScopedName, Value] = field(default_factory=dict)
    blocks: list[Block] = field(default_factory=list)
    buffers: list[Buffer] = field(default_factory=list)
    ranges: dict[str, Range] = field(default_factory=dict)
    scalars: dict[str, str] = field(default_factory=dict)

    def emit(self, statement: Stmt) -> None:
        """Appends a statement to the innermost body."""
        self.blocks[-1].statements.append(statement)

    def fresh(self, name: str) -> str:
        """Returns a name that nothing in the IR has, like the author's."""
        return self.taken.fresh(name)

    @contextlib.contextmanager
    def block(self, path: Path, is_inlined: bool = False) -> Iterator[Block]:
        """Opens a body; see `Block`."""
        self.blocks.append(Block(path, is_inlined))
        yield self.blocks[-1]
        self.blocks.pop()

    def is_unconditional(self, symbol: ScopedName) -> bool:
        """Returns whether the current statement runs whenever a use of the symbol does."""
        for block in reversed(self.blocks):
            if block.path == symbol.home:
                return True
            if not block.is_inlined:
                return False
        return False

    def declare(self, symbol: ScopedName, buffer: Buffer, node: ast.AST) -> None:
        """Makes a buffer live from the current statement on, in the block of all its uses."""
        block = next(block for block in reversed(self.blocks) if block.path == symbol.home)
        block.locals.append((len(block.statements), buffer, self.report.source.location(node)))
