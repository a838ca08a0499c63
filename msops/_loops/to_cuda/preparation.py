"""What is rewritten before launches are chosen, outside of parallel loops.

- A reduction loop around a parallel one is turned round, so that a thread has a sum to itself.
- A long sum into one element is split (splitting.py).
"""

from __future__ import annotations

import dataclasses

from msops._loops.analysis.ranges import Range, loop_range
from msops._loops.ir.names import Names
from msops._loops.ir.nodes import Buffer, Expr, For, If, Kernel, Local, Stmt, Store, Var
from msops._loops.ir.walk import expressions, statements
from msops._loops.to_cuda.splitting import is_worth_splitting, split


def prepare(kernel: Kernel) -> Kernel:
    """Returns a kernel with the loops that launches are made of."""
    preparation = _Preparation(kernel)
    body = preparation.body(kernel.body, {})
    buffers = (*kernel.buffers, *preparation.partials)
    return dataclasses.replace(kernel, buffers=buffers, body=body)


class _Preparation:
    def __init__(self, kernel: Kernel) -> None:
        self.partials: list[Buffer] = []
        self._names = Names(kernel)

    def body(self, body: tuple[Stmt, ...], ranges: dict[str, Range]) -> tuple[Stmt, ...]:
        """Returns a body rewritten."""
        return tuple(new for stmt in body for new in self._rewritten(stmt, ranges))

    def _rewritten(self, stmt: Stmt, ranges: dict[str, Range]) -> tuple[Stmt, ...]:
        match stmt:
            case For() if (turned := _turned(stmt)) is not None:
                return self._rewritten(turned, ranges)
            case For(kind="reduction") if is_worth_splitting(stmt, ranges):
                return self._split(stmt)
            case For(kind="serial"):
                inner = ranges | {stmt.var: loop_range(stmt, ranges)}
                return (dataclasses.replace(stmt, body=self.body(stmt.body, inner)),)
            case If():
                then, otherwise = self.body(stmt.then, ranges), self.body(stmt.otherwise, ranges)
                return (dataclasses.replace(stmt, then=then, otherwise=otherwise),)
            case Local():
                return (dataclasses.replace(stmt, body=self.body(stmt.body, ranges)),)
        return (stmt,)

    def _split(self, loop: For) -> tuple[Stmt, ...]:
        pieces = split(loop, self._names)
        self.partials.append(pieces.partial)
        return pieces.body


def _turned(loop: For) -> For | None:
    """Returns a reduction loop around a parallel one the other way round, if that is the same.

    Updates of one element then stay with one thread. That holds where the elements do not depend on
    the reduction's variable: iterations of the parallel loop that touch different elements in one
    round do so in all rounds.
    """
    match loop:
        case For(kind="reduction", var=var, body=(For(kind="parallel") as inner,)):
            stores = [stmt for stmt in statements(inner.body) if isinstance(stmt, Store)]
            moving = [index for store in stores for index in store.indices]
            bounds = [inner.begin, inner.end]
            has_local = any(isinstance(stmt, Local) for stmt in statements(inner.body))
            if has_local or any(_mentions(expr, var) for expr in (*moving, *bounds)):
                return None
            turned = dataclasses.replace(loop, body=inner.body)
            return dataclasses.replace(inner, body=(turned,))
    return None


def _mentions(expr: Expr, var: str) -> bool:
    return any(isinstance(part, Var) and part.name == var for part in expressions(expr))
