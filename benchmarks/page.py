"""One page of all results: README.md of the results folder.

It is written again from the reports in that folder, so a run of one benchmark changes one section.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path

_HEAD = """# Benchmarks

`make bench` writes this page: every table and plot of this folder. In each section all contenders,
the baselines among them, took turns in one run. The first lines of a section give the method, the
day, the machine and the versions. `make bench ARGS="NAME ..."` measures some sections again and
leaves the others as they are.

<!-- overview -->"""


def write_page(folder: Path, order: Sequence[str]) -> Path:
    """Writes ``<folder>/README.md`` from the reports in the folder, and returns its path.

    Args:
      folder: holds ``<name>.md`` for each report, and ``<name>.png`` for its plot if it has one.
      order: names of benchmarks; reports of other names are left out.
    """
    reports = [(name, folder / f"{name}.md") for name in order]
    sections = [_Section(name, path.read_text()) for name, path in reports if path.exists()]
    overview = ["| benchmark | measured | targets |", "|:--|--:|--:|", *map(_row, sections)]
    page = folder / "README.md"
    bodies = [_body(folder, section) for section in sections]
    page.write_text("\n".join([_HEAD, "", *overview, "", *bodies]))
    return page


class _Section:
    """A report as it was written, and what the overview shows of it."""

    def __init__(self, name: str, text: str):
        self.name = name
        self.text = text
        self.title = text.partition("## ")[2].partition("\n")[0]
        day = re.search(r"^- Measured: (\S+)", text, re.MULTILINE)
        # Reports had no day at first.
        self.day = day[1] if day else "not recorded"
        self.met = text.count("**met")
        self.missed = text.count("**missed")


def _row(section: _Section) -> str:
    # The anchor that GitHub, and MyST like it, give a heading.
    anchor = re.sub(r"[^\w-]", "", section.title.lower().replace(" ", "-"))
    counts = [(section.met, "met"), (section.missed, "missed")]
    targets = ", ".join(f"{count} {what}" for count, what in counts if count) or "none"
    return f"| [{section.title}](#{anchor}) | {section.day} | {targets} |"


def _body(folder: Path, section: _Section) -> str:
    plot = folder / f"{section.name}.png"
    shown = f"\n![{section.title}, plotted]({plot.name})\n" if plot.exists() else ""
    return f"{section.text}{shown}"
