"""The operations and functions of the loop IR as `jax.lax` operations on equal shapes."""

from __future__ import annotations

import operator
from collections.abc import Callable
from functools import partial
from typing import Any

import jax
import numpy as np
from jax import lax

from msops._base.dtypes import as_dtype
from msops._base.extremes import reduce_extreme, reduce_numbers
from msops._loops.ir import scalars
from msops._loops.ir.formulas import evaluate, is_name
from msops._loops.ir.functions import FUNCTIONS
from msops._loops.ir.operators import is_float
from msops._loops.to_jax.printing.shields import divide
from msops._loops.to_jax.printing.values import Array, in_float32


def like(x: Array, value: float) -> Array:
    """Returns a constant of the shape and dtype of an array."""
    return lax.full(x.shape, value, x.dtype)


# Integers: by 0 gives 0, and XLA's own quotient of INT_MIN by -1 wraps as wanted.


def _nonzero(y: Array) -> Array:
    return lax.select(lax.eq(y, like(y, 0)), like(y, 1), y)


def _unless_zero(y: Array, result: Array) -> Array:
    return lax.select(lax.eq(y, like(y, 0)), like(y, 0), result)


def _truncdiv(x: Array, y: Array) -> Array:
    return _unless_zero(y, lax.div(x, _nonzero(y)))


def _truncmod(x: Array, y: Array) -> Array:
    return _unless_zero(y, lax.rem(x, _nonzero(y)))


def _differ_in_sign(remainder: Array, y: Array) -> Array:
    """Where a truncated remainder is not the floored one."""
    zero = like(y, 0)
    differs = lax.ne(lax.lt(remainder, zero), lax.lt(y, zero))
    return lax.bitwise_and(lax.ne(remainder, zero), differs)


def _floordiv(x: Array, y: Array) -> Array:
    if _is_unsigned(x):
        return _truncdiv(x, y)
    safe = _nonzero(y)
    quotient = lax.div(x, safe)
    lower = _differ_in_sign(lax.rem(x, safe), safe)
    return _unless_zero(y, lax.select(lower, lax.sub(quotient, like(x, 1)), quotient))


def _mod(x: Array, y: Array) -> Array:
    if _is_unsigned(x):
        return _truncmod(x, y)
    safe = _nonzero(y)
    remainder = lax.rem(x, safe)
    wrong = _differ_in_sign(remainder, safe)
    return _unless_zero(y, lax.select(wrong, lax.add(remainder, safe), remainder))


def _is_unsigned(x: Array) -> bool:
    return np.dtype(x.dtype).kind == "u"


def _product(x: Array, y: Array) -> Array:
    """Multiplies as unsigned numbers: XLA takes the square of a signed one to be never negative."""
    if _is_unsigned(x):
        return lax.mul(x, y)
    bits = np.dtype(f"u{np.dtype(x.dtype).itemsize}")
    product = lax.mul(*(lax.convert_element_type(part, bits) for part in (x, y)))
    return lax.convert_element_type(product, x.dtype)


def _integer_pow(x: Array, y: Array) -> Array:
    """Squares and multiplies; below 0 only the powers of 1 and -1 are whole."""
    one, zero = like(x, 1), like(x, 0)
    result, base, left = one, x, y
    bits = np.dtype(x.dtype).itemsize * 8
    for _ in range(bits - (not _is_unsigned(x))):
        odd = lax.eq(lax.bitwise_and(left, one), one)
        result = lax.select(odd, _product(result, base), result)
        base = _product(base, base)
        left = lax.shift_right_logical(left, one)
    if _is_unsigned(x):
        return result
    odd = lax.eq(lax.bitwise_and(y, one), one)
    minus = lax.select(odd, like(x, -1), one)
    inverse = lax.select(lax.eq(x, one), one, lax.select(lax.eq(x, like(x, -1)), minus, zero))
    return lax.select(lax.lt(y, zero), inverse, result)


# Floats.


@jax.custom_jvp
def _float_mod(x: Array, y: Array) -> Array:
    """Returns x - y * (x // y).

    That is how it is differentiated, too. The derivative of lax.rem takes the floor of x / y, which
    is off by one where the quotient is rounded up to a whole number.
    """
    remainder = lax.rem(x, y)
    wrong = _differ_in_sign(remainder, y)
    found = lax.select(wrong, lax.add(remainder, y), remainder)
    return lax.select(lax.eq(remainder, like(x, 0)), _zero_with_sign(y), found)


def _zero_with_sign(sign: Array) -> Array:
    return lax.mul(_at_most_one(sign), like(sign, 0))


