"""C, as gcc and clang compile it."""

from __future__ import annotations

import math

from msops._loops.to_c.printing.functions import native_function
from msops._loops.to_c.printing.halves import HALVES
from msops._loops.to_c.text.dialect import Declaration, Dialect

_HALVES = {"ms_half": HALVES.strip()}


def _not_finite(value: float, dtype: str) -> str:
    suffix = "" if dtype == "float64" else "f"
    if math.isnan(value):
        return f'__builtin_nan{suffix}("")'
    return f"({'-' if value < 0 else ''}__builtin_inf{suffix}())"


C = Dialect(
    inline="static inline",
    reserved=frozenset(),
    float16=Declaration("ms_half", _HALVES),
    from_float16=Declaration("ms_from_half", _HALVES),
    to_float16=Declaration("ms_to_half", _HALVES),
    float_form=lambda row: row.c,
    integer_form=lambda row: row.c_integer,
    not_finite=_not_finite,
    # For any other condition gcc makes a choice of floats a cmov outside vectors. That goes through
    # the integer registers, and a chain of minima waits for it.
    rare="__builtin_expect_with_probability({}, 0, 1.0)",
    function=native_function,
)
