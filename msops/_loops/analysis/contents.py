"""Finds an interval of the integers that an array of a kernel's own ever holds.

    parallel p in 0 .. 100 { list[p] = p }
    ...                                         list holds 0 .. 99, so x[list[p]] exists
    list[left[]] = list[p]

Lists of what is still to do, parents in a forest and permutations are such arrays: their elements
are indices of other arrays. This is interval analysis without the order of statements (P. Cousot,
R. Cousot, POPL 1977): an interval holds if every store keeps it.
"""

from __future__ import annotations

from collections import ChainMap

from msops._loops.ir.nodes import Kernel, Local, Store
from msops._loops.ir.operators import INTEGERS
from msops._loops.ir.ranges import Range, dtype_range, range_of
from msops._loops.ir.walk import statements, visit

_MOST_ROUNDS = 4
"""How often intervals may grow. One that still does then may grow for ever, as a sum does."""


def contents(kernel: Kernel) -> dict[str, Range]:
    """Returns the intervals of arrays and variables, by name; those that are not in it may hold
    any number of their dtype."""
    locals_ = (stmt.buffer for stmt in statements(kernel.body) if isinstance(stmt, Local))
    own = [b for b in (*kernel.buffers, *locals_) if b.dtype in INTEGERS]
    if not any(buffer.shape for buffer in own):
        return {}
    # All are zero at first, or are not read before they are stored.
    known = {buffer.name: (0, 0) for buffer in own}
    stores = [
        (stmt, ChainMap(known, dict(scope.ranges)))
        for stmt, scope in visit(kernel)
        if isinstance(stmt, Store) and stmt.buffer in known
    ]
    rounds = 0
    while True:
        rounds += 1
        grown = set()
        for store, ranges in stores:
            if store.buffer not in known:
                continue
            (low, high), found = known[store.buffer], range_of(store.value, ranges)
            if found[0] < low or found[1] > high:
                known[store.buffer] = min(low, found[0]), max(high, found[1])
                grown.add(store.buffer)
        if not grown:
            break
        for name in grown if rounds >= _MOST_ROUNDS else ():
            del known[name]
    whole = {buffer.name: dtype_range(buffer.dtype) for buffer in own}
    return {name: found for name, found in known.items() if found != whole[name]}
