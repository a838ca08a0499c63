"""Errors that passes raise for other passes to catch."""

from __future__ import annotations

from msops._loops.ir.nodes import Location


class NotRaised(Exception):
    """A kernel cannot be brought into the raised form; it runs as native code.

    Attributes:
      reason: why, for `explain()`.
      location: of the cause, if it is one statement.
    """

    def __init__(self, reason: str, location: Location | None = None) -> None:
        super().__init__(reason)
        self.reason = reason
        self.location = location
