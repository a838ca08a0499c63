"""Several elements assigned at once."""

from __future__ import annotations

from collections.abc import Sequence

from msops._loops.frontends.tvm.tracing import fresh_key
from msops._loops.ir.nodes import Buffer, Expr, If, Load, Local, Location, Select, Stmt, Store
from msops._loops.ir.walk import loads


def assign(
    targets: Sequence[Load], values: Sequence[Expr], location: Location | None
) -> tuple[Stmt, ...]:
    """Returns statements after which each target holds its value, all read before any is written.

    Values that are all chosen by one condition become an `If`: that is how argmax is written as a
    loop, and how passes know it.

    Args:
      targets: the elements.
      values: what each gets.
      location: where in the author's source.
    """
    chosen = [value for value in values if isinstance(value, Select)]
    if len(values) > 1 and len(chosen) == len(values):
        condition = chosen[0].condition
        if all(value.condition == condition for value in chosen):
            then = assign(targets, [value.then for value in chosen], location)
            otherwise = assign(targets, [value.otherwise for value in chosen], location)
            if then or otherwise:
                return (If(condition, then, otherwise, location=location),)
            return ()
    pairs = [(x, y) for x, y in zip(targets, values, strict=True) if x != y]
    return _stored(pairs, location)


def _stored(pairs: Sequence[tuple[Load, Expr]], location: Location | None) -> tuple[Stmt, ...]:
    if not pairs:
        return ()
    (target, value), *rest = pairs
    store = Store(target.buffer, target.indices, value, location=location)
    is_read_later = any(load.buffer == target.buffer for _, other in rest for load in loads(other))
    if not is_read_later:
        return (store, *_stored(rest, location))
    held = Buffer(fresh_key(target.buffer.partition(".")[0]), (), target.dtype)
    return (
        Local(
            held,
            (
                Store(held.name, (), value, location=location),
                *_stored(rest, location),
                Store(
                    target.buffer,
                    target.indices,
                    Load(held.name, (), held.dtype),
                    location=location,
                ),
            ),
            location=location,
        ),
    )
