"""What several loops compute for an element is computed once, before the first of them.

    reduction j in 0 .. 2000 {            local once: float32[2000] {
      s[] = s[] + exp(x[j] - top[])         parallel j_2 in 0 .. 2000 {
    }                                         once[j_2] = exp(x[j_2] - top[])
    parallel j_1 in 0 .. 2000 {             }
      y[j_1] = exp(x[j_1] - top[])   ->     reduction j in 0 .. 2000 {
        / s[]                                 s[] = s[] + once[j]
    }                                       }
                                            parallel j_1 in 0 .. 2000 {
                                              y[j_1] = once[j_1] / s[]
                                            ...

A softmax over rows is such a kernel, and so is the gradient of one. Done for values that call a
function, which takes many times as long as a load, where nothing that they read changes between
the loops. Compilers do not look for values across loops.
"""

from __future__ import annotations

import itertools
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from msops._loops.analysis.boxes import Span
from msops._loops.analysis.costs import FIRST_CACHE_BYTES, fixed_span, mean_trips
from msops._loops.ir.building import integer
from msops._loops.ir.elements import exists
from msops._loops.ir.functions import FUNCTIONS
from msops._loops.ir.names import Names
from msops._loops.ir.nodes import (
    Binary,
    Buffer,
    Expr,
    For,
    FunctionCall,
    Kernel,
    Load,
    Local,
    Stmt,
    Store,
    Unary,
    Var,
)
from msops._loops.ir.operators import QUOTIENTS, is_float
from msops._loops.ir.ranges import range_of
from msops._loops.ir.sizes import itemsize
from msops._loops.ir.walk import (
    Scope,
    expressions,
    loads,
    map_bodies_within,
    own_expressions,
    rewrite_all,
    size_of,
    statements,
    stored_in,
    substitute,
    variables,
    with_body,
    with_parts,
)
from msops._loops.to_c.facts.blocks import index

_FEWEST_TRIPS = 8
_MOST_BYTES = FIRST_CACHE_BYTES // 2
"""Bytes of the values of a row, which is in the cache beside what the loops read and write."""
_ANY = "any iteration"
"""Stands for the variable of a loop in a value that is compared with those of other loops."""


def compute_repeats_once(kernel: Kernel) -> Kernel:
    """Returns the kernel with values of rows that several loops compute in arrays."""
    repeats = _Repeats(kernel)
    body = repeats.body(kernel.body, Scope.of(kernel))
    return with_body(kernel, body) if repeats.are_found else kernel


@dataclass(frozen=True)
class _Repeat:
    """A value that several loops compute, each for all of its iterations.

    Attributes:
      value: the value, of the iteration `_ANY`.
      loops: the loops, by their numbers among the statements that run one after another.
      begin: the first of their iterations.
      end: the one after the last.
      extent: the least of all these first ones, and the greatest of all these ends.
    """

    value: Expr
    loops: Mapping[int, For]
    begin: Expr
    end: Expr
    extent: Span

    @property
    def size(self) -> int:
        """How many iterations there may be."""
        return self.extent[1] - self.extent[0]


class _Repeats:
    """Rewrites the bodies of a kernel.

    Attributes:
      are_found: whether there was anything to change.
    """

    def __init__(self, kernel: Kernel) -> None:
        self._names = Names(kernel)
        self.are_found = False

    def body(self, body: tuple[Stmt, ...], scope: Scope) -> tuple[Stmt, ...]:
        """Returns the statements of a kernel, a loop or a branch with such values in arrays."""
        body = self._inside(body, scope)
        while found := _repeats(body, scope):
            body = self._changed(body, max(found, key=lambda repeat: size_of(repeat.value)))
            self.are_found = True
        return body

    def _inside(self, body: tuple[Stmt, ...], scope: Scope) -> tuple[Stmt, ...]:
        return tuple(
            map_bodies_within(stmt, scope, self._inside if isinstance(stmt, Local) else self.body)
            for stmt in body
        )

    def _changed(self, body: tuple[Stmt, ...], repeat: _Repeat) -> tuple[Stmt, ...]:
        once = Buffer(self._names.fresh("once"), (repeat.size,), repeat.value.dtype)
        first = min(repeat.loops)
        numbers = itertools.count()
        low = repeat.extent[0]

        def at(var: str) -> Expr:
            return index("sub", Var(var), integer(low)) if low else Var(var)

        def changed(stmt: Stmt) -> tuple[Stmt, ...]:
            if isinstance(stmt, Local):
                inner = tuple(new for part in stmt.body for new in changed(part))
                return (with_parts(stmt, body=inner),)
            number = next(numbers)
            if number not in repeat.loops or not isinstance(stmt, For):
                return (stmt,)
            here = substitute(repeat.value, {_ANY: Var(stmt.var)})
            load = Load(once.name, (at(stmt.var),), once.dtype)
            new = with_parts(
                stmt, body=rewrite_all(stmt.body, lambda part: load if part == here else part)
            )
            return (self._fill(once, repeat, stmt, at), new) if number == first else (new,)

        return (Local(once, tuple(new for stmt in body for new in changed(stmt))),)

    def _fill(self, once: Buffer, repeat: _Repeat, first: For, at: Callable[[str], Expr]) -> For:
        var = self._names.fresh(first.var)
        store = Store(once.name, (at(var),), substitute(repeat.value, {_ANY: Var(var)}))
        return For(var, repeat.begin, repeat.end, (store,), "parallel", location=first.location)


