"""What XLA would compute by other operations, with other values, and how it is kept from that.

XLA takes floats for real numbers in some places: ``a / b / c`` becomes ``a / (b * c)``, which is
infinite or 0 where the quotient is not, ``log(exp(x))`` becomes x, and a division by what whole
rows share becomes a product with its inverse. A table says which operation is rewritten if an
operand comes from which other one. There, and nowhere else, the operand is rounded to its own
precision by `lax.reduce_precision`: that changes no value, XLA does not look through it, and it is
fused like any other operation.

XLA's code for exp takes no argument for a NaN. One that comes from memory passes as it should, but
where LLVM sees that the argument is NaN, as of ``x + NAN``, the result is what a register holds.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import jax
import ml_dtypes
import numpy as np
from jax import lax
from jax.custom_derivatives import SymbolicZero

from msops._loops.to_jax.printing.values import Array, Contents, Value

_Origins = frozenset[str] | None
"""Names of operations; None for anything, written or not."""


def _origins(*names: str) -> frozenset[str]:
    # Several operations of XLA, the last of which may be any.
    return frozenset((*names, "several"))


_POWERS = _origins("exp", "pow", "sqrt", "rsqrt")
_SCALED = frozenset(("scaled", "doubled"))
_FACTORS = _POWERS | _SCALED | {"mul", "div"}
_NATURAL = _POWERS | {"mul", "abs"}
_CONSTANTS = frozenset(("constant", "zero"))

_RULES: tuple[tuple[tuple[str, ...], _Origins, _Origins, int], ...] = (
    # a / b / c is a / (b * c); a / (b / c) is a * c / b; a / exp(b) is a * exp(-b).
    (("div",), _origins("div"), None, 0),
    (("div",), None, _POWERS | {"div"}, 1),
    # exp(a) * exp(b) is exp(a + b); rsqrt(a) * rsqrt(a) is 1 / a.
    (("mul",), _POWERS, _POWERS, 0),
    # (x * 3) * 5 is x * 15, also if the second factor is no constant, but the same in whole rows.
    (("mul",), _SCALED, _SCALED | _CONSTANTS | {"shared"}, 0),
    (("mul",), _CONSTANTS | {"shared"}, _SCALED, 1),
    # float32(condition) * x is a choice between x and 0, also where x is NaN.
    (("mul",), frozenset(("from bool",)), None, 0),
    (("mul",), None, frozenset(("from bool",)), 1),
    # (x + 1) - 1 is x; x * 2 + y * 2 is (x + y) * 2.
    (("add", "sub"), frozenset(("shifted",)), _CONSTANTS, 0),
    (("add", "sub"), _CONSTANTS, frozenset(("shifted",)), 1),
    (("add", "sub"), frozenset(("doubled",)), frozenset(("doubled",)), 0),
    # log(x ** p) is p * log(abs(x)); sqrt(x * x) is abs(x); exp(x) ** p is exp(x * p).
    (("log", "log2", "log10"), _POWERS, None, 0),
    (("sqrt", "rsqrt", "pow", "whole power"), _FACTORS, None, 0),
    # abs(x) >= 0 is true, also of NaN.
    (("lt", "le", "gt", "ge"), _NATURAL, frozenset(("zero",)), 0),
    (("lt", "le", "gt", "ge"), frozenset(("zero",)), _NATURAL, 1),
)
"""Operations of floats, origins of their operands, and which of the operands is cut off then."""

_ORIGINS = {"exp2": "pow", "exp10": "pow"} | {
    name: name
    for name in (
        *("add", "sub", "mul", "div", "pow", "neg", "min", "max", "exp", "log", "sqrt", "rsqrt"),
        *("abs", "sign", "floor", "ceil", "trunc", "nearbyint", "round", "sin", "cos", "mod"),
    )
}
"""What an operation of the IR is to XLA; one that is missing here is several operations."""

_MADE_OF_EXP = frozenset(("exp", "exp2", "exp10", "expm1", "sinh", "cosh", "sigmoid"))

_WIDEST_EXPONENT = 12
"""Powers of 2 up to here have an inverse in every dtype that is no subnormal number."""


@dataclass(frozen=True)
class _Made:
    """An array and what may have made its elements. It is kept alive, as its id is its key."""

    array: Array
    origins: frozenset[str]


class Origins:
    """Which operations made the arrays of a function that is being traced.

    Attributes:
      may_be_nan: a value may be a NaN that LLVM knows, since constants are infinite or NaN.
    """

    def __init__(self) -> None:
        self._made: dict[int, _Made] = {}
        self.may_be_nan = False

    def of(self, array: Contents) -> frozenset[str]:
        """Returns the origins of an array's elements, those that are known."""
        if isinstance(array, np.generic):
            return frozenset(("constant" if array else "zero",))
        made = self._made.get(id(array))
        return made.origins if made else frozenset()

    def is_constant(self, array: Array) -> bool:
        """Returns whether elements may be constants, that XLA knows or that LLVM finds."""
        return isinstance(array, np.generic) or "hidden" in self.of(array)

    def note(self, array: Array, *origins: str) -> None:
        """Remembers what may have made an array's elements, if they are floats."""
        is_integer = np.dtype(array.dtype).kind in "iub"
        if origins and not is_integer and not isinstance(array, np.generic):
            self._made[id(array)] = _Made(array, frozenset(origins))

    def follow(self, array: Array, *sources: Contents) -> None:
        """Remembers that an array has elements of other ones."""
        self.note(array, *(origin for source in sources for origin in self.of(source)))