def _at_most_one(x: Array) -> Array:
    """Returns a finite number with the sign of x. For XLA the sign of a constant -0.0 is 0."""
    return lax.clamp(like(x, -1), x, like(x, 1))


@_float_mod.defjvp
def _float_mod_jvp(primals: tuple[Any, ...], tangents: tuple[Any, ...]) -> tuple[Array, Array]:
    slope = lax.neg(_float_floordiv(*primals))
    return _float_mod(*primals), lax.add(tangents[0], lax.mul(slope, tangents[1]))


def _float_floordiv(x: Array, y: Array) -> Array:
    # Constant between its steps: nothing infinite may pass, not even times 0.
    return in_float32(_floor_of_quotient, lax.stop_gradient(x), lax.stop_gradient(y))


def _floor_of_quotient(x: Array, y: Array) -> Array:
    """As numpy: from the remainder, which is exact where the quotient is not."""
    zero, one = like(x, 0), like(x, 1)
    remainder = lax.rem(x, y)
    quotient = divide(lax.sub(x, remainder), y)
    lower = _differ_in_sign(remainder, y)
    quotient = lax.select(lower, lax.sub(quotient, one), quotient)
    signed_zero = _zero_with_sign(lax.mul(_at_most_one(x), _at_most_one(y)))
    quotient = lax.select(lax.eq(quotient, zero), signed_zero, quotient)
    # The quotient may be rounded to half of a number, which is no reason to round up.
    whole = lax.floor(quotient)
    is_above = lax.gt(lax.sub(quotient, whole), like(x, 0.5))
    whole = lax.select(is_above, lax.add(whole, one), whole)
    return lax.select(lax.eq(y, zero), lax.div(x, y), whole)


_INTEGER_BINARY: dict[str, Callable[[Array, Array], Array]] = {
    "floordiv": _floordiv,
    "mod": _mod,
    "truncdiv": _truncdiv,
    "truncmod": _truncmod,
    "mul": _product,
    "pow": _integer_pow,
}

NATURAL: dict[str, Callable[[Array, Array], Array]] = {
    "floordiv": lax.div,
    "mod": lax.rem,
    "truncdiv": lax.div,
    "truncmod": lax.rem,
}
"""The same for integers that are not negative, and a divisor that is not 0: all round alike."""


def _keeping(is_better: Callable[[Array, Array], Array]) -> Callable[[Array, Array], Array]:
    return lambda old, new: lax.select(is_better(new, old), new, old)


_FLOAT_BINARY: dict[str, Callable[[Array, Array], Array]] = {
    # What a condition keeps: of equal numbers the first or the last.
    "first max": _keeping(lax.gt),
    "last max": _keeping(lax.ge),
    "first min": _keeping(lax.lt),
    "last min": _keeping(lax.le),
    "floordiv": _float_floordiv,
    "mod": _float_mod,
    "pow": lax.pow,
}

_BINARY: dict[str, Callable[[Array, Array], Array]] = {
    "add": lax.add,
    "sub": lax.sub,
    "mul": lax.mul,
    "div": lax.div,
    "min": lax.min,
    "max": lax.max,
    "and": lax.bitwise_and,
    "or": lax.bitwise_or,
    "xor": lax.bitwise_xor,
    "shl": lax.shift_left,
    "land": lax.bitwise_and,
    "lor": lax.bitwise_or,
    "eq": lax.eq,
    "ne": lax.ne,
    "lt": lax.lt,
    "le": lax.le,
    "gt": lax.gt,
    "ge": lax.ge,
}

_REDUCTIONS: dict[str, Callable[[Array, Any], Array]] = {
    "add": lax.reduce_sum,
    "mul": lax.reduce_prod,
    "min": partial(reduce_extreme, "min"),
    "max": partial(reduce_extreme, "max"),
    "land": lax.reduce_and,
    "lor": lax.reduce_or,
    "and": lax.reduce_and,
    "or": lax.reduce_or,
    "xor": lax.reduce_xor,
    **{
        f"{keeps} {op}": partial(reduce_numbers, op)
        for keeps in ("first", "last")
        for op in ("max", "min")
    },
}

_SAFE_OPERANDS = {
    "mul": (1.0, 1.0),
    "div": (1.0, 1.0),
    "pow": (1.0, 1.0),
    "floordiv": (0.5, 1.0),
    "mod": (0.5, 1.0),
}


