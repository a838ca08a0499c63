"""What is known between two statements: whether a scalar has been assigned, and in what cases.

if x[i] > 0.0 {
  m[] = x[i]
  count[] = count[] + 1       <- it has
}                             <- `count > 0` holds only if it has; count was 0 before
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import TypeAlias

from msops._loops.ir import scalars
from msops._loops.ir.algebra import negation
from msops._loops.ir.nodes import Binary, Cast, Const, Expr, Load, Unary, Var
from msops._loops.ir.operators import COMPARISONS, FLOATS, LOGICAL
from msops._loops.ir.walk import loads, rewrite, variables

Conditions: TypeAlias = frozenset[Expr]
"""Conditions that hold together."""


@dataclass(frozen=True)
class PathFacts:
    """What is known between two statements of a scalar and of what decides about it.

    Attributes:
      is_bound: the scalar has been assigned.
      needed: conditions that hold together only if it has.
      held: conditions that hold.
      known: the values of some scalars and loop variables, which nothing has changed since.
    """

    is_bound: bool = False
    needed: frozenset[Conditions] = frozenset()
    held: frozenset[Expr] = frozenset()
    known: Mapping[str, Expr] = field(default_factory=dict)

    def value(self, expr: Expr) -> Expr:
        """Returns an expression with what is known of it; a constant if that is all."""

        def change(part: Expr) -> Expr:
            match part:
                case Var(name=name) | Load(buffer=name, indices=()) if name in self.known:
                    return self.known[name]
            return _computed(part)

        if isinstance(expr, Binary) and expr.op in LOGICAL:
            decisive = expr.op == "lor"
            sides = self.value(expr.left), self.value(expr.right)
            if any(side == Const(decisive, "bool") for side in sides):
                return Const(decisive, "bool")
        found = rewrite(expr, change)
        if found.dtype == "bool" and not isinstance(found, Const):
            if expr in self.held:
                return Const(True, "bool")
            if negation(expr) in self.held:
                return Const(False, "bool")
        return found

    def fails(self, condition: Expr) -> bool:
        """Returns whether a condition certainly does not hold."""
        return self.value(condition) == Const(False, "bool")

    def implies(self, conditions: Conditions) -> bool:
        """Returns whether conditions hold only if the scalar has been assigned."""
        return (
            self.is_bound
            or any(needed <= conditions for needed in self.needed)
            or any(map(self.fails, conditions))
        )

    def under(self, *conditions: Expr) -> PathFacts:
        """Returns the same under conditions, which may say that the scalar has been assigned."""
        held = self.held.union(*map(conjuncts, conditions))
        is_bound = self.implies(held) or any(map(self.fails, conditions))
        return dataclasses.replace(self, is_bound=is_bound, held=held)

    def unbound(self) -> PathFacts:
        """Returns the same where the scalar is declared, and where it ends."""
        return dataclasses.replace(self, is_bound=False, needed=frozenset())

    def storing(self, names: set[str], known: Mapping[str, Expr]) -> PathFacts:
        """Returns the state after some buffers and variables have changed, to what is known."""
        new = {name: value for name, value in self.known.items() if not _uses(value, names)}
        new = {name: value for name, value in new.items() if name not in names}
        held = frozenset(each for each in self.held if not _uses(each, names))
        after = PathFacts(self.is_bound, held=held, known={**new, **known})
        needed = (
            each
            for each in self.needed
            if any(map(after.fails, each)) or not any(_uses(part, names) for part in each)
        )
        return dataclasses.replace(after, needed=frozenset(needed))


def _computed(part: Expr) -> Expr:
    """Returns an operation on integers or bools as a constant, if it is one."""
    if part.dtype in FLOATS:
        return part
    match part:
        case Unary(op=op, operand=Const(value=value, dtype=dtype)):
            return Const(scalars.unary(op, dtype)(value), dtype)
        case Cast(operand=Const(value=value, dtype=dtype), dtype=target) if dtype not in FLOATS:
            return Const(scalars.cast(dtype, target)(value), target)
        case Binary(left=left) if left.dtype in FLOATS:
            return part
        case Binary(op=op, left=Const(value=one, dtype=dtype), right=Const(value=other)):
            return Const(scalars.binary(op, dtype)(one, other), part.dtype)
        case Binary(op=op, left=left, right=right) if left == right and op in COMPARISONS:
            return Const(op in ("eq", "le", "ge"), "bool")
    return part


def _uses(expr: Expr, names: set[str]) -> bool:
    return any(load.buffer in names for load in loads(expr)) or bool(variables(expr) & names)


def conjuncts(condition: Expr) -> list[Expr]:
    """Returns a condition and those that hold where it does."""
    match condition:
        case Binary(op="land", left=left, right=right):
            return [condition, *conjuncts(left), *conjuncts(right)]
        case Unary(op="not", operand=Binary(op="lor", left=left, right=right)):
            return [condition, *conjuncts(negation(left)), *conjuncts(negation(right))]
    return [condition]


def joined(one: PathFacts, other: PathFacts, conditions: Iterable[Conditions] = ()) -> PathFacts:
    """Returns what holds after either of two paths; conditions may tell them apart."""
    flags = [
        Load(name, (), "bool")
        for name, value in [*one.known.items(), *other.known.items()]
        if value.dtype == "bool"
    ]
    single = (frozenset([part]) for part in (*flags, *map(negation, flags)))
    conditions = {*conditions, *single, *one.needed, *other.needed}
    return PathFacts(
        one.is_bound and other.is_bound,
        frozenset(each for each in conditions if one.implies(each) and other.implies(each)),
        one.held & other.held,
        {name: value for name, value in one.known.items() if other.known.get(name) == value},
    )
