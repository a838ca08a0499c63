"""Which functions of msops a call runs, in order, and how often the file changes on the way.

What a reader follows who traces a call by hand: each function that begins, and its file. A
comprehension is part of its function, and a decorator that keeps results of the function it
decorates. Bodies of modules and classes are left out: which of them run depends on what was
imported before.
"""

from __future__ import annotations

import gc
import sys
from collections.abc import Callable, Iterable
from pathlib import Path
from types import FrameType
from typing import Any, NamedTuple

import msops

_PACKAGE = Path(msops.__file__).parent
_IS_FUNCTION = 0x1
"""CO_OPTIMIZED of `inspect`, which bodies of modules and classes lack."""
_PARTS = ("<listcomp>", "<setcomp>", "<dictcomp>", "<genexpr>")
_DECORATORS = ("kept.<locals>.known",)


class Step(NamedTuple):
    """A function of msops that began to run.

    Attributes:
      file: its file below ``msops/``, as ``_custom/custom.py``.
      function: its qualified name, as ``Custom.__call__``.
    """

    file: str
    function: str


def trace_call(function: Callable[..., Any], *args: Any) -> list[Step]:
    """Calls a function; returns the functions of msops that began to run in this thread.

    Without the garbage collector, whose callbacks would run at times that differ.
    """
    steps: list[Step] = []
    files: dict[str, str] = {}

    def profile(frame: FrameType, event: str, arg: Any) -> None:
        code = frame.f_code
        if event != "call" or not code.co_flags & _IS_FUNCTION:
            return
        if code.co_name in _PARTS or code.co_qualname in _DECORATORS:
            return
        if code.co_filename not in files:
            path = Path(code.co_filename)
            inside = path.is_relative_to(_PACKAGE)
            files[code.co_filename] = path.relative_to(_PACKAGE).as_posix() if inside else ""
        if file := files[code.co_filename]:
            steps.append(Step(file, code.co_qualname))

    before = sys.getprofile()
    gc.disable()
    sys.setprofile(profile)
    try:
        function(*args)
    finally:
        sys.setprofile(before)
        gc.enable()
    return steps


def files_of(steps: Iterable[Step]) -> list[str]:
    """Returns the files in the order in which they are entered, one entry per visit."""
    visits: list[str] = []
    for step in steps:
        if visits[-1:] != [step.file]:
            visits.append(step.file)
    return visits


def count_moves(steps: Iterable[Step]) -> int:
    """Returns how often the file changes from one function to the next."""
    return max(len(files_of(steps)) - 1, 0)
