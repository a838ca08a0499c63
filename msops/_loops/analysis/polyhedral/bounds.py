"""Which indices may be out of range, and which certainly are in some iteration."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from msops._loops.analysis.polyhedral.accesses import Access, analysis_of, first_iteration
from msops._loops.analysis.polyhedral.library import isl
from msops._loops.ir.ranges import is_within, range_of
from msops._loops.ir.walk import AccessSite


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
