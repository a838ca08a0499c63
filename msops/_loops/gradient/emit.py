"""The statements that reverse one assignment.

    b[i] = sin(a[i]) * c        ->      d_a[i] = d_a[i] + d_b[i] * c * cos(a[i])
                                        d_b[i] = 0.0

The adjoint of the assigned element is spent: it becomes what the assignment hands to the element's
own old value, or 0. It is updated last, or read into a scalar first if the assignment reads
another element of the same buffer, which might be the same one.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping

from msops._loops.gradient.contributions import Contribution
from msops._loops.gradient.relations import Derivative
from msops._loops.ir.algebra import add, both, number
from msops._loops.ir.nodes import (
    Binary,
    Buffer,
    Expr,
    FunctionCall,
    If,
    Load,
    Local,
    Select,
    Stmt,
    Store,
)
from msops._loops.ir.operators import is_float
from msops._loops.ir.walk import exchanged, expressions, loads, operands, replaced, size_of
from msops._loops.passes.extremes import is_element


def reversal(
    store: Store,
    derivative: Derivative,
    adjoints: Mapping[str, Buffer],
    clears: bool,
    is_in_range: Callable[[Load], bool],
    fresh: Callable[[str], str],
) -> tuple[Stmt, ...]:
    """Returns what reverses a store.

    Args:
      store: the store.
      derivative: what it contributes.
      adjoints: the adjoint of each active buffer.
      clears: the adjoint of the stored element matters before the store too.
      is_in_range: returns whether a load is in range, whatever guards it.
      fresh: gives names.
    """
    seed = derivative.seed
    own = [p for p in derivative.contributions if is_element(p.element, store)]
    others = [p for p in derivative.contributions if not is_element(p.element, store)]
    handed: Expr = number(0, seed.dtype)
    for part in own:
        handed = add(handed, _guarded(part.value, part.guards))
    updates = handed != seed and (clears or bool(own))
    is_first = any(part.element.buffer == store.buffer for part in others)

    # What only guards prove to be in range is not computed outside of them.
    inside = [bool(p.guards) and not all(map(is_in_range, loads(p.value))) for p in others]
    values = [
        _guarded(part.value, part.guards) if is_inside else part.value
        for part, is_inside in zip(others, inside, strict=True)
    ]
    named, (handed, *values) = share([handed, *values], fresh)
    values = [
        value.then if isinstance(value, Select) and is_inside else value
        for value, is_inside in zip(values, inside, strict=True)
    ]
    update = (Store(seed.buffer, seed.indices, handed),) if updates else ()
    stmts = tuple(
        _accumulation(p, value, adjoints, is_in_range)
        for p, value in zip(others, values, strict=True)
    )
    stmts = (*update, *stmts) if is_first else (*stmts, *update)
    for buffer, value in reversed(named):
        stmts = (Local(buffer, (Store(buffer.name, (), value), *stmts)),)
    return _read_first(stmts, seed, fresh) if is_first else stmts


def _guarded(value: Expr, guards: tuple[Expr, ...]) -> Expr:
    if not guards:
        return value
    return Select(both(guards), value, number(0, value.dtype), value.dtype)


def _accumulation(
    part: Contribution,
    value: Expr,
    adjoints: Mapping[str, Buffer],
    is_in_range: Callable[[Load], bool],
) -> Stmt:
    """Returns ``if (guards) adjoint += value``, without a branch if the element exists anyway."""
    read = part.element
    element = Load(adjoints[read.buffer].name, read.indices, value.dtype)
    if part.guards and not is_in_range(read):
        total = add(element, value)
        return If(both(part.guards), (Store(element.buffer, element.indices, total),))
    return Store(element.buffer, element.indices, add(element, _guarded(value, part.guards)))


def _read_first(
    stmts: tuple[Stmt, ...], seed: Load, fresh: Callable[[str], str]
) -> tuple[Stmt, ...]:
    """Returns the statements with the adjoint that they spend read into a scalar before them."""
    scalar = Buffer(fresh("w"), (), seed.dtype)
    spent = replaced(stmts, seed, Load(scalar.name, (), seed.dtype))
    return (Local(scalar, (Store(scalar.name, (), seed), *spent)),)


def share(
    values: list[Expr], fresh: Callable[[str], str]
) -> tuple[list[tuple[Buffer, Expr]], list[Expr]]:
    """Returns scalars to define, in order, and the values in terms of them.

    Only float operations evaluated more than once are named, and only where one evaluation is
    outside the branches of a `Select`: what a choice leaves out may be out of range.
    """
    named: list[tuple[Buffer, Expr]] = []
    while repeated := _largest_repeated([*(expr for _, expr in named), *values]):
        scalar = Buffer(fresh("v"), (), repeated.dtype)
        load = Load(scalar.name, (), scalar.dtype)

        named = [(buffer, exchanged(expr, repeated, load)) for buffer, expr in named]
        values = [exchanged(value, repeated, load) for value in values]
        named.insert(0, (scalar, repeated))
    return named, values


def _largest_repeated(values: list[Expr]) -> Expr | None:
    counts = Counter(part for value in values for part in _operations(value))
    certain = {part for value in values for part in _certain(value)}
    repeated = [part for part, count in counts.items() if count > 1 and part in certain]
    return max(repeated, key=size_of, default=None)


def _operations(expr: Expr) -> Iterator[Expr]:
    return (
        p for p in expressions(expr) if isinstance(p, Binary | FunctionCall) and is_float(p.dtype)
    )


def _certain(expr: Expr) -> Iterator[Expr]:
    """Yields the parts that are evaluated whatever is chosen."""
    yield expr
    for part in (expr.condition,) if isinstance(expr, Select) else operands(expr):
        yield from _certain(part)
