"""Every error msops raises::

    MsopsError
    |-- ArgumentError            a wrong argument, option or name
    |   |-- ArgumentTypeError      also a TypeError
    |   |-- ArgumentValueError     also a ValueError
    |   `-- ArgumentRuntimeError   also a RuntimeError
    |-- OpInfoError              op info that is malformed, or that a call does not match
    |   |-- OpInfoTypeError        also a TypeError
    |   `-- OpInfoValueError       also a ValueError
    |-- InferenceError           out_shape / out_dtype, or a result that does not match them
    |   |-- InferenceTypeError     also a TypeError
    |   `-- InferenceValueError    also a ValueError
    |-- GradientError            bprop, or differentiation without one
    |   |-- GradientTypeError      also a TypeError
    |   |-- GradientValueError     also a ValueError
    |   `-- GradientRuntimeError   also a RuntimeError
    |-- BackendError             a func_type, target or device cannot serve it; a RuntimeError
    |-- BuildError               a source or library cannot be used; also a RuntimeError
    `-- KernelError              a kernel failed while it ran; also a RuntimeError

The builtin bases are what MindSpore raises in the same cases, so an ``except`` that was written for
MindSpore still works. Messages follow one template, see `explain`.
"""

from __future__ import annotations

import typing
from collections.abc import Iterable


class MsopsError(Exception):
    """Root of every error raised by msops."""

    @classmethod
    def explained(
        cls, who: str, problem: str, remedy: str, details: Iterable[str] = ()
    ) -> typing.Self:
        """Returns an error with the message that `explain` makes of these arguments."""
        return cls(explain(who, problem, remedy, details))


class ArgumentError(MsopsError):
    """An argument, option or name given to msops is wrong."""


class ArgumentTypeError(ArgumentError, TypeError):
    """An argument has a type msops cannot use."""


class ArgumentValueError(ArgumentError, ValueError):
    """An argument has a value msops cannot use."""


class ArgumentRuntimeError(ArgumentError, RuntimeError):
    """An argument has a value for which MindSpore raises RuntimeError."""


class OpInfoError(MsopsError):
    """Op info is malformed, or a call does not match it."""


class OpInfoTypeError(OpInfoError, TypeError):
    """Op info holds a value of a wrong type, or no row of it matches the dtypes of a call."""


class OpInfoValueError(OpInfoError, ValueError):
    """Op info holds a wrong value, count or name."""


class InferenceError(MsopsError):
    """Output shapes or dtypes could not be inferred, or the kernel returned others."""


class InferenceTypeError(InferenceError, TypeError):
    """An infer function, or a kernel, returned something of a wrong type."""


class InferenceValueError(InferenceError, ValueError):
    """An infer function, or a kernel, returned a wrong shape, dtype or number of outputs."""


class GradientError(MsopsError):
    """A gradient is missing, or a bprop returned a wrong one."""


class GradientTypeError(GradientError, TypeError):
    """An op without bprop was differentiated, or a bprop returned a wrong type."""


class GradientValueError(GradientError, ValueError):
    """A bprop returned a wrong number of gradients, or one of a wrong shape or dtype."""


class GradientRuntimeError(GradientError, RuntimeError):
    """An autograd function broke a rule: a wrong gradient, or a leaf that it changed in place."""


class BackendError(MsopsError, RuntimeError):
    """A func_type, target or device cannot serve the call."""


class BuildError(MsopsError, RuntimeError):
    """A source did not compile, or a library could not be loaded.

    Attributes:
      output: all output of the compiler, empty if none ran.
    """

    output: str = ""


class KernelError(MsopsError, RuntimeError):
    """A kernel failed while it ran."""


def explain(who: str, problem: str, remedy: str, details: Iterable[str] = ()) -> str:
    """Formats a message: who, what was expected, what came instead, and what to do.

    Args:
      who: the op or function and where it runs, e.g. ``"Custom 'add' on CPU"``.
      problem: expected and got, one sentence without a full stop.
      remedy: what the reader can do, one or more whole sentences.
      details: lines shown indented between problem and remedy.
    """
    lines = [f"  {line}" for text in details for line in str(text).splitlines()]
    head = f"{who}: {problem}{':' if lines else '.'}"
    return "\n".join([head, *lines, remedy])
