"""Mathematical functions that a loop calls are computed ahead of it, in vectors, if it has none.

    parallel j in 0 .. 64 {               local w: float64[64] {
      local w: float64[] {                  parallel j_1 in 0 .. 64 {
        w[] = cos(a[j])                       w[j_1] = cos(a[j_1])
        parallel k in 0 .. 5 {      ->      }
          y[j, k] = w[] * x[k, j]           parallel j in 0 .. 64 {
        }                                     parallel k in 0 .. 5 {
      }                                         y[j, k] = w[j] * x[k, j]
    }                                       }
                                          }

A compiler makes vectors of innermost loops alone, and of none whose iterations depend on each
other. There a function takes ten times as long as in a vector. So what such a loop computes from
functions, of values that it does not change, gets a loop of its own, block by block. Done where the
functions are a good part of an iteration.

Source: R. Allen, K. Kennedy, "Optimizing Compilers for Modern Architectures", 5.3 (scalar expansion
and loop distribution).
"""

from __future__ import annotations

import dataclasses
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass

from msops._loops.analysis.updates import update_of
from msops._loops.ir.functions import FUNCTIONS
from msops._loops.ir.names import Names, unique_names
from msops._loops.ir.nodes import (
    Binary,
    Buffer,
    Expr,
    For,
    FunctionCall,
    Kernel,
    Load,
    Select,
    Stmt,
    Store,
)
from msops._loops.ir.walk import (
    Scope,
    expressions,
    is_innermost,
    is_loaded,
    loads,
    map_operands,
    own_expressions,
    rewrite_loops,
    statements,
    stored_in,
    with_parts,
)
from msops._loops.passes.simplify_expressions import difference
from msops._loops.to_c import cost
from msops._loops.to_c.facts.blocks import in_two_loops, with_buffer
from msops._loops.to_c.facts.bodies import without_locals
from msops._loops.to_c.lanes.vectors import seems_carried

_FEWEST_TRIPS = 16
_BLOCK = 64
"""Iterations whose values are kept together: enough for vectors, and few enough for many threads
to have blocks of their own."""
LEAST_SHARE = 0.05
"""Share of an iteration that the functions take, as estimated; less is not worth the arrays."""
_DTYPES = ("float32", "float64")
"""Dtypes of the functions that vectors have."""


