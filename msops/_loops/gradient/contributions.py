"""The terms that an assignment ``y = e`` adds to the adjoints of the elements that `e` reads.

The adjoint w of a node goes down to its operands by the rules of rules.py, until a load is reached.
Where a choice lies on the way (`Select`, `min`, `max`) it goes to what may be chosen only: the
conditions are kept apart as guards of the whole product, since a product with 0 is no guard
against a factor that is infinite or a load that is out of range.
"""

from __future__ import annotations

from collections.abc import Iterator, Set
from dataclasses import dataclass

from msops._loops.gradient.rules import RULES
from msops._loops.ir.algebra import add, binary, cast, mul, negation, number
from msops._loops.ir.nodes import (
    Binary,
    BinaryOp,
    Cast,
    Const,
    Expr,
    FunctionCall,
    Kernel,
    Load,
    Select,
    Store,
    Unary,
)
from msops._loops.ir.operators import is_float
from msops._loops.ir.walk import operands, statements


@dataclass(frozen=True)
class Contribution:
    """``adjoint of element += value``, if all guards hold."""

    element: Load
    value: Expr
    guards: tuple[Expr, ...]


def adjoint_dtype(dtype: str) -> str:
    """Returns the dtype adjoints of a float dtype are summed in: 16 bits are too few."""
    return "float32" if dtype in ("float16", "bfloat16") else dtype


def widened(expr: Expr) -> Expr:
    """Returns a float expression in the dtype of its adjoint."""
    return cast(expr, adjoint_dtype(expr.dtype))


def branches(expr: Expr) -> tuple[Expr, ...]:
    """Returns the operands through which a derivative may pass."""
    match expr:
        case Load():
            return ()
        case Cast(operand=operand):
            return (operand,) if is_float(expr.dtype) and is_float(operand.dtype) else ()
        case Select(then=then, otherwise=otherwise):
            return (then, otherwise) if is_float(expr.dtype) else ()
    if not is_float(expr.dtype):
        return ()
    parts = operands(expr)
    rules = RULES.get(operation(expr), (True,) * len(parts))
    return tuple(part for part, rule in zip(parts, rules, strict=True) if rule is not None)


def operation(expr: Expr) -> str:
    """Returns the name of a node's operation or function; "" for other nodes."""
    match expr:
        case Unary(op=name) | Binary(op=name) | FunctionCall(function=name):
            return name
    return ""


def differentiable_loads(expr: Expr) -> Iterator[Load]:
    """Yields the float loads that an expression depends on smoothly."""
    if isinstance(expr, Load) and is_float(expr.dtype):
        yield expr
    for part in branches(expr):
        yield from differentiable_loads(part)


def contributions(
    value: Expr, seed: Expr, active: Set[str], result: Expr | None, decision: Expr | None = None
) -> list[Contribution]:
    """Returns what an assignment contributes, in the order of the loads.

    Args:
      value: the assigned expression.
      seed: the adjoint of what is assigned.
      active: the buffers whose adjoints are wanted.
      result: the assigned value, if it can be read; None to compute it again.
      decision: which operands a minimum or maximum takes, as decisions.py has it; None to compare
        them.
    """
    if decision is not None and isinstance(value, Binary):
        found = list(_shares(Outcome.decided(decision), value, seed, (), active))
    else:
        found = list(_down(value, seed, (), active, result))
    merged: dict[tuple[Load, tuple[Expr, ...]], Expr] = {}
    for part in found:
        key = (part.element, part.guards)
        merged[key] = add(merged[key], part.value) if key in merged else part.value
    return [Contribution(element, value, guards) for (element, guards), value in merged.items()]


def _down(
    expr: Expr, w: Expr, guards: tuple[Expr, ...], active: Set[str], result: Expr | None
) -> Iterator[Contribution]:
    if not any(load.buffer in active for load in differentiable_loads(expr)):
        return
    match expr:
        case Load():
            yield Contribution(expr, w, guards)
        case Cast(operand=operand):
            yield from _down(operand, cast(w, adjoint_dtype(operand.dtype)), guards, active, None)
        case Select(condition=condition, then=then, otherwise=otherwise):
            yield from _down(then, w, (*guards, condition), active, None)
            yield from _down(otherwise, w, (*guards, negation(condition)), active, None)
        case Binary(op="min" | "max"):
            yield from _shares(Outcome.compared(expr), expr, w, guards, active)
        case _:
            parts = operands(expr)
            wide = tuple(map(widened, parts))
            y = widened(expr) if result is None else result
            for part, rule in zip(parts, RULES[operation(expr)], strict=True):
                if rule is not None:
                    yield from _down(part, rule(w, *wide, y), guards, active, None)


@dataclass(frozen=True)
class Outcome:
    """Which operand an extreme takes: conditions that hold if it is the left one, the right one."""

    is_left: Expr
    is_right: Expr
    are_equal: Expr

    @classmethod
    def compared(cls, extreme: Binary) -> Outcome:
        """Returns the outcome as comparisons of the operands."""
        left, right = extreme.left, extreme.right
        op: BinaryOp = "le" if extreme.op == "min" else "ge"
        return cls(binary(op, left, right), binary(op, right, left), binary("eq", left, right))

    @classmethod
    def decided(cls, decision: Expr) -> Outcome:
        """Returns the outcome as comparisons of a decision."""
        one, two, both = (Const(code, decision.dtype) for code in (1, 2, 3))
        is_left = binary("eq", binary("and", decision, one), one)
        return cls(is_left, binary("ge", decision, two), binary("eq", decision, both))


def _shares(
    outcome: Outcome, extreme: Binary, w: Expr, guards: tuple[Expr, ...], active: Set[str]
) -> Iterator[Contribution]:
    """Yields w for the chosen operand, half of it for each of equal ones; nothing beside a NaN."""
    half, one = number(0.5, w.dtype), number(1, w.dtype)
    share = mul(w, Select(outcome.are_equal, half, one, w.dtype))
    yield from _down(extreme.left, share, (*guards, outcome.is_left), active, None)
    yield from _down(extreme.right, share, (*guards, outcome.is_right), active, None)


def active_buffers(kernel: Kernel, wanted: Set[str]) -> frozenset[str]:
    """Returns the buffers that a derivative of a result by a wanted parameter passes through.

    Hascoet and Pascual, The Tapenade automatic differentiation tool, ACM TOMS 39(3), 2013, section
    4: `varied` goes down the kernel from the parameters, `useful` up from the results.
    """
    stores = [stmt for stmt in statements(kernel.body) if isinstance(stmt, Store)]
    reads = [(store.buffer, {load.buffer for load in differentiable_loads(store.value)})
             for store in stores]  # fmt: skip
    floats = {buffer.name for buffer in kernel.outputs if is_float(buffer.dtype)}
    varied = _closure(wanted, [(target, source) for target, sources in reads for source in sources])
    useful = _closure(floats, [(source, target) for target, sources in reads for source in sources])
    return varied & useful


def _closure(start: Set[str], edges: list[tuple[str, str]]) -> frozenset[str]:
    """Returns what is reached from `start`; an edge (a, b) leads from b to a."""
    reached, size = set(start), -1
    while len(reached) != size:
        size = len(reached)
        reached |= {a for a, b in edges if b in reached}
    return frozenset(reached)
