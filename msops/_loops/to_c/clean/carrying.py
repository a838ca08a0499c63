"""Keeps an element that each iteration hands to the next in a variable.

    serial j in 0 .. m {                  local carried: int32[] {
      d[j + 1] = f(d[j], ...)      ->       carried[] = d[0]
    }                                       serial j in 0 .. m {
                                              carried[] = f(carried[], ...)
                                              d[j + 1] = carried[] } }

The next iteration then waits for f, not for memory to be written and read again. Compilers do the
same only where they see that no other access comes in between. If an iteration then changes the
element under conditions, it changes the variable, and one store follows: of such conditions
compilers make choices of values. For the same reason a variable holds an element of the stored
array if all iterations of a parallel loop read it.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial

from msops._loops.ir.algebra import binary, integer
from msops._loops.ir.names import Names
from msops._loops.ir.nodes import Buffer, Expr, For, Kernel, Load, Local, Stmt, Store, Var
from msops._loops.ir.ranges import Ranges
from msops._loops.ir.walk import (
    Scope,
    accesses_in,
    accesses_of,
    expressions,
    is_innermost,
    loads,
    loads_in,
    map_bodies,
    rewrite,
    rewrite_all,
    rewrite_loops,
    rewrite_statements,
    statements,
    stored_in,
    substitute,
)
from msops._loops.passes.elements import are_apart, are_same, exists
from msops._loops.passes.simplify_expressions import simplified
from msops._loops.to_c.facts.blocks import if_it_runs


def carry_elements(kernel: Kernel) -> Kernel:
    """Returns the kernel with such elements of its inner loops in variables."""
    names = Names(kernel)

    def change(loop: For, scope: Scope) -> tuple[Stmt, ...] | None:
        if not is_innermost(loop):
            return None
        (inside,) = scope.inside(loop)
        match loop:
            case For(kind="serial"):
                carried = _carried(loop, inside)
                if carried:
                    return _in_variables(loop, carried, inside.ranges, names)
            case For(kind="parallel", body=(Store() as store,)):
                held = _held(loop, store, inside)
                return _with_held(loop, store, held, names) if held else None
        return None

    return rewrite_loops(kernel, change)


@dataclass(frozen=True)
class _Changes:
    """What stores to one array, among statements that stand beside each other.

    Attributes:
      before: the statements before the first store.
      first: the first store.
      more: the statements after it, up to the last that stores to the array.
      after: the statements after these.
    """

    before: tuple[Stmt, ...]
    first: Store
    more: tuple[Stmt, ...]
    after: tuple[Stmt, ...]

    def are_of_one_element(self, loop: For, ranges: Ranges) -> bool:
        """Returns whether these are all stores of a loop to the array, and change one element.

        No load between them may read this element by other indices.
        """
        name, indices = self.first.buffer, self.first.indices
        accesses = [access for access in accesses_in(self.more) if access.buffer == name]
        stores = [s for s in statements(loop.body) if isinstance(s, Store) and s.buffer == name]
        return len(stores) == 1 + sum(isinstance(a, Store) for a in accesses) and all(
            a.indices == indices or (isinstance(a, Load) and are_apart(a.indices, indices, ranges))
            for a in accesses
        )

    def in_variable(self, variable: Buffer) -> tuple[Stmt, ...]:
        """Returns the statements with the element in a variable until all have changed it."""
        name, indices = self.first.buffer, self.first.indices
        new = Load(variable.name, (), variable.dtype)

        def read(part: Expr) -> Expr:
            is_it = isinstance(part, Load) and (part.buffer, part.indices) == (name, indices)
            return new if is_it else part

        def write(store: Store) -> tuple[Stmt, ...]:
            if store.buffer != name:
                return (store,)
            return (dataclasses.replace(store, buffer=variable.name, indices=()),)

        return (
            *self.before,
            *write(self.first),
            *rewrite_statements(rewrite_all(self.more, read), write, Store),
            dataclasses.replace(self.first, value=new),
            *self.after,
        )


def _changes(buffer: str, body: tuple[Stmt, ...]) -> _Changes | None:
    """Returns the statements around the first store to an array; None if it has a condition."""
    at = [number for number, stmt in enumerate(body) if buffer in stored_in((stmt,))]
    if not at:
        return None
    match body[at[0]]:
        case Local() as local:
            return _changes(buffer, local.body)
        case Store() as first:
            end = at[-1] + 1
            return _Changes(body[: at[0]], first, body[at[0] + 1 : end], body[end:])
    return None


def _carried(loop: For, inside: Scope) -> dict[str, Load]:
    """Returns the arrays of such elements, each with the load that reads it one iteration later."""
    found: dict[str, Load] = {}
    parts = statements(loop.body)
    for name in dict.fromkeys(part.buffer for part in parts if isinstance(part, Store)):
        changes = _changes(name, loop.body)
        if (
            changes is not None
            and name in inside.buffers
            and changes.first.indices
            and changes.are_of_one_element(loop, inside.ranges)
        ):
            load = _read_next(changes.first, loop, inside)
            if load is not None:
                found[name] = load
    return found


def _read_next(store: Store, loop: For, inside: Scope) -> Load | None:
    """Returns the load that reads, in each iteration, what a store wrote one iteration before."""
    back = {loop.var: binary("sub", Var(loop.var), integer(1))}
    before = tuple(substitute(index, back) for index in store.indices)
    parts = statements(loop.body)
    at = parts.index(store)
    for load in dict.fromkeys(loads_in(loop.body)):
        if (
            load.buffer == store.buffer
            and are_same(load.indices, before, inside.ranges)
            and exists(store, inside.ranges, inside.buffers)
            and exists(load, inside.ranges, inside.buffers)
            and not any(load in accesses_of(part) for part in parts[at + 1 :])
        ):
            return load
    return None


def _in_variables(
    loop: For, carried: Mapping[str, Load], ranges: Ranges, names: Names
) -> tuple[Stmt, ...]:
    """Returns a loop that reads what the iteration before left in some elements in variables.

    Args:
      loop: the loop.
      carried: by their array, the loads that read such elements.
      ranges: of all variables in the loop.
      names: the names of the kernel.
    """
    variables = {load: Buffer(names.fresh("carried"), (), load.dtype) for load in carried.values()}

    def keep(name: str, body: tuple[Stmt, ...]) -> tuple[Stmt, ...]:
        if any(isinstance(stmt, Store) and stmt.buffer == name for stmt in body):
            changes = _changes(name, body)
            assert changes is not None
            return changes.in_variable(variables[carried[name]])
        return tuple(
            map_bodies(stmt, partial(keep, name)) if isinstance(stmt, Local) else stmt
            for stmt in body
        )

    def read(part: Expr) -> Expr:
        if isinstance(part, Load) and part in variables:
            return Load(variables[part].name, (), part.dtype)
        return part

    body = loop.body
    for name in carried:
        body = keep(name, body)
    body = rewrite_all(body, read)
    at = {loop.var: loop.begin}
    around: tuple[Stmt, ...] = (dataclasses.replace(loop, body=body),)
    for load, variable in variables.items():
        first = tuple(simplified(substitute(i, at), ranges) for i in load.indices)
        start = Store(variable.name, (), dataclasses.replace(load, indices=first))
        around = (Local(variable, (start, *around), location=loop.location),)
    # A loop without iterations reads nothing, and the element it would read may not exist.
    return if_it_runs(loop, around, ranges)


def _held(loop: For, store: Store, inside: Scope) -> list[Load]:
    """Returns the loads that read the same element of the stored array in all iterations.

    No iteration writes this element, or the loop would not be parallel.
    """
    return [
        load
        for load in dict.fromkeys(loads(store.value))
        if load.buffer == store.buffer
        and load.indices
        and not any(
            part == Var(loop.var) or isinstance(part, Load)
            for index in load.indices
            for part in expressions(index)
        )
        and exists(load, inside.ranges, inside.buffers)
    ]


def _with_held(loop: For, store: Store, held: Sequence[Load], names: Names) -> tuple[Stmt, ...]:
    """Returns a loop with loads of its store in variables around it."""
    variables = {load: Buffer(names.fresh("held"), (), load.dtype) for load in held}

    def change(part: Expr) -> Expr:
        if isinstance(part, Load) and part in variables:
            return Load(variables[part].name, (), part.dtype)
        return part

    stored = dataclasses.replace(store, value=rewrite(store.value, change))
    body: tuple[Stmt, ...] = (dataclasses.replace(loop, body=(stored,)),)
    for load, variable in variables.items():
        start = Store(variable.name, (), load)
        body = (Local(variable, (start, *body), location=loop.location),)
    return body
