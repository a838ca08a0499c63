"""What `msops.ffi` hands over: where a handler is, and of which dtypes its attributes are."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from typing import Any

import numpy as np


@dataclasses.dataclass(frozen=True)
class Handler:
    """A handler as `msops.ffi` is given it.

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
            dtypes.append((name, np.dtype(value).name))
            values[name] = type(value(0).item())
        elif isinstance(value, (np.generic, np.ndarray)):
            dtypes.append((name, value.dtype.name))
            values[name] = value.tolist()
    return values, tuple(dtypes)
