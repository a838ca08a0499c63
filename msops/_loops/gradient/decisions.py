"""The decisions of minima and maxima, for tapes of bytes instead of values.

                                     local chosen: uint8[] {
    p[i] = min(p[i], q[i])    ->       chosen[] = (p[i] <= q[i] ? 1 : 0) | (q[i] <= p[i] ? 2 : 0)
                                       p[i] = min(p[i], q[i])
                                     }

Backwards an extreme wants its operands for no more than to know which of them it took: 1 is the
left one, 2 the right one, 3 both, 0 neither, as one is NaN. Where the old value of `p[i]`, or
one of an array that an extreme reads, would be on a tape for that, its decision is there in a
quarter of the memory, and nothing is put back.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Set
from typing import TypeAlias

from msops._loops.gradient.contributions import Outcome
from msops._loops.gradient.plan import Plan
from msops._loops.gradient.tree import Tree
from msops._loops.ir.algebra import binary
from msops._loops.ir.names import Names
from msops._loops.ir.nodes import (
    Binary,
    Buffer,
    Cast,
    Const,
    Expr,
    Kernel,
    Load,
    Local,
    Select,
    Stmt,
    Store,
)
from msops._loops.ir.operators import is_float
from msops._loops.ir.walk import map_bodies, read_by, with_body

Decisions: TypeAlias = dict[int, Expr]
"""By the ids of stores of extremes, where their decisions are."""

_DTYPE, _WIDE = "uint8", "int32"
"""On the tape, and where it is computed: beside floats, which have as many lanes."""


def taped_extremes(tree: Tree, plan: Plan) -> frozenset[int]:
    """Returns the ids of the stores of an extreme for which old values are on a tape.

    These are of the element that it is stored to, or of an array that it reads. Those of a local's
    scope are few: lanes have them in registers, where values are quicker.
    """
    taped = plan.recording.recorders
    outside = {name for (_, name), home in taped.items() if home is None}
    return frozenset(
        id(node.store)
        for node in tree.stores()
        if _is_extreme(node.store)
        and ((node, node.store.buffer) in taped or not outside.isdisjoint(read_by(node.store)))
    )


def _is_extreme(store: Store) -> bool:
    match store.value:
        case Binary("min" | "max", dtype=dtype):
            return is_float(dtype)
    return False


def with_decisions(kernel: Kernel, stores: Set[int], names: Names) -> tuple[Kernel, Decisions]:
    """Returns the kernel with the decisions of some stores, and where they are."""
    found: Decisions = {}

    def decided(body: tuple[Stmt, ...]) -> tuple[Stmt, ...]:
        for number, store in enumerate(body):
            if isinstance(store, Store) and id(store) in stores:
                # With what comes after, which may overwrite the operands: it is not computed again.
                rest = decided(body[number + 1 :])
                return (*map(within, body[:number]), _decided(store, rest, names, found))
        return tuple(map(within, body))

    def within(stmt: Stmt) -> Stmt:
        return map_bodies(stmt, decided)

    return with_body(kernel, decided(kernel.body)), found


def _decided(store: Store, rest: tuple[Stmt, ...], names: Names, found: Decisions) -> Stmt:
    """Returns a store and what comes after it, with its decision, which is added to `found`."""
    value = store.value
    assert isinstance(value, Binary)
    chosen = Buffer(names.fresh("chosen"), (), _DTYPE)
    outcome = Outcome.compared(value)
    code = binary("or", _if(outcome.is_left, 1), _if(outcome.is_right, 2))
    store = dataclasses.replace(store)
    found[id(store)] = Cast(Load(chosen.name, (), _DTYPE), _WIDE)
    return Local(chosen, (Store(chosen.name, (), Cast(code, _DTYPE)), store, *rest))


def _if(condition: Expr, code: int) -> Expr:
    return Select(condition, Const(code, _WIDE), Const(0, _WIDE), _WIDE)
