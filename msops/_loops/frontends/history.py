"""Definitions typed into an interactive session, from readline's history.

Python before 3.13 keeps no source of what is typed at its prompt.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator


def history_candidates(name: str) -> Iterator[list[str]]:
    """Yields the lines of each definition of a function in the session, the latest first."""
    lines = _history()
    head = re.compile(rf"\s*def\s+{re.escape(name)}\b")
    for start in reversed([index for index, line in enumerate(lines) if head.match(line)]):
        indent = len(lines[start]) - len(lines[start].lstrip())
        end = start + 1
        while end < len(lines) and _continues(lines[end], indent):
            end += 1
        yield [f"{line[indent:]}\n" for line in lines[start:end]]


def _continues(line: str, indent: int) -> bool:
    """Returns whether a line belongs to the block that a line of some indent opened."""
    text = line.lstrip()
    return not text or len(line) - len(text) > indent or text.startswith(("#", ")"))


def _history() -> list[str]:
    # Only a session has the module loaded; importing it elsewhere may touch the terminal.
    readline = sys.modules.get("readline")
    if readline is None:
        return []
    count: int = readline.get_current_history_length()
    return [readline.get_history_item(index + 1) or "" for index in range(count)]
