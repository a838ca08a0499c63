"""Runs of a loop kernel in one of its forms, and the gradients of both against each other."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

import jax
import jax.numpy as jnp
import numpy as np

from msops._backends.loops.gradients import adjoint_call, adjoint_kernel
from msops._backends.loops.kernels import AdjointKernel, LoopKernel, case_of, compile_case
from msops._calls.library_call import LibraryCall
from msops._primitive.programs import share_programs
from msops.testing.bounds import crash_line
from msops.testing.finite_differences import floats_of, random_like
from msops.testing.guarded import Job, arrays_of, run_jobs
from msops.testing.subject import Subject, structs_of
from msops.testing.tolerances import disagreements

if TYPE_CHECKING:
    from msops._loops.choice import Form
    from msops._op.call import Call
    from msops._op.request import Request
    from msops._primitive.operator import Operator

# An estimate. Nothing can stop operations of XLA's that take longer than anybody wants to wait.
LONGEST_S = 2.0


class NativeError(Exception):
    """What went wrong where C ran."""


def run_native(job: Job) -> list[np.ndarray]:
    """Returns what C computes in a process of its own, which can be stopped if it does not end.

    Raises:
      NativeError: it crashed, or did not end.
    """
    (run,) = run_jobs([job])
    if run.crash or run.error:
        raise NativeError(f"C: {crash_line(run.crash) if run.crash else run.error.splitlines()[0]}")
    return arrays_of(run, job.outputs)


def as_operations(subject: Subject, kernel: LoopKernel) -> Callable[..., Sequence[jax.Array]]:
    """Returns the op as XLA's operations, a function of arrays."""
    forced = dataclasses.replace(kernel, lower="xla")
    programs = share_programs(dataclasses.replace(subject.definition, kernel=forced))
    return lambda *flat: programs.bound(subject.call)(flat)


def compare_gradients(
    subject: Subject, kernel: LoopKernel, flat: tuple[np.ndarray, ...]
) -> list[str] | None:
    """Reports where gradients differ: those of XLA's operations, and of adjoint loops as either.

    None if the author gave a rule, if there is nothing to differentiate, or if it takes too long.
    """
    wanted = [i for i, array in enumerate(flat) if jnp.issubdtype(array.dtype, jnp.floating)]
    weights = random_like(floats_of(subject.outputs(flat).structs), np.random.default_rng(0))
    if subject.has_rule or not (wanted and weights):
        return None
    arrays = (*flat, *weights)

    def of_floats(*inputs: Any) -> list[Any]:
        given: list[Any] = [*flat]
        for index, array in zip(wanted, inputs, strict=True):
            given[index] = array
        return floats_of(as_operations(subject, kernel)(*map(jnp.asarray, given)))

    adjoint = _Adjoint(subject, kernel, arrays, wanted)
    if adjoint.seconds > LONGEST_S:
        return None
    _, pull_back = jax.vjp(of_floats, *(jnp.asarray(flat[i]) for i in wanted))
    own = [np.asarray(gradient) for gradient in pull_back([*map(jnp.asarray, weights)])]
    ways = {"C": adjoint.native(), "adjoint loops as XLA": adjoint.as_operations()}
    return [
        f"{way} instead of XLA: {line}"
        for way, gradients in ways.items()
        for line in disagreements(own, gradients)
    ]


class _Adjoint:
    """The adjoint loops of a kernel, for arrays of its inputs and cotangents."""

    def __init__(
        self,
        subject: Subject,
        kernel: LoopKernel,
        arrays: tuple[np.ndarray, ...],
        wanted: Sequence[int],
    ):
        self._subject, self._arrays = subject, arrays
        self._backend = subject.definition.backend
        self._request = subject.request(arrays[: len(subject.flat)])
        self._kernel = adjoint_kernel(kernel, self._request, wanted)

    @property
    def seconds(self) -> float:
        """How long it takes as XLA's operations, by an estimate."""
        adjoint = self._forced("xla")
        return compile_case(adjoint, case_of(self._asked(adjoint))).stages.estimates.xla

    def native(self) -> list[np.ndarray]:
        """Runs it as C."""
        adjoint = self._forced("native")
        asked = self._asked(adjoint)
        call = self._backend.call(adjoint, asked)
        assert isinstance(call, LibraryCall)
        return run_native(Job(call, self._arrays, asked.outputs.structs, self._subject.limit_s))

    def as_operations(self) -> list[np.ndarray]:
        """Runs it as XLA's operations."""
        operator, call = self._operator(self._forced("xla"))
        return [np.asarray(gradient) for gradient in operator.bind(call, self._arrays)]

    def _forced(self, form: Form) -> AdjointKernel:
        return dataclasses.replace(self._kernel, lower=form)

    def _operator(self, adjoint: AdjointKernel) -> tuple[Operator, Call]:
        return adjoint_call(self._backend, adjoint, self._request, len(self._arrays))

    def _asked(self, adjoint: AdjointKernel) -> Request:
        """Returns what its backend is asked for."""
        operator, call = self._operator(adjoint)
        structs = structs_of(self._arrays)
        return operator.request(call, structs, "cpu", operator.outputs(call, structs))
