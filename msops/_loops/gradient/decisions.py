"""The decisions of minima and maxima, for tapes of bytes instead of values.

                                     local chosen: uint8[] {
    p[i] = min(p[i], q[i])    ->       chosen[] = (p[i] <= q[i] ? 1 : 0) | (q[i] <= p[i] ? 2 : 0)
                                       p[i] = min(p[i], q[i])
                                     }

Backwards an extreme wants its operands for no more than to know which of them it took: 1 is the
left one, 2 the right one, 3 both, 0 neither, as one is NaN. Where the old value of `p[i]` would be
on a tape for that, its decision is there in a quarter of the memory, and nothing is put back.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Set
from typing import TypeAlias

from msops._loops.gradient.plan import Plan
from msops._loops.ir.building import binary
from msops._loops.ir.names import Names
from msops._loops.ir.nodes import (
    Binary,
    BinaryOp,
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
from msops._loops.ir.walk import rewrite_statements, with_body

Decisions: TypeAlias = dict[int, Expr]
"""By the ids of stores of extremes, where their decisions are."""

_DTYPE, _WIDE = "uint8", "int32"
"""On the tape, and where it is computed: beside floats, which have as many lanes."""


def overwriting_extremes(plan: Plan) -> frozenset[int]:
    """Returns the ids of the stores of an extreme whose element's old value is on a tape."""
    return frozenset(
        id(node.stmt)
        for node, _ in plan.recording.recorders
        if isinstance(node.stmt, Store) and _is_extreme(node.stmt)
    )


def _is_extreme(store: Store) -> bool:
    match store.value:
        case Binary("min" | "max", dtype=dtype):
            return is_float(dtype)
    return False


def with_decisions(kernel: Kernel, stores: Set[int], names: Names) -> tuple[Kernel, Decisions]:
    """Returns the kernel with the decisions of some stores, and where they are."""
    found: Decisions = {}

    def change(store: Store) -> tuple[Stmt, ...]:
        if id(store) not in stores:
            return (store,)
        value = store.value
        assert isinstance(value, Binary)
        chosen = Buffer(names.fresh("chosen"), (), _DTYPE)
        ahead: BinaryOp = "le" if value.op == "min" else "ge"
        is_left = binary(ahead, value.left, value.right)
        is_right = binary(ahead, value.right, value.left)
        code = binary("or", _if(is_left, 1), _if(is_right, 2))
        store = dataclasses.replace(store)
        found[id(store)] = Cast(Load(chosen.name, (), _DTYPE), _WIDE)
        return (Local(chosen, (Store(chosen.name, (), Cast(code, _DTYPE)), store)),)

    return with_body(kernel, rewrite_statements(kernel.body, change, Store)), found


def _if(condition: Expr, code: int) -> Expr:
    return Select(condition, Const(code, _WIDE), Const(0, _WIDE), _WIDE)
