"""Findings of `opcheck`, and their text."""

from __future__ import annotations

import dataclasses
import html
import textwrap
from collections.abc import Iterator, Sequence
from typing import Literal

Verdict = Literal["passed", "failed", "skipped"]

_COLOURS = {"passed": "#2e9e5b", "failed": "#d64541", "skipped": "#8a8f98"}


@dataclasses.dataclass(frozen=True)
class Finding:
    """The outcome of one check.

    Attributes:
      check: the check's name, which `opcheck`'s option `skip` takes.
      verdict: "passed", "failed" or "skipped".
      summary: what was found, what was tried, or why the check was skipped.
      details: for a failure, where: buffers, offsets, values.
      remedy: for a failure, what to do.
      follows: for a failure, the failed check whose fault may be the cause of this one, too.
    """

    check: str
    verdict: Verdict
    summary: str
    details: tuple[str, ...] = ()
    remedy: str = ""
    follows: str = ""

    @property
    def advice(self) -> str:
        """The remedy, and the finding to look at before this one."""
        if not self.follows:
            return self.remedy
        return f"May follow from {self.follows!r}: correct that first. {self.remedy}"


def passed(check: str, summary: str) -> Finding:
    """Returns the finding of a check that the op stood."""
    return Finding(check, "passed", summary)


def skipped(check: str, reason: str) -> Finding:
    """Returns the finding of a check that does not apply."""
    return Finding(check, "skipped", reason)


def failed(check: str, summary: str, details: Sequence[str], remedy: str) -> Finding:
    """Returns the finding of a check that found a fault."""
    return Finding(check, "failed", summary, tuple(details), remedy)


@dataclasses.dataclass(frozen=True, repr=False)
class Report:
    """Every finding of one run of `opcheck`; its text is a table.

    Attributes:
      op: the op and its arguments.
      findings: one per check, in the order in which they ran.
    """

    op: str
    findings: tuple[Finding, ...]

    @property
    def ok(self) -> bool:
        """Whether no check failed."""
        return not self.failures

    @property
    def failures(self) -> tuple[Finding, ...]:
        """The findings of the checks that failed."""
        return tuple(finding for finding in self.findings if finding.verdict == "failed")

    def __getitem__(self, check: str) -> Finding:
        """Returns the finding of a check."""
        found = {finding.check: finding for finding in self.findings}
        if check not in found:
            names = ", ".join(map(repr, found))
            raise KeyError(f"opcheck has no finding {check!r}; there are {names}")
        return found[check]

    def __iter__(self) -> Iterator[Finding]:
        return iter(self.findings)

    def __str__(self) -> str:
        width = max((len(finding.check) for finding in self.findings), default=0)
        lines = [f"opcheck of {self.op}: {self._count()}"]
        for finding in self.findings:
            lines.append(f"  {finding.check:{width}}  {finding.verdict:7}  {finding.summary}")
            indent = " " * (width + 13)
            lines += [f"{indent}{detail}" for detail in finding.details]
            if finding.advice:
                lines += textwrap.wrap(
                    finding.advice, 96, initial_indent=indent, subsequent_indent=indent
                )
        return "\n".join(lines)

    def __repr__(self) -> str:
        return str(self)

    def _repr_html_(self) -> str:
        rows = "".join(
            f'<tr><td style="text-align:left">{html.escape(finding.check)}</td>'
            f'<td style="color:{_COLOURS[finding.verdict]};font-weight:600">{finding.verdict}</td>'
            f'<td style="text-align:left">{_folded(finding)}</td></tr>'
            for finding in self.findings
        )
        head = f"opcheck of {self.op}: {self._count()}"
        return f"<p><b>{html.escape(head)}</b></p><table>{rows}</table>"

    def _count(self) -> str:
        verdicts = [finding.verdict for finding in self.findings]
        following = sum(bool(finding.follows) for finding in self.findings)
        notes = {"failed": f" ({following} may follow from others)"} if following else {}
        return ", ".join(
            f"{verdicts.count(verdict)} {verdict}{notes.get(verdict, '')}"
            for verdict in ("passed", "failed", "skipped")
            if verdict in verdicts
        )


def _folded(finding: Finding) -> str:
    """Returns a finding as HTML: its details are folded, open where a check failed."""
    summary = html.escape(finding.summary)
    more = "\n".join((*finding.details, finding.advice)).strip()
    if not more:
        return summary
    is_open = ' open=""' if finding.verdict == "failed" else ""
    return (
        f"<details{is_open}><summary>{summary}</summary>"
        f'<pre style="white-space:pre-wrap">{html.escape(more)}</pre></details>'
    )
