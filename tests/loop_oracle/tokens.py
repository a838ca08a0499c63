"""Tokens of the text form of the loop IR, and a reader that reports what it expected where."""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal, TypeVar

from msops._loops.ir.nodes import Location
from msops._loops.ir.operators import DTYPES
from msops._loops.ir.text import point
from msops.errors import MsopsError

FILE = "<kernel text>"
"""The file that locations of parsed nodes name."""


class TextError(MsopsError, ValueError):
    """A text is not the text form of the loop IR."""


@dataclass(frozen=True, slots=True)
class Token:
    """A word, number or sign; the last token is of kind "end" and empty."""

    kind: Literal["name", "number", "sign", "end"]
    text: str
    location: Location


# The dtype of a number touches it, while the colon of a `Select` is between blanks.
_DTYPE = "|".join(sorted(DTYPES, key=len, reverse=True))
_TOKEN = re.compile(
    rf"""
    (?P<number>-?(?:\d+(?:\.\d+)?(?:e[+-]?\d+)?\b(?::(?:{_DTYPE})\b)?|(?:inf|nan):(?:{_DTYPE})\b))
  | (?P<name>[^\W\d]\w*)
  | (?P<sign>->|\.\.|//|<<|>>|&&|\|\||[=!<>]=|[-+*/%&|^<>=!~?:,@()\[\]{{}}])
  | (?P<blank>\s+)
    """,
    re.VERBOSE,
)


def tokens(text: str) -> list[Token]:
    """Returns the tokens of a text.

    Raises:
      TextError: a character begins no token.
    """
    found = []
    lines = text.splitlines() or [""]
    for number, line in enumerate(lines, 1):
        column = 0
        while column < len(line):
            match = _TOKEN.match(line, column)
            if match is None:
                location = Location(FILE, number, column, column + 1, line)
                raise unexpected(location, f"no token begins with {line[column]!r}")
            if match.lastgroup != "blank":
                location = Location(FILE, number, column, match.end(), line)
                found.append(Token(match.lastgroup, match[0], location))  # type: ignore[arg-type]
            column = match.end()
    width = len(lines[-1])
    return [*found, Token("end", "", Location(FILE, len(lines), width, width + 1, lines[-1]))]


def unexpected(location: Location, problem: str) -> TextError:
    """Returns the error for a location in a text."""
    return TextError.explained(
        f"text of a kernel, line {location.line}, column {location.column + 1}",
        problem,
        "The form is described at the top of msops/_loops/ir/text.py.",
        point(location),
    )


T = TypeVar("T")


class Reader:
    """A position in the tokens of a text."""

    def __init__(self, text: str):
        self._tokens = tokens(text)
        self._position = 0

    @property
    def next(self) -> Token:
        """The token at the position."""
        return self._tokens[self._position]

    @property
    def following(self) -> Token:
        """The token after that; the last one has none, and is given instead."""
        return self._tokens[min(self._position + 1, len(self._tokens) - 1)]

    def take(self) -> Token:
        """Returns the next token and moves past it, but for the end of the text."""
        token = self.next
        self._position = min(self._position + 1, len(self._tokens) - 1)
        return token

    def at(self, *texts: str) -> bool:
        """Returns whether the next token is one of those."""
        return self.next.kind != "end" and self.next.text in texts

    def accept(self, text: str) -> bool:
        """Moves past a token if it is the next one; returns whether it was."""
        found = self.at(text)
        if found:
            self.take()
        return found

    def expect(self, *texts: str) -> Token:
        """Returns the next token, which must be one of those, and moves past it."""
        if not self.at(*texts):
            raise self.expected(" or ".join(map(repr, texts)))
        return self.take()

    def name(self, what: str) -> str:
        """Returns the next token, which must be a name."""
        if self.next.kind != "name":
            raise self.expected(what)
        return self.take().text

    def list_of(self, item: Callable[[], T], close: str) -> tuple[T, ...]:
        """Reads items with commas between them, and what closes the list."""
        items: list[T] = []
        while not self.accept(close):
            if items:
                self.expect(",")
            items.append(item())
        return tuple(items)

    def whole(self, rule: Callable[[], T]) -> T:
        """Returns what a rule reads, which must be everything."""
        result = rule()
        if self.next.kind != "end":
            raise self.expected("the end of the text")
        return result

    def expected(self, what: str) -> TextError:
        """Returns the error that something else is at the position."""
        got = "the end" if self.next.kind == "end" else repr(self.next.text)
        return unexpected(self.next.location, f"expected {what}, got {got}")

    def since(self, first: Token) -> Location:
        """Returns the location from a token to the last one taken, as far as it is on one line."""
        last = self._tokens[max(self._position - 1, 0)].location
        end = last.end_column if last.line == first.location.line else len(first.location.text)
        return dataclasses.replace(first.location, end_column=end)
