"""Floats with bounds of how far another execution may be from them; see loop_rounding.py."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import ml_dtypes
import numpy as np

from msops import lang

ULPS = 16
"""What a function may be wrong by."""


class Unsure(Exception):
    """Two executions may decide otherwise here."""


class Number:
    """A float, and how far it may be from that of another execution.

    Attributes:
      value: a numpy scalar.
      error: what the other one may differ by; infinite: it may be anything.
      size: the sum of the magnitudes of what was added up.
      is_any_zero: if it is zero, its sign may be either.
    """

    __slots__ = ("error", "is_any_zero", "size", "value")

    def __init__(
        self, value: Any, error: float = 0.0, size: float = 0.0, is_any_zero: bool = False
    ):
        info = ml_dtypes.finfo(value.dtype)
        magnitude = abs(float(value))
        if 0 < magnitude < float(info.tiny):
            error, is_any_zero = max(error, float(info.tiny)), True
        self.value = value
        self.error = math.inf if math.isnan(error) else error
        self.size = max(size, magnitude)
        self.is_any_zero = is_any_zero or 0 < magnitude <= self.error

    def allows(self, got: Any) -> bool:
        """Returns whether another execution may have this result."""
        value, other = float(self.value), float(got)
        if self.error == math.inf or (math.isnan(value) and math.isnan(other)):
            return True
        if not math.isfinite(value) or not math.isfinite(other):
            return value == other
        if value == other == 0:
            loose = self.is_any_zero or self.error > 0
            return loose or math.copysign(1, value) == math.copysign(1, other)
        return abs(value - other) <= self.error

    # Arithmetic.

    def like(self, other: Any) -> Number:
        return other if isinstance(other, Number) else Number(self.value.dtype.type(other))

    def eps(self) -> float:
        return float(ml_dtypes.finfo(self.value.dtype).eps)

    def is_exact(self) -> bool:
        """Returns whether all executions have the same bits."""
        return self.error == 0 and not (self.is_any_zero and self.value == 0)

    def __add__(self, other: Any) -> Number:
        other = self.like(other)
        value = self.value + other.value
        if is_special(self, other):
            return Number(value, self.error + other.error)
        size = self.size + other.size
        if not math.isfinite(float(value)):
            return Number(value, math.inf)
        error = self.error + other.error + self.eps() * size
        either = value == 0 and (self.is_any_zero or other.is_any_zero or bool(np.signbit(value)))
        return Number(value, error, size, either)

    def __neg__(self) -> Number:
        return Number(-self.value, self.error, self.size, self.is_any_zero)

    def __sub__(self, other: Any) -> Number:
        return self + -self.like(other)

    def __mul__(self, other: Any) -> Number:
        other = self.like(other)
        value = self.value * other.value
        if is_special(self, other):
            return Number(value, 0.0 if _are_signs_sure(self, other) else math.inf)
        if not math.isfinite(float(value)):
            return Number(value, math.inf)
        a, b = abs(float(self.value)), abs(float(other.value))
        error = a * other.error + b * self.error + self.error * other.error
        either = self.is_any_zero or other.is_any_zero
        return rounded(value, error, is_any_zero=either)

    def __truediv__(self, other: Any) -> Number:
        other = self.like(other)
        value = self.value / other.value
        b = abs(float(other.value))
        if is_special(self, other) or b == 0:
            return Number(value, 0.0 if _are_signs_sure(self, other) else math.inf)
        if b <= other.error or not math.isfinite(float(value)):
            return Number(value, math.inf)
        error = (self.error + abs(float(value)) * other.error) / (b - other.error)
        either = self.is_any_zero or other.is_any_zero
        return rounded(value, error, is_any_zero=either)

    def __floordiv__(self, other: Any) -> Number:
        other = self.like(other)
        value = self.value // other.value
        return Number(value, 0.0 if self.is_exact() and other.is_exact() else math.inf)

    def __mod__(self, other: Any) -> Number:
        other = self.like(other)
        value = self.value % other.value
        if not (self.is_exact() and other.is_exact()):
            return Number(value, math.inf)
        # Next to a multiple of the divisor it is the divisor itself, rounded.
        return rounded(value, 0.0, size=abs(float(other.value)))

    def __pow__(self, other: Any) -> Number:
        other = self.like(other)
        return of_function(lang.power, self, other)

    def __radd__(self, other: Any) -> Number:
        return self.like(other) + self

    def __rsub__(self, other: Any) -> Number:
        return self.like(other) - self

    def __rmul__(self, other: Any) -> Number:
        return self.like(other) * self

    def __rtruediv__(self, other: Any) -> Number:
        return self.like(other) / self

    def __rfloordiv__(self, other: Any) -> Number:
        return self.like(other) // self

    def __rmod__(self, other: Any) -> Number:
        return self.like(other) % self

    # Decisions.

    def _differs_surely(self, other: Number) -> bool:
        if self.error == math.inf or other.error == math.inf:
            raise Unsure
        if is_special(self, other) or (self.error == 0 and other.error == 0):
            return True
        if abs(float(self.value) - float(other.value)) > self.error + other.error:
            return True
        raise Unsure

    def _compared(self, other: Any, compare: Callable[[Any, Any], Any]) -> bool:
        other = self.like(other)
        self._differs_surely(other)
        return bool(compare(self.value, other.value))

    def __lt__(self, other: Any) -> bool:
        return self._compared(other, lambda a, b: a < b)

    def __le__(self, other: Any) -> bool:
        return self._compared(other, lambda a, b: a <= b)

    def __gt__(self, other: Any) -> bool:
        return self._compared(other, lambda a, b: a > b)

    def __ge__(self, other: Any) -> bool:
        return self._compared(other, lambda a, b: a >= b)

    def __eq__(self, other: Any) -> bool:
        return self._compared(other, lambda a, b: a == b)

    def __ne__(self, other: Any) -> bool:
        return self._compared(other, lambda a, b: a != b)

    __hash__ = None


def is_special(*numbers: Number) -> bool:
    return any(not math.isfinite(float(number.value)) for number in numbers)


def _are_signs_sure(*numbers: Number) -> bool:
    """Returns whether products and quotients by these have one sign, and are NaN or are not."""
    return all(
        number.is_exact()
        or math.isnan(number.value)
        or (number.error != math.inf and abs(float(number.value)) > number.error)
        for number in numbers
    )


def rounded(value: Any, error: float, size: float = 0.0, is_any_zero: bool = False) -> Number:
    """Returns a result that was rounded once more."""
    info = ml_dtypes.finfo(value.dtype)
    error += float(info.eps) * max(abs(float(value)), size)
    if float(info.tiny) > abs(float(value)):
        error, is_any_zero = error + float(info.tiny) * (error > 0), is_any_zero or error > 0
    return Number(value, error, size, is_any_zero)


def of_function(function: Callable[..., Any], *arguments: Number) -> Number:
    """Returns a function that is monotone near its arguments."""
    value = function(*(number.value for number in arguments))
    info = ml_dtypes.finfo(value.dtype)
    if all(number.is_exact() for number in arguments):
        if not math.isfinite(float(value)):
            return Number(
                value,
                math.inf
                if not is_special(*arguments) and value != value and function is lang.power
                else 0.0,
            )
        return Number(value, ULPS * float(info.eps) * abs(float(value)), is_any_zero=True)
    if any(number.error == math.inf for number in arguments):
        return Number(value, math.inf)
    ends = []
    for sign in (-1.0, 1.0):
        moved = [float(each.value) + sign * each.error for each in arguments]
        ends.append(float(function(*map(np.float64, moved))))
    if not all(map(math.isfinite, (float(value), *ends))):
        return Number(value, math.inf)
    error = max(abs(end - float(value)) for end in ends)
    return Number(value, error + ULPS * float(info.eps) * abs(float(value)), is_any_zero=True)
