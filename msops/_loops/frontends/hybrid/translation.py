"""The state of one translation: what names are bound to, and the statements made so far."""

from __future__ import annotations

import ast
from dataclasses import dataclass, field

from msops._loops.analysis.ranges import Range
from msops._loops.frontends.hybrid.names import Path, ResolvedNames, Symbol
from msops._loops.frontends.hybrid.typing import Typing
from msops._loops.frontends.hybrid.values import Value
from msops._loops.frontends.reporting import Reporter
from msops._loops.ir.nodes import Buffer, Local, Location, Stmt

# Words of the IR's text form that a name may not be.
_RESERVED = ("true", "false", "inf", "nan")


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
    """What the functions of a translation share.

    Attributes:
      names: the kernel's names, resolved.
      report: makes the errors.
      typing: makes operands agree.
      retyped: types of scalars that start as a constant, found by an earlier attempt.
      values: what symbols are bound to.
      blocks: the bodies in the making, outermost first.
      buffers: outputs and temporaries of the whole kernel.
      taken: names in use in the IR.
      ranges: those of the loop variables so far.
    """

    names: ResolvedNames
    report: Reporter
    typing: Typing
    retyped: dict[Symbol, str]
    values: dict[Symbol, Value] = field(default_factory=dict)
    blocks: list[Block] = field(default_factory=list)
    buffers: list[Buffer] = field(default_factory=list)
    taken: set[str] = field(default_factory=lambda: set(_RESERVED))
    ranges: dict[str, Range] = field(default_factory=dict)

    def emit(self, statement: Stmt) -> None:
        """Appends a statement to the innermost body."""
        self.blocks[-1].statements.append(statement)

    def fresh(self, name: str) -> str:
        """Returns a name that nothing in the IR has, like the author's."""
        unique, count = name, 0
        while unique in self.taken:
            count += 1
            unique = f"{name}_{count}"
        self.taken.add(unique)
        return unique

    def is_unconditional(self, symbol: Symbol) -> bool:
        """Returns whether the current statement runs whenever a use of the symbol does."""
        for block in reversed(self.blocks):
            if block.path == symbol.home:
                return True
            if not block.is_inlined:
                return False
        return False

    def declare(self, symbol: Symbol, buffer: Buffer, node: ast.AST) -> None:
        """Makes a buffer live from the current statement on, in the block of all its uses."""
        block = next(block for block in reversed(self.blocks) if block.path == symbol.home)
        block.locals.append((len(block.statements), buffer, self.report.location(node)))
