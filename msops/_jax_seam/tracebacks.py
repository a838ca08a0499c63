"""Tracebacks of users' errors: they show the user's frames, as those of JAX's own errors do.

Under a transformation JAX removes its own frames from an exception that passes, and so those below
any folder that is registered. `hide_frames` does the same for calls outside of transformations.
``JAX_TRACEBACK_FILTERING=off`` leaves all frames.
"""

from __future__ import annotations

import functools
import traceback
from collections.abc import Callable
from pathlib import Path
from typing import ParamSpec, TypeVar

from jax._src import traceback_util

P = ParamSpec("P")
T = TypeVar("T")

_PACKAGE = str(Path(__file__).parents[1])
traceback_util.register_exclusion(_PACKAGE)


def hide_frames(error: BaseException) -> None:
    """Removes frames of msops and JAX from an exception and those that led to it.

    Follow it by a bare ``raise``, which adds no frame of its own. An error that msops itself made
    by mistake keeps its frames.
    """
    if traceback_util._filtering_mode() == "off" or _is_internal(error):
        return
    found: list[BaseException] = []
    one: BaseException | None = error
    while one is not None and one not in found:
        found.append(one)
        if one.__traceback__ is not None:
            # In a notebook, too: there the innermost frame is shown even if it is marked as hidden.
            one.__traceback__ = traceback_util.filter_traceback(one.__traceback__)
        one = one.__cause__ or (None if one.__suppress_context__ else one.__context__)


def _is_internal(error: BaseException) -> bool:
    """Returns whether code of msops raised what is no error of msops: it has a fault."""
    if type(error).__module__.startswith("msops."):
        return False
    *_, (frame, _) = traceback.walk_tb(error.__traceback__)
    return frame.f_code.co_filename.startswith(_PACKAGE)


def with_hidden_frames(function: Callable[P, T]) -> Callable[P, T]:
    """Returns the function, whose errors show no frames of msops."""

    @functools.wraps(function)
    def run(*args: P.args, **kwargs: P.kwargs) -> T:
        try:
            return function(*args, **kwargs)
        except Exception as error:
            hide_frames(error)
            raise

    return run
