"""Errors of kernels, which XLA reports as text, as msops's own.

A kernel fails inside a compiled program. XLA hands back the text alone, in an error of its own
class; ours starts with the op, behind the name of its class if it went through Python. What a
Python function raised is kept beside, and becomes the error's cause where the text comes back.
"""

from __future__ import annotations

import contextlib
import dataclasses
import functools
import itertools
import re
import threading
import weakref
from collections import deque
from collections.abc import Callable, Iterator
from typing import Any, NoReturn, TypeVar

import jax

from msops import errors

_Result = TypeVar("_Result")

# It ends before the locations that XLA adds to an error of its compiler.
_OWN_ERROR = re.compile(
    r"(?:(\w+): )?((?:Custom '|Runner '|ops\.gather: |Tensor index: ).*?)\s*(?:\Z|\n\t\n)",
    re.DOTALL,
)


def printable(text: str) -> str:
    """Returns a text as xla_kernels/src/host_function.cc gives it to XLA, which takes C strings."""
    return text.encode("utf-8", "backslashreplace").decode().replace("\0", "\\x00")


def describe_exception(error: BaseException) -> str:
    """Returns type and text of an exception of a user's, whose ``__str__`` may raise."""
    kind = type(error).__name__
    try:
        return f"{kind}: {text}" if (text := str(error)) else kind
    except Exception as failure:
        return f"{kind}, whose __str__ raised {type(failure).__name__}"


@dataclasses.dataclass(frozen=True, eq=False)
class _Failure:
    """An exception that a Python function raised.

    Attributes:
      text: of the error that reports it.
      number: counts the failures of this process.
      cause: what the function raised.
    """

    text: str
    number: int
    cause: BaseException


class Failures:
    """Exceptions of Python functions, kept until the errors that report them come back.

    Args:
      limit: how many are kept; one more drops the oldest, whose error then has no cause.
    """

    def __init__(self, limit: int):
        self._kept: deque[_Failure] = deque(maxlen=limit)
        with _lock:
            _owners.add(self)

    def add(self, text: str, cause: BaseException) -> None:
        """Keeps what the function raised, and the text of the error that reports it."""
        text = printable(text).strip()
        with _lock:
            self._kept.append(_Failure(text, next(_numbers), cause))


_owners: weakref.WeakSet[Failures] = weakref.WeakSet()
_numbers = itertools.count()
# Threads fail at once, and with equal texts.
_lock = threading.Lock()


def _take_cause(text: str) -> BaseException | None:
    """Returns what an error of this text reports, and keeps it no longer; None if nothing is kept.

    The text of one failure may be the start of another's: the longest counts. Among equal ones it
    is the latest: if several devices fail at once, XLA reports one error, and the others stay.
    """
    with _lock:
        reported = [
            (len(failure.text), failure.number, failure, owner._kept)
            for owner in _owners
            for failure in owner._kept
            if text.startswith(failure.text)
        ]
        if not reported:
            return None
        *_, failure, kept = max(reported, key=lambda entry: entry[:2])
        kept.remove(failure)
        return failure.cause


def own_error(error: Exception) -> errors.MsopsError | None:
    """Returns the error of msops that XLA reports in the text of one of its own, if it does.

    Its cause is what a Python function raised, if that is what it reports. A KernelError is then
    also of the cause's class, by which scripts for MindSpore catch it.
    """
    own = _OWN_ERROR.search(str(error))
    if own is None:
        return None
    family: type[errors.MsopsError] = getattr(errors, own[1] or "", errors.KernelError)
    cause = _take_cause(own[2])
    if family is errors.KernelError and isinstance(cause, Exception):
        kind: Any = type(cause)  # to mypy, no class is hashable
        found = _of_both(family, kind)(own[2])
        vars(found).update(vars(cause))
    else:
        found = family(own[2])
    found.__cause__ = cause
    return found


@functools.lru_cache(maxsize=64)
def _of_both(family: type[errors.MsopsError], kind: type[Exception]) -> type[errors.MsopsError]:
    """Returns a class of both kinds of errors; `family` if there can be none."""
    body = {
        "__doc__": family.__doc__,
        "__module__": family.__module__,
        "__str__": BaseException.__str__,
        "__reduce__": lambda error: (family, error.args),
    }
    try:
        both = type(family.__name__, (family, kind), body)
        both("")
    except TypeError:
        return family
    return both


def call_compiled(compiled: Callable[..., _Result], *args: Any) -> _Result:
    """Returns ``compiled(*args)``; the error of a kernel in it is raised as msops's own.

    Raises:
      KeyboardInterrupt: a Python function was interrupted.
    """
    try:
        return compiled(*args)
    except XLA_ERRORS as error:
        raise_own(error)


@contextlib.contextmanager
def kernel_errors() -> Iterator[None]:
    """Raises the error of a kernel in any program as msops's own, as of an op called by itself.

    A program of `jax.jit` raises an error of JAX's: `jax.errors.JaxRuntimeError`, or after a call
    that succeeded `ValueError`; they have no class in common. In this context, and in a function
    that it decorates, both become the `msops.errors.MsopsError` that their text contains, mostly a
    `KernelError`. Its ``__cause__`` is what a Python function raised, and it is of that class, too.
    Wait for the results in the context: an error that arrives later is JAX's.

    Raises:
      MsopsError: a kernel failed.
      KeyboardInterrupt: a Python function was interrupted.

    Example:
      >>> import msops
      >>> def fail(x):
      ...     raise LookupError("no such row")
      >>> op = msops.Custom(fail, lambda x: x, lambda x: x)
      >>> try:
      ...     with msops.kernel_errors():
      ...         jax.block_until_ready(jax.jit(op)(1.0))
      ... except msops.errors.KernelError as error:
      ...     print(error.__cause__)
      no such row
    """
    try:
        yield
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