def safe_operands(op: str) -> tuple[float, ...]:
    """Returns the operands that an operation or function gets where its result is not chosen.

    A gradient through the branch that is not taken is 0 times a derivative, which must be finite.
    Empty where it always is.
    """
    row = FUNCTIONS.get(op)
    return row.safe if row else _SAFE_OPERANDS.get(op, ())


def _integer_abs(x: Array) -> Array:
    """Returns the absolute value; the least integer wraps, as `-x` does.

    XLA assumes that `lax.abs` is never negative, and drops the checks of an index made from it.
    """
    return lax.select(lax.lt(x, like(x, 0)), lax.neg(x), x)


def _float_sign(x: Array) -> Array:
    """Returns -1, 0 or 1, or NaN of NaN; XLA's own keeps -0."""
    zero = like(x, 0)
    return lax.select(lax.eq(x, zero), zero, lax.sign(x))


def unary(op: str) -> Callable[[Array], Array]:
    """Returns the lax function of a `Unary`."""
    return lax.neg if op == "neg" else lax.bitwise_not


def binary(op: str, dtype: str) -> Callable[[Array, Array], Array]:
    """Returns the lax function of a `Binary` on operands of a dtype."""
    if op == "shr":
        unsigned = dtype.startswith("uint")
        return lax.shift_right_logical if unsigned else lax.shift_right_arithmetic
    own = _FLOAT_BINARY if is_float(dtype) else _INTEGER_BINARY
    return own.get(op) or _BINARY[op]


def call(function: str, dtype: str) -> Callable[..., Array]:
    """Returns the JAX function of a `FunctionCall` on arguments of a dtype."""
    if function == "abs" and not is_float(dtype):
        return _integer_abs
    if function == "sign" and is_float(dtype):
        return _float_sign
    row = FUNCTIONS[function]
    form = row.jax or f"lax.{function}"
    run = _named(form) if is_name(form) else _formula(form, row.arguments, dtype)
    is_narrow = dtype in ("float16", "bfloat16")
    return _widened(run) if is_narrow and row.jax_in_float32 else run


def _named(form: str) -> Callable[..., Array]:
    """Returns the function of a name below `jax`."""
    function: Callable[..., Array] = operator.attrgetter(form)(jax)
    return function


def _formula(form: str, names: tuple[str, ...], dtype: str) -> Callable[..., Array]:
    def run(*args: Array) -> Array:
        def apply(op: str, *operands: Array) -> Array:
            if op == "select":
                return lax.select(*operands)
            if op == "neg":
                return lax.neg(*operands)
            own = call(op, dtype) if op in FUNCTIONS else binary(op, dtype)
            return own(*operands)

        values = dict(zip(names, args, strict=True))
        return evaluate(form, values, lambda value: like(args[0], value), apply)

    return run


def _widened(function: Callable[..., Array]) -> Callable[..., Array]:
    """Returns a function of several operations without the roundings of 16 bits between them."""

    def run(*args: Array) -> Array:
        wide = function(*(lax.convert_element_type(x, np.float32) for x in args))
        return lax.convert_element_type(wide, args[0].dtype)

    return run


def cast(source: str, target: str) -> Callable[[Array], Array]:
    """Returns the conversion between two dtypes: floats saturate to integers, NaN becomes 0."""
    wanted = as_dtype(target).dtype
    if not is_float(source) or is_float(target) or target == "bool":
        return lambda x: lax.convert_element_type(x, wanted)

    def saturate(x: Array) -> Array:
        info = np.iinfo(wanted)
        # In float32 at least: 16-bit floats do not reach the limits of the integers.
        x = lax.convert_element_type(x, np.promote_types(np.float32, x.dtype))
        result = lax.convert_element_type(lax.select(lax.ne(x, x), like(x, 0), x), wanted)
        above, below = lax.ge(x, like(x, float(info.max))), lax.le(x, like(x, float(info.min)))
        result = lax.select(above, lax.full(x.shape, info.max, wanted), result)
        return lax.select(below, lax.full(x.shape, info.min, wanted), result)

    return saturate


def identity(op: str, dtype: str) -> Any:
    """Returns the identity of a reduction, a numpy scalar."""
    return as_dtype(dtype).dtype.type(scalars.identity(op.rpartition(" ")[2], dtype))


def reduce(op: str, x: Array, dimensions: tuple[int, ...]) -> Array:
    """Returns a reduction over dimensions; 16-bit floats are summed in float32."""
    if not dimensions:
        return x

    def over_dimensions(array: Array) -> Array:
        return _REDUCTIONS[op](array, dimensions)

    return in_float32(over_dimensions, x) if op in ("add", "mul") else over_dimensions(x)
