"""Strongly connected components in an order that follows the edges."""

from __future__ import annotations

import heapq
from collections.abc import Iterable, Mapping, Sequence


def components(count: int, edges: Iterable[tuple[int, int]]) -> list[list[int]]:
    """Returns the strongly connected components of the graph of nodes 0 .. count - 1.

    Each component comes after those with edges into it, otherwise in the order of their least
    nodes; the nodes of one are sorted.
    """
    followers: dict[int, set[int]] = {node: set() for node in range(count)}
    for source, target in edges:
        followers[source].add(target)
    groups = [sorted(group) for group in _tarjan(followers)]
    group_of = {node: number for number, group in enumerate(groups) for node in group}
    return _ordered(groups, followers, group_of)


def _ordered(
    groups: Sequence[list[int]], followers: Mapping[int, set[int]], group_of: Mapping[int, int]
) -> list[list[int]]:
    next_groups = [
        {group_of[target] for node in group for target in followers[node]} - {number}
        for number, group in enumerate(groups)
    ]
    waiting = [sum(number in later for later in next_groups) for number in range(len(groups))]
    ready = [(group[0], number) for number, group in enumerate(groups) if not waiting[number]]
    heapq.heapify(ready)
    ordered = []
    while ready:
        _, number = heapq.heappop(ready)
        ordered.append(groups[number])
        for later in next_groups[number]:
            waiting[later] -= 1
            if not waiting[later]:
                heapq.heappush(ready, (groups[later][0], later))
    return ordered


def _tarjan(followers: Mapping[int, set[int]]) -> list[list[int]]:
    index: dict[int, int] = {}
    low: dict[int, int] = {}
    stack: list[int] = []
    groups: list[list[int]] = []

    def visit(node: int) -> None:
        index[node] = low[node] = len(index)
        stack.append(node)
        for target in followers[node]:
            if target not in index:
                visit(target)
                low[node] = min(low[node], low[target])
            elif target in stack:
                low[node] = min(low[node], index[target])
        if low[node] == index[node]:
            group = stack[stack.index(node) :]
            del stack[-len(group) :]
            groups.append(group)

    for node in followers:
        if node not in index:
            visit(node)
    return groups
