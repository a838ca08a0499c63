"""The variables that a function reads, to notice that one was assigned anew.

An infer function runs when shapes are new. A global or a variable of a closure that it reads may
have another value at the next call, and then it is asked again. What an object that such a variable
holds makes of itself, in place, goes unnoticed.
"""

from __future__ import annotations

import contextlib
import dataclasses
import types
from collections.abc import Callable, Iterable
from typing import Any

import numpy as np

from msops._base.dtypes import DType
from msops._op.identity import names_in

# These are not assigned anew while a program runs, or not to something else.
_FIXED = (types.ModuleType, types.BuiltinFunctionType, type, DType, np.dtype, np.ufunc)


@dataclasses.dataclass(frozen=True)
class Variables:
    """Variables and what they held when they were read.

    Attributes:
      cells: those of closures.
      names: those of modules.
    """

    cells: tuple[tuple[types.CellType, Any], ...]
    names: tuple[tuple[dict[str, Any], str, Any], ...]

    def are_same(self) -> bool:
        """Returns whether all hold what they held; each eager call of some ops asks it."""
        try:
            for cell, value in self.cells:
                if cell.cell_contents is not value:
                    return False
        except ValueError:  # it was deleted
            return False
        for scope, name, value in self.names:  # noqa: SIM110
            if scope.get(name) is not value:
                return False
        return True


def read_variables(functions: Iterable[Callable[..., Any]]) -> Variables | None:
    """Returns the variables that functions read, and functions beside them; None if there are none.

    What modules, types, dtypes and functions are called by is left out.
    """
    found = Variables((), ())
    seen: set[int] = set()
    for function in functions:
        found = _add(function, found, seen)
    return found if found.cells or found.names else None


def _add(function: Any, found: Variables, seen: set[int]) -> Variables:
    """Returns `found` with what a function reads."""
    if not isinstance(function, types.FunctionType) or id(function) in seen:
        return found
    seen.add(id(function))
    scope = function.__globals__
    cells, names = list(found.cells), list(found.names)
    inner = []
    for cell in function.__closure__ or ():
        with contextlib.suppress(ValueError):  # not assigned yet
            inner.append(cell.cell_contents)
            if not isinstance(inner[-1], (*_FIXED, types.FunctionType)):
                cells.append((cell, inner[-1]))
    for name in names_in(function.__code__) & scope.keys():
        inner.append(scope[name])
        if not isinstance(inner[-1], (*_FIXED, types.FunctionType)):
            names.append((scope, name, inner[-1]))
    found = Variables(tuple(cells), tuple(names))
    for value in inner:
        # A function of another module reads its own variables, which are that module's business.
        if getattr(value, "__globals__", None) is scope:
            found = _add(value, found, seen)
    return found
