"""The derivative of each operation, as what its operands' adjoints receive.

For y = f(a, b, ...) with the adjoint w of y, operand a receives w * df/da (Griewank & Walther,
Evaluating Derivatives, 2nd ed., table 3.1). A rule may use y, which is cheaper than a and already
known where y was stored. `min`, `max` and `Select`, whose derivative depends on a choice, are in
contributions.py. Where a function has no derivative the rules give what JAX gives, which is rule 8
of meaning in the README of the package.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import TypeAlias

from msops._loops.gradient.algebra import (
    add,
    binary,
    call,
    div,
    mul,
    neg,
    number,
    square,
    sub,
)
from msops._loops.ir.nodes import Const, Expr, Select

Rule: TypeAlias = Callable[..., Expr]
"""From w, the operands, and y to what one operand's adjoint receives; all of one dtype."""


def _scaled(factor: float) -> Rule:
    return lambda w, x, y: mul(w, mul(number(factor, w.dtype), y))


def _one(like: Expr) -> Const:
    return number(1, like.dtype)


def _power_base(w: Expr, a: Expr, b: Expr, y: Expr) -> Expr:
    """Returns w * b * a**(b - 1); a constant b of 0 gives 0, as in jax.lax.integer_pow.

    Of a variable b that is 0 it is 0 times infinity for a = 0, as in jax.lax.pow.
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


def _absolute(w: Expr, x: Expr, y: Expr) -> Expr:
    """Returns w or -w; at 0 it is w, as in jax.lax.abs."""
    is_rising = binary("ge", x, number(0, w.dtype))
    return mul(w, Select(is_rising, _one(w), number(-1, w.dtype), w.dtype))


def _radius(w: Expr, a: Expr, b: Expr) -> Expr:
    return div(w, add(square(a), square(b)))


RULES: dict[str, tuple[Rule | None, ...]] = {
    "neg": (lambda w, x, y: neg(w),),
    "add": (lambda w, a, b, y: w, lambda w, a, b, y: w),
    "sub": (lambda w, a, b, y: w, lambda w, a, b, y: neg(w)),
    "mul": (lambda w, a, b, y: mul(w, b), lambda w, a, b, y: mul(w, a)),
    "div": (lambda w, a, b, y: div(w, b), lambda w, a, b, y: neg(mul(div(w, b), y))),
    # a = b * floor(a / b) + mod(a, b), and floor is constant between its steps.
    "mod": (lambda w, a, b, y: w, lambda w, a, b, y: neg(mul(w, binary("floordiv", a, b)))),
    "fmod": (lambda w, a, b, y: w, lambda w, a, b, y: neg(mul(w, call("trunc", div(a, b))))),
    "floordiv": (None, None),
    "pow": (_power_base, _power_exponent),
    "atan2": (
        lambda w, a, b, y: mul(_radius(w, a, b), b),
        lambda w, a, b, y: neg(mul(_radius(w, a, b), a)),
    ),
    "sqrt": (lambda w, x, y: div(mul(w, number(0.5, w.dtype)), y),),
    "rsqrt": (lambda w, x, y: div(mul(w, mul(number(-0.5, w.dtype), y)), x),),
    "exp": (lambda w, x, y: mul(w, y),),
    "exp2": (_scaled(math.log(2)),),
    "exp10": (_scaled(math.log(10)),),
    "expm1": (lambda w, x, y: mul(w, add(y, _one(w))),),
    "log": (lambda w, x, y: div(w, x),),
    "log2": (lambda w, x, y: div(w, mul(x, number(math.log(2), w.dtype))),),
    "log10": (lambda w, x, y: div(w, mul(x, number(math.log(10), w.dtype))),),
    "log1p": (lambda w, x, y: div(w, add(_one(w), x)),),
    "sin": (lambda w, x, y: mul(w, call("cos", x)),),
    "cos": (lambda w, x, y: neg(mul(w, call("sin", x))),),
    "tan": (lambda w, x, y: mul(w, add(_one(w), square(y))),),
    "asin": (lambda w, x, y: mul(w, call("rsqrt", sub(_one(w), square(x)))),),
    "acos": (lambda w, x, y: neg(mul(w, call("rsqrt", sub(_one(w), square(x))))),),
    "atan": (lambda w, x, y: div(w, add(_one(w), square(x))),),
    "sinh": (lambda w, x, y: mul(w, call("cosh", x)),),
    "cosh": (lambda w, x, y: mul(w, call("sinh", x)),),
    "tanh": (lambda w, x, y: mul(w, sub(_one(w), square(y))),),
    "asinh": (lambda w, x, y: mul(w, call("rsqrt", add(square(x), _one(w)))),),
    # Factors, as x * x - 1 loses all digits near 1.
    "acosh": (lambda w, x, y: mul(w, call("rsqrt", mul(sub(x, _one(w)), add(x, _one(w))))),),
    "atanh": (lambda w, x, y: div(w, mul(sub(_one(w), x), add(_one(w), x))),),
    "erf": (
        lambda w, x, y: mul(
            w, mul(number(2 / math.sqrt(math.pi), w.dtype), call("exp", neg(square(x))))
        ),
    ),
    "sigmoid": (lambda w, x, y: mul(w, mul(y, sub(_one(w), y))),),
    "abs": (_absolute,),
    **dict.fromkeys(("floor", "ceil", "trunc", "nearbyint", "round", "sign"), (None,)),
}
"""A rule per operand of each operation on floats; None where the derivative is 0."""

BY_RESULT = frozenset(
    {"div", "sqrt", "rsqrt", "exp", "exp2", "exp10", "expm1", "tan", "tanh", "sigmoid", "pow"}
)
"""Operations with a rule that uses y."""
