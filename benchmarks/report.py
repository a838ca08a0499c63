"""Tables in Markdown: printed, and written to the results folder."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from timing import Spread


@dataclass(frozen=True)
class Table:
    """A table under a heading; all cells are text."""

    heading: str
    columns: Sequence[str]
    rows: Sequence[Sequence[str]]

    def __str__(self) -> str:
        lines = [list(self.columns), *map(list, self.rows)]
        widths = [max(map(len, column)) for column in zip(*lines, strict=True)]
        head, *body = ("| " + " | ".join(map(str.rjust, line, widths)) + " |" for line in lines)
        rule = "|" + "|".join("-" * (width + 1) + ":" for width in widths) + "|"
        return "\n".join([f"### {self.heading}", "", head, rule, *body])


@dataclass(frozen=True)
class Report:
    """What one benchmark found.

    Attributes:
      name: the benchmark's name, and that of its file.
      title: what it measures, one line.
      method: how: sizes, repeats, and what the baselines do.
      tables: the numbers.
      verdicts: each target, and whether it was met.
    """

    name: str
    title: str
    method: str
    tables: Sequence[Table]
    verdicts: Sequence[str] = ()

    def text(self, machine: Sequence[str]) -> str:
        """Returns the report in Markdown, with the lines that say what it was measured on."""
        notes = "\n".join(f"- {line}" for line in [self.method, *machine])
        verdicts = "\n".join(f"- {line}" for line in self.verdicts)
        parts = [f"## {self.title}", notes, *map(str, self.tables), verdicts]
        return "\n\n".join(part for part in parts if part) + "\n"


def write_report(report: Report, machine: Sequence[str], folder: Path) -> Path:
    """Writes the report to ``<folder>/<name>.md`` and returns that path."""
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / f"{report.name}.md"
    path.write_text(report.text(machine))
    return path


def show_us(spread: Spread) -> str:
    """Returns microseconds as median and quartiles."""
    digits = 0 if spread.median >= 1000 else 1 if spread.median >= 100 else 2
    return " ".join(
        [f"{spread.median:,.{digits}f}", f"({spread.low:,.{digits}f}-{spread.high:,.{digits}f})"]
    )


def show_ratio(spread: Spread) -> str:
    """Returns a ratio as median and quartiles."""
    return f"{spread.median:.2f} ({spread.low:.2f}-{spread.high:.2f})"


def show_count(count: int) -> str:
    """Returns a number of elements, in binary thousands where it is one."""
    for unit, name in ((2**20, "Mi"), (2**10, "Ki")):
        if count >= unit and count % unit == 0:
            return f"{count // unit} {name}"
    return str(count)


def judge(target: str, values: dict[str, float], limit: float) -> str:
    """Returns a verdict: the target, and whether every one of `values` keeps to `limit`."""
    missed = [f"{value:.3f} at {where}" for where, value in values.items() if value > limit]
    worst = max(values.values())
    found = f"missed: {', '.join(missed)}" if missed else f"met (at most {worst:.3f})"
    return f"Target: {target}: **{found}**"
