"""Sums that do not depend on a serial loop around them are computed before it.

    serial j in 0 .. 200 {                     local dots: float32[200] {
      local dot: float32[] {                     parallel j in 0 .. 200 {
        dot[] = 0                                  local dot: float32[] {
        reduction d in 0 .. 64 {                     dot[] = 0
          dot[] = dot[] + q[d] * k[j, d]             reduction d in 0 .. 64 {
        }                                              dot[] = dot[] + q[d] * k[j, d]
        m[] = max(m[], dot[])             ->         }
        ...                                          dots[j] = dot[]
      }                                            }
    }                                            }
                                                 serial j_1 in 0 .. 200 {
                                                   m[] = max(m[], dots[j_1])
                                                   ...

The loop over the sums is then parallel, so that these go into vectors (widening.py) and into tiles
of registers (products.py). This is loop distribution, as in deferring.py.
"""

from __future__ import annotations

from msops._loops.analysis.costs import mean_trips
from msops._loops.ir.building import integer
from msops._loops.ir.names import Names, unique_names
from msops._loops.ir.nodes import Buffer, For, Kernel, Load, Local, Stmt, Store, Var
from msops._loops.ir.walk import (
    Scope,
    declared_in,
    has_bounds_of_data,
    loads,
    loads_in,
    rewrite_all,
    rewrite_loops,
    stored_in,
    with_parts,
)
from msops._loops.passes.simplify import simplify
from msops._loops.to_c.blocks import index
from msops._loops.to_c.products import sum_in
from msops._loops.to_c.sums import FEWEST_WAITING

_FEWEST_SUMS = 16
"""Iterations of a loop; fewer sums gain little."""
_MOST_SUMS = 1 << 16
"""Sums that stay in a cache until the loop reads them."""


def sum_ahead(kernel: Kernel) -> Kernel:
    """Returns the kernel with such sums before the loops."""
    names = Names(kernel)

    def loop(serial: For, scope: Scope) -> tuple[Stmt, ...] | None:
        return _split(serial, scope, names)

    changed = rewrite_loops(kernel, loop, "serial")
    return kernel if changed is kernel else unique_names(simplify(changed))


def _split(serial: For, scope: Scope, names: Names) -> tuple[Stmt, ...] | None:
    """Returns a loop in two: over the sum that its iterations begin with, and over the rest."""
    (inside,) = scope.inside(serial)
    low, high = inside.ranges[serial.var]
    if serial.hint == "serial" or has_bounds_of_data(serial):
        return None
    if mean_trips(serial, scope.ranges) < _FEWEST_SUMS or high - low >= _MOST_SUMS:
        return None
    own: list[Buffer] = []
    body = serial.body
    while len(body) == 1 and isinstance(body[0], Local):
        own.append(body[0].buffer)
        body = body[0].body
    if len(body) < 3 or not isinstance(body[0], Store):
        return None
    start, nest, rest = body[0], body[1], body[2:]
    found = sum_in(nest, inside) if isinstance(nest, For) and nest.kind == "reduction" else None
    if found is None or found.update.op != "add" or found.terms < FEWEST_WAITING:
        return None
    total = next((each for each in own if each.name == start.buffer == found.store.buffer), None)
    if total is None or total.shape:
        return None
    changing = stored_in(serial.body) | declared_in(serial.body)
    read = [load for load in loads_in((start, nest)) if load.buffer != total.name]
    if any(load.buffer in changing for load in read) or total.name in stored_in(rest):
        return None
    if any(load.buffer == total.name for load in loads(start.value)):
        return None
    sums = Buffer(names.fresh(f"{total.name}_sums"), (high - low + 1,), total.dtype)
    at = index("sub", Var(serial.var), integer(low))
    load = Load(sums.name, (at,), sums.dtype)
    keep = Store(sums.name, (at,), Load(total.name, (), total.dtype))
    ahead = with_parts(serial, body=(Local(total, (start, nest, keep)),), kind="parallel", hint="")
    after = rewrite_all(
        rest,
        lambda part: load if isinstance(part, Load) and part.buffer == total.name else part,
    )
    for buffer in reversed(own):
        after = after if buffer is total else (Local(buffer, after),)
    return (Local(sums, (ahead, with_parts(serial, body=after)), location=serial.location),)
