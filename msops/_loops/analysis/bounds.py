"""Finds accesses that are out of range for certain, and those that may be.

serial i in 0 .. 5 {
  b[i] = a[i]            a: float32[4]  ->  reads a[4] of a: float32[4] at i = 4
}
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TypeAlias

from msops._loops.analysis.findings import LoopFinding
from msops._loops.analysis.polyhedral.bounds import Doubt, doubts
from msops._loops.analysis.polyhedral.library import TooComplex
from msops._loops.ir.nodes import Expr, Kernel
from msops._loops.ir.ranges import is_within, range_of
from msops._loops.ir.text import buffer_text, expr_text
from msops._loops.ir.walk import AccessSite, visit_accesses

Index: TypeAlias = tuple[str, tuple[Expr, ...], int]
"""One index of an access: the buffer, all indices, and the position of this one."""


@dataclass(frozen=True)
class Bounds:
    """Facts about the indices of a kernel.

    Attributes:
      findings: accesses that are out of range in an iteration that certainly is run.
      unproven: indices that may be out of range. Loop variables have names of their own, so equal
        indices mean equal values; under another guard they may be in range, and clamping changes
        nothing then. None if the kernel is too complex to analyse: any index may be.
    """

    findings: tuple[LoopFinding, ...]
    unproven: frozenset[Index] | None


def check_bounds(kernel: Kernel) -> Bounds:
    """Returns which accesses of a kernel are or may be out of range."""
    # Intervals prove most indices right, and cost little next to isl.
    doubtful = [site for site in visit_accesses(kernel) if not _is_inside(site)]
    if not doubtful:
        return Bounds((), frozenset())
    try:
        found = doubts(doubtful)
    except TooComplex:
        return Bounds((), None)
    return Bounds(
        tuple(_finding(doubt) for doubt in found if doubt.iteration is not None),
        frozenset((d.access.buffer, d.access.node.indices, d.axis) for d in found),
    )


def _is_inside(site: AccessSite) -> bool:
    """Returns whether the intervals of all indices of an access lie in their dimensions."""
    access, scope = site.access, site.scope
    return all(
        is_within(range_of(index, scope.ranges), (0, size - 1))
        for index, size in zip(access.indices, scope.buffers[access.buffer].shape, strict=True)
    )


def _finding(doubt: Doubt) -> LoopFinding:
    access, iteration = doubt.access, doubt.iteration
    assert iteration is not None
    wrapped = access.node.indices[doubt.axis]
    indices = [expr_text(index, outermost=True) for index in access.node.indices]
    indices[doubt.axis] = str(doubt.value)
    where = ", ".join(f"{var} = {value}" for var, value in iteration.items())
    message = (
        f"{'writes' if access.is_write else 'reads'} {access.buffer}[{', '.join(indices)}] "
        f"of {buffer_text(access.declared)}{' at ' if where else ''}{where}"
    )
    if doubt.wraps:
        message += f", where '{expr_text(wrapped, outermost=True)}' overflows {wrapped.dtype}"
    return LoopFinding("out of range", message, access.node.location or access.statement.location)
