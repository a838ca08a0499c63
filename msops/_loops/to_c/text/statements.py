"""Statements of the loop IR in C's syntax: what C and CUDA C have in common."""

from __future__ import annotations

import math
from collections.abc import Iterable

from msops._loops.analysis.conditions import ends_early
from msops._loops.ir.nodes import Buffer, For, If, Local, Stmt, Store
from msops._loops.ir.ranges import loop_range
from msops._loops.ir.walk import loads
from msops._loops.to_c.text.syntax import bare
from msops._loops.to_c.text.values import Values

INDENT = "  "


class Statements:
    """Prints statements of one kernel, each as a list of lines.

    The printers of the two dialects override how loops and locals are printed. With bounds that
    are checked, the function around the lines has an ``int* ms_failed`` that takes the code of the
    first index out of range.

    Attributes:
      values: prints the expressions.
    """

    def __init__(self, values: Values) -> None:
        self.values = values

    def statements(self, body: tuple[Stmt, ...]) -> list[str]:
        """Returns the lines of a body."""
        return [line for stmt in body for line in self.statement(stmt)]

    def block(self, body: tuple[Stmt, ...]) -> list[str]:
        """Returns the lines of a body between braces; a local at its end needs no others."""
        if body and isinstance(body[-1], Local):
            return [*self.statements(body[:-1]), *self.in_local(body[-1])]
        return self.statements(body)

    def statement(self, stmt: Stmt) -> list[str]:
        """Returns the lines of one statement."""
        match stmt:
            case Store():
                return self.store(stmt)
            case For():
                return self.loop(stmt)
            case If():
                return self.branch(stmt)
            case Local():
                return self.local(stmt)

    def store(self, stmt: Store) -> list[str]:
        """Returns an assignment; dropped at run time where an index is out of range."""
        values = self.values
        buffer = values.buffers[stmt.buffer]
        if 0 in buffer.shape:
            return []
        conditions = values.tests(stmt)
        value = values.value(stmt.value)
        if stmt.buffer not in values.variables:
            value = values.to_storage(value, buffer.dtype)
        line = f"{values.element(stmt.buffer, stmt.indices)} = {bare(value)};"
        return [f"if ({' && '.join(conditions)}) {line}"] if conditions else [line]

    def branch(self, stmt: If) -> list[str]:
        """Returns an if statement."""
        lines = [f"if ({bare(self.values.value(stmt.condition))}) {{"]
        lines += indented(self.block(stmt.then))
        if stmt.otherwise:
            lines += ["} else {", *indented(self.block(stmt.otherwise))]
        return [*lines, "}"]

    def loop(self, stmt: For) -> list[str]:
        """Returns a loop that runs in order."""
        name = self.values.names[stmt.var]
        begin, end = bare(self.values.index(stmt.begin)), bare(self.values.index(stmt.end))
        before = []
        if loads(stmt.end):
            # The body may write what the bound reads, so the bound is computed before the loop.
            before = [f"const int64_t ms_end_{name} = {end};"]
            end = f"ms_end_{name}"
        head = f"for (int64_t {name} = {begin}; {name} < {end}; ++{name}) {{"
        return [*before, head, *indented(self.loop_body(stmt)), "}"]

    def loop_body(self, stmt: For) -> list[str]:
        """Returns the lines inside a loop, where the range of its variable is known."""
        self.values.ranges[stmt.var] = loop_range(stmt, self.values.ranges)
        lines = self.block(stmt.body)
        return [*lines[:-1], "} else break;"] if ends_early(stmt) else lines

    def local(self, stmt: Local) -> list[str]:
        """Returns a block with a variable or array of its own."""
        return ["{", *indented(self.in_local(stmt)), "}"]

    def in_local(self, stmt: Local) -> list[str]:
        """Returns the lines of that block: the definition, zeroed, and the body."""
        self.values.declare(stmt.buffer)
        return [self.definition(stmt.buffer), *self.block(stmt.body)]

    def definition(self, buffer: Buffer) -> str:
        """Returns the definition of a local, zeroed where that can be seen."""
        values = self.values
        name = values.names[buffer.name]
        if not buffer.shape:
            return f"{values.value_type(buffer.dtype)} {name} = 0;"
        size = max(1, math.prod(buffer.shape))
        start = "" if buffer.name in values.overwritten else " = {0}"
        return f"{values.storage_type(buffer.dtype)} {name}[{size}]{start};"


def indented(lines: Iterable[str]) -> list[str]:
    """Returns the lines one level further in."""
    return [f"{INDENT}{line}" for line in lines]
