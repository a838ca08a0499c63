"""What a handler is made from: where it is, and of which dtypes its attributes are."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from typing import Any

import numpy as np

from msops.errors import ArgumentValueError

_READABLE = frozenset(
    (
        *(f"{kind}{bits}" for kind in ("int", "uint") for bits in (8, 16, 32, 64)),
        *("float32", "float64", "bool"),
    )
)


@dataclasses.dataclass(frozen=True)
class Handler:
    """A handler as `Custom` is given it.

    Attributes:
      func: file and symbol, as `Custom` takes them, or a source text.
      dtypes: of attributes, by name; the others are those of Python: int64, float64.
    """

    func: Any
    dtypes: tuple[tuple[str, str], ...] = ()


def split_attributes(
    attrs: Mapping[str, Any],
) -> tuple[dict[str, Any], tuple[tuple[str, str], ...]]:
    """Returns attributes, or their types, as Python has them, and the dtypes of those of numpy."""
    values = dict(attrs)
    dtypes: list[tuple[str, str]] = []
    for name, value in attrs.items():
        if isinstance(value, type) and issubclass(value, np.generic):
            dtypes.append((name, _dtype_of(name, value)))
            values[name] = type(value(0).item())
        elif isinstance(value, (np.generic, np.ndarray)):
            dtypes.append((name, _dtype_of(name, value.dtype)))
            values[name] = value.tolist()
            _check_range(name, np.max(value, initial=0) if value.dtype.kind == "u" else 0)
    return values, tuple(dtypes)


def _dtype_of(name: str, kind: Any) -> str:
    """Returns the name of a dtype, unless XLA's FFI cannot carry it."""
    try:
        dtype = np.dtype(kind)
        if dtype.name in _READABLE or dtype.kind == "U":
            return dtype.name
    except TypeError:  # np.number and such
        pass
    raise ArgumentValueError.explained(
        "ffi",
        f"expected for attribute {name!r} integers, float32, float64, bool or text; got "
        f"{getattr(kind, 'name', None) or kind.__name__}",
        "No handler can read another dtype as an attribute. Pass the value as an input.",
    )


def _check_range(name: str, largest: Any) -> None:
    if largest > np.iinfo(np.int64).max:
        raise ArgumentValueError.explained(
            "ffi",
            f"expected for attribute {name!r} numbers below 2**63; got {largest}",
            "Pass such a number as an input.",
        )
