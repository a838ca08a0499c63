"""The names of the loop language: one row each; those of functions come from the table of the IR.

MindSpore checks a `@kernel` function against a shorter list than AKG accepts under func_type
"akg"; rows marked `akg_only` are what it rejects there. New here are `atan2` with its two
arguments, the cast to bfloat16, and under `@kernel` those to unsigned integers: images are uint8.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, TypeAlias

from msops._loops.ir.functions import FUNCTIONS
from msops._loops.ir.nodes import LoopHint

Role: TypeAlias = Literal["math", "cast", "special", "buffer", "loop", "scope"]


@dataclass(frozen=True)
class Intrinsic:
    """A row.

    Attributes:
      role: what kind of thing a call gives.
      arities: numbers of arguments it takes.
      akg_only: not under `@kernel`.
      akg_arities: those it takes under func_type "akg" too.
    """

    role: Role
    arities: tuple[int, ...]
    akg_only: bool = False
    akg_arities: tuple[int, ...] = ()


CASTS = (
    *("int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64"),
    *("float16", "bfloat16", "float32", "float64"),
)

LOOP_HINTS: dict[str, LoopHint] = {
    "range": "",
    "grid": "",
    "serial": "serial",
    "parallel": "parallel",
    "vectorize": "vectorize",
    "reduce": "reduce",
    "unroll": "unroll",
    "const_range": "unroll",
    "bind": "parallel",
}
"""The hint that each kind of loop leaves on the IR's loops."""

_RANGE = Intrinsic("loop", (1, 2, 3))
_AKG_RANGE = Intrinsic("loop", (1, 2, 3), akg_only=True)

INTRINSICS: dict[str, Intrinsic] = {
    **{
        name: Intrinsic("math", (row.arity,), akg_only=row.hybrid == "akg")
        for name, row in FUNCTIONS.items()
        if row.hybrid
    },
    **{name: Intrinsic("cast", (1,)) for name in CASTS},
    "power": Intrinsic("special", (2,)),
    "min": Intrinsic("special", (2,)),
    "max": Intrinsic("special", (2,)),
    "ceil_div": Intrinsic("special", (2,)),
    "len": Intrinsic("special", (1,)),
    "likely": Intrinsic("special", (1,), akg_only=True),
    "output_tensor": Intrinsic("buffer", (2,), akg_arities=(1,)),
    "allocate": Intrinsic("buffer", (2,), akg_arities=(1, 3)),
    "range": _RANGE,
    "serial": _RANGE,
    "parallel": _RANGE,
    "vectorize": _RANGE,
    "reduce": _RANGE,
    "grid": Intrinsic("loop", (1,)),
    "unroll": _AKG_RANGE,
    "const_range": _AKG_RANGE,
    "bind": Intrinsic("loop", (2,), akg_only=True),
    "attr": Intrinsic("scope", (2,)),
    "block_realize": Intrinsic("scope", (1,)),
}

SCOPES = ("global", "local", "shared", "ub", "reg")
"""The memory that AKG may take for a temporary; here the compiler decides."""
