"""One run of a kernel function: what its calls leave behind until it has ended."""

from __future__ import annotations

import contextlib
import contextvars
import dataclasses
from collections.abc import Iterator

from msops._loops.frontends.tvm.tensor import Tensor
from msops._loops.frontends.tvm.tracing import build_error, tracing
from msops.errors import BuildError


class KernelTypeError(BuildError, TypeError):
    """A kernel gave a function of TBE a value of a wrong type."""


@dataclasses.dataclass
class Session:
    """The state that the calls of one run share.

    Attributes:
      kernel: the name of the kernel function.
      first_dtype: dtype of the first operand that a function of the DSL was given; TBE makes it the
        dtype of the kernel's results.
      built: the tensor lists that were given to ``build``, in order.
    """

    kernel: str
    first_dtype: str | None = None
    built: list[tuple[Tensor, ...]] = dataclasses.field(default_factory=list)


_session: contextvars.ContextVar[Session | None] = contextvars.ContextVar("session", default=None)


@contextlib.contextmanager
def running(kernel: str, who: str) -> Iterator[Session]:
    """Opens the session of one run.

    Args:
      kernel: the name of the kernel function.
      who: how messages name the op.
    """
    session = Session(kernel)
    token = _session.set(session)
    try:
        with tracing(who):
            yield session
    finally:
        _session.reset(token)


def current_kernel() -> str:
    """Returns the name of the kernel that runs; empty outside a run."""
    session = _session.get()
    return "" if session is None else session.kernel


def remember_dtype(dtype: str) -> None:
    """Notes the dtype of an operand, if it is the first of the run."""
    session = _session.get()
    if session is not None and session.first_dtype is None:
        session.first_dtype = dtype


def record_build(name: str, tensors: tuple[Tensor, ...]) -> None:
    """Notes that the kernel built a program.

    Args:
      name: the function that was called, for messages.
      tensors: its inputs and results, in order.
    """
    session = _session.get()
    if session is None:
        raise build_error(
            name,
            "it was called outside a kernel",
            "Make an op of the function: msops.Custom(f, ..., func_type='tbe').",
        )
    session.built.append(tensors)
