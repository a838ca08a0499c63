"""Strongly connected components in an order that follows the edges."""

from __future__ import annotations

from collections.abc import Iterable


def components(count: int, edges: Iterable[tuple[int, int]]) -> list[list[int]]:
    """Returns the strongly connected components of the graph of nodes 0 .. count - 1.

    Each component comes after those with edges into it, otherwise in the order of their least
    nodes; the nodes of one are sorted.
    """
    behind = _reached(count, edges)
    left = dict.fromkeys(range(count))
    ordered: list[list[int]] = []
    while left:
        # What all that leads to it is led to by: the component, and nothing before it.
        first = next(n for n in left if all(behind[n] >> m & 1 for m in left if behind[m] >> n & 1))
        ordered.append([n for n in left if behind[first] >> n & 1 and behind[n] >> first & 1])
        for node in ordered[-1]:
            del left[node]
    return ordered


def _reached(count: int, edges: Iterable[tuple[int, int]]) -> list[int]:
    """Returns the nodes that paths from each node lead to, and itself, as bits of a number."""
    reached = [1 << node for node in range(count)]
    for source, target in edges:
        reached[source] |= 1 << target
    for middle in range(count):
        for node in range(count):
            if reached[node] >> middle & 1:
                reached[node] |= reached[middle]
    return reached
