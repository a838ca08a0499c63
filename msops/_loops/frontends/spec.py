"""The shape and dtype of an argument: all that a translation depends on."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Spec:
    """Shape and dtype of a tensor; the dtype is one of `operators.DTYPES`."""

    shape: tuple[int, ...]
    dtype: str
