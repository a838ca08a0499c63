"""Where in the author's source a message points."""

from __future__ import annotations

from msops._loops.ir.nodes import Location


def point(location: Location | None) -> list[str]:
    """Returns the lines of a message that show a location: file and line, the source, a caret.

    Args:
      location: the location; None, for nodes without a source, gives no lines.
    """
    if location is None:
        return []
    start = len(location.text) - len(location.text.lstrip())
    text = location.text.strip()
    caret = " " * (location.column - start) + "^" * max(
        1, min(location.end_column, start + len(text)) - location.column
    )
    return [f"{location.file}:{location.line}", f"  {text}", f"  {caret}"]
