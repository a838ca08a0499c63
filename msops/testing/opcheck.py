"""`opcheck`: every check, in order."""

from __future__ import annotations

import dataclasses
import functools
import math
import sys
from collections.abc import Callable, Iterator, Sequence
from typing import Any

from msops.errors import ArgumentTypeError, ArgumentValueError
from msops.testing import (
    batches,
    forms,
    gradients,
    memory,
    refusals,
    sanitizers,
    sizes,
    symbols,
    transformations,
    values,
)
from msops.testing.child_processes import shared_server
from msops.testing.guarded import HangError
from msops.testing.memory_runs import GuardedRuns, Runs, run_in_python, run_on_guarded_memory
from msops.testing.report import Finding, Report, failed, passed, skipped
from msops.testing.subject import Subject
from msops.testing.turns import lines_of_turns

_MEMORY_CHECKS: dict[str, Callable[[Any], Finding]] = {
    "return code": memory.check_return_code,
    "memory bounds": memory.check_bounds,
    "outputs written": memory.check_written,
    "inputs unchanged": memory.check_inputs,
    "repeatable": memory.check_repeatable,
    "alignment": memory.check_alignment,
    "many calls": memory.check_many_calls,
    "two threads": memory.check_threads,
}
_CHECKS_IN_PYTHON = (
    *("return code", "outputs written", "inputs unchanged", "repeatable"),
    "many calls",
)
# These run a kernel in a library on guarded memory, too, and the op itself only if it is safe.
_GUARDED_CHECKS: dict[str, Callable[[Subject, bool], Finding]] = {
    "sizes": sizes.check_sizes,
    "values": values.check_values,
    "refusals": refusals.check_refusals,
}
# These run the op in this process, once the checks of memory have found it safe.
_CALL_CHECKS: dict[str, Callable[[Subject], Finding]] = {
    "eager and jit": transformations.check_eager_and_jit,
    "forms agree": forms.check_forms,
    "gradient": gradients.check_gradient,
    "vmap": batches.check_vmap,
    "sharding": transformations.check_sharding,
}
# These look at the library itself.
_SOURCE_CHECKS: dict[str, Callable[[Subject], Finding]] = {
    "own symbols": symbols.check_symbols,
    "sanitizers": sanitizers.check_sanitizers,
}
_CHECKS = (
    "shapes and dtypes",
    "own symbols",
    *_MEMORY_CHECKS,
    *_GUARDED_CHECKS,
    *_CALL_CHECKS,
    "sanitizers",
)

# Where a check fails, faults that others have found may be the cause: the first of these.
_RESULTS = ("return code", "memory bounds", "outputs written", "inputs unchanged", "repeatable")
_CAUSES: dict[str, tuple[str, ...]] = {
    "outputs written": ("memory bounds",),
    "repeatable": ("memory bounds", "outputs written"),
    "many calls": (*_RESULTS, "alignment"),
    "two threads": (*_RESULTS, "many calls"),
    "sizes": (*_RESULTS, "many calls"),
    "values": ("many calls", "sizes"),
    "refusals": (*_RESULTS, "many calls", "sizes"),
    "eager and jit": (*_RESULTS, "two threads"),
    "forms agree": (*_RESULTS, "eager and jit"),
    "gradient": (*_RESULTS, "eager and jit"),
    "vmap": (*_RESULTS, "two threads", "eager and jit"),
    "sharding": (*_RESULTS, "eager and jit", "vmap"),
    "sanitizers": _RESULTS,
}