def shield(op: str, values: Sequence[Value], origins: Origins) -> list[Value]:
    """Returns the operands of an operation on floats, shielded where XLA would rewrite it.

    Args:
      op: an operation or function of the IR, or "whole power".
      values: its operands.
      origins: of the operands.
    """
    own = [origins.of(value.array) | _shared(value, values) for value in values]
    found = [_hidden(op, i, value, values) for i, value in enumerate(values)]
    for ops, left, right, which in _RULES:
        wanted = (left, right)[: len(own)]
        if op in ops and all(w is None or o & w for o, w in zip(own, wanted, strict=True)):
            found[which] = _rounded(found[which])
    return found


def keeping_nan(op: str, function: Callable[..., Array]) -> Callable[..., Array]:
    """Returns an operation that is NaN of a NaN that LLVM knows, too."""
    if op not in _MADE_OF_EXP:
        return function
    return lambda x: lax.select(lax.ne(x, x), x, function(x))


def origin_of(op: str, values: Sequence[Value]) -> str:
    """Returns the origin of what an operation on floats makes of operands."""
    # What it is divided by still is a constant if XLA may multiply by the inverse.
    given = values[1:] if op == "div" else values
    numbers = [value.array for value in given if isinstance(value.array, np.generic)]
    if numbers and op in ("add", "sub"):
        return "shifted"
    if numbers and op in ("mul", "div"):
        return "doubled" if _is_power_of_2(numbers[0]) else "scaled"
    return _ORIGINS.get(op, "several")


@jax.custom_jvp
def divide(x: Array, y: Array) -> Array:
    """Returns a quotient of floats.

    Where XLA finds that rows share the divisor, as under `jax.vmap` over numerators alone, it would
    multiply by the inverse, which is inexact, and 0 of a large divisor. It does not look through a
    choice by the numerator, which LLVM later finds to be none.
    """
    return lax.div(x, _divisor(x, y))


def _divisor(value: Array, y: Array) -> Array:
    return lax.select(lax.ne(value, value), _rounded_array(y), y)


@functools.partial(divide.defjvp, symbolic_zeros=True)
def _divide_jvp(primals: tuple[Array, Array], tangents: tuple[Array, Array]) -> tuple[Array, Array]:
    """As adjoint loops have it: JAX takes ``x * y**-2``, which is 0 where y * y is infinite."""
    x, y = primals
    quotient = divide(x, y)
    divisor = _divisor(quotient, y)
    along_x, along_y = tangents
    parts = []
    if not isinstance(along_x, SymbolicZero):
        parts.append(lax.div(_rounded_array(along_x), divisor))
    if not isinstance(along_y, SymbolicZero):
        slope = lax.neg(lax.mul(quotient, along_y))
        parts.append(lax.div(_rounded_array(slope), divisor))
    return quotient, functools.reduce(lax.add, parts)


def repeated(value: Value, origins: Origins) -> Value:
    """Returns a value that is added up over axes along which it is constant.

    XLA multiplies it by their length.
    """
    return _rounded(value) if origins.of(value.array) & _SCALED else value


def barred(value: Value) -> Value:
    """Returns a value that XLA does not know."""
    return Value(lax.optimization_barrier(value.array), value.axes)


def _shared(value: Value, values: Sequence[Value]) -> frozenset[str]:
    """Returns "shared" for an operand that does not vary with all axes."""
    is_shared = any(set(other.axes) - set(value.axes) for other in values)
    return frozenset(("shared",) if is_shared else ())


def _hidden(op: str, place: int, value: Value, values: Sequence[Value]) -> Value:
    """Returns an operand, behind a barrier if it is a constant that changes what XLA makes of it.

    Those are divisors, as XLA would multiply by their inverses, and 0, which it would not add
    although -0 + 0 is 0.
    """
    number = value.array
    if not isinstance(number, np.generic) or len(values) < 2:
        return value
    if op == "div":
        is_rewritten = place == 1 and not _is_power_of_2(number)
    elif op in ("add", "sub"):
        # x - 0.0 and x + -0.0 are x.
        is_rewritten = not number and (op == "sub") == bool(np.signbit(number))
    else:
        return value
    return barred(Value(lax.full((), np.asarray(number)), ())) if is_rewritten else value


def _is_power_of_2(number: np.generic) -> bool:
    significand, exponent = math.frexp(float(number))  # type: ignore[arg-type]
    return abs(significand) == 0.5 and abs(exponent) <= _WIDEST_EXPONENT


def _rounded(value: Value) -> Value:
    return Value(_rounded_array(value.array), value.axes)


def _rounded_array(array: Array) -> Array:
    kind = ml_dtypes.finfo(array.dtype)
    return lax.reduce_precision(array, kind.nexp, kind.nmant)
