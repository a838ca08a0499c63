"""Finds an interval of the integers that a variable or an array of a kernel's own ever holds.

    parallel p in 0 .. 100 { list[p] = p }
    ...                                         list holds 0 .. 99, so x[list[p]] exists
    list[left[]] = list[p]

Lists of what is still to do, parents in a forest and permutations are such arrays: their elements
are indices of other arrays. Variables such as `max(int(x[k]), 0)` begin loops over windows. This is
interval analysis without the order of statements (P. Cousot, R. Cousot, POPL 1977): an interval
holds if every store keeps it.
"""

from __future__ import annotations

from collections.abc import Iterator

from msops._loops.ir.nodes import Buffer, For, If, Kernel, Local, Stmt, Store
from msops._loops.ir.operators import INTEGERS
from msops._loops.ir.ranges import Range, dtype_range, nested_ranges, range_of

_MOST_ROUNDS = 4
"""How often intervals may grow. One that still does then may grow for ever, as a sum does."""


def contents(kernel: Kernel) -> dict[str, Range]:
    """Returns the intervals of arrays and variables, by name.

    Those that are not in it may hold any number of their dtype.
    """
    buffers = (*kernel.buffers, *_locals(kernel.body))
    own = {buffer.name: buffer.dtype for buffer in buffers if buffer.dtype in INTEGERS}
    stores = [(store, loops) for store, loops in _stores(kernel.body, ()) if store.buffer in own]
    # All are zero at first, or are not read before they are stored.
    known = dict.fromkeys(own, (0, 0))
    rounds = 0
    while grown := _grown(stores, known):
        rounds += 1
        known |= grown
        if rounds >= _MOST_ROUNDS:
            known = {name: span for name, span in known.items() if name not in grown}
    return {name: span for name, span in known.items() if span != dtype_range(own[name])}


def _grown(
    stores: list[tuple[Store, tuple[For, ...]]], known: dict[str, Range]
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


def _locals(body: tuple[Stmt, ...]) -> Iterator[Buffer]:
    """Yields the buffers that some statements declare."""
    for stmt in body:
        match stmt:
            case Local(buffer=buffer, body=inner):
                yield buffer
                yield from _locals(inner)
            case For(body=inner):
                yield from _locals(inner)
            case If(then=then, otherwise=otherwise):
                yield from _locals((*then, *otherwise))


def _stores(
    body: tuple[Stmt, ...], loops: tuple[For, ...]
) -> Iterator[tuple[Store, tuple[For, ...]]]:
    """Yields the stores of some statements, each with the loops around it."""
    for stmt in body:
        match stmt:
            case Store():
                yield stmt, loops
            case For(body=inner):
                yield from _stores(inner, (*loops, stmt))
            case Local(body=inner):
                yield from _stores(inner, loops)
            case If(then=then, otherwise=otherwise):
                yield from _stores((*then, *otherwise), loops)