def _repeats(body: tuple[Stmt, ...], scope: Scope) -> list[_Repeat]:
    """Returns the values that several loops compute among statements that run one after another."""
    computing: dict[Expr, dict[int, For]] = defaultdict(dict)
    changing = stored_in(body)
    found: list[_Repeat] = []

    def close(value: Expr) -> None:
        repeat = _repeat(value, computing.pop(value), scope)
        if repeat is not None:
            found.append(repeat)

    for number, (stmt, around) in enumerate(_in_order(body, scope)):
        stored = stored_in((stmt,))
        if isinstance(stmt, For) and _read(stmt.begin, stmt.end).isdisjoint(changing):
            for value in _values(stmt, around):
                if stored.isdisjoint(_read(value)) or _is_read_first(value, stmt):
                    computing[value][number] = stmt
        for value in [each for each in computing if not stored.isdisjoint(_read(each))]:
            close(value)
    for value in list(computing):
        close(value)
    return found


def _in_order(body: tuple[Stmt, ...], scope: Scope) -> Iterator[tuple[Stmt, Scope]]:
    """Yields statements that run one after another, those of locals among them."""
    for stmt in body:
        if isinstance(stmt, Local):
            (inside,) = scope.inside(stmt)
            yield from _in_order(stmt.body, inside)
        else:
            yield stmt, scope


def _values(loop: For, scope: Scope) -> dict[Expr, None]:
    """Returns the values that a loop may take from an array, of the iteration `_ANY`, in order."""
    (inside,) = scope.inside(loop)
    values = (
        part
        for stmt in statements(loop.body)
        for expr in own_expressions(stmt)
        for part in expressions(expr)
        if isinstance(part, Binary | FunctionCall | Unary)
    )
    return {
        substitute(value, {loop.var: Var(_ANY)}): None
        for value in values
        if is_float(value.dtype)
        and _is_slow(value)
        and loop.var in variables(value)
        and all(
            load.buffer in scope.buffers and exists(load, inside.ranges, scope.buffers)
            for load in loads(value)
        )
    }


def _read(*values: Expr) -> set[str]:
    return {load.buffer for value in values for load in loads(value)}


def _is_slow(value: Expr) -> bool:
    """Returns whether a value calls a function, and may be computed for any iteration."""
    parts = expressions(value)
    is_call = any(
        isinstance(part, FunctionCall) and not FUNCTIONS[part.function].is_instruction
        for part in parts
    )
    # A loop may compute a quotient only where its divisor is not 0.
    return is_call and not any(
        isinstance(part, Binary) and part.op in QUOTIENTS and not is_float(part.dtype)
        for part in parts
    )


def _is_read_first(value: Expr, loop: For) -> bool:
    """Returns whether each iteration reads a value once, before it stores to what that reads."""
    first, *_ = _in_order(loop.body, Scope({}))
    here = substitute(value, {_ANY: Var(loop.var)})
    reading = [
        expr
        for stmt in statements(loop.body)
        for expr in own_expressions(stmt)
        if here in expressions(expr)
    ]
    return loop.kind == "parallel" and isinstance(first[0], Store) and reading == [first[0].value]


def _repeat(value: Expr, loops: Mapping[int, For], scope: Scope) -> _Repeat | None:
    """Returns a value that some loops compute; None if it is not worth an array.

    Args:
      value: the value, of the iteration `_ANY`.
      loops: the loops.
      scope: the scope around them.
    """
    every = list(loops.values())
    if len(every) < 2 or any(mean_trips(loop, scope.ranges) < _FEWEST_TRIPS for loop in every):
        return None
    bounds = _bounds(every)
    if bounds is None:
        return None
    begin, end = bounds
    low, past = range_of(begin, scope.ranges)[0], range_of(end, scope.ranges)[1]
    if (past - low) * itemsize(value.dtype) > _MOST_BYTES:
        return None
    return _Repeat(value, loops, begin, end, (low, past))


def _bounds(loops: Sequence[For]) -> tuple[Expr, Expr] | None:
    """Returns the first iteration of all loops and the end of the last; None if they are apart."""
    spans = [span for loop in loops if (span := fixed_span(loop)) is not None]
    if len(spans) == len(loops):
        firsts, ends = zip(*spans, strict=True)
        meet = max(firsts) < min(ends)
        return (integer(min(firsts)), integer(max(ends))) if meet else None
    bounds = {(loop.begin, loop.end) for loop in loops}
    return bounds.pop() if len(bounds) == 1 else None
