"""Scalars that keep a value from one iteration to the next, as Python's names do.

    serial j in 0 .. 8 {                        local m: float32[] {
      local m: float32[] {                        serial j in 0 .. 8 {
        if j == 0 { m[] = x[0] }          ->        if j == 0 { m[] = x[0] }
        else { m[] = max(m[], x[j]) }               else { m[] = max(m[], x[j]) }
        y[j] = m[]                                  y[j] = m[]
      }                                           }
    }                                           }

A local is zero again in each iteration. So one that is read where the iteration may not have
assigned it is declared where its function starts, in another translation, and then lives around as
few loops as it takes until each read finds a value. If all are too few, Python may raise
UnboundLocalError, and the kernel is refused.
"""

from __future__ import annotations

import functools

from msops._loops.frontends.hybrid.bound import unbound_read
from msops._loops.frontends.hybrid.names import ScopedName
from msops._loops.frontends.hybrid.translation import Again, Translation
from msops._loops.ir.nodes import Buffer, Local, Location, Stmt
from msops._loops.ir.walk import (
    accesses_in,
    accesses_of,
    bodies,
    map_bodies,
    rewrite_statements,
    statements,
)
from msops.errors import BuildError


def keep_values(t: Translation, body: tuple[Stmt, ...]) -> tuple[Stmt, ...]:
    """Returns the statements of a kernel, each scalar where its reads find Python's value.

    Args:
      t: the translation.
      body: what it has made.

    Raises:
      Again: a scalar must be declared further out.
      BuildError: a scalar may be read before it is assigned.
    """
    found: set[ScopedName] = set()
    for local in _locals(body):
        name = local.buffer.name
        symbol = t.scalars.get(name)
        if symbol in t.known.kept:
            body = _placed(t, body, name)
        elif symbol is not None and unbound_read((local,), name):
            found.add(symbol)
    if found:
        t.known.keep(t.names, found)
        raise Again
    return body


def _locals(body: tuple[Stmt, ...]) -> list[Local]:
    return [stmt for stmt in statements(body) if isinstance(stmt, Local)]


def _placed(t: Translation, body: tuple[Stmt, ...], name: str) -> tuple[Stmt, ...]:
    """Returns statements with a local as far inside as each read of it finds a value."""
    local = next(each for each in _locals(body) if each.buffer.name == name)
    symbol = t.scalars[name]
    for depth in range(_depth(local.body, name), -1, -1):
        new = rewrite_statements(body, functools.partial(_around, local.buffer, depth), Local)
        missing = unbound_read(new, name)
        if missing is None:
            break
    else:
        assert missing is not None
        raise unbound(t, symbol, missing.location)
    if any(each.kind != "scalar" for each in t.names.namesakes(symbol)):
        raise t.report.build_error_at(
            local.location,
            f"'{symbol.name}' keeps its value beyond an iteration, and names something else "
            "elsewhere",
            "Use another name there.",
        )
    return new


def _depth(body: tuple[Stmt, ...], name: str) -> int:
    """Returns how many bodies inside each other hold all uses of a local."""
    using = [body[at] for at in _uses(body, name)]
    if len(using) != 1 or any(each.buffer == name for each in accesses_of(using[0])):
        return 0
    inner = [each for each in bodies(using[0]) if _uses(each, name)]
    return 1 + _depth(inner[0], name) if len(inner) == 1 else 0


def _around(buffer: Buffer, depth: int, stmt: Local) -> tuple[Stmt, ...]:
    """Returns what replaces a local: one around its uses, some bodies further inside."""
    return _within(stmt.body, stmt, depth) if stmt.buffer == buffer else (stmt,)


def _within(body: tuple[Stmt, ...], local: Local, depth: int) -> tuple[Stmt, ...]:
    uses = _uses(body, local.buffer.name)
    if not uses:
        return body
    before, held, after = body[: uses[0]], body[uses[0] : uses[-1] + 1], body[uses[-1] + 1 :]
    if depth == 0:
        made: Stmt = Local(local.buffer, held, location=local.location)
    else:
        made = map_bodies(held[0], lambda inner: _within(inner, local, depth - 1))
    return (*before, made, *after)


def _uses(body: tuple[Stmt, ...], name: str) -> list[int]:
    """Returns the places of the statements that use a local, themselves or inside."""
    return [
        at
        for at, stmt in enumerate(body)
        if any(each.buffer == name for each in accesses_in((stmt,)))
    ]


def unbound(t: Translation, symbol: ScopedName, location: Location | None) -> BuildError:
    """Returns the error for a read that may come before every assignment."""
    return t.report.build_error_at(
        location,
        f"'{symbol.name}' may be read before it is assigned: an UnboundLocalError in Python",
        "Assign it in each branch, or before the loop.",
    )