def opcheck(
    op: Any,
    *args: Any,
    sanitize: bool = False,
    skip: Sequence[str] = (),
    limit_s: float = 30.0,
    **attributes: Any,
) -> Report:
    """Checks an op, as far as that is possible without knowing what it should compute.

    A kernel in a library (aot, aicpu, native loops) runs first in a process of its own, its arrays
    between canaries and guard pages, so that an overrun is found at its byte and a crash is a line
    of the report. What is not safe there is not run here. A call that does not end in time fails
    its check and ends the others. On a terminal, a line for each check is written to standard
    error.

    The checks, by name:

    - "shapes and dtypes": what is inferred is what comes, and what the library's own
      ``InferShape`` and ``InferType`` say.
    - "own symbols": the library uses its own functions and variables, not libc's of the same name.
    - "return code": the kernel returns 0.
    - "memory bounds": no byte before or beyond a buffer is read or written.
    - "outputs written": every element, found by poisoning; in a bool nothing but 0 and 1.
    - "inputs unchanged": not even for the time of the call.
    - "repeatable": the same bytes twice, whatever lay in outputs, workspaces and around, and
      whatever the kernel was called with before. A Python function is called in two orders, each in
      a copy of this process.
    - "alignment": arrays at 64 bytes, as XLA has them, will do.
    - "many calls": calls in a row return the same, and leave no memory, open files, threads or
      other settings of the process behind; nor memory for each of many inputs. Where glibc can
      check its heap, it does, and fills what it allocates and frees.
    - "two threads": unlike inputs at once, of unlike sizes, too.
    - "sizes": each extent 0, all 1, odd ones, and more than 100,000 elements, other ranks, lists of
      other lengths, and shapes that may not fit: those are refused, or do no harm.
      Where results repeat with the inputs, or follow their order, at sizes close to those given,
      they have to at all; and no place but the first may be the only one that is special. What
      holds for inputs that are repeated whole a few times, as for a sum or a mean, has to hold for
      many.
    - "values": NaN, infinities, zeros, huge, tiny and negative numbers, and integers that may be no
      index, neither crash a kernel nor keep it from ending. A single zero does not make results NaN
      that have a limit there, nor does a number whose exponential float32 does not have. Large
      integers keep their last bits, and have the results of a wider dtype.
    - "refusals": inputs of other dtypes are refused, or handled without a fault: whole numbers have
      much the same results in all dtypes. A refusal arrives as an error, does no harm and leaves
      nothing behind.
    - "eager and jit": the same bytes, twice each, and on two threads with unlike inputs.
    - "forms agree": a loop kernel as XLA operations and as C, at sizes on both sides of 4,096
      elements, with NaN and infinities among the inputs, too; and its gradients, also where
      elements are equal.
    - "gradient": both modes against central differences, in float64 where the op takes it; also for
      other numbers, sizes, ranks and attributes than those given, at second order, and under jit
      and vmap.
    - "vmap": against a loop, every input mapped and each alone; a rule at other ranks, too.
    - "sharding": against one device, where there are several; divided along each dimension that
      the op's rule lets be divided.
    - "sanitizers", on request.

    Corresponds to ``torch.library.opcheck``, which checks registrations; this checks kernels.

    Args:
      op: an op made by `Custom`, of any func_type.
      *args: what it is called with: arrays of any shape it takes, attributes behind them. Values
        matter for the gradient: stay away from kinks.
      sanitize: whether to build an aot or aicpu kernel's source with the address and undefined
        behaviour sanitizers, and run it in a process of its own.
      skip: names of checks to leave out.
      limit_s: how many seconds one call of the kernel may take, on its own or with another, without
        those in which other programs had the processors.
      **attributes: those that the op takes by name.

    Returns:
      The report: ``report.ok``, ``report["memory bounds"]``, and its text.

    Raises:
      ArgumentTypeError: `op` is no `Custom`, there is nothing to call it with, or `sanitize` is no
        bool, or `limit_s` no number.
      ArgumentValueError: `skip` names what is no check, or `limit_s` is no positive number.
      BuildError: the kernel does not build.

    Example:
      >>> import jax.numpy as jnp, numpy as np, msops
      >>> from msops.testing import opcheck
      >>> square = msops.Custom(np.square, lambda x: x, lambda x: x,
      ...                       bprop=lambda x, out, dout: (x * dout,))
      >>> report = opcheck(square, jnp.array([1.0, 2.0, 3.0]))
      >>> [finding.check for finding in report.failures]
      ['gradient']

      In a test, pytest shows the whole table if the op is wrong:

      >>> def test_square():
      ...     report = opcheck(square, jnp.array([1.0, 2.0, 3.0]))
      ...     assert report.ok, report
    """
    _check_skip(skip)
    if not isinstance(sanitize, bool):
        raise ArgumentTypeError.explained(
            "opcheck",
            f"expected a bool for sanitize; got {sanitize!r}",
            "Pass sanitize=True to build the kernel's source with the sanitizers.",
        )
    _check_limit(limit_s)
    left_out = {*skip, *(() if sanitize else ("sanitizers",))}
    wanted = [check for check in _CHECKS if check not in left_out]
    subject = Subject(op, args, limit_s, attributes)
    streams = sys.stdout, sys.stderr
    try:
        with subject.face(), shared_server():
            if "repeatable" in wanted:
                subject.lines_of_turns = lines_of_turns(subject)
            return Report(str(subject), tuple(_findings(subject, wanted)))
    finally:
        # A function may have left others, into which the report would go.
        sys.stdout, sys.stderr = streams


def _findings(subject: Subject, wanted: Sequence[str]) -> Iterator[Finding]:
    """Yields the findings of the checks asked for, in order; on a terminal, says so."""
    session = _Session(subject)
    terminal = sys.stderr if sys.stderr is not None and sys.stderr.isatty() else None
    width = max(map(len, wanted), default=0)
    if terminal:
        print(f"opcheck of {subject}", file=terminal)
    for check in wanted:
        if terminal:
            print(f"  {check:{width}}  ", end="", file=terminal, flush=True)
        finding = session.find(check)
        if terminal:
            print(finding.verdict, file=terminal, flush=True)
        yield finding


