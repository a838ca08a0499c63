"""Frees a store from orders between its own iterations.

Of iterations that overwrite one element, only the last counts:

    serial j in 0 .. 8 {
      last[i] = a[i, j]              ->   last[i] = a[i, 7]
    }

and where each reads what later ones overwrite, all may read before any writes:

    serial i in 0 .. 7 {                  parallel i in 0 .. 7 {
      a[i] = a[i + 1]                ->     copy[i] = a[i + 1]
    }                                     }
                                          parallel i in 0 .. 7 {
                                            a[i] = copy[i]
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Collection

from msops._loops.ir.building import binary, integer
from msops._loops.ir.names import Names
from msops._loops.ir.nodes import Buffer, Expr, For, If, Load, Store, Var
from msops._loops.ir.ranges import Ranges
from msops._loops.ir.walk import loads, substitute, variables
from msops._loops.to_jax.passes.expand_locals import ELEMENT_LIMIT
from msops._loops.to_jax.passes.sites import Edge, Site


def last_iterations(site: Site, edges: Collection[Edge]) -> Site | None:
    """Returns a store that runs once for loops whose iterations overwrite each other.

    Args:
      site: a store that no other one must alternate with.
      edges: orders between its iterations.

    Returns:
      The store in which such loops are replaced by their last iteration; None if other orders than
      of overwriting remain, or the last iteration may not store.
    """
    if any(edge.kind != "output" or edge.is_reduction for edge in edges):
        return None
    path, store = list(site.path), site.store
    for carrier in {edge.carrier for edge in edges}:
        depth = next(
            (n for n, part in enumerate(path) if isinstance(part, For) and part.var == carrier),
            None,
        )
        if depth is None:
            return None
        loop = path[depth]
        assert isinstance(loop, For)
        around = [expr for part in path[depth + 1 :] for expr in _evaluated(part)]
        if any(loop.var in variables(expr) for expr in (*store.indices, *around)):
            return None
        last = binary("sub", loop.end, integer(1))
        store = dataclasses.replace(store, value=substitute(store.value, {loop.var: last}))
        runs = binary("lt", loop.begin, loop.end)
        path[depth] = If(runs, (), location=loop.location)
    return dataclasses.replace(site, store=store, path=tuple(path))


def read_first(
    site: Site, edges: Collection[Edge], ranges: Ranges, names: Names
) -> tuple[Buffer, Store, Store] | None:
    """Returns a temporary, a store to it of all values, and a store of these to their elements.

    None if other orders remain than of reading before writing, or a condition around the store
    would be changed by it, or the number of values is unknown or too large.
    """
    if any(edge.kind != "anti" or edge.is_reduction for edge in edges):
        return None
    store = site.store
    around = [expr for part in site.path for expr in _evaluated(part)]
    evaluated_again = (*around, *store.indices)
    if any(load.buffer == store.buffer for expr in evaluated_again for load in loads(expr)):
        return None
    bounds = {part.var: ranges[part.var] for part in site.path if isinstance(part, For)}
    shape = tuple(max(high - low + 1, 0) for low, high in bounds.values())
    if math.prod(shape) > ELEMENT_LIMIT:
        return None
    buffer = Buffer(names.fresh(f"{store.buffer}_new"), shape, store.value.dtype)
    element: tuple[Expr, ...] = tuple(
        binary("sub", Var(var), integer(low)) for var, (low, _) in bounds.items()
    )
    value = Load(buffer.name, element, buffer.dtype, location=store.location)
    return (
        buffer,
        dataclasses.replace(store, buffer=buffer.name, indices=element),
        dataclasses.replace(store, value=value),
    )


def _evaluated(part: For | If) -> tuple[Expr, ...]:
    return (part.begin, part.end) if isinstance(part, For) else (part.condition,)
