"""Finds an interval of the integers that a variable or an array of a kernel's own ever holds.

    parallel p in 0 .. 100 { list[p] = p }
    ...                                         list holds 0 .. 99, so x[list[p]] exists
    list[left[]] = list[p]

Lists of what is still to do, parents in a forest and permutations are such arrays: their elements
are indices of other arrays. Variables such as `max(int(x[k]), 0)` begin loops over windows. This is
interval analysis without the order of statements (P. Cousot, R. Cousot, POPL 1977): an interval
holds if every store keeps it. `walk.contents` collects the stores.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from msops._loops.ir.nodes import For, Store
from msops._loops.ir.ranges import Range, dtype_range, nested_ranges, range_of

_MOST_ROUNDS = 4
"""How often intervals may grow. One that still does then may grow for ever, as a sum does."""


def held_ranges(
    dtypes: Mapping[str, str], stores: Sequence[tuple[Store, tuple[For, ...]]]
) -> dict[str, Range]:
    """Returns the intervals of buffers, by name, that are narrower than their dtypes.

    Args:
      dtypes: those of all buffers of integers that a kernel makes.
      stores: all stores to them, each with the loops around it.
    """
    # All are zero at first, or are not read before they are stored.
    known = dict.fromkeys(dtypes, (0, 0))
    rounds = 0
    while grown := _grown(stores, known):
        rounds += 1
        known |= grown
        if rounds >= _MOST_ROUNDS:
            known = {name: span for name, span in known.items() if name not in grown}
    return {name: span for name, span in known.items() if span != dtype_range(dtypes[name])}


def _grown(
    stores: Sequence[tuple[Store, tuple[For, ...]]], known: Mapping[str, Range]
) -> dict[str, Range]:
    """Returns the intervals that some stores leave, with what they store."""
    grown: dict[str, Range] = {}
    for store, loops in stores:
        if store.buffer not in known:
            continue
        low, high = grown.get(store.buffer, known[store.buffer])
        least, greatest = range_of(store.value, nested_ranges(loops, known))
        if least < low or greatest > high:
            grown[store.buffer] = (min(low, least), max(high, greatest))
    return grown
