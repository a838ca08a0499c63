"""The names of the language of loop kernels as Python functions on numpy, for `msops.lang`.

A kernel that is called as Python runs them, and linters, type checkers and editors read them. They
follow numpy where it differs from the compiled language: `round` takes halves to the even number,
and conversions happen where an element is stored. What a function computes is in the table of the
compiler, `msops._loops.ir.functions`; a test holds the names here to the compiler's.
"""

from __future__ import annotations

import builtins
import contextlib
import itertools
import math
from collections.abc import Callable, Iterable, Iterator
from typing import Any, TypeAlias

import numpy as np

from msops._base.dtypes import as_dtype
from msops._loops.ir import scalars
from msops._loops.ir.functions import FUNCTIONS

__all__ = [
    "abs",
    "allocate",
    "atan",
    "atan2",
    "attr",
    "bfloat16",
    "bind",
    "block_realize",
    "ceil",
    "ceil_div",
    "const_range",
    "cos",
    "erf",
    "exp",
    "expm1",
    "float16",
    "float32",
    "float64",
    "floor",
    "grid",
    "int8",
    "int16",
    "int32",
    "int64",
    "isfinite",
    "isinf",
    "isnan",
    "len",
    "likely",
    "log",
    "max",
    "min",
    "output_tensor",
    "parallel",
    "popcount",
    "power",
    "range",
    "reduce",
    "round",
    "rsqrt",
    "serial",
    "sigmoid",
    "sign",
    "sin",
    "sqrt",
    "tanh",
    "trunc",
    "uint8",
    "uint16",
    "uint32",
    "uint64",
    "unroll",
    "vectorize",
]

Unary: TypeAlias = Callable[[Any], Any]
Binary: TypeAlias = Callable[[Any, Any], Any]


def allocate(shape: Any, dtype: Any = "float32", scope: str = "global") -> Any:
    """Makes a temporary tensor; in which memory has no effect here."""
    return np.zeros(shape, as_dtype(dtype).dtype)


def output_tensor(shape: Any, dtype: Any = "float32") -> Any:
    """Makes a tensor that the kernel returns."""
    return np.zeros(shape, as_dtype(dtype).dtype)


range = builtins.range
len = builtins.len


def serial(*bounds: int) -> builtins.range:
    """Runs a loop in order; arguments as those of `range`."""
    return range(*bounds)


def parallel(*bounds: int) -> builtins.range:
    """Runs a loop whose iterations are independent of each other."""
    return range(*bounds)


def vectorize(*bounds: int) -> builtins.range:
    """Runs a loop whose iterations may be lanes of vector instructions."""
    return range(*bounds)


def reduce(*bounds: int) -> builtins.range:
    """Runs a loop that reduces, as a sum does."""
    return range(*bounds)


def unroll(*bounds: int) -> builtins.range:
    """Runs a loop whose body may be repeated."""
    return range(*bounds)


def const_range(*bounds: int) -> builtins.range:
    """Runs a loop with constant bounds whose body may be repeated."""
    return range(*bounds)


def grid(extents: Iterable[int]) -> Iterable[tuple[int, ...]]:
    """Runs nested loops, the last index fastest."""
    return itertools.product(*map(range, extents))


def bind(axis: str, extent: int) -> builtins.range:
    """Runs a loop over the indices of a thread axis such as ``"threadIdx.x"``."""
    return range(extent)


@contextlib.contextmanager
def attr(key: str, value: Any) -> Iterator[None]:
    """Speaks to AKG's compiler; it has no effect here."""
    yield


@contextlib.contextmanager
def block_realize(tensor: Any) -> Iterator[None]:
    """Speaks to AKG's compiler; it has no effect here."""
    yield


def likely(condition: Any) -> Any:
    """Returns a condition that mostly holds."""
    return condition


def min(*values: Any) -> Any:
    """Returns the least of numbers, -0 before 0, or a NaN if one is."""
    return _of_their_type(values, _first_nan(values, builtins.min(*values, key=_with_sign)))


def max(*values: Any) -> Any:
    """Returns the greatest of numbers, 0 before -0, or a NaN if one is."""
    return _of_their_type(values, _first_nan(values, builtins.max(*values, key=_with_sign)))


