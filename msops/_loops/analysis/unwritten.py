"""Finds reads of elements that nothing has written.

    serial i in 0 .. 4 {
      y[i] = y[i] * y[i]     ->   y[i] is read at i = 0, and nothing has written it before
    }

They are 0 here, and whatever is in memory under AKG. What may have been written counts as written,
so what is found is certain.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from msops._loops.analysis.findings import LoopFinding
from msops._loops.ir.nodes import Kernel
from msops._loops.ir.text import expr_text

if TYPE_CHECKING:
    from msops._loops.analysis.polyhedral.accesses import Access


@dataclass(frozen=True)
class Written:
    """Facts about the values that reads find.

    Attributes:
      findings: reads that find an element unwritten for certain.
      overwritten: buffers and locals of which each element that is read, or returned, certainly has
        been written: they need not be zero at the start.
    """

    findings: tuple[LoopFinding, ...]
    overwritten: frozenset[str]


def find_unwritten(kernel: Kernel) -> Written:
    """Returns which reads of a kernel find what nothing has written."""
    # At the first compile, not with `import msops`.
    from msops._loops.analysis.polyhedral.accesses import analysis
    from msops._loops.analysis.polyhedral.flow import flows
    from msops._loops.analysis.polyhedral.library import TooComplex

    try:
        with analysis(kernel) as accesses:
            found = flows(kernel, accesses)
            overwritten = frozenset(
                name
                for name, flow in found.items()
                if (name not in kernel.results or flow.fills()) and flow.is_covered()
            )
            # A statement that reads an element twice is reported once.
            findings = {
                (read.order, read.node): _finding(read, iteration)
                for name, flow in found.items()
                if name not in overwritten
                for read, iteration in flow.unwritten_reads()
            }
    except TooComplex:
        return Written((), frozenset())
    return Written(tuple(findings.values()), overwritten)


def _finding(read: Access, iteration: dict[str, int]) -> LoopFinding:
    indices = ", ".join(expr_text(index, outermost=True) for index in read.node.indices)
    element = f"{read.buffer}[{indices}]" if indices else read.buffer
    where = ", ".join(f"{var} = {value}" for var, value in iteration.items())
    message = (
        f"{element} is read{' at ' if where else ''}{where}, and nothing has written it before"
    )
    return LoopFinding("unwritten", message, read.node.location or read.statement.location)
