"""Estimates what a plan costs, to choose between plans for one kernel.

Operations and accesses count alike, whether what is accessed is in a register or in memory: what a
plan runs again, what it keeps on tapes, and what its derivatives compute.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Iterable, Mapping

from msops._loops.analysis.costs import UNKNOWN_TRIPS, effort, mean_trips
from msops._loops.gradient.recording import Recording, Saved
from msops._loops.gradient.relations import Derivative
from msops._loops.gradient.tree import Node, Tree
from msops._loops.ir.nodes import Expr, Store
from msops._loops.ir.operators import itemsize
from msops._loops.ir.ranges import nested_ranges
from msops._loops.ir.walk import buffers_of, expressions, has_bounds_of_data

_TAPED = 4
"""Accesses for each value on a tape: it is read and written twice."""


def cost(
    tree: Tree,
    rerun: Iterable[Iterable[Node]],
    recording: Recording,
    derivatives: Mapping[Node, Derivative],
) -> float:
    """Returns the operations and accesses of a plan, apart from what all plans have.

    Args:
      tree: the kernel.
      rerun: the stores that run again, by homes.
      recording: what is on tapes, and which loops are restarted.
      derivatives: those that are computed.
    """
    total = 0.0
    for stores in rerun:
        again = [
            (node, UNKNOWN_TRIPS if recording.restarted.keys() & {*node.ancestors} else 1)
            for node in stores
        ]
        total += sum(times * _runs(node) for node, times in again)
        total += sum(
            times * _together((node, node.store.value) for node, t in again if t == times)
            for times in (1, UNKNOWN_TRIPS)
        )
    total += _TAPED * sum(_taped(tree, recording).values())
    parts = ((node, part) for node, d in derivatives.items() for part in d.contributions)
    return total + _together((node, part.value) for node, part in parts)


def taped_bytes(tree: Tree, recording: Recording) -> float:
    """Returns the size of what is on tapes."""
    taped, buffers = _taped(tree, recording), buffers_of(tree.kernel)
    return sum(values * itemsize(buffers[name].dtype) for (_, name), values in taped.items())


def _taped(tree: Tree, recording: Recording) -> dict[Saved, float]:
    """Returns how many values are on tapes, by what is saved."""
    buffers = buffers_of(tree.kernel)
    return {
        (node, name): _runs(node)
        * (1 if isinstance(node.stmt, Store) else math.prod(buffers[name].shape))
        for node, name in recording.recorders
    }


def _together(values: Iterable[tuple[Node, Expr]]) -> float:
    """Returns the operations of what is computed at some statements.

    What the same loops compute at several statements counts once, as C compilers see to it.
    """
    groups: dict[tuple[int, ...], list[tuple[Node, Expr]]] = defaultdict(list)
    for node, value in values:
        groups[tuple(map(id, node.loops))].append((node, value))
    return sum(_runs(group[0][0]) * _effort(e for _, e in group) for group in groups.values())


def _runs(node: Node) -> float:
    """Returns how often a statement runs."""
    ranges = nested_ranges(node.loops, {})
    return math.prod(
        UNKNOWN_TRIPS if has_bounds_of_data(loop) else mean_trips(loop, ranges)
        for loop in node.loops
    )


def _effort(values: Iterable[Expr]) -> int:
    """Returns the operations and loads of some values; what they share counts once."""
    return sum(map(effort, {part for value in values for part in expressions(value)}))
