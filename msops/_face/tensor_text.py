"""How a tensor reads when printed, digit for digit as MindSpore 2.7.2 prints it.

`str` is numpy's text of the data (six decimals for bfloat16). `repr` has a layout of its own:
scientific floats of fixed width, integers padded to the widest shown, at most six entries of each
dimension, a vector whole up to 1000 entries.

Source: MindSpore 2.7.2, TensorDataImpl::ToString of its C++ core, reconstructed from what it
prints and compared with it byte for byte in tests/test_face_oracle.py.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

# A longer dimension shows this many entries of each end.
_EDGE = 3
_LONGEST_WHOLE_VECTOR = 1000


def tensor_str(array: np.ndarray) -> str:
    """Returns the text of ``print(tensor)``."""
    if not _is_bfloat16(array):
        return str(array)
    if array.ndim == 0:
        return _six_decimals(array[()])
    return np.array2string(array, formatter={"all": _six_decimals})  # type: ignore[call-overload]


def tensor_repr(array: np.ndarray, title: str) -> str:
    """Returns the text of ``repr(tensor)``, `title` being its dtype's printed name."""
    gap = "\n" if array.ndim > 1 else " "
    return f"Tensor(shape={list(array.shape)}, dtype={title}, value={gap}{_data_text(array)})"


def _is_bfloat16(array: np.ndarray) -> bool:
    return array.dtype.name == "bfloat16"


def _six_decimals(value: Any) -> str:
    return f"{float(value):f}"


def _data_text(array: np.ndarray) -> str:
    if array.size == 0:
        return ""
    if array.ndim == 0:
        return _plain(array[()])
    if array.ndim == 1:
        return f"[{_vector_text(array)}]"
    shown = array[np.ix_(*(_ends(count) for count in array.shape))]
    return _rows_text(shown, array.shape, _entry_format(shown))


def _ends(count: int) -> np.ndarray:
    if count <= 2 * _EDGE:
        return np.arange(count)
    return np.r_[:_EDGE, count - _EDGE : count]


def _vector_text(array: np.ndarray) -> str:
    if len(array) > _LONGEST_WHOLE_VECTOR:
        shown = array[_ends(len(array))]
        texts = [_entry_format(shown)(value) for value in shown]
        return _row_with_gap(texts)
    texts = [_entry_format(array)(value) for value in array]
    per_line = 12 if array.dtype.kind in "fb" else 24
    pieces = []
    for number, text in enumerate(texts, start=1):
        pieces.append(text if number == len(texts) else f"{text}, ")
        # The break comes after every full line, also when nothing follows it.
        if number % per_line == 0:
            pieces.append("\n ")
    return "".join(pieces)


def _rows_text(
    shown: np.ndarray, shape: tuple[int, ...], entry: Callable[[Any], str], depth: int = 1
) -> str:
    """Text of a matrix or more, from its shown entries and its full `shape`."""
    is_cut = shape[0] > 2 * _EDGE
    if shown.ndim == 1:
        texts = [entry(value) for value in shown]
        return f"[{_row_with_gap(texts) if is_cut else ', '.join(texts)}]"
    rows = [_rows_text(row, shape[1:], entry, depth + 1) for row in shown]
    indent = "\n" + " " * depth
    if is_cut:
        rows[_EDGE] = f"...{indent}{rows[_EDGE]}"
    return f"[{(',' + indent).join(rows)}]"


def _row_with_gap(texts: list[str]) -> str:
    return f"{', '.join(texts[:_EDGE])} ... {', '.join(texts[_EDGE:])}"


def _entry_format(shown: np.ndarray) -> Callable[[Any], str]:
    """Returns what formats one entry among `shown`."""
    kind = shown.dtype.kind
    if kind == "f":
        return (lambda v: f"{v:11.4e}") if shown.dtype == np.float16 else (lambda v: f"{v:15.8e}")
    if kind == "b":
        return lambda value: f"{value!s:>5}"
    if kind == "c":
        return _plain
    width = max(len(_plain(value)) for value in shown.flat)
    return lambda value: _plain(value).rjust(width)


def _plain(value: Any) -> str:
    """Text of one value as C++ streams write it: six significant digits."""
    kind = value.dtype.kind
    if kind == "c":
        return f"{value.real:g}{value.imag:+g}j"
    if kind in "biu":
        return str(value)
    return f"{float(value):g}"
