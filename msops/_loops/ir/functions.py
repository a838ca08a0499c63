"""The functions of the loop IR: one row each, with all that the compiler knows of it.

To add a function, add a row: the front ends, the interpreter, the printers of JAX, C and CUDA,
gradients and cost estimates read it here. A form is the name of a function, or a formula
(formulas.py) of the arguments, which are named x, or a and b. A function that kernels import from
`msops.lang` has a line in `msops/_custom/language.py`, too, and one in the reference of the loop
language; tests report either if it is missing.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np

from msops._loops.ir import float32_c
from msops._loops.ir.operators import Domain

_LN2 = math.log(2)
_LN10 = math.log(10)


@dataclass(frozen=True, kw_only=True)
class Function:
    """A row of `FUNCTIONS`.

    Attributes:
      numpy: what the function means, on numpy scalars: float64 for every float dtype, and each
        integer dtype as it is.
      arity: number of arguments, all of one dtype.
      domain: what dtypes it takes; the result has the same, unless `to_bool`.
      to_bool: the result is a bool.
      derivative: a formula per argument, of what its adjoint receives. It may use w, the adjoint of
        the result, the arguments, and y, the result, which is cheaper than the arguments where it
        was stored. "0" where the function is constant between its steps.
      safe: arguments at which the derivative is finite; the printer of JAX takes them where the
        result is not chosen. Empty if there is no pole.
      jax: its form in JAX: a name below `jax`, or a formula. "" for its name in `jax.lax`.
      jax_in_float32: that is several operations, between which float16 and bfloat16 may not be
        rounded.
      c: its form on floats in C: a function of the C library on double, or a formula. "" for the
        function of its name.
      c_integer: its form on integers, in C text: $T is the type and $U the unsigned one.
      c_float32: C code of a function on float that vectorises; see float32_c.py.
      is_quick_alone: outside vectors the function of the C library is faster than that code.
      glibc: the version from which on glibc has it for vectors; None if it has not.
      cuda: its form on floats in CUDA C, if not `c`.
      cuda_integer: its form on integers in CUDA C, if not `c_integer`.
      is_instruction: processors have an instruction for it.
      is_transcendental: XLA's cost analysis counts it among the transcendentals.
      hybrid: who may call it by its name in the loop language: kernels of func_type "akg" only, or
        those of `@kernel` too; None if nobody.
      in_hybrid: the function that its name means in the loop language, if another.
      tvm_aliases: further names in `tvm.call_pure_intrin`. All functions are in `tvm`, and those of
        one argument in `topi`.
      tvm_of_integer: what `tvm` makes of an integer where the function takes floats: the integer
        ("same"), or a bool. None if that is an error.
    """

    numpy: Callable[..., Any]
    arity: int = 1
    domain: Domain = "float"
    to_bool: bool = False
    derivative: tuple[str, ...] = ()
    safe: tuple[float, ...] = ()
    jax: str = ""
    jax_in_float32: bool = False
    c: str = ""
    c_integer: str = ""
    c_float32: str = ""
    is_quick_alone: bool = False
    glibc: tuple[int, int] | None = None
    cuda: str = ""
    cuda_integer: str = ""
    is_instruction: bool = False
    is_transcendental: bool = True
    hybrid: Literal["akg", "kernel"] | None = None
    in_hybrid: str = ""
    tvm_aliases: tuple[str, ...] = ()
    tvm_of_integer: Literal["same"] | bool | None = None

    @property
    def arguments(self) -> tuple[str, ...]:
        """The names of the arguments in formulas."""
        return ("x",) if self.arity == 1 else ("a", "b")


def _rounding(numpy: Callable[..., Any], **others: Any) -> Function:
    """Returns the row of a function from floats to whole numbers."""
    return Function(
        numpy=numpy,
        derivative=("0",),
        is_transcendental=False,
        tvm_of_integer="same",
        **others,
    )


def _test(numpy: Callable[..., Any], of_integer: bool, **others: Any) -> Function:
    """Returns the row of a function from floats to bools."""
    return Function(
        numpy=numpy,
        to_bool=True,
        is_transcendental=False,
        hybrid="kernel",
        tvm_of_integer=of_integer,
        **others,
    )


_erf_of_float64 = np.vectorize(math.erf, otypes=[np.float64])


def _erf(x: Any) -> Any:
    return _erf_of_float64(x).astype(np.result_type(x))[()]


def _round_half_away(x: Any) -> Any:
    whole = np.trunc(x)
    return whole + np.copysign(1.0, x) if abs(x - whole) >= 0.5 else whole


def _sign(x: Any) -> Any:
    # That of bfloat16's -0 is -0 in numpy.
    found = np.sign(x)
    return found + found.dtype.type(0)


def _popcount(x: Any) -> Any:
    # numpy counts the bits of the absolute value: so it gets the same bits as an unsigned integer.
    bits = np.asarray(x)
    return np.bitwise_count(bits.view(f"u{bits.dtype.itemsize}")).astype(bits.dtype)


FUNCTIONS: dict[str, Function] = {
    "sqrt": Function(
        numpy=np.sqrt,
        derivative=("w * 0.5 / y",),
        safe=(0.5,),
        is_instruction=True,
        hybrid="kernel",
    ),
    "rsqrt": Function(
        numpy=lambda x: 1 / np.sqrt(x),
        derivative=("w * (-0.5 * y) / x",),
        safe=(0.5,),
        c="1 / sqrt(x)",
        hybrid="kernel",
    ),
    "exp": Function(
        numpy=np.exp,
        derivative=("w * y",),
        safe=(0.5,),
        c_float32=float32_c.EXP,
        is_quick_alone=True,
        glibc=(2, 22),
        hybrid="kernel",
    ),
    "exp2": Function(
        numpy=np.exp2,
        derivative=(f"w * ({_LN2} * y)",),
        safe=(0.5,),
        # jax.lax.exp2 is off by as many roundings as its argument is large.
        jax="2 ** x",
        jax_in_float32=True,
        glibc=(2, 35),
    ),
    "exp10": Function(
        numpy=lambda x: np.power(10.0, x),
        derivative=(f"w * ({_LN10} * y)",),
        safe=(0.5,),
        jax="10 ** x",
        jax_in_float32=True,
        c="10 ** x",
    ),
    "expm1": Function(
        numpy=np.expm1, derivative=("w * (y + 1)",), safe=(0.5,), glibc=(2, 35), hybrid="kernel"
    ),
    "log": Function(
        numpy=np.log,
        derivative=("w / x",),
        safe=(0.5,),
        c_float32=float32_c.LOG,
        is_quick_alone=True,
        glibc=(2, 22),
        hybrid="kernel",
    ),
    "log2": Function(
        numpy=np.log2,
        derivative=(f"w / (x * {_LN2})",),
        safe=(0.5,),
        jax=f"log(x) / {_LN2}",
        jax_in_float32=True,
        glibc=(2, 35),
    ),
    "log10": Function(
        numpy=np.log10,
        derivative=(f"w / (x * {_LN10})",),
        safe=(0.5,),
        jax=f"log(x) / {_LN10}",
        jax_in_float32=True,
        glibc=(2, 35),
    ),
    "log1p": Function(numpy=np.log1p, derivative=("w / (1 + x)",), safe=(0.5,), glibc=(2, 35)),
    "sin": Function(numpy=np.sin, derivative=("w * cos(x)",), glibc=(2, 22), hybrid="kernel"),
    "cos": Function(numpy=np.cos, derivative=("-(w * sin(x))",), glibc=(2, 22), hybrid="kernel"),
    "tan": Function(numpy=np.tan, derivative=("w * (1 + y * y)",), safe=(0.5,), glibc=(2, 35)),
    "asin": Function(
        numpy=np.arcsin, derivative=("w * rsqrt(1 - x * x)",), safe=(0.5,), glibc=(2, 35)
    ),
    "acos": Function(
        numpy=np.arccos, derivative=("-(w * rsqrt(1 - x * x))",), safe=(0.5,), glibc=(2, 35)
    ),
    "atan": Function(
        numpy=np.arctan, derivative=("w / (1 + x * x)",), glibc=(2, 35), hybrid="kernel"
    ),
    "sinh": Function(numpy=np.sinh, derivative=("w * cosh(x)",), safe=(0.5,), glibc=(2, 35)),
    "cosh": Function(numpy=np.cosh, derivative=("w * sinh(x)",), safe=(0.5,), glibc=(2, 35)),
    "tanh": Function(
        numpy=np.tanh,
        derivative=("w * (1 - y * y)",),
        c_float32=float32_c.TANH,
        glibc=(2, 35),
        hybrid="kernel",
    ),
    "asinh": Function(numpy=np.arcsinh, derivative=("w * rsqrt(x * x + 1)",), glibc=(2, 35)),
    "acosh": Function(
        numpy=np.arccosh,
        # Factors, as x * x - 1 loses all digits near 1.
        derivative=("w * rsqrt((x - 1) * (x + 1))",),
        safe=(2.0,),
        glibc=(2, 35),
    ),
    "atanh": Function(
        numpy=np.arctanh, derivative=("w / ((1 - x) * (1 + x))",), safe=(0.5,), glibc=(2, 35)
    ),
    "atan2": Function(
        numpy=np.arctan2,
        arity=2,
        derivative=("w / (a * a + b * b) * b", "-(w / (a * a + b * b) * a)"),
        safe=(1.0, 1.0),
        glibc=(2, 35),
        hybrid="kernel",
    ),
    "erf": Function(
        numpy=_erf,
        derivative=(f"w * ({2 / math.sqrt(math.pi)} * exp(-(x * x)))",),
        c_float32=float32_c.ERF,
        glibc=(2, 35),
        hybrid="kernel",
    ),
    "sigmoid": Function(
        numpy=lambda x: 1 / (1 + np.exp(-x)),
        derivative=("w * (y * (1 - y))",),
        jax="lax.logistic",
        jax_in_float32=True,
        c="1 / (1 + exp(-x))",
        hybrid="akg",
    ),
    "floor": _rounding(np.floor, is_instruction=True, hybrid="kernel"),
    "ceil": _rounding(np.ceil, is_instruction=True, hybrid="kernel"),
    "trunc": _rounding(
        np.trunc, jax="ceil(x) if x < 0 else floor(x)", is_instruction=True, hybrid="kernel"
    ),
    # Halves to even.
    "nearbyint": _rounding(np.rint, jax="numpy.rint", c="rint", is_instruction=True),
    # Halves away from zero, as C's and TVM's; Python rounds them to even, and so the loop language.
    "round": _rounding(_round_half_away, hybrid="kernel", in_hybrid="nearbyint"),
    "abs": Function(
        numpy=np.abs,
        domain="number",
        # 1 at 0, as in jax.lax.abs.
        derivative=("w * (1 if x >= 0 else -1)",),
        c="fabs",
        c_integer="x < 0 ? ($T)(0 - ($U)x) : x",
        is_instruction=True,
        is_transcendental=False,
        hybrid="kernel",
        tvm_aliases=("fabs",),
    ),
    # -1, 0 or 1 in the operand's dtype; NaN of NaN.
    "sign": Function(
        numpy=_sign,
        domain="number",
        derivative=("0",),
        c="1 if x > 0 else (-1 if x < 0 else x + 0)",
        c_integer="($T)((x > 0) - (x < 0))",
        is_transcendental=False,
        hybrid="kernel",
    ),
    # Has the sign of the first argument, as C's.
    "fmod": Function(
        numpy=np.fmod,
        arity=2,
        derivative=("w", "-(w * trunc(a / b))"),
        safe=(0.5, 1.0),
        jax="lax.rem",
        is_transcendental=False,
    ),
    "isnan": _test(np.isnan, of_integer=False, jax="x != x", c="x != x"),
    "isinf": _test(np.isinf, of_integer=False, jax="abs(x) == inf", c="abs(x) == inf"),
    "isfinite": _test(np.isfinite, of_integer=True, jax="lax.is_finite", c="abs(x) < inf"),
    "popcount": Function(
        numpy=_popcount,
        domain="integer",
        jax="lax.population_count",
        # Not of 64 bits at once: gcc 12 makes wrong vectors of that.
        c_integer="($T)(__builtin_popcount((uint32_t)($U)x)"
        " + (sizeof x > 4 ? __builtin_popcount((uint32_t)((uint64_t)($U)x >> 32)) : 0))",
        cuda_integer="($T)__popcll(($U)x)",
        is_transcendental=False,
        hybrid="akg",
    ),
}
"""The functions of `FunctionCall`, by name."""
