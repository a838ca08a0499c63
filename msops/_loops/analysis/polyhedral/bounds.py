"""Finds accesses that are out of range for certain, and those that may be.

serial i in 0 .. 5 {
  b[i] = a[i]            a: float32[4]  ->  reads a[4] of a: float32[4] at i = 4
}
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import TypeAlias

from msops._loops.analysis.findings import LoopFinding
from msops._loops.analysis.polyhedral.accesses import Access, analysis_of, first_iteration
from msops._loops.analysis.polyhedral.library import TooComplex, isl
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


@dataclass(frozen=True)
class Doubt:
    """An index that is not proven to be in range.

    Attributes:
      access: the access.
      axis: the position of the index.
      iteration: values of the loop variables for which it certainly is out of range; None if no
        such iteration is known.
      value: the index there.
      wraps: the index may leave the range of its dtype and wrap.
    """

    access: Access
    axis: int
    iteration: dict[str, int] | None = None
    value: int = 0
    wraps: bool = False


def doubts(sites: Iterable[AccessSite]) -> tuple[Doubt, ...]:
    """Returns the indices of some accesses of a kernel that are not proven to be in range.

    Raises:
      TooComplex: isl did not finish within its limit.
    """
    with analysis_of(sites) as accesses:
        return tuple(doubt for access in accesses for doubt in _doubts(access))


def _doubts(access: Access) -> Iterator[Doubt]:
    domain = access.domain
    for axis, (index, size) in enumerate(
        zip(access.node.indices, access.declared.shape, strict=True)
    ):
        if is_within(range_of(index, domain.scope.ranges), (0, size - 1)):
            continue
        # How an index wraps matters only if it is an error to be out of range.
        value = domain.expression(index, wraps=domain.is_exact)
        if value is None:
            yield Doubt(access, axis)
            continue
        outside = value.lt_set(domain.constant(0)).union(value.ge_set(domain.constant(size)))
        wrong = outside.intersect(domain.points)
        if wrong.is_empty():
            continue
        if not domain.is_exact:
            yield Doubt(access, axis)
            continue
        example = _example(access, axis, value, wrong)
        yield dataclasses.replace(example, wraps=domain.expression(index) is None)


def _example(access: Access, axis: int, value: isl.PwAff, wrong: isl.Set) -> Doubt:
    """Returns a doubt with the first iteration in which the index is out of range."""
    first, iteration = first_iteration(wrong, access.loops)
    return Doubt(access, axis, iteration, value.eval(first).to_python())