class _Session:
    """The checks of one op, of which some need what others have found."""

    def __init__(self, subject: Subject):
        self._subject = subject
        self._failed: list[str] = []
        self._hang = ""

    def find(self, check: str) -> Finding:
        """Runs one check; after a call that did not end, none."""
        if self._hang:
            return skipped(check, self._hang)
        try:
            finding = self._examine(check)
        except HangError as hang:
            self._hang = f"a call did not end: see {check!r}"
            finding = failed(
                check,
                f"a call did not end in {hang.limit_s:g} s",
                [hang.call, *hang.details],
                "Look for a loop without an end, or a lock that is never released. If the kernel "
                "needs longer, pass opcheck(..., limit_s=...).",
            )
        if finding.verdict == "failed":
            causes = [cause for cause in _CAUSES.get(check, ()) if cause in self._failed]
            self._failed.append(check)
            if causes:
                return dataclasses.replace(finding, follows=causes[0])
        return finding

    def _examine(self, check: str) -> Finding:
        subject = self._subject
        if check == "shapes and dtypes":
            return self._shapes
        if self._shapes.verdict == "failed":
            return skipped(check, "shapes are wrong")
        if check in _MEMORY_CHECKS:
            runs = self._runs
            if isinstance(runs, GuardedRuns) or (runs and check in _CHECKS_IN_PYTHON):
                return _MEMORY_CHECKS[check](runs)
            return _of_plain(check, subject)
        if check == "values" and any(cause in self._failed for cause in _RESULTS):
            return skipped(check, "the kernel is wrong on usual values already")
        if check in _GUARDED_CHECKS:
            return _guarded(check, _GUARDED_CHECKS[check], subject, not self._hazard)
        trial = self._subject.trial if check == "eager and jit" and not self._failed else None
        if isinstance(trial, Exception) and self._hazard == "the call fails":
            return failed(
                check,
                "the op fails where its kernel alone does not",
                str(trial).splitlines()[:12],
                "Call the op on these inputs: the error says what to do.",
            )
        if check in _CALL_CHECKS and self._hazard:
            return skipped(check, self._hazard)
        return _guarded(check, {**_CALL_CHECKS, **_SOURCE_CHECKS}[check], subject)

    @functools.cached_property
    def _shapes(self) -> Finding:
        return _guarded("shapes and dtypes", transformations.check_shapes, self._subject)

    @functools.cached_property
    def _runs(self) -> Runs | None:
        """The runs that checks of memory stand on; None for a kernel that is given no pointers."""
        subject = self._subject
        return run_on_guarded_memory(subject) or run_in_python(subject)

    @functools.cached_property
    def _hazard(self) -> str:
        """Why the op cannot be called in this process; empty if it can."""
        if isinstance(self._runs, GuardedRuns) and self._runs.hazard:
            return self._runs.hazard
        return "the call fails" if isinstance(self._subject.trial, Exception) else ""


def _of_plain(check: str, subject: Subject) -> Finding:
    """Returns the finding of a check of memory for a kernel that is given no pointers."""
    if check == "return code":
        if isinstance(subject.trial, Exception):
            return memory.refused(subject.op.__name__, str(subject.trial))
        return passed(check, "no error")
    if check == "inputs unchanged":
        return transformations.check_inputs(subject)
    what = {"pyfunc": "a Python function", "aot": "code for a GPU", "ffi": "a handler of XLA"}.get(
        subject.func_type, "operations of XLA's"
    )
    return skipped(check, f"the kernel is {what}")


def _guarded(check: str, function: Callable[..., Finding], *args: Any) -> Finding:
    """Returns a check's finding; what it raises is one."""
    try:
        return function(*args)
    except HangError:
        raise
    except Exception as error:
        return failed(
            check,
            f"{type(error).__name__} instead of a result",
            str(error).splitlines()[:12],
            "The op must take these inputs in every way in which JAX may call it.",
        )


def _check_limit(limit_s: Any) -> None:
    if isinstance(limit_s, bool) or not isinstance(limit_s, (int, float)):
        error: type[ArgumentTypeError | ArgumentValueError] = ArgumentTypeError
    elif not 0 < limit_s < math.inf:
        error = ArgumentValueError
    else:
        return
    raise error.explained(
        "msops.testing.opcheck",
        f"expected a positive number of seconds for limit_s; got {limit_s!r}",
        "Pass how long one call of the kernel may take, as in limit_s=60.",
    )


def _check_skip(skip: Sequence[str]) -> None:
    if isinstance(skip, str):
        raise ArgumentTypeError.explained(
            "msops.testing.opcheck",
            f"expected a list of names for skip; got {skip!r}",
            f"Pass skip=[{skip!r}].",
        )
    unknown = [name for name in skip if name not in _CHECKS]
    if unknown:
        raise ArgumentValueError.explained(
            "msops.testing.opcheck",
            f"expected names of checks for skip; got {', '.join(map(repr, unknown))}",
            f"There are {', '.join(map(repr, _CHECKS))}.",
        )
