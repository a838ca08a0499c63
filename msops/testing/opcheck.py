"""`opcheck`: every check, in order."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any

from msops.errors import ArgumentTypeError, ArgumentValueError, explain
from msops.testing import gradients, memory, sanitizers, sizes, symbols, transformations
from msops.testing.memory import MemoryRuns
from msops.testing.report import Finding, Report, failed, passed, skipped
from msops.testing.subject import Subject

_MEMORY_CHECKS: dict[str, Callable[[MemoryRuns], Finding]] = {
    "return code": memory.check_return_code,
    "memory bounds": memory.check_bounds,
    "outputs written": memory.check_written,
    "inputs unchanged": memory.check_inputs,
    "repeatable": memory.check_repeatable,
    "alignment": memory.check_alignment,
    "two threads": memory.check_threads,
}
_CHECKS_IN_PYTHON = ("return code", "outputs written", "inputs unchanged", "repeatable")
# These run a kernel in a library on guarded memory, too, and the op itself only if it is safe.
_GUARDED_CHECKS: dict[str, Callable[[Subject, bool], Finding]] = {
    "sizes": sizes.check_sizes,
    "refusals": sizes.check_refusals,
}
# These run the op in this process, once the checks of memory have found it safe.
_CALL_CHECKS: dict[str, Callable[[Subject], Finding]] = {
    "eager and jit": transformations.check_eager_and_jit,
    "gradient": gradients.check_gradient,
    "vmap": transformations.check_vmap,
    "sharding": transformations.check_sharding,
}
_CHECKS = (
    "shapes and dtypes",
    "own symbols",
    *_MEMORY_CHECKS,
    *_GUARDED_CHECKS,
    *_CALL_CHECKS,
    "sanitizers",
)


def opcheck(op: Any, *args: Any, sanitize: bool = False, skip: Sequence[str] = ()) -> Report:
    """Checks an op, as far as that is possible without knowing what it should compute.

    A kernel in a library (aot, aicpu, native loops) runs first in a process of its own, its arrays
    between canaries and guard pages, so that an overrun is found at its byte and a crash is a line
    of the report. What is not safe there is not run here. The checks, by name:

    - "shapes and dtypes": what is inferred is what comes, and what the library's own
      ``InferShape`` and ``InferType`` say.
    - "own symbols": the library uses its own functions and variables, not libc's of the same name.
    - "return code": the kernel returns 0.
    - "memory bounds": no byte before or beyond a buffer is read or written.
    - "outputs written": every element, found by poisoning.
    - "inputs unchanged".
    - "repeatable": the same bytes twice, whatever lay in outputs, workspaces and around.
    - "alignment": arrays at 64 bytes, as XLA has them, will do.
    - "two threads": unlike inputs at once.
    - "sizes": each extent 0, all 1, and odd ones.
    - "refusals": inputs of other dtypes are refused, or handled without a fault; a refusal arrives
      as an error and does no harm.
    - "eager and jit": the same bytes, twice each, and on two threads with unlike inputs.
    - "gradient": both modes against central differences, in float64 where the op takes it.
    - "vmap": against a loop, every input mapped and each alone.
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

    Returns:
      The report: ``report.ok``, ``report["memory bounds"]``, and its text.

    Raises:
      ArgumentTypeError: `op` is no `Custom`, there is nothing to call it with, or `sanitize` is no
        bool.
      ArgumentValueError: `skip` names what is no check.
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
        raise ArgumentTypeError(
            explain(
                "opcheck",
                f"expected a bool for sanitize; got {sanitize!r}",
                "Pass sanitize=True to build the kernel's source with the sanitizers.",
            )
        )
    wanted = [check for check in _CHECKS if check not in skip]
    if not sanitize:
        wanted.remove("sanitizers")
    subject = Subject(op, args)
    with subject.face():
        return Report(str(subject), tuple(_findings(subject, wanted)))


def _findings(subject: Subject, wanted: Sequence[str]) -> Iterator[Finding]:
    """Yields the findings of the checks asked for, in order."""
    shapes = _guarded("shapes and dtypes", transformations.check_shapes, subject)
    if shapes.check in wanted:
        yield shapes
    if shapes.verdict == "failed":
        yield from (skipped(check, "shapes are wrong") for check in wanted if check != shapes.check)
        return
    if "own symbols" in wanted:
        yield _guarded("own symbols", symbols.check_symbols, subject)
    runs = memory.run_on_guarded_memory(subject)
    in_python = memory.run_in_python(subject)
    for check, examine in _MEMORY_CHECKS.items():
        if check not in wanted:
            continue
        if runs is not None:
            yield examine(runs)
        elif in_python is not None and check in _CHECKS_IN_PYTHON:
            yield examine(in_python)
        else:
            yield _of_plain(check, subject)
    hazard = _hazard(subject, runs)
    for check, try_out in _GUARDED_CHECKS.items():
        if check in wanted:
            yield _guarded(check, try_out, subject, not hazard)
    for check, call in _CALL_CHECKS.items():
        if check in wanted:
            yield skipped(check, hazard) if hazard else _guarded(check, call, subject)
    if "sanitizers" in wanted:
        yield _guarded("sanitizers", sanitizers.check_sanitizers, subject)


def _hazard(subject: Subject, runs: MemoryRuns | None) -> str:
    """Returns why the op cannot be called in this process; empty if it can."""
    if runs is not None and runs.hazard:
        return runs.hazard
    return "the call fails" if isinstance(subject.trial, Exception) else ""


def _of_plain(check: str, subject: Subject) -> Finding:
    """Returns the finding of a check of memory for a kernel that is given no pointers."""
    if check == "return code":
        if isinstance(subject.trial, Exception):
            return memory.refused(subject.op.name, str(subject.trial))
        return passed(check, "no error")
    if check == "inputs unchanged":
        return transformations.check_inputs(subject)
    what = {"pyfunc": "a Python function", "aot": "code for a GPU"}.get(
        subject.func_type, "operations of XLA's"
    )
    return skipped(check, f"the kernel is {what}")


def _guarded(check: str, function: Callable[..., Finding], *args: Any) -> Finding:
    """Returns a check's finding; what it raises is one."""
    try:
        return function(*args)
    except Exception as error:
        return failed(
            check,
            f"{type(error).__name__} instead of a result",
            str(error).splitlines()[:12],
            "The op must take these inputs in every way in which JAX may call it.",
        )


def _check_skip(skip: Sequence[str]) -> None:
    if isinstance(skip, str):
        raise ArgumentTypeError(
            explain(
                "msops.testing.opcheck",
                f"expected a list of names for skip; got {skip!r}",
                f"Pass skip=[{skip!r}].",
            )
        )
    unknown = [name for name in skip if name not in _CHECKS]
    if unknown:
        raise ArgumentValueError(
            explain(
                "msops.testing.opcheck",
                f"expected names of checks for skip; got {', '.join(map(repr, unknown))}",
                f"There are {', '.join(map(repr, _CHECKS))}.",
            )
        )
