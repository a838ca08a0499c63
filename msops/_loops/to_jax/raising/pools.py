"""Reductions over sliding windows: pooling."""

from __future__ import annotations

import dataclasses

from msops._loops.ir.nodes import Const, Select
from msops._loops.ir.scalars import identity
from msops._loops.ir.walk import variables
from msops._loops.to_jax.raising.steps import Pool, Reduce
from msops._loops.to_jax.raising.windows import find_windows


def find_pool(whole: Reduce) -> Pool | None:
    """Returns a reduction as one over sliding windows; None if it is none."""
    if whole.op not in ("add", "max", "min"):
        return None
    nest, value = whole.nest, whole.value
    kept = tuple(c for c in nest.mask if variables(c).isdisjoint(whole.over))
    for condition in nest.mask:
        if condition not in kept:
            unchanged = Const(identity(whole.op, value.dtype), value.dtype)
            value = Select(condition, value, unchanged, value.dtype)
    found = find_windows(value, set(nest.extents) - set(whole.over), whole.over)
    if found is None or any(window.dilation < 0 for window in found[0]):
        return None
    box = dataclasses.replace(nest, mask=kept)
    return Pool(box, whole.op, found[1], found[0], whole.over, whole.keeps)
