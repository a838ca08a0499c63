"""Scalars that keep a value from one iteration to the next, as Python's names do.

    serial j in 0 .. 8 {                        local m: float32[] {
      local m: float32[] {                        serial j in 0 .. 8 {
        if j == 0 { m[] = x[0] }          ->        if j == 0 { m[] = x[0] }
        else { m[] = max(m[], x[j]) }               else { m[] = max(m[], x[j]) }
        y[j] = m[]                                  y[j] = m[]
      }                                           }
    }                                           }

A local is zero again in each iteration. So one that is read where the iteration may not have
assigned it lives around as many loops as it takes until each read finds a value; if no number of
loops is enough, Python may raise UnboundLocalError, and the kernel is refused.
"""

from __future__ import annotations

from collections.abc import Mapping

from msops._loops.frontends.hybrid.bound import unbound_reads
from msops._loops.frontends.reporting import Reporter
from msops._loops.ir.nodes import For, Local, Stmt
from msops._loops.ir.walk import bodies, map_bodies, statements


def keep_values(
    body: tuple[Stmt, ...], scalars: Mapping[str, str], report: Reporter
) -> tuple[Stmt, ...]:
    """Returns the statements of a kernel, each scalar where its reads find Python's value.

    Args:
      body: the statements.
      scalars: by the name of its local, the author's name of each scalar.
      report: makes the errors.

    Raises:
      BuildError: a scalar may be read before it is assigned.
    """
    for local in [stmt for stmt in statements(body) if isinstance(stmt, Local)]:
        name = local.buffer.name
        if name not in scalars or not unbound_reads((local,), name):
            continue
        while missing := unbound_reads(body, name):
            lifted = _lifted(body, name)
            if lifted is None:
                raise report.build_error_at(
                    missing[0].location,
                    f"'{scalars[name]}' may be read before it is assigned, as UnboundLocalError "
                    "says in Python",
                    "Assign it in each branch, or before the loop.",
                )
            body = lifted
    return body


def _lifted(body: tuple[Stmt, ...], name: str) -> tuple[Stmt, ...] | None:
    """Returns statements with a local around one loop more; None if there is none around it."""
    found: list[Local] = []

    def without(inner: tuple[Stmt, ...]) -> tuple[Stmt, ...]:
        made: list[Stmt] = []
        for stmt in inner:
            if isinstance(stmt, Local) and stmt.buffer.name == name:
                found.append(stmt)
                made += stmt.body
                continue
            is_open = bool(found)
            new = map_bodies(stmt, without) if bodies(stmt) else stmt
            if isinstance(new, For) and found and not is_open and not placed:
                placed.append(True)
                new = Local(found[0].buffer, (new,), location=found[0].location)
            made.append(new)
        return tuple(made)

    placed: list[bool] = []
    lifted = without(body)
    return lifted if placed else None
