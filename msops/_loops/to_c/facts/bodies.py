"""Bodies of loops without the locals around their statements."""

from __future__ import annotations

from msops._loops.ir.nodes import Buffer, Local, Stmt


def without_locals(body: tuple[Stmt, ...]) -> tuple[tuple[Stmt, ...], list[Buffer]]:
    """Returns a body without the locals around its statements, and the buffers of the locals."""
    found: list[Stmt] = []
    variables: list[Buffer] = []
    for stmt in body:
        if isinstance(stmt, Local):
            inner, declared = without_locals(stmt.body)
            found += inner
            variables += [stmt.buffer, *declared]
        else:
            found.append(stmt)
    return tuple(found), variables
