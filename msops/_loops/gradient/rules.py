"""The derivative of each operation, as what its operands' adjoints receive.

For y = f(a, b, ...) with the adjoint w of y, operand a receives w * df/da (Griewank & Walther,
Evaluating Derivatives, 2nd ed., table 3.1). A rule may use y, which is cheaper than a and already
known where y was stored. `min`, `max` and `Select`, whose derivative depends on a choice, are in
contributions.py. Where a function has no derivative the rules give what JAX gives, which is rule 8
of meaning in the README of the package.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeAlias, cast

from msops._loops.ir.algebra import add, binary, call, div, mul, neg, number, sub
from msops._loops.ir.formulas import evaluate, uses
from msops._loops.ir.functions import FUNCTIONS, Function
from msops._loops.ir.nodes import BinaryOp, Const, Expr, Select

Rule: TypeAlias = Callable[..., Expr]
"""From w, the operands, and y to what one operand's adjoint receives; all of one dtype."""


def _one(like: Expr) -> Const:
    return number(1, like.dtype)


def _power_base(w: Expr, a: Expr, b: Expr, y: Expr) -> Expr:
    """Returns w * b * a**(b - 1); a constant b of 0 gives 0, as in jax.lax.integer_pow.

    If b is a variable, and both a and b are 0, it is 0 times infinity, as in jax.lax.pow.
    """
    if not isinstance(b, Const):
        return mul(w, mul(b, binary("pow", a, sub(b, _one(w)))))
    exponent = float(b.value)
    if exponent == 0:
        return number(0, w.dtype)
    lower = number(exponent - 1, w.dtype)
    power = a if exponent == 2 else _one(w) if exponent == 1 else binary("pow", a, lower)
    return mul(w, mul(b, power))


def _power_exponent(w: Expr, a: Expr, b: Expr, y: Expr) -> Expr:
    """Returns w * y * log(a), with 0 for the logarithm of 0, as in jax.lax.pow."""
    is_zero = binary("eq", a, number(0, w.dtype))
    return mul(w, mul(call("log", Select(is_zero, _one(w), a, w.dtype)), y))


def _rule(row: Function, formula: str) -> Rule | None:
    """Returns the rule for a formula of the table of functions; None for the formula "0"."""
    if formula == "0":
        return None

    def rule(w: Expr, *operands: Expr) -> Expr:
        def apply(op: str, *parts: Expr) -> Expr:
            if op == "select":
                condition, then, otherwise = parts
                return Select(condition, then, otherwise, then.dtype)
            build = _BUILDERS.get(op)
            if build is not None:
                return build(*parts)
            if op in FUNCTIONS:
                return call(op, *parts)
            return binary(cast(BinaryOp, op), *parts)

        values = dict(zip(("w", *row.arguments, "y"), (w, *operands), strict=True))
        return evaluate(formula, values, lambda value: number(value, w.dtype), apply)

    return rule


_BUILDERS: dict[str, Callable[..., Expr]] = {
    "neg": neg,
    "add": add,
    "sub": sub,
    "mul": mul,
    "div": div,
}

RULES: dict[str, tuple[Rule | None, ...]] = {
    "neg": (lambda w, x, y: neg(w),),
    "add": (lambda w, a, b, y: w, lambda w, a, b, y: w),
    "sub": (lambda w, a, b, y: w, lambda w, a, b, y: neg(w)),
    "mul": (lambda w, a, b, y: mul(w, b), lambda w, a, b, y: mul(w, a)),
    "div": (lambda w, a, b, y: div(w, b), lambda w, a, b, y: neg(mul(div(w, b), y))),
    # a = b * floor(a / b) + mod(a, b), and floor is constant between its steps.
    "mod": (lambda w, a, b, y: w, lambda w, a, b, y: neg(mul(w, binary("floordiv", a, b)))),
    "floordiv": (None, None),
    "pow": (_power_base, _power_exponent),
    **{
        name: tuple(_rule(row, formula) for formula in row.derivative)
        for name, row in FUNCTIONS.items()
        if row.derivative
    },
}
"""A rule per operand of each operation on floats; None where the derivative is 0."""

BY_RESULT = frozenset(
    {"div", "pow"}
    | {
        name
        for name, row in FUNCTIONS.items()
        if any(uses(formula, "y") for formula in row.derivative)
    }
)
"""Operations with a rule that uses y."""
