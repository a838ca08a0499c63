"""Draws the rooms of docs/architecture.md as docs/_static/rooms.svg.

    python tools/draw_rooms.py

Rooms are boxes, in rows: each stands below every room that may import it. An arrow goes from a room
to one that it may import, unless another arrow leads there by way of a third room.
"""

from __future__ import annotations

import re
import textwrap
from html import escape
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
PAGE = ROOT / "docs" / "architecture.md"
PICTURE = ROOT / "docs" / "_static" / "rooms.svg"

WIDTH, BOX_HEIGHT, ROW_GAP, BOX_GAP, MARGIN = 1000, 78, 46, 22, 12
LINE_HEIGHT = 15

STYLE = """
  .box { fill: #f3f6fa; stroke: #54708f; }
  .name { font: 600 14px ui-monospace, monospace; fill: #12263f; }
  .text { font: 12px system-ui, sans-serif; fill: #3d4f63; }
  .arrow { stroke: #8ba3bd; fill: none; }
  .head { fill: #8ba3bd; }
  @media (prefers-color-scheme: dark) {
    .box { fill: #1d2733; stroke: #7d9cc0; }
    .name { fill: #e6eef8; }
    .text { fill: #b9c8d8; }
    .arrow { stroke: #5d7794; }
    .head { fill: #5d7794; }
  }
"""


def read_rooms(page: str) -> dict[str, tuple[str, set[str]]]:
    """Returns for each room of the table what happens there, and the rooms that it may import."""
    rows = re.findall(r"^\| `(_\w+)` \| (.*?) \|(.*)\|$", page, re.MULTILINE)
    rooms = {name: (text, set(re.findall(r"`(_\w+)`", may))) for name, text, may in rows}
    return {name: (text, may & rooms.keys()) for name, (text, may) in rooms.items()}


def rows_of(below: dict[str, set[str]]) -> list[list[str]]:
    """Returns the rooms row by row from the top: the longest way to a room decides its row."""
    depth = dict.fromkeys(below, 0)
    for name in below:  # the table's order: every room stands above those it imports
        for other in below[name]:
            depth[other] = max(depth[other], depth[name] + 1)
    return [
        [name for name in below if depth[name] == row] for row in range(max(depth.values()) + 1)
    ]


def direct(below: dict[str, set[str]]) -> list[tuple[str, str]]:
    """Returns the arrows that no other way replaces."""

    def reached(name: str) -> set[str]:
        return below[name].union(*(reached(other) for other in below[name]))

    return [
        (name, other)
        for name in below
        for other in sorted(below[name])
        if not any(other in reached(third) for third in below[name] - {other})
    ]


def draw(page: str) -> str:
    """Returns the picture as SVG."""
    rooms = read_rooms(page)
    below = {name: may for name, (_, may) in rooms.items()}
    rows = rows_of(below)
    height = 2 * MARGIN + len(rows) * BOX_HEIGHT + (len(rows) - 1) * ROW_GAP
    positions: dict[str, tuple[float, float, float]] = {}
    for number, row in enumerate(rows):
        width = min(310.0, (WIDTH - 2 * MARGIN - (len(row) - 1) * BOX_GAP) / len(row))
        left = (WIDTH - len(row) * width - (len(row) - 1) * BOX_GAP) / 2
        top = MARGIN + number * (BOX_HEIGHT + ROW_GAP)
        for index, name in enumerate(row):
            positions[name] = (left + index * (width + BOX_GAP), top, width)
    parts = []
    for name, other in direct(below):
        (x0, y0, w0), (x1, y1, w1) = positions[name], positions[other]
        start, end = (x0 + w0 / 2, y0 + BOX_HEIGHT), (x1 + w1 / 2, y1 - 6)
        bend = (end[1] - start[1]) / 2
        parts.append(
            f'<path class="arrow" marker-end="url(#head)" d="M{start[0]:.0f} {start[1]:.0f} '
            f"C{start[0]:.0f} {start[1] + bend:.0f} {end[0]:.0f} {end[1] - bend:.0f} "
            f'{end[0]:.0f} {end[1]:.0f}"/>'
        )
    for name, (x, y, width) in positions.items():
        parts.append(
            f'<rect class="box" x="{x:.0f}" y="{y:.0f}" width="{width:.0f}" '
            f'height="{BOX_HEIGHT}" rx="8"/>'
        )
        middle = x + width / 2
        parts.append(
            f'<text class="name" text-anchor="middle" x="{middle:.0f}" y="{y + 21:.0f}">'
            f"{escape(name)}</text>"
        )
        plain = rooms[name][0].replace("`", "")
        for line, words in enumerate(textwrap.wrap(plain, int(width / 7))[:3]):
            parts.append(
                f'<text class="text" text-anchor="middle" x="{middle:.0f}" '
                f'y="{y + 39 + line * LINE_HEIGHT:.0f}">{escape(words)}</text>'
            )
    body = "\n".join(parts)
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {height}" role="img" '
        f'aria-label="The rooms of msops and what they import">\n<style>{STYLE}</style>\n'
        '<defs><marker id="head" viewBox="0 0 8 8" refX="6" refY="4" markerWidth="7" '
        'markerHeight="7" orient="auto"><path class="head" d="M0 0 L8 4 L0 8 z"/></marker></defs>\n'
        f"{body}\n</svg>\n"
    )


if __name__ == "__main__":
    PICTURE.write_text(draw(PAGE.read_text()))
