"""The call under way: for which op, and where in the author's source it is."""

from __future__ import annotations

import contextlib
import contextvars
import functools
import itertools
import linecache
import sys
from collections.abc import Iterator
from types import FrameType
from typing import TypeVar

from msops._loops.ir.nodes import Location
from msops._loops.ir.text import point
from msops.errors import ArgumentTypeError, ArgumentValueError, BackendError, BuildError, MsopsError

# contextlib is between the author's line and ours where the author opens a with-block.
_PASSED = ("msops.", "contextlib")
_BOUNDARY = f"{__package__}.specialise"

_who: contextvars.ContextVar[str] = contextvars.ContextVar("who", default="")
_called: contextvars.ContextVar[str] = contextvars.ContextVar("called", default="")
_fresh = itertools.count()

E = TypeVar("E", bound=MsopsError)


class UnknownNameError(BackendError, AttributeError):
    """A name that msops's `tvm`, `topi` or `akg` does not have."""


@contextlib.contextmanager
def tracing(who: str) -> Iterator[None]:
    """Makes errors of the enclosed calls name an op.

    Args:
      who: how messages name it, such as ``"Custom 'add'"``.
    """
    token = _who.set(who)
    try:
        yield
    finally:
        _who.reset(token)


def current_op() -> str:
    """Returns how messages name the op; empty outside `tracing`."""
    return _who.get()


def fresh_key(name: str) -> str:
    """Returns a name that no other buffer or variable of the process has.

    The dot keeps it apart from all names of a finished kernel; lowering replaces it by a readable
    one.
    """
    return f"{name}.{next(_fresh)}"


def age(key: str) -> int:
    """Returns the number of a key; what is made later has a higher one."""
    return int(key.rpartition(".")[2])


def call_error(
    kind: type[E], name: str, problem: str, remedy: str, location: Location | None = None
) -> E:
    """Returns the error for a call that cannot be done.

    Args:
      kind: class of the error.
      name: what was called, such as ``"tvm.compute"``.
      problem: expected and got, without its full stop.
      remedy: what the author can do, whole sentences.
      location: where in the source; None takes the author's line under way.
    """
    who = current_op()
    lines = point(location or author_location())
    return kind.explained(f"{who}: {name}" if who else name, problem, remedy, lines)


@contextlib.contextmanager
def calling(name: str) -> Iterator[None]:
    """Makes `wrong_value` and `wrong_type` name the function that the author calls."""
    token = _called.set(name)
    try:
        yield
    finally:
        _called.reset(token)


def wrong_value(problem: str, remedy: str) -> ArgumentValueError:
    """Returns the error for an argument of the function that `calling` names."""
    return value_error(_called.get(), problem, remedy)


def wrong_type(problem: str, remedy: str) -> ArgumentTypeError:
    """Returns the error for an argument of a wrong type; see `wrong_value`."""
    return type_error(_called.get(), problem, remedy)


value_error = functools.partial(call_error, ArgumentValueError)
type_error = functools.partial(call_error, ArgumentTypeError)
build_error = functools.partial(call_error, BuildError)
backend_error = functools.partial(call_error, BackendError)


def author_location() -> Location | None:
    """Returns where the author's code calls msops just now; None outside such a call."""
    frame: FrameType | None = sys._getframe(1)
    while frame is not None and frame.f_globals.get("__name__", "").startswith(_PASSED):
        if frame.f_globals["__name__"] == _BOUNDARY:
            return None
        frame = frame.f_back
    return None if frame is None else _frame_location(frame)


def _frame_location(frame: FrameType) -> Location:
    code = frame.f_code
    positions = next(itertools.islice(code.co_positions(), frame.f_lasti // 2, None))
    line, end_line, column, end_column = positions
    line = line or frame.f_lineno
    text = linecache.getline(code.co_filename, line, frame.f_globals).rstrip("\n")
    if column is None or end_column is None:
        column, end_column = len(text) - len(text.lstrip()), len(text)
    else:
        # Python counts bytes of UTF-8.
        column = len(text.encode()[:column].decode())
        end_column = len(text.encode()[:end_column].decode()) if end_line == line else len(text)
    return Location(code.co_filename, line, column, max(end_column, column + 1), text)
