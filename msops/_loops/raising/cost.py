"""Estimates what raised steps cost on a CPU, to choose between them and native code.

The constants were measured with ``benchmarks/raising_costs.py``. XLA compiles small loops to code
of its own, so the price of an order-bound loop is less its iterations than that each of them works
on the hull of a triangle, on one thread, and copies what it cannot update in place.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from msops._loops.ir import Call, Const, Expr, Load, Var
from msops._loops.raising.linear import linear
from msops._loops.raising.nests import Nest
from msops._loops.raising.steps import (
    Accumulate,
    Branch,
    Clear,
    Contract,
    Convolve,
    Loop,
    Map,
    Pool,
    Recur,
    Reduce,
    Step,
    VectorStep,
)
from msops._loops.walk import expressions

SECONDS_PER_OPERATION = 4e-11
"""One operation on one element, vectorised, on one thread."""
SECONDS_PER_FUNCTION = 3e-10
"""One call of a mathematical function on one element."""
SECONDS_PER_INDIRECT = 1e-9
"""One element of a gather or scatter."""
SECONDS_PER_PRODUCT = 1.2e-11
"""One multiplication with addition in a matrix product or convolution."""
SECONDS_PER_STEP = 1e-6
"""Starting a step that is not in a loop."""
SECONDS_PER_ITERATION = 5e-9
"""Starting a step in an iteration of a loop."""
UNKNOWN_TRIPS = 1024
"""Iterations of a loop whose bounds are data."""
SCAN_PASSES = 3
"""Passes over memory that a cumulative operation or an associative scan takes."""


@dataclass(frozen=True)
class Cost:
    """What steps cost.

    Attributes:
      seconds: estimated, on a CPU.
      is_order_bound: loops stay that run their iterations in order.
    """

    seconds: float
    is_order_bound: bool


def estimate(steps: Sequence[Step]) -> Cost:
    """Returns the estimated cost of raised steps."""
    return Cost(_seconds(steps, SECONDS_PER_STEP), _has_loops(steps))


def _has_loops(steps: Sequence[Step]) -> bool:
    for step in steps:
        match step:
            case Loop():
                return True
            case Branch(then=then, otherwise=otherwise):
                if _has_loops((*then, *otherwise)):
                    return True
    return False


def _seconds(steps: Sequence[Step], start: float) -> float:
    return sum(_step_seconds(step, start) for step in steps)


def _step_seconds(step: Step, start: float) -> float:
    match step:
        case Loop(axis=axis, body=body):
            trips = UNKNOWN_TRIPS if axis is None else axis.extent
            return start + trips * _seconds(body, SECONDS_PER_ITERATION)
        case Branch(then=then, otherwise=otherwise):
            return start + max(_seconds(then, start), _seconds(otherwise, start))
        case Clear():
            return 0.0
        case _:
            return start + _vector_seconds(step)


def _vector_seconds(step: VectorStep) -> float:
    nest = step.nest
    elements = math.prod(nest.extents.values())
    match step:
        case Contract() | Convolve():
            return elements * SECONDS_PER_PRODUCT
        case Accumulate() | Recur():
            return SCAN_PASSES * elements * _per_element(nest)
        case Map() | Reduce() | Pool():
            return elements * _per_element(nest)


def _per_element(nest: Nest) -> float:
    store = nest.store
    total = SECONDS_PER_INDIRECT if _is_indirect(store.indices, nest) else SECONDS_PER_OPERATION
    return total + sum(_part(part, nest) for e in (store.value, *nest.mask) for part in _parts(e))


def _parts(expr: Expr) -> Iterable[Expr]:
    """Yields what is computed for an expression; indices that are slices are not."""
    yield expr
    for part in expressions(expr):
        if part is not expr and not isinstance(part, (Const, Var)):
            yield part


def _part(part: Expr, nest: Nest) -> float:
    match part:
        case Const() | Var():
            return 0.0
        case Call():
            return SECONDS_PER_FUNCTION
        case Load(indices=indices) if _is_indirect(indices, nest):
            return SECONDS_PER_INDIRECT
    return SECONDS_PER_OPERATION


def _is_indirect(indices: Sequence[Expr], nest: Nest) -> bool:
    return any(linear(index, nest.extents) is None for index in indices)
