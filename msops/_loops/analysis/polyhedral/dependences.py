"""Memory-based dependences between the accesses of a kernel, exact for quasi-affine ones.

Two accesses of one element depend on each other if one writes. isl looks loop by loop for the one
that carries the dependence: the outer variables are equal, and its variable is less in the source
than in the target. If none does, all common variables are equal and the source is first in the
text.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal

from msops._loops.analysis.polyhedral.accesses import Access, analysis
from msops._loops.analysis.polyhedral.library import isl
from msops._loops.analysis.polyhedral.uniform import meetings
from msops._loops.analysis.updates import Update, kept_extreme_of, update_of
from msops._loops.ir.nodes import Kernel, Store, Var

IN, OUT = isl.dim_type.in_, isl.dim_type.out


@dataclass(frozen=True, eq=False)
class Dependence:
    """Iterations of `target` that must run after iterations of `source`.

    Attributes:
      source: the access that happens first.
      target: the access that happens second.
      carrier: the variable of the common loop whose iterations it orders; None if both accesses are
        in the same iteration of all common loops.
      is_exact: whether both accesses are exact; else it may not exist.
      is_reduction: both accesses belong to updates by one operation that may be reordered, or to
        one update that keeps an extreme.
    """

    source: Access
    target: Access
    carrier: str | None
    is_exact: bool
    is_reduction: bool

    @property
    def kind(self) -> Literal["flow", "anti", "output"]:
        """The kinds of source and target: write and read, read and write, or two writes."""
        if self.source.is_write:
            return "output" if self.target.is_write else "flow"
        return "anti"


def dependences(kernel: Kernel, finds_kept: bool = False) -> tuple[Dependence, ...]:
    """Returns the dependences between different instances of the statements of a kernel.

    Args:
      kernel: the kernel.
      finds_kept: whether what keeps an extreme is an update, too; see `kept_extreme_of`.

    Raises:
      TooComplex: isl did not finish within its limit.
    """
    with analysis(kernel) as accesses:
        return dependences_between(accesses, finds_kept)


def dependences_between(
    all_accesses: tuple[Access, ...], finds_kept: bool = False
) -> tuple[Dependence, ...]:
    """Returns the dependences among accesses given in the order of the text."""
    by_buffer: dict[str, list[Access]] = defaultdict(list)
    for access in _without_repetitions(all_accesses):
        by_buffer[access.buffer].append(access)
    updates = _Updates(finds_kept)
    found: list[Dependence] = []
    for group in by_buffer.values():
        for position, first in enumerate(group):
            for second in group[position:]:
                if first.is_write or second.is_write:
                    found.extend(_between(first, second, updates))
    return tuple(found)


def _without_repetitions(all_accesses: tuple[Access, ...]) -> list[Access]:
    """Returns the accesses without loads that their statement repeats."""
    kept: dict[tuple[object, ...], Access] = {}
    for access in all_accesses:
        # Domains are compared by identity; a guard in an expression makes a new domain.
        domain, node = id(access.domain), access.node
        key = (access.order, domain, access.is_write, node.buffer, node.indices)
        kept.setdefault(key, access)
    return list(kept.values())


def _between(first: Access, second: Access, updates: _Updates) -> Iterator[Dependence]:
    """Yields the dependences of two accesses, `first` not after `second` in the text."""
    is_exact = first.is_exact and second.is_exact
    common = common_loops(first, second)
    met = None
    if first.uniform is not None and second.uniform is not None:
        met = meetings(first.uniform, second.uniform, common, first.private_loops)
    if met is not None:
        is_reduction = bool(met) and updates.commute(first, second)
        for carrier, is_later, is_earlier in met:
            if is_later and (carrier is not None or first.order < second.order):
                yield Dependence(first, second, carrier, is_exact, is_reduction)
            if is_earlier and first is not second:
                yield Dependence(second, first, carrier, is_exact, is_reduction)
        return
    # One element per iteration: most accesses are such, and isl takes longer to say so.
    is_of_one = is_exact and _set_apart(first, second) >= {*common}
    if is_of_one and first.order == second.order:
        return
    is_reduction = updates.commute(first, second)
    both = first.relation.apply_range(second.relation.reverse())
    for depth, loop in enumerate(common):
        if is_of_one:
            both = both.equate(IN, depth, OUT, depth)
            continue
        if both.is_empty():
            return
        if not both.order_lt(IN, depth, OUT, depth).is_empty():
            yield Dependence(first, second, loop, is_exact, is_reduction)
        if first is not second and not both.order_gt(IN, depth, OUT, depth).is_empty():
            yield Dependence(second, first, loop, is_exact, is_reduction)
        both = both.equate(IN, depth, OUT, depth)
    if first.order < second.order and not both.is_empty():
        yield Dependence(first, second, None, is_exact, is_reduction)


def _set_apart(first: Access, second: Access) -> set[str]:
    """Returns variables of loops that are equal wherever two exact accesses meet."""
    indices = zip(first.node.indices, second.node.indices, strict=True)
    equal = {a.name for a, b in indices if isinstance(a, Var) and a == b}
    return equal.union(loop.var for loop in first.loops[: first.private_loops])


def is_hidden(first: Access, second: Access, between: Access) -> bool:
    """Returns whether a write surely sets each element after one access and before another.

    Args:
      first: an access.
      second: one that may touch the same elements later.
      between: a write.
    """
    # An element that one of both surely touches is the one at which the others meet it.
    if not (between.is_exact and (first.is_exact or second.is_exact)):
        return False
    via = _later(first, between).apply_range(_later(between, second))
    return bool(_later(first, second).is_subset(via))


def _later(first: Access, second: Access) -> isl.Map:
    """Returns the map from iterations to later ones of another access to the same element."""
    both = first.relation.apply_range(second.relation.reverse())
    found = both.subtract(both)
    for depth in range(len(common_loops(first, second))):
        found = found.union(both.order_lt(IN, depth, OUT, depth))
        both = both.equate(IN, depth, OUT, depth)
    return found.union(both) if first.order < second.order else found


def common_loops(first: Access, second: Access) -> list[str]:
    """Returns the variables of the loops around both accesses, outermost first."""
    common = []
    for a, b in zip(first.loops, second.loops, strict=False):
        if a.var != b.var:
            break
        common.append(a.var)
    return common


class _Updates:
    """The updates that the stores of a kernel are, each recognised once."""

    def __init__(self, finds_kept: bool) -> None:
        self._finds_kept = finds_kept
        self._known: dict[int, Update | None] = {}

    def commute(self, first: Access, second: Access) -> bool:
        """Returns whether both accesses are to elements of updates by the same operation."""
        a, b = self._update(first), self._update(second)
        if a is None or b is None or (a.op, a.keeps) != (b.op, b.keeps):
            return False
        return not a.keeps or first.order == second.order

    def _update(self, access: Access) -> Update | None:
        store = access.statement
        if not isinstance(store, Store):
            return None
        if access.order not in self._known:
            kept = kept_extreme_of(store) if self._finds_kept else None
            self._known[access.order] = kept or update_of(store)
        # The target is the only load of the stored buffer.
        return self._known[access.order] if access.buffer == store.buffer else None
