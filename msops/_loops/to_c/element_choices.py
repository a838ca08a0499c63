"""Where data pick one of two elements, both are read, and one is chosen.

    parallel x in 1 .. 1279 {                  parallel x in 1 .. 1279 {
      local s: int32[] {                         local s: int32[] {
        s[] = (g[x] < 0 ? -1 : 1)                  s[] = (g[x] < 0 ? -1 : 1)
        y[x] = m[x + s[]]               ->         y[x] = (s[] == -1 ? m[x - 1] : m[x + 1])
      }                                          }
    }                                          }

Upwind differences read such elements, and so does an edge detector along a gradient. Compilers
gather them one by one, or make no vectors. To load two vectors and choose takes a fraction of the
time.
"""

from __future__ import annotations

from collections.abc import Mapping

from msops._loops.ir.building import binary
from msops._loops.ir.elements import exists
from msops._loops.ir.nodes import (
    Buffer,
    Const,
    Expr,
    For,
    Kernel,
    Load,
    Local,
    Select,
    Stmt,
    Store,
)
from msops._loops.ir.operators import INTEGERS
from msops._loops.ir.walk import (
    Scope,
    accesses_in,
    buffers_of,
    declared_in,
    expressions,
    is_innermost,
    is_loaded,
    loads,
    rewrite,
    rewrite_all,
    rewrite_loops,
    statements,
    stored_in,
    with_parts,
)
from msops._loops.passes.simplify_expressions import simplified

_MOST_ELEMENTS = 4
"""Elements that are read for one."""


def choose_elements(kernel: Kernel) -> Kernel:
    """Returns the kernel with choices of elements in its innermost parallel loops."""
    buffers = buffers_of(kernel)

    def change(loop: For, scope: Scope) -> tuple[Stmt, ...] | None:
        return _with_choices(loop, scope, buffers) if is_innermost(loop) else None

    return rewrite_loops(kernel, change, "parallel")


def _with_choices(
    loop: For, scope: Scope, buffers: Mapping[str, Buffer]
) -> tuple[Stmt, ...] | None:
    pairs = {
        stmt.buffer.name: pair
        for stmt in statements(loop.body)
        if isinstance(stmt, Local) and (pair := _pair(stmt))
    }

    def is_pick(part: Expr) -> bool:
        return isinstance(part, Select) or _name(part) in pairs

    indices = (index for access in accesses_in(loop.body) for index in access.indices)
    if not any(is_pick(part) for index in indices for part in expressions(index)):
        return None
    (inside,) = scope.inside(loop)

    def change(part: Expr) -> Expr:
        return (isinstance(part, Load) and chosen(part, _MOST_ELEMENTS)) or part

    def chosen(load: Load, most: int) -> Expr | None:
        parts = (part for index in load.indices for part in expressions(index))
        pick = next(filter(is_pick, parts), None)
        if pick is None:
            return load if exists(load, inside.ranges, buffers) else None
        if isinstance(pick, Select):
            condition, one, other = pick.condition, pick.then, pick.otherwise
        else:
            one, other = pairs[_name(pick)]
            condition = binary("eq", pick, one)
        if most < len((one, other)):
            return None
        elements = (_with(load, pick, value, inside) for value in (one, other))
        then, otherwise = (chosen(element, most // 2) for element in elements)
        return Select(condition, then, otherwise, load.dtype) if then and otherwise else None

    body = rewrite_all(loop.body, change)
    if body == loop.body or not _has_neighbours_alone(body):
        return None
    return (with_parts(loop, body=body),)


def _has_neighbours_alone(body: tuple[Stmt, ...]) -> bool:
    """Returns whether no index in the body of a loop depends on what it computes."""
    changing = stored_in(body) | declared_in(body)
    indices = [index for access in accesses_in(body) for index in access.indices]
    return changing.isdisjoint(load.buffer for index in indices for load in loads(index))


def _name(part: Expr) -> str:
    return part.buffer if isinstance(part, Load) else ""


def _with(load: Load, pick: Expr, value: Expr, inside: Scope) -> Load:
    """Returns a load with a value in place of one that is chosen."""
    indices = (
        rewrite(index, lambda part: value if part == pick else part) for index in load.indices
    )
    return with_parts(load, indices=tuple(simplified(i, inside.ranges) for i in indices))


def _pair(local: Local) -> tuple[Expr, Expr] | None:
    """Returns what an integer variable may hold where it is read; None if that is not known.

    These are two numbers, or sums of such and of the variables of loops.
    """
    name, dtype = local.buffer.name, local.buffer.dtype
    if local.buffer.shape != () or dtype not in INTEGERS:
        return None
    # It is zero at first.
    held: dict[Expr, None] = {} if _is_set_first(local.body, name) else {Const(0, dtype): None}
    for stmt in statements(local.body):
        if isinstance(stmt, Store) and stmt.buffer == name:
            choice = stmt.value
            values = (choice.then, choice.otherwise) if isinstance(choice, Select) else (choice,)
            held |= dict.fromkeys(values)
    if len(held) != 2 or any(loads(value) for value in held):
        return None
    one, other = held
    return one, other


def _is_set_first(body: tuple[Stmt, ...], name: str) -> bool:
    """Returns whether statements store to a variable in any case before they read it."""
    for stmt in body:
        if isinstance(stmt, Local):
            if _is_set_first(stmt.body, name):
                return True
        elif isinstance(stmt, Store) and stmt.buffer == name:
            return not is_loaded(name, (stmt,))
        if is_loaded(name, (stmt,)) or name in stored_in((stmt,)):
            return False
    return False
