"""What `opcheck` found, and how it is shown."""

from __future__ import annotations

import dataclasses
import textwrap
from collections.abc import Iterator, Sequence
from typing import Literal

Verdict = Literal["passed", "failed", "skipped"]


@dataclasses.dataclass(frozen=True)
class Finding:
    """The outcome of one check.

    Attributes:
      check: the check's name, which `opcheck`'s option `skip` takes.
      verdict: "passed", "failed" or "skipped".
      summary: what was found, what was tried, or why the check was skipped.
      details: for a failure, the places: buffers, offsets, values.
      remedy: for a failure, what to do.
      follows: for a failure, the failed check whose fault may be the cause of this one, too.
    """

    check: str
    verdict: Verdict
    summary: str
    details: tuple[str, ...] = ()
    remedy: str = ""
    follows: str = ""


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
            advice = finding.remedy
            if finding.follows:
                advice = f"May follow from {finding.follows!r}: correct that first. {advice}"
            if advice:
                lines += textwrap.wrap(advice, 96, initial_indent=indent, subsequent_indent=indent)
        return "\n".join(lines)

    def __repr__(self) -> str:
        return str(self)

    def _count(self) -> str:
        verdicts = [finding.verdict for finding in self.findings]
        following = sum(bool(finding.follows) for finding in self.findings)
        notes = {"failed": f" ({following} may follow from others)"} if following else {}
        return ", ".join(
            f"{verdicts.count(verdict)} {verdict}{notes.get(verdict, '')}"
            for verdict in ("passed", "failed", "skipped")
            if verdict in verdicts
        )
