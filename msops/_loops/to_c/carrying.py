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
from collections.abc import Sequence

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
    expressions,
    loads,
    rewrite,
    rewrite_loops,
    substitute,
)
from msops._loops.passes.simplify_expressions import difference, simplified
from msops._loops.to_c.blocks import if_it_runs


def carry_elements(kernel: Kernel) -> Kernel:
    """Returns the kernel with such elements of its inner loops in variables."""
    names = Names(kernel)

    def change(loop: For, scope: Scope) -> tuple[Stmt, ...] | None:
        match loop:
            case For(kind="serial", body=(Store() as store,)):
                (inside,) = scope.inside(loop)
                carried = _carried(loop, store, inside)
                if carried is not None:
                    return _in_variable(loop, store, carried, inside.ranges, names)
            case For(kind="parallel", body=(Store() as store,)):
                (inside,) = scope.inside(loop)
                held = _held(loop, store, inside)
                return _with_held(loop, store, held, names) if held else None
        return None

    return rewrite_loops(kernel, change)


def _carried(loop: For, store: Store, inside: Scope) -> Load | None:
    """Returns the load that always reads the store of the iteration before, if there is one."""
    if any(loads(index) for index in store.indices):
        return None
    one = integer(1)
    back = {loop.var: binary("sub", Var(loop.var), one)}
    before = tuple(substitute(index, back) for index in store.indices)
    for load in loads(store.value):
        if (
            load.buffer == store.buffer
            and all(map(_are_equal, load.indices, before, [inside.ranges] * len(before)))
            and exists(store, inside.ranges, inside.buffers)
            and exists(load, inside.ranges, inside.buffers)
        ):
            return load
    return None


def _in_variable(
    loop: For, store: Store, carried: Load, ranges: Ranges, names: Names
) -> tuple[Stmt, ...]:
    """Returns a loop of one store that reads the store of the iteration before in a variable."""
    scalar = Buffer(names.fresh("carried"), (), carried.dtype)
    new = Load(scalar.name, (), scalar.dtype)
    value = rewrite(store.value, lambda part: new if part == carried else part)
    body = (
        dataclasses.replace(store, buffer=scalar.name, indices=(), value=value),
        dataclasses.replace(store, value=new),
    )
    at = {loop.var: loop.begin}
    first = tuple(simplified(substitute(i, at), ranges) for i in carried.indices)
    stmts = (
        Store(scalar.name, (), dataclasses.replace(carried, indices=first)),
        dataclasses.replace(loop, body=body),
    )
    # A loop without iterations reads nothing, and the element it would read may not exist.
    return if_it_runs(loop, (Local(scalar, stmts, location=loop.location),), ranges)


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


def _are_equal(one: Expr, other: Expr, ranges: Ranges) -> bool:
    return difference(one, other, ranges) == (0, 0)
