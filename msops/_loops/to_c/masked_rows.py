"""Whether a kernel may load neighbours under conditions, which gcc 11 and 12 load wrongly.

A loop that reads several neighbours in each iteration, each under a condition, needs more than one
vector for them. gcc takes the mask of the first vector for all: elements are lost, and memory is
read that the program does not read. Compiled without vectors for conditions, all loads are right.

Loads of one buffer at the same distance from iteration to iteration count as neighbours, however
far apart they are, and whether or not they are proven to be in range.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

from msops._loops.analysis.costs import fixed_trips
from msops._loops.ir.nodes import For, If, Kernel, Load
from msops._loops.ir.walk import AccessSite, visit_accesses
from msops._loops.to_c.strides import stride

_WRITTEN_OUT = 16
"""The most iterations of an inner loop that gcc writes out in the loop around it."""


def loads_masked_rows(kernel: Kernel) -> bool:
    """Returns whether an iteration of a loop loads several elements of a buffer conditionally."""
    found: Counter[tuple[str, str, int]] = Counter()
    for site in visit_accesses(kernel):
        if isinstance(site.access, Load):
            found.update(_rows(site, site.access))
    return any(count > 1 for count in found.values())


def _rows(site: AccessSite, load: Load) -> Iterator[tuple[str, str, int]]:
    """Yields loop, buffer and distance for each element that an iteration loads conditionally."""
    *outer, inner = site.scope.loops or (None,)
    if inner is None:
        return
    candidates = [(inner, 1)]
    trips = fixed_trips(inner)
    # A loop that is marked by `omp simd` stays a loop.
    is_kept = inner.vector == "simd"
    if outer and not is_kept and trips is not None and 1 < trips <= _WRITTEN_OUT:
        # All iterations of the inner loop are part of one of the outer loop.
        elements = trips if stride(load, inner.var, site.scope.buffers) != 0 else 1
        candidates.append((outer[-1], elements))
    for loop, elements in candidates:
        distance = stride(load, loop.var, site.scope.buffers)
        if distance is not None and abs(distance) > 1 and _is_conditional(site, loop):
            for _ in range(elements):
                yield loop.var, load.buffer, distance


def _is_conditional(site: AccessSite, loop: For) -> bool:
    """Returns whether a condition inside of a loop decides about an access."""
    path = site.scope.path
    start = next(i for i, part in enumerate(path) if isinstance(part, For) and part.var == loop.var)
    return bool(site.conditions) or any(isinstance(part, If) for part in path[start:])
