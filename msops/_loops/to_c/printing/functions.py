"""Mathematical functions in generated C: the common ones on float are our own (ir/float32_c.py)."""

from __future__ import annotations

import re

from msops._loops.ir import float32_c
from msops._loops.ir.functions import FUNCTIONS
from msops._loops.to_c.text.dialect import Declaration

_NAME = re.compile(r"\bms_\w+")


def native_function(function: str, dtype: str, is_beside_vectors: bool) -> Declaration | None:
    """Returns the function to call instead of one of the C library; None: call the library's.

    Args:
      function: the name in the IR, or "pow".
      dtype: "float32" or "float64".
      is_beside_vectors: the call is in an iteration that a loop in vectors leaves.
    """
    row = FUNCTIONS.get(function)
    if dtype != "float32" or row is None or not row.c_float32:
        return None
    if row.is_quick_alone and not is_beside_vectors:
        return None
    name = f"ms_{function}_f32"
    return Declaration(name, _with_parts(name, row.c_float32))


def _with_parts(name: str, code: str) -> dict[str, str]:
    """Returns a function of float32_c.py, preceded by the functions that it uses."""
    found: dict[str, str] = {}
    for part in _NAME.findall(code):
        if part != name and part not in found:
            found |= _with_parts(part, float32_c.PARTS[part])
    return found | {name: code.strip()}
