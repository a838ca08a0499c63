"""Operands that a nest computes for each of its iterations anew are computed once, in arrays.

    parallel i in 0 .. 200 {                      local operand: float32[200, 200] {
      parallel j in 0 .. 200 {                      parallel k { parallel i {
        reduction k in 0 .. 200 {                     operand[k, i] = x[k, i] - mean[i]
          s[i, j] = s[i, j]                         } }
            + (x[k, i] - mean[i])         ->        parallel i { parallel j { reduction k {
            * (x[k, j] - mean[j])                     s[i, j] = s[i, j]
        }                                               + operand[k, i] * operand[k, j]
      }                                             } } }
    }                                             }

Forwards this saves little, as such an operand is quick. Backwards the nest on the left adds to the
adjoints of `x` and of `mean` in each iteration. That of the right one is two products, for which
every way out has passes; what an element of an operand is made of gets its share once.

As reverse mode would for operands that the author had named (Griewank and Walther, Evaluating
Derivatives, 2nd ed., chapter 3); here products over the same elements share an array.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Iterator, Mapping, Sequence

from msops._loops.analysis.boxes import Span
from msops._loops.analysis.costs import CACHE_BYTES, fixed_span
from msops._loops.ir.algebra import integer, sub
from msops._loops.ir.names import Names, over_box, unique_names
from msops._loops.ir.nodes import (
    Binary,
    Buffer,
    Expr,
    For,
    FunctionCall,
    Kernel,
    Load,
    Local,
    Select,
    Stmt,
    Store,
    Var,
)
from msops._loops.ir.operators import is_float, size_bytes
from msops._loops.ir.walk import (
    Scope,
    declared_in,
    loads,
    map_operands,
    rewrite_inner_loops,
    rewrite_loops,
    stored_in,
    substitute,
    variables,
    with_parts,
)
from msops._loops.passes.elements import exists

_FEWEST_READS = 4
"""How often an element of such an array is read."""


def compute_operands_once(kernel: Kernel) -> Kernel:
    """Returns the kernel with such operands in arrays."""
    names = Names(kernel)
    sizes = (size_bytes(buffer) for buffer in (*kernel.parameters, *kernel.buffers))
    most_bytes = max(CACHE_BYTES, *sizes)

    def change(loop: For, scope: Scope) -> tuple[Stmt, ...] | None:
        nest = _Nest(loop, scope, most_bytes, names)
        (stmt,) = nest.body((loop,), scope, {})
        if not nest.operands:
            return None
        for operand in nest.operands.values():
            (scope,) = scope.inside(Local(operand.buffer, ()))
        assert isinstance(stmt, For)
        stmt = rewrite_inner_loops(stmt, scope, change)
        for operand in nest.operands.values():
            stmt = Local(operand.buffer, (operand.fill, stmt))
        return (stmt,)

    changed = rewrite_loops(kernel, change)
    return kernel if changed.body == kernel.body else unique_names(changed)


@dataclasses.dataclass(frozen=True)
class _Operand:
    """An array of operands.

    Attributes:
      buffer: the array.
      begins: the first iterations along its axes.
      fill: the loops that compute it.
    """

    buffer: Buffer
    begins: tuple[int, ...]
    fill: Stmt


class _Nest:
    """A loop with those inside of it.

    Attributes:
      operands: the arrays before it, by their values in terms of numbered variables.
    """

    def __init__(self, loop: For, scope: Scope, most_bytes: int, names: Names) -> None:
        self._changing = stored_in((loop,)) | declared_in((loop,))
        self._buffers = scope.buffers
        self._most_bytes = most_bytes
        self._names = names
        self.operands: dict[Expr, _Operand] = {}

    def body(
        self, body: tuple[Stmt, ...], scope: Scope, spans: Mapping[str, Span]
    ) -> tuple[Stmt, ...]:
        """Returns statements with elements of arrays in place of operands.

        Statements under conditions stay: what these leave out has no derivative.

        Args:
          body: the statements.
          scope: that around them.
          spans: the iterations of the loops around them, from that of the nest on.
        """
        return tuple(self._statement(stmt, scope, spans) for stmt in body)

    def _statement(self, stmt: Stmt, scope: Scope, spans: Mapping[str, Span]) -> Stmt:
        match stmt:
            case Store():
                return with_parts(stmt, value=self._with_operands(stmt.value, scope, spans))
            case Local():
                (inside,) = scope.inside(stmt)
                return with_parts(stmt, body=self.body(stmt.body, inside, spans))
            case For():
                span = fixed_span(stmt)
                if span is not None and span[0] < span[1]:
                    (inside,) = scope.inside(stmt)
                    spans = {**spans, stmt.var: span}
                    return with_parts(stmt, body=self.body(stmt.body, inside, spans))
        return stmt

    def _with_operands(self, expr: Expr, scope: Scope, spans: Mapping[str, Span]) -> Expr:
        if isinstance(expr, Load | Select):
            return expr
        axes = self._axes(expr, scope, spans)
        if axes is not None:
            return self._element(expr, axes, spans)
        return map_operands(expr, lambda part: self._with_operands(part, scope, spans))

    def _axes(self, expr: Expr, scope: Scope, spans: Mapping[str, Span]) -> tuple[str, ...] | None:
        """Returns the variables of an operand in the order of an array; None if it gets none."""
        read = loads(expr)
        if not isinstance(expr, Binary | FunctionCall) or not is_float(expr.dtype):
            return None
        if not any(is_float(load.dtype) for load in read) or any(
            load.buffer in self._changing or not exists(load, scope.ranges, self._buffers)
            for load in read
        ):
            return None
        axes = tuple(var for var in _in_order(read) if var in spans)
        if not variables(expr) & spans.keys() <= {*axes}:
            return None
        elements = math.prod(end - begin for begin, end in (spans[var] for var in axes))
        reads = math.prod(end - begin for begin, end in spans.values())
        size = size_bytes(Buffer("", (elements,), expr.dtype))
        return axes if reads >= _FEWEST_READS * elements and size <= self._most_bytes else None

    def _element(self, expr: Expr, axes: Sequence[str], spans: Mapping[str, Span]) -> Load:
        """Returns the element of an array that has an operand."""
        numbered = {var: Var(f"<{number} in {spans[var]}>") for number, var in enumerate(axes)}
        key = substitute(expr, numbered)
        if key not in self.operands:
            self.operands[key] = self._operand(expr, axes, spans)
        operand = self.operands[key]
        at = tuple(
            sub(Var(var), integer(begin)) for var, begin in zip(axes, operand.begins, strict=True)
        )
        return Load(operand.buffer.name, at, expr.dtype)

    def _operand(self, expr: Expr, axes: Sequence[str], spans: Mapping[str, Span]) -> _Operand:
        box = [spans[var] for var in axes]
        begins = tuple(begin for begin, _ in box)
        shape = tuple(end - begin for begin, end in box)
        buffer = Buffer(self._names.fresh("operand"), shape, expr.dtype)

        def element(own: tuple[Var, ...]) -> Stmt:
            at = tuple(sub(var, integer(begin)) for begin, var in zip(begins, own, strict=True))
            return Store(buffer.name, at, substitute(expr, dict(zip(axes, own, strict=True))))

        return _Operand(buffer, begins, over_box(box, axes, self._names.fresh, element))


def _in_order(read: Sequence[Load]) -> Iterator[str]:
    """Yields the variables of loads, each once, as they follow one another in the longest one."""
    found: dict[str, None] = {}
    for load in sorted(read, key=lambda load: -len(load.indices)):
        found |= dict.fromkeys(var for at in load.indices for var in sorted(variables(at)))
    yield from found
