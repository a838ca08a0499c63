"""Errors of kernels, which XLA reports as text, as msops's own.

A kernel fails inside a compiled program. XLA hands back the text alone, in an error of its own
class; ours starts with the op, behind the name of its class if it went through Python. What a
Python function raised is kept beside, and becomes the error's cause where the text comes back.
"""

from __future__ import annotations

import re
import threading
import weakref
from collections.abc import Callable
from typing import Any, NoReturn, TypeVar

import jax

from msops import errors

_Result = TypeVar("_Result")

# It ends before the locations that XLA adds to an error of its compiler.
_OWN_ERROR = re.compile(r"(?:(\w+): )?(Custom '.*?)\s*(?:\Z|\n\t\n)", re.DOTALL)


class Failure:
    """What a Python function raised, until the error's text comes back; its owner keeps it alive.

    Args:
      text: of the error that reports it.
      cause: what the function raised.
    """

    def __init__(self, text: str, cause: BaseException):
        self.cause: BaseException | None = cause
        # As xla_kernels/src/host_function.cc writes it.
        self._text = text.encode("utf-8", "backslashreplace").decode().strip()
        with _lock:
            _failures.add(self)

    def reports(self, text: str) -> bool:
        """Returns whether this is what an error of such a text reports, and was not taken."""
        return self.cause is not None and text.startswith(self._text)


_failures: weakref.WeakSet[Failure] = weakref.WeakSet()
# Threads fail at once, and with equal texts.
_lock = threading.Lock()


def own_error(error: Exception) -> errors.MsopsError | None:
    """Returns the error of msops that XLA reports in the text of one of its own, if it does.

    Its cause is what a Python function raised, if that is what it reports.
    """
    own = _OWN_ERROR.search(str(error))
    if own is None:
        return None
    family: type[errors.MsopsError] = getattr(errors, own[1] or "", errors.KernelError)
    found = family(own[2])
    with _lock:
        reported = [failure for failure in _failures if failure.reports(own[2])]
        if reported:
            found.__cause__ = reported[0].cause
        # Among equal ones nobody knows whose this is: the others still need theirs.
        if len(reported) == 1:
            reported[0].cause = None
    return found


def call_compiled(compiled: Callable[..., _Result], *args: Any) -> _Result:
    """Returns ``compiled(*args)``; the error of a kernel in it is raised as msops's own.

    Raises:
      KeyboardInterrupt: a Python function was interrupted.
    """
    try:
        return compiled(*args)
    except XLA_ERRORS as error:
        raise_own(error)


# jit's fast path, taken from the second call on, raises ValueError with the same text.
XLA_ERRORS = (jax.errors.JaxRuntimeError, ValueError)


def raise_own(error: Exception) -> NoReturn:
    """Raises an error of `XLA_ERRORS`, as msops's own if it is that of a kernel.

    Raises:
      KeyboardInterrupt: a Python function was interrupted.
    """
    own = None if isinstance(error, errors.MsopsError) else own_error(error)
    if own is None:
        raise error
    if isinstance(own.__cause__, KeyboardInterrupt):
        raise KeyboardInterrupt from own
    raise own from own.__cause__
