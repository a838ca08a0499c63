"""Keeps an element that each iteration hands to the next in a variable.

    serial j in 0 .. m {                  local carried: int32[] {
      d[j + 1] = f(d[j], ...)      ->       carried[] = d[0]
    }                                       serial j in 0 .. m {
                                              carried[] = f(carried[], ...)
                                              d[j + 1] = carried[] } }

The next iteration then waits for f, not for memory to be written and read again. Compilers do the
same only where they see that no other access comes in between. For the same reason a variable holds
an element of the stored array if all iterations of a parallel loop read it.
"""

from __future__ import annotations

import dataclasses
from collections import Counter
from collections.abc import Mapping, Sequence

from msops._loops.ir.building import binary, integer
from msops._loops.ir.names import Names
from msops._loops.ir.nodes import (
    Buffer,
    Expr,
    For,
    Kernel,
    Load,
    Local,
    Stmt,
    Store,
    Var,
)
from msops._loops.ir.ranges import Ranges, exists
from msops._loops.ir.walk import (
    Scope,
    accesses_of,
    expressions,
    is_innermost,
    loads,
    loads_in,
    rewrite,
    rewrite_all,
    rewrite_loops,
    rewrite_statements,
    statements,
    substitute,
    unconditional_stores,
)
from msops._loops.passes.simplify_expressions import simplified
from msops._loops.to_c.apart import are_same
from msops._loops.to_c.blocks import if_it_runs


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


def _carried(loop: For, inside: Scope) -> dict[Store, Load]:
    """Returns stores of a loop, each with the load that always reads it one iteration later."""
    parts = statements(loop.body)
    stored = Counter(part.buffer for part in parts if isinstance(part, Store))
    found: dict[Store, Load] = {}
    for store in unconditional_stores(loop.body):
        is_shared = store.indices and store.buffer in inside.buffers
        if not is_shared or stored[store.buffer] > 1 or any(map(loads, store.indices)):
            continue
        load = _read_next(store, loop, parts, inside)
        if load is not None:
            found[store] = load
    return found


def _read_next(store: Store, loop: For, parts: list[Stmt], inside: Scope) -> Load | None:
    """Returns the load that reads, in each iteration, what a store wrote one iteration before."""
    back = {loop.var: binary("sub", Var(loop.var), integer(1))}
    before = tuple(substitute(index, back) for index in store.indices)
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
    loop: For, carried: Mapping[Store, Load], ranges: Ranges, names: Names
) -> tuple[Stmt, ...]:
    """Returns a loop that reads some stores of the iteration before in variables."""
    variables = {load: Buffer(names.fresh("carried"), (), load.dtype) for load in carried.values()}

    def read(part: Expr) -> Expr:
        if isinstance(part, Load) and part in variables:
            return Load(variables[part].name, (), part.dtype)
        return part

    def keep(store: Store) -> tuple[Stmt, ...]:
        if store not in carried:
            return (store,)
        variable = variables[carried[store]]
        new = Load(variable.name, (), variable.dtype)
        return (
            dataclasses.replace(store, buffer=variable.name, indices=()),
            dataclasses.replace(store, value=new),
        )

    body = rewrite_all(rewrite_statements(loop.body, keep, Store), read)
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
