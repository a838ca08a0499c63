"""Mathematical functions in generated C, in a form that compilers vectorise.

The common ones on float are printed as functions without branches (ir/float32_c.py). Most others
are in glibc's vector library, within 4 ulp, and a declaration lets gcc use it.
"""

from __future__ import annotations

import functools
import re
from collections.abc import Collection

import numpy as np

from msops._loops.ir import float32_c
from msops._loops.ir.functions import FUNCTIONS
from msops._loops.to_c.text.dialect import Declaration
from msops._loops.to_c.text.names import library_name

_NAME = re.compile(r"\bms_\w+")

_TWINS = {"sin": "cos", "cos": "sin"}

POW_SINCE = (2, 22)
"""Version of glibc since which its vector library has `pow`, an operation of the IR."""


def native_function(
    function: str, arity: int, dtype: str, *, is_in_vector: bool, beside: Collection[str]
) -> Declaration | None:
    """Returns the function to call instead of one of the C library; None: call the library's.

    Args:
      function: the name in the IR, or "pow".
      arity: the number of arguments.
      dtype: "float32" or "float64".
      is_in_vector: the call is in a loop that a compiler can vectorise.
      beside: the functions that this loop calls.
    """
    row = FUNCTIONS.get(function)
    if dtype == "float32" and row and row.c_float32:
        if row.is_quick_alone and not is_in_vector:
            return None
        name = f"ms_{function}_f32"
        return Declaration(name, _with_parts(name, row.c_float32))
    since = row.glibc if row else POW_SINCE
    if since is None:
        return None
    suffix, kind = ("f", "float") if dtype == "float32" else ("", "double")
    of_library = f"{library_name(function)}{suffix}"
    types = ", ".join([kind] * arity)
    # gcc makes one call of the sine and the cosine of a value, and vectors have no such function.
    # Of a function that it knows by its name, it makes vectors under conditions, too. Outside of
    # the function's domain the library then computes lane by lane: a branch takes less.
    is_renamed = is_in_vector and (_TWINS.get(function) in beside or not _is_total(function))
    name = f"ms_{of_library}" if is_renamed else of_library
    other_name = f'{kind} {name}({types}) __asm__("{of_library}");\n' if is_renamed else ""
    # This lets gcc replace calls in loops by calls of the vector library, if there is one.
    declaration = (
        f"{other_name}#if defined(__x86_64__) && defined(__GLIBC_PREREQ)\n"
        f"#if __GLIBC_PREREQ({since[0]}, {since[1]})\n"
        f'__attribute__((simd("notinbranch"), const)) {kind} {name}({types});\n'
        "#endif\n#endif"
    )
    return Declaration(name, {name: declaration})


@functools.cache
def _is_total(function: str) -> bool:
    """Returns whether a function of the table has a value for every number, as `log` has not."""
    row = FUNCTIONS.get(function)
    if row is None:
        return False
    with np.errstate(all="ignore"):
        return all(np.isfinite(row.numpy(*[x] * len(row.arguments))) for x in (-2.0, 2.0))


def _with_parts(name: str, code: str) -> dict[str, str]:
    """Returns a function of float32_c.py, preceded by the functions that it uses."""
    found: dict[str, str] = {}
    for part in _NAME.findall(code):
        if part != name and part not in found:
            found |= _with_parts(part, float32_c.PARTS[part])
    return found | {name: code.strip()}
