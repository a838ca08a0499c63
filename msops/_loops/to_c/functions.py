"""Mathematical functions in generated C, in a form that compilers vectorise.

The common ones on float are printed as functions without branches (ir/float32_c.py). Most others
are in glibc's vector library, within 4 ulp, and a declaration lets gcc use it.
"""

from __future__ import annotations

import re

from msops._loops.ir import float32_c
from msops._loops.ir.functions import FUNCTIONS
from msops._loops.to_c.text.dialect import Declaration
from msops._loops.to_c.text.names import library_name

_NAME = re.compile(r"\bms_\w+")

_POW_SINCE = (2, 22)
"""Version of glibc since which its vector library has `pow`, an operation of the IR."""


def native_function(
    function: str, arity: int, dtype: str, *, is_in_vector: bool
) -> Declaration | None:
    """Returns the function to call instead of one of the C library; None: call the library's.

    Args:
      function: the name in the IR, or "pow".
      arity: the number of arguments.
      dtype: "float32" or "float64".
      is_in_vector: the call is in a loop that a compiler can vectorise.
    """
    row = FUNCTIONS.get(function)
    if dtype == "float32" and row and row.c_float32:
        if row.is_quick_alone and not is_in_vector:
            return None
        name = f"ms_{function}_f32"
        return Declaration(name, _with_parts(name, row.c_float32))
    since = row.glibc if row else _POW_SINCE
    if since is None:
        return None
    suffix, kind = ("f", "float") if dtype == "float32" else ("", "double")
    of_library = f"{library_name(function)}{suffix}"
    types = ", ".join([kind] * arity)
    # gcc makes one call of the sine and the cosine of a value, and vectors have no such function.
    # It does not know a function by another name.
    name = f"ms_{of_library}" if is_in_vector else of_library
    other_name = f'{kind} {name}({types}) __asm__("{of_library}");\n' if is_in_vector else ""
    # This lets gcc replace calls in loops by calls of the vector library, if there is one.
    declaration = (
        f"{other_name}#if defined(__x86_64__) && defined(__GLIBC_PREREQ)\n"
        f"#if __GLIBC_PREREQ({since[0]}, {since[1]})\n"
        f'__attribute__((simd("notinbranch"), const)) {kind} {name}({types});\n'
        "#endif\n#endif"
    )
    return Declaration(name, {name: declaration})


def _with_parts(name: str, code: str) -> dict[str, str]:
    """Returns a function of float32_c.py, preceded by the functions that it uses."""
    found: dict[str, str] = {}
    for part in _NAME.findall(code):
        if part != name and part not in found:
            found |= _with_parts(part, float32_c.PARTS[part])
    return found | {name: code.strip()}
