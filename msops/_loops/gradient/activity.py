"""Which buffers need an adjoint: those that depend on what is differentiated and reach a result.

Hascoet and Pascual, The Tapenade automatic differentiation tool, ACM TOMS 39(3), 2013, section 4:
`varied` goes down the kernel from the parameters, `useful` up from the results.
"""

from __future__ import annotations

from collections.abc import Set

from msops._loops.gradient.contributions import differentiable_loads
from msops._loops.ir.nodes import Kernel, Store
from msops._loops.ir.operators import is_float
from msops._loops.ir.walk import statements


def active_buffers(kernel: Kernel, wanted: Set[str]) -> frozenset[str]:
    """Returns the buffers that a derivative of a result by a wanted parameter passes through."""
    stores = [stmt for stmt in statements(kernel.body) if isinstance(stmt, Store)]
    reads = [(store.buffer, {load.buffer for load in differentiable_loads(store.value)})
             for store in stores]  # fmt: skip
    floats = {buffer.name for buffer in kernel.outputs if is_float(buffer.dtype)}
    varied = _closure(wanted, [(target, source) for target, sources in reads for source in sources])
    useful = _closure(floats, [(source, target) for target, sources in reads for source in sources])
    return varied & useful


def _closure(start: Set[str], edges: list[tuple[str, str]]) -> frozenset[str]:
    """Returns what is reached from `start`; an edge (a, b) leads from b to a."""
    reached, size = set(start), -1
    while len(reached) != size:
        size = len(reached)
        reached |= {a for a, b in edges if b in reached}
    return frozenset(reached)
