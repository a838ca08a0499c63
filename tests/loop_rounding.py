"""How far two executions of one kernel may differ: its source is run on numbers with their bounds.

    expected = bounds(program.text, arrays)
    assert all(expected[0][i].allows(got[0][i]) for i in range(n))

A `Number` is a float as Python computes it, and how far another execution may be from it: each
operation rounds to its dtype, sums may be added up in another order (rule 6 of meaning in
msops/_loops/README.md: n * eps * sum|x|), functions are right to a few units in the last place, and
subnormal numbers may count as zeros. NaN and infinities are the same in all executions, but where
finite numbers overflow. A decision that these bounds leave open raises `Unsure`.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from loop_numbers import ULPS, Number, Unsure, is_special, of_function, rounded

from msops import lang

# The names of the language.


def _smooth(name: str) -> Callable[..., Number]:
    function = getattr(lang, name)

    def sine(x: Number) -> Number:
        value = function(x.value)
        if x.error == 0 or is_special(x):
            return of_function(function, x)
        return Number(value, x.error + ULPS * x.eps())

    def smooth(*arguments: Any) -> Any:
        if not isinstance(arguments[0], Number):
            return function(*arguments)
        return sine(*arguments) if name in ("sin", "cos") else of_function(function, *arguments)

    return smooth


def _stepped(name: str) -> Callable[[Number], Number]:
    function = getattr(lang, name)

    def step(x: Any) -> Any:
        if not isinstance(x, Number):
            return function(x)
        value = function(x.value)
        if x.is_exact() or is_special(x):
            return Number(value, x.error)
        low, high = (function(np.float64(float(x.value) + s * x.error)) for s in (-1, 1))
        return Number(value, 0.0 if low == high == value != 0 else math.inf)

    return step


def _tested(name: str) -> Callable[[Any], bool]:
    function = getattr(lang, name)

    def test(x: Any) -> bool:
        if not isinstance(x, Number):
            return bool(function(x))
        if x.error == math.inf:
            raise Unsure
        return bool(function(x.value))

    return test


def _extreme(name: str) -> Callable[..., Any]:
    function = getattr(lang, name)

    def extreme(a: Any, b: Any) -> Any:
        if not isinstance(a, Number) and not isinstance(b, Number):
            return function(a, b)
        a = a if isinstance(a, Number) else b.like(a)
        b = a.like(b)
        value = function(a.value, b.value)
        either = a.is_any_zero or b.is_any_zero
        return Number(value, max(a.error, b.error), max(a.size, b.size), either)

    return extreme


def _absolute(x: Any) -> Any:
    if not isinstance(x, Number):
        return lang.abs(x)
    return Number(lang.abs(x.value), x.error, x.size)


def _to_integer(name: str) -> Callable[[Any], Any]:
    convert = getattr(lang, name)

    def to_integer(x: Any) -> Any:
        if not isinstance(x, Number):
            return convert(x)
        if x.error == math.inf:
            raise Unsure
        if is_special(x):
            return convert(x.value)
        low, high = (convert(np.float64(float(x.value) + s * x.error)) for s in (-1, 1))
        if x.error > 0 and low != high:
            raise Unsure
        return convert(x.value)

    return to_integer


def _to_float(name: str) -> Callable[[Any], Number]:
    convert = getattr(lang, name)

    def to_float(x: Any) -> Number:
        if not isinstance(x, Number):
            return Number(convert(x))
        value = convert(x.value)
        if is_special(x) or x.is_exact():
            return Number(value, x.error)
        if not math.isfinite(float(value)):
            return Number(value, math.inf)
        return rounded(value, x.error, x.size, x.is_any_zero)

    return to_float


class Tensor:
    """A tensor of integers, or of floats with their bounds; as loops access it."""

    def __init__(self, values: np.ndarray):
        self.dtype, self.shape = values.dtype, values.shape
        self.numbers = values.astype(object)
        if values.dtype.kind not in "iub":
            for at in np.ndindex(values.shape):
                self.numbers[at] = Number(values[at])
        else:
            for at in np.ndindex(values.shape):
                self.numbers[at] = values[at]

    def __getitem__(self, at: Any) -> Any:
        places = self._places(at)
        return self.numbers[
            tuple(min(max(i, 0), n - 1) for i, n in zip(places, self.shape, strict=True))
        ]

    def __setitem__(self, at: Any, value: Any) -> None:
        at = self._places(at)
        if all(0 <= i < n for i, n in zip(at, self.shape, strict=True)):
            is_given = isinstance(value, Number)
            self.numbers[at] = value if is_given else self._number(self.dtype.type(value))

    def _places(self, at: Any) -> tuple[int, ...]:
        """Returns indices from the beginning: a number of the source may count from the end."""
        pairs = zip(at if isinstance(at, tuple) else (at,), self.shape, strict=True)
        return tuple(n + i if type(i) is int and i < 0 else int(i) for i, n in pairs)

    def _number(self, value: Any) -> Any:
        return value if self.dtype.kind in "iub" else Number(value)


def _made(shape: Any, dtype: Any) -> Any:
    return Tensor(lang.output_tensor(shape, dtype))


FLOATS = ("float16", "bfloat16", "float32", "float64")
NAMES: dict[str, Any] = {
    **{name: getattr(lang, name) for name in lang.__all__},
    **{name: _smooth(name) for name in ("exp", "log", "sqrt", "rsqrt", "tanh", "sigmoid", "sin")},
    **{name: _stepped(name) for name in ("floor", "ceil", "trunc", "round", "sign")},
    **{name: _tested(name) for name in ("isnan", "isinf", "isfinite")},
    **{name: _extreme(name) for name in ("min", "max")},
    **{name: _to_integer(name) for name in lang.__all__ if name.lstrip("u").startswith("int")},
    **{name: _to_float(name) for name in FLOATS},
    "abs": _absolute,
    "output_tensor": _made,
    "allocate": _made,
}


def bounds(text: str, arrays: Sequence[np.ndarray], **outside: Any) -> list[Any]:
    """Returns the results of a kernel `k`: arrays, and tensors of numbers with their bounds.

    Raises:
      Unsure: a decision depends on roundings.
    """
    names = {**NAMES, **outside}
    exec(text, names)
    with np.errstate(all="ignore"):
        results = names["k"](*map(Tensor, arrays))
    return [*results] if isinstance(results, tuple) else [results]


def first_disagreement(
    expected: Any, got: np.ndarray, allows_any_zero: bool = False
) -> tuple[int, ...] | None:
    """Returns where a result is not what another execution may give; None: nowhere.

    Args:
      expected: what `bounds` has returned.
      got: what the other execution has.
      allows_any_zero: a zero may have either sign, as that of a sum which begins with -0.
    """
    for at in np.ndindex(got.shape):
        want, found = expected.numbers[at], got[at]
        if not isinstance(want, Number):
            is_right = want == found
        else:
            is_right = want.allows(found) or (allows_any_zero and want.value == found == 0)
        if not is_right:
            return at
    return None
