"""Frees a store from orders between its own iterations.

Where each iteration reads what later ones overwrite, all may read before any writes:

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

from msops._loops.ir.algebra import binary, integer
from msops._loops.ir.names import Names
from msops._loops.ir.nodes import Buffer, Expr, For, Load, Store, Var
from msops._loops.ir.ranges import Ranges
from msops._loops.ir.walk import loads, own_expressions
from msops._loops.to_jax.passes.expand_locals import ELEMENT_LIMIT
from msops._loops.to_jax.passes.sites import Edge, Site


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
    around = (expr for part in site.path for expr in own_expressions(part))
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
