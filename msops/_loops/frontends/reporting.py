"""Errors that point into an author's source."""

from __future__ import annotations

import ast
from dataclasses import dataclass

from msops._loops.frontends.source import Source
from msops._loops.ir.nodes import Location
from msops._loops.ir.text import point
from msops.errors import ArgumentTypeError, ArgumentValueError, BuildError, explain


@dataclass(frozen=True)
class Reporter:
    """Makes the errors of one op.

    What is wrong whatever the shapes is an argument error, found when the op is made; what is
    wrong with the shapes and dtypes of a call is a `BuildError`, as MindSpore raises RuntimeError
    when AKG cannot compile.

    Attributes:
      who: names the op.
      source: the author's function.
    """

    who: str
    source: Source

    def value_error(self, node: ast.AST, problem: str, remedy: str) -> ArgumentValueError:
        """Returns an error for something that is not in the language."""
        return ArgumentValueError(self._text(node, problem, remedy))

    def type_error(self, node: ast.AST, problem: str, remedy: str) -> ArgumentTypeError:
        """Returns an error where MindSpore raises TypeError."""
        return ArgumentTypeError(self._text(node, problem, remedy))

    def build_error(self, node: ast.AST, problem: str, remedy: str) -> BuildError:
        """Returns an error for a kernel that does not fit the shapes and dtypes of a call."""
        return BuildError(self._text(node, problem, remedy))

    def build_error_at(self, location: Location | None, problem: str, remedy: str) -> BuildError:
        """Returns a `build_error` for a node of the IR."""
        return BuildError(explain(self.who, problem, remedy, point(location)))

    def _text(self, node: ast.AST, problem: str, remedy: str) -> str:
        return explain(self.who, problem, remedy, point(self.source.location(node)))
