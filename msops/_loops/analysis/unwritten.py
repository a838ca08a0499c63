"""Finds reads of elements that nothing has written.

    serial i in 0 .. 4 {
      y[i] = y[i] * y[i]     ->   y[i] is read at i = 0, and nothing has written it before
    }

They are 0 here, and whatever is in memory under AKG. What may have been written counts as written,
so what is found is certain.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass

from msops._loops.analysis.findings import LoopFinding
from msops._loops.analysis.polyhedral.accesses import Access, analysis, analysis_of
from msops._loops.analysis.polyhedral.flow import Flow, flows
from msops._loops.analysis.polyhedral.library import TooComplex
from msops._loops.ir.nodes import Kernel
from msops._loops.ir.text import expr_text
from msops._loops.ir.walk import visit_accesses


@dataclass(frozen=True)
class Written:
    """Facts about the values that reads find.

    Attributes:
      findings: of each array, the first read that finds an element unwritten for certain.
      overwritten: buffers and locals of which each element that is read, or returned, certainly has
        been written: they need not be zero at the start.
    """

    findings: tuple[LoopFinding, ...]
    overwritten: frozenset[str]


def find_unwritten(kernel: Kernel) -> Written:
    """Returns which reads of a kernel find what nothing has written."""
    try:
        with analysis(kernel) as accesses:
            found = flows(kernel, accesses)
            overwritten = _overwritten(kernel, found)
            # The first read of an array shows what is missing.
            findings = tuple(
                _finding(*reads[0])
                for name, flow in found.items()
                if name not in overwritten and (reads := flow.unwritten_reads())
            )
    except TooComplex:
        return Written((), frozenset())
    return Written(findings, overwritten)


def find_overwritten(kernel: Kernel, among: Collection[str]) -> frozenset[str]:
    """Returns which of some buffers and locals need not be zero at the start; see `Written`."""
    sites = [site for site in visit_accesses(kernel) if site.access.buffer in among]
    if not sites:
        return frozenset()
    try:
        with analysis_of(sites) as accesses:
            return _overwritten(kernel, flows(kernel, accesses))
    except TooComplex:
        return frozenset()


def _overwritten(kernel: Kernel, found: Mapping[str, Flow]) -> frozenset[str]:
    return frozenset(
        name
        for name, flow in found.items()
        if (name not in kernel.results or flow.fills()) and flow.is_covered()
    )


def _finding(read: Access, iteration: dict[str, int]) -> LoopFinding:
    indices = ", ".join(expr_text(index, outermost=True) for index in read.node.indices)
    element = f"{read.buffer}[{indices}]" if indices else read.buffer
    where = ", ".join(f"{var} = {value}" for var, value in iteration.items())
    message = (
        f"{element} is read{' at ' if where else ''}{where}, and nothing has written it before"
    )
    return LoopFinding("unwritten", message, read.node.location or read.statement.location)
