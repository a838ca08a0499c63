"""Tensors that C++ changes in place while a function is compiled as a whole.

A compiled function works on copies of its Tensors, so what an operator writes to one of them has to
be written to the caller's when the program has run. Other assignments stay inside the function.
"""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Iterator
from typing import Any

import jax

from msops._face.parameter import Parameter
from msops._face.tensor import Tensor


class _Thread(threading.local):
    changed: list[Tensor] | None = None


_thread = _Thread()


@contextlib.contextmanager
def collected() -> Iterator[list[Tensor]]:
    """Gives the list of the Tensors that are noted inside the block."""
    outer, _thread.changed = _thread.changed, []
    try:
        yield _thread.changed
    finally:
        _thread.changed = outer


def note_changed(tensor: Tensor) -> None:
    """Notes that an operator has changed a Tensor in place."""
    if _thread.changed is not None:
        _thread.changed.append(tensor)


def find_changed(changed: list[Tensor], arguments: Any) -> dict[int, Any]:
    """Returns the values of those Tensors among the arguments that were changed, by number."""
    if not changed:
        return {}
    noted = set(map(id, changed))
    return {n: t.value for n, t in enumerate(_tensors(arguments)) if id(t) in noted}


def write_back(values: dict[int, Any], arguments: Any) -> None:
    """Gives the caller's Tensors the values that `find_changed` returned."""
    if values:
        tensors = _tensors(arguments)
        for number, value in values.items():
            tensors[number].value = value


def _tensors(arguments: Any) -> list[Tensor]:
    leaves = jax.tree_util.tree_leaves(arguments, is_leaf=lambda x: isinstance(x, Tensor))
    return [x for x in leaves if isinstance(x, Tensor) and not isinstance(x, Parameter)]