def compute_functions_ahead(kernel: Kernel) -> Kernel:
    """Returns the kernel with the values of such functions in arrays."""
    names = Names(kernel)
    costs = cost.NativeCosts(kernel)

    def change(loop: For, scope: Scope) -> tuple[Stmt, ...] | None:
        least, trips = difference(loop.end, loop.begin, scope.ranges) or (0, 0)
        if least != trips or trips < _FEWEST_TRIPS or not _is_scalar(loop):
            return None
        parts = _split(loop, names)
        seconds = parts.functions * cost.SECONDS_PER_SCALAR_FUNCTION
        if not seconds or seconds < LEAST_SHARE * costs.iteration(loop, scope):
            return None
        # All blocks are about as long.
        width = -(-trips // -(-trips // _BLOCK))
        return in_two_loops(loop, trips, width, names, parts.ahead, parts.rest, parts.variables)

    changed = rewrite_loops(kernel, change)
    return kernel if changed.body == kernel.body else unique_names(changed)


def _is_scalar(loop: For) -> bool:
    """Returns whether a compiler runs the statements of a loop itself without vectors."""
    if not is_innermost(loop) or loop.kind == "serial" or seems_carried(loop):
        return True
    # Iterations may meet in an element that they add to.
    return loop.kind == "reduction" and any(
        isinstance(stmt, Store) and stmt.indices and update_of(stmt)
        for stmt in statements(loop.body)
    )


@dataclass(frozen=True)
class _Parts:
    """The statements of a loop that come ahead, the others, and the locals of both."""

    ahead: tuple[Stmt, ...]
    rest: tuple[Stmt, ...]
    variables: tuple[Buffer, ...]

    @property
    def functions(self) -> int:
        """The number of functions that are called ahead."""
        values = (value for stmt in self.ahead for value in own_expressions(stmt))
        return sum(_is_function(part) for value in values for part in expressions(value))


def _split(loop: For, names: Names) -> _Parts:
    """Returns a loop's functions of what it does not change, with what they need, and the rest."""
    body, variables = without_locals(loop.body)
    known = _known(body, variables, stored_in(loop.body))
    changing = stored_in(loop.body) - known
    taken: dict[Expr, Buffer] = {}

    def take(expr: Expr) -> Expr:
        """Returns an expression with variables for what is computed ahead."""
        if not _has_function(expr):
            return expr
        if changing.isdisjoint(load.buffer for load in loads(expr)):
            if expr not in taken:
                taken[expr] = Buffer(names.fresh("value"), (), expr.dtype)
            return Load(taken[expr].name, (), expr.dtype)
        return expr if _may_guard(expr) else map_operands(expr, take)

    own: list[Store] = []
    others: list[Stmt] = []
    for stmt in body:
        if isinstance(stmt, Store) and stmt.buffer in known:
            own.append(stmt)
        else:
            others.append(
                with_parts(stmt, value=take(stmt.value)) if isinstance(stmt, Store) else stmt
            )
    own += [Store(buffer.name, (), value) for value, buffer in taken.items()]
    computed = _computed(own)
    needed = _needed(own, computed)
    ahead: tuple[Stmt, ...] = tuple(stmt for stmt in own if stmt.buffer in needed)
    # The rest computes anew what is no function.
    quick = [stmt for stmt in own if stmt.buffer not in computed]
    read = _needed(quick, {stmt.buffer for stmt in quick if is_loaded(stmt.buffer, (*others,))})
    again = tuple(stmt for stmt in quick if stmt.buffer in read)
    locals_ = [*variables, *taken.values()]
    for name in sorted(stored_in(ahead) & stored_in(again)):
        (old,) = (buffer for buffer in variables if buffer.name == name)
        locals_.append(dataclasses.replace(old, name=names.fresh(name)))
        ahead = with_buffer(ahead, name, locals_[-1].name)
    return _Parts(ahead, (*again, *others), tuple(locals_))


def _known(
    body: Sequence[Stmt], variables: Iterable[Buffer], changing: Collection[str]
) -> set[str]:
    """Returns the variables of an iteration that need nothing which the loop changes.

    Args:
      body: the statements of the loop.
      variables: its locals.
      changing: what it stores to.
    """
    found = {buffer.name for buffer in variables if not buffer.shape}
    while True:
        lost = {name for name in found if not _is_known(name, found, body, changing)}
        if not lost:
            return found
        found -= lost


def _is_known(
    name: str, known: Collection[str], body: Sequence[Stmt], changing: Collection[str]
) -> bool:
    """Returns whether a variable is known as far as others are, before it is read."""
    stores = {
        number: stmt
        for number, stmt in enumerate(body)
        if isinstance(stmt, Store) and stmt.buffer == name
    }
    own = (stmt for stmt in statements((*body,)) if isinstance(stmt, Store))
    before = body[: max(stores, default=0)]
    between = [s for s in before if not (isinstance(s, Store) and s.buffer in known)]
    return (
        sum(stmt.buffer == name for stmt in own) == len(stores) > 0
        and not is_loaded(name, (*between,))
        and not any(
            load.buffer in changing and load.buffer not in known
            for store in stores.values()
            for load in loads(store.value)
        )
    )


def _computed(stores: Sequence[Store]) -> set[str]:
    """Returns the variables whose values come from functions."""
    found = {store.buffer for store in stores if _has_function(store.value)}
    while True:
        more = {s.buffer for s in stores if any(load.buffer in found for load in loads(s.value))}
        if more <= found:
            return found
        found |= more


def _needed(stores: Sequence[Store], names: Collection[str]) -> set[str]:
    """Returns the given names, and those of what is needed to compute them."""
    found = {*names}
    while True:
        more = {load.buffer for s in stores if s.buffer in found for load in loads(s.value)}
        if more <= found:
            return found
        found |= more


def _may_guard(expr: Expr) -> bool:
    """Returns whether some operands of an expression are computed only if others allow it."""
    return isinstance(expr, Select) or (isinstance(expr, Binary) and expr.op in ("land", "lor"))


def _has_function(expr: Expr) -> bool:
    return any(map(_is_function, expressions(expr)))


def _is_function(part: Expr) -> bool:
    """Returns whether a part of an expression is a function that vectors have."""
    match part:
        case FunctionCall(function=name, dtype=dtype) if dtype in _DTYPES:
            return FUNCTIONS[name].glibc is not None
        case Binary(op="pow", right=exponent, dtype=dtype) if dtype in _DTYPES:
            return not cost.is_quick_power(exponent)
    return False