def _with_sign(value: Any) -> tuple[Any, bool]:
    """Returns what orders numbers, with -0 before 0."""
    return value, math.copysign(1.0, value) > 0


def _first_nan(values: Iterable[Any], otherwise: Any) -> Any:
    """Returns a NaN if there is one: Python's min and max keep one only in front."""
    return next((value for value in values if value != value), otherwise)


def _of_their_type(values: Iterable[Any], number: Any) -> Any:
    """Returns one of some values; a number of Python's gets the type of those beside it."""
    typed = next((value for value in values if isinstance(value, np.generic)), None)
    is_fraction = isinstance(number, float) and typed is not None and typed.dtype.kind in "iub"
    if typed is None or isinstance(number, np.generic) or is_fraction:
        return number
    return typed.dtype.type(number)


def ceil_div(a: Any, b: Any) -> Any:
    """Returns a quotient of integers, rounded up."""
    return a // b + (a % b != 0)  # a + b - 1 could wrap


def power(a: Any, b: Any) -> Any:
    """Returns a power; of integers to a negative one, the quotient rounded towards zero."""
    if np.result_type(a, b).kind in "iu" and b < 0:  # numpy raises for it
        return a ** (b % 2) if a in (1, -1) else a * 0
    # Not `np.power`, which takes the root for an exponent of 1/2: a NaN of -inf, and -0 of -0.
    number = np.maximum(a, b).dtype.type  # also of a bfloat16 and a Python number
    return number(a) ** number(b)


def _meaning(name: str) -> Callable[..., Any]:
    """Returns what a function of the compiler's table is in Python."""
    return FUNCTIONS[FUNCTIONS[name].in_hybrid or name].numpy


abs: Unary = _meaning("abs")
atan: Unary = _meaning("atan")
atan2: Binary = _meaning("atan2")
ceil: Unary = _meaning("ceil")
cos: Unary = _meaning("cos")
erf: Unary = _meaning("erf")
exp: Unary = _meaning("exp")
expm1: Unary = _meaning("expm1")
floor: Unary = _meaning("floor")
isfinite: Unary = _meaning("isfinite")
isinf: Unary = _meaning("isinf")
isnan: Unary = _meaning("isnan")
log: Unary = _meaning("log")
popcount: Unary = _meaning("popcount")
round: Unary = _meaning("round")
rsqrt: Unary = _meaning("rsqrt")
sigmoid: Unary = _meaning("sigmoid")
sign: Unary = _meaning("sign")
sin: Unary = _meaning("sin")
sqrt: Unary = _meaning("sqrt")
tanh: Unary = _meaning("tanh")
trunc: Unary = _meaning("trunc")


def _integer(name: str) -> Unary:
    """Returns an integer dtype whose conversions are those of compiled kernels."""
    dtype = as_dtype(name).dtype
    wrapped, nearest = scalars.cast("int64", name), scalars.cast("float64", name)

    def convert(value: Any) -> Any:
        is_float = isinstance(value, float) or np.asarray(value).dtype.kind not in "biuO"
        return dtype.type(nearest(np.float64(value)) if is_float else wrapped(int(value)))

    def new(cls: type, value: Any = 0) -> Any:
        """Converts: integers wrap, floats give the nearest number of the dtype, and NaN 0."""
        return np.vectorize(convert, [dtype])(value) if np.ndim(value) else convert(value)

    # A class, as the name of a dtype says which elements a tensor has, too.
    return type(name, (dtype.type,), {"__new__": new, "__module__": __name__})


int8: Unary = _integer("int8")
int16: Unary = _integer("int16")
int32: Unary = _integer("int32")
int64: Unary = _integer("int64")
uint8: Unary = _integer("uint8")
uint16: Unary = _integer("uint16")
uint32: Unary = _integer("uint32")
uint64: Unary = _integer("uint64")
float16: Unary = np.float16
bfloat16: Unary = as_dtype("bfloat16").dtype.type
float32: Unary = np.float32
float64: Unary = np.float64

INTRINSICS: dict[str, Any] = {
    **{name: _meaning(name) for name, row in FUNCTIONS.items() if row.hybrid},
    **{name: globals()[name] for name in __all__},
}
"""Every name of the language."""
