"""What is in scope at a statement of a kernel: buffers, loops, conditions, ranges of variables.

`walk.visit` carries a scope along:

    for stmt, scope in visit(kernel.body, Scope.of(kernel)):
        ...
"""

from __future__ import annotations

import dataclasses
import functools
from collections.abc import Mapping
from dataclasses import dataclass

from msops._loops.analysis.ranges import Ranges, nested_ranges
from msops._loops.ir.nodes import Buffer, For, If, Kernel, Local, Stmt, Unary
from msops._loops.ir.walk import statements, visit


@dataclass(frozen=True)
class Scope:
    """What is in scope.

    Attributes:
      buffers: parameters, buffers of the kernel and enclosing locals, by name.
      path: the enclosing loops and conditions, outermost first, without their bodies; inside of
        them each condition holds.
      depths: for each enclosing local the number of loops around it.
    """

    buffers: Mapping[str, Buffer]
    path: tuple[For | If, ...] = ()
    depths: Mapping[str, int] = dataclasses.field(default_factory=dict)

    @staticmethod
    def of(kernel: Kernel) -> Scope:
        """Returns the scope of the body of a kernel."""
        return Scope({b.name: b for b in (*kernel.parameters, *kernel.buffers)})

    @functools.cached_property
    def loops(self) -> tuple[For, ...]:
        """The enclosing loops, outermost first."""
        return tuple(part for part in self.path if isinstance(part, For))

    @functools.cached_property
    def ranges(self) -> Ranges:
        """The interval of the variable of each enclosing loop."""
        return nested_ranges(self.loops, {})

    def inside(self, stmt: Stmt) -> tuple[Scope, ...]:
        """Returns the scope of each body of a statement in this scope."""
        match stmt:
            case For():
                path = (*self.path, dataclasses.replace(stmt, body=()))
                return (dataclasses.replace(self, path=path),)
            case If(condition=condition):
                holds = dataclasses.replace(stmt, then=(), otherwise=())
                fails = dataclasses.replace(holds, condition=Unary("not", condition, "bool"))
                return tuple(
                    dataclasses.replace(self, path=(*self.path, part)) for part in (holds, fails)
                )
            case Local(buffer=buffer):
                buffers = {**self.buffers, buffer.name: buffer}
                depths = {**self.depths, buffer.name: len(self.loops)}
                return (dataclasses.replace(self, buffers=buffers, depths=depths),)
        return ()


def buffers_of(kernel: Kernel) -> dict[str, Buffer]:
    """Returns all buffers of a kernel, locals too, by name."""
    found = dict(Scope.of(kernel).buffers)
    for stmt in statements(kernel.body):
        if isinstance(stmt, Local):
            found[stmt.buffer.name] = stmt.buffer
    return found


def ranges_of(kernel: Kernel) -> Ranges:
    """Returns the interval of the variable of every loop of a kernel."""
    found: dict[str, tuple[int, int]] = {}
    for stmt, scope in visit(kernel.body, Scope({})):
        if isinstance(stmt, For):
            found |= nested_ranges((stmt,), scope.ranges)
    return found
