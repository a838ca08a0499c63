"""Errors of kernels, which XLA reports as text, as msops's own.

A kernel fails inside a compiled program. XLA hands back the text alone, in an error of its own
class; ours starts with the op, behind the name of its class if it went through Python.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any, TypeVar

import jax

from msops import errors

_Result = TypeVar("_Result")

# It ends before the locations that XLA adds to an error of its compiler.
_OWN_ERROR = re.compile(r"(?:(\w+): )?(Custom '.*?)\s*(?:\Z|\n\t\n)", re.DOTALL)


def own_error(error: Exception) -> errors.MsopsError | None:
    """Returns the error of msops that XLA reports in the text of one of its own, if it does."""
    own = _OWN_ERROR.search(str(error))
    if own is None:
        return None
    family: type[errors.MsopsError] = getattr(errors, own[1] or "", errors.KernelError)
    return family(own[2])


def call_compiled(compiled: Callable[..., _Result], *args: Any) -> _Result:
    """Returns ``compiled(*args)``; the error of a kernel in it is raised as msops's own."""
    try:
        return compiled(*args)
    except errors.MsopsError:
        raise
    # jit's fast path, taken from the second call on, raises ValueError with the same text.
    except (jax.errors.JaxRuntimeError, ValueError) as error:
        own = own_error(error)
        if own is None:
            raise
        raise own from None
