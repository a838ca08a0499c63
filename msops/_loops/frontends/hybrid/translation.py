"""The state of one translation: what names are bound to, and the statements made so far."""

from __future__ import annotations

import ast
import contextlib
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field

from msops._loops.frontends.hybrid.names import Path, ResolvedNames, ScopedName
from msops._loops.frontends.hybrid.typing import Retype, Typing
from msops._loops.frontends.hybrid.values import Value, WholeTensor
from msops._loops.frontends.reporting import Reporter
from msops._loops.ir.names import Names
from msops._loops.ir.nodes import Buffer, Local, Location, Stmt
from msops._loops.ir.ranges import Range
from msops.errors import BuildError

RESERVED = ("true", "false", "inf", "nan")
"""Words of the IR's text form that a name may not be."""


class Again(Exception):
    """More is known of the scalars of a kernel: translate it again."""


@dataclass
class Known:
    """What earlier translations of a kernel have found of its scalars.

    Attributes:
      retyped: types of those that start as a constant.
      early: types of those that are read above their first assignment.
      kept: those that keep a value of an earlier iteration, or of another copy of a loop's body;
        and the scalar that those of one name are, in all scopes, as in Python.
    """

    retyped: dict[ScopedName, Retype] = field(default_factory=dict)
    early: dict[ScopedName, Retype] = field(default_factory=dict)
    kept: dict[ScopedName, ScopedName] = field(default_factory=dict)

    def keep(self, names: ResolvedNames, symbols: Iterable[ScopedName]) -> None:
        """Notes that scalars keep a value."""
        for symbol in symbols:
            scalars = [each for each in names.namesakes(symbol) if each.kind == "scalar"]
            self.kept |= dict.fromkeys(scalars, scalars[0])


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
      known: what earlier translations have found.
      taken: names in use in the IR.
      values: what symbols are bound to.
      blocks: the bodies in the making, outermost first.
      buffers: outputs and temporaries of the whole kernel.
      ranges: those of the loop variables so far.
      scalars: by the names of their locals, the scalars that the author assigns.
      unread: scalars that could not be read, because their type is not known, and where.
      left_out: the names that statements which could not be translated assign.
      refused: the errors of statements after the first one that was left out.
    """

    names: ResolvedNames
    report: Reporter
    typing: Typing
    known: Known
    taken: Names
    values: dict[ScopedName, Value] = field(default_factory=dict)
    blocks: list[Block] = field(default_factory=list)
    buffers: list[Buffer] = field(default_factory=list)
    ranges: dict[str, Range] = field(default_factory=dict)
    scalars: dict[str, ScopedName] = field(default_factory=dict)
    unread: dict[ScopedName, ast.Name] = field(default_factory=dict)
    left_out: set[str] = field(default_factory=set)
    refused: list[BuildError] = field(default_factory=list)

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
        try:
            yield self.blocks[-1]
        finally:
            self.blocks.pop()

    def is_unconditional(self, symbol: ScopedName) -> bool:
        """Returns whether the current statement runs whenever a use of the symbol does."""
        for block in reversed(self.blocks):
            if block.path == symbol.home:
                return True
            if not block.is_inlined:
                return False
        return False

    def symbol(self, node: ast.Name) -> ScopedName:
        """Returns what a name means."""
        symbol = self.names.symbols[node]
        return self.known.kept.get(symbol, symbol)

    def home(self, symbol: ScopedName) -> Path:
        """Returns the block that a symbol lives in."""
        return symbol.frame if symbol in self.known.kept else symbol.home

    def declare_scalar(
        self, symbol: ScopedName, dtype: str, is_untyped: bool, node: ast.AST
    ) -> WholeTensor:
        """Makes a scalar live from the current statement on; see `Typing.untyped`."""
        buffer = Buffer(self.fresh(symbol.name), (), dtype)
        if is_untyped:
            self.typing.untyped[buffer.name] = frozenset([symbol])
        self.declare(symbol, buffer, node)
        if not symbol.is_result:
            self.scalars[buffer.name] = symbol
        tensor = self.values[symbol] = WholeTensor(buffer)
        return tensor

    def declare(self, symbol: ScopedName, buffer: Buffer, node: ast.AST) -> None:
        """Makes a buffer live from the current statement on, in the block of all its uses."""
        home = self.home(symbol)
        block = next(block for block in reversed(self.blocks) if block.path == home)
        block.locals.append((len(block.statements), buffer, self.report.source.location(node)))
