"""Which memory a Tensor was cut from, for kernels that take memory as it lies.

JAX's slices are dense copies. An extension's kernel that asked for strides (``SetNeedContiguous``)
shall see the slice in the array it was cut from, as it would in MindSpore. So a basic slice notes
that array and the indices. It does not keep the array alive: when that is gone, the copy serves.
"""

from __future__ import annotations

import dataclasses
import types
import weakref
from typing import Any

import jax
import numpy as np


@dataclasses.dataclass(frozen=True)
class View:
    """Where the data of a Tensor also is.

    Attributes:
      base: refers to the array that was sliced.
      indices: the basic indices that were applied, one after another.
      array: refers to the Tensor's array at that time.
    """

    base: weakref.ref[Any]
    indices: tuple[Any, ...]
    array: weakref.ref[Any]

    def memory(self, array: Any) -> np.ndarray | None:
        """Returns the memory as it lies in the base, None if it is no longer that of `array`."""
        base = self.base()
        if base is None or self.array() is not array:
            return None
        view = np.asarray(base)
        for index in self.indices:
            view = view[index]
        # An index of ints alone gives numpy's scalar, which is a copy.
        return view if isinstance(view, np.ndarray) else None


def view_of(source: Any, known: View | None, index: Any, array: Any) -> View | None:
    """Returns the view that indexing makes, or None if it makes none.

    Args:
      source: the array that was indexed.
      known: the view that `source` is itself, if it is one.
      index: what it was indexed with.
      array: the result.
    """
    if isinstance(array, jax.core.Tracer) or not _is_basic(index):
        return None
    if known is not None and known.array() is source:
        return View(known.base, (*known.indices, index), weakref.ref(array))
    return View(weakref.ref(source), (index,), weakref.ref(array))


def _is_basic(index: Any) -> bool:
    parts = index if isinstance(index, tuple) else (index,)
    return all(type(part) in (int, slice, type(None), types.EllipsisType) for part in parts)
