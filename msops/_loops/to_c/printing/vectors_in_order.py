"""Loops in order around vectors: what gcc may not do with them.

    for (p) x[p .. p + 8] = f(x[p .. p + 8], x[p + 1 .. p + 9]);

Vectors of one iteration overlap those of the next. gcc 11 and 12 compare where they begin, find no
two at the same element, and take them for apart: predictive commoning hands a vector to the next
iteration that a store has changed since. It works on loops without loops in them, once short ones
are written out. Other loops keep it: a cumulative sum takes 3.3 without it, a diffusion 1.15.
"""

from __future__ import annotations

from msops._loops.analysis.costs import fixed_trips
from msops._loops.ir.nodes import For, Kernel
from msops._loops.ir.walk import statements

_MOST_TRIPS = 16
"""The most iterations of a loop that gcc writes out."""
_MOST_LANES = 64
"""The most elements of a vector: iterations of a loop of vectors are as many of the kernel's."""

FLAG_OF_GCC = "// gcc: -fno-predictive-commoning\n\n"
"""In a translation unit: a flag that gcc gets, see `generated.flags_of_gcc`."""


def has_vectors_in_order(kernel: Kernel) -> bool:
    """Returns whether there may be vectors straight in a loop that keeps its order."""
    return any(
        loop.kind == "serial" and (bool(loop.vector) or _has_vectors_alone(loop))
        for loop in statements(kernel.body)
        if isinstance(loop, For)
    )


def _has_vectors_alone(loop: For) -> bool:
    """Returns whether the loops in another one are short, and one of them is of vectors."""
    inner = [stmt for stmt in statements(loop.body) if isinstance(stmt, For)]
    return any(each.vector for each in inner) and all(map(_is_short, inner))


def _is_short(loop: For) -> bool:
    trips = fixed_trips(loop)
    return trips is not None and trips <= _MOST_TRIPS * (_MOST_LANES if loop.vector else 1)
