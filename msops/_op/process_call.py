"""The form of every call of code of this process: C, CUDA, Python functions, extension modules.

A program never has a pointer of its process. It names what it calls by content or by an id,
as attributes of a custom call of XLA, and the handlers in xla_kernels/src
find it in the process that runs the program.
"""

from __future__ import annotations

import abc
import dataclasses
from collections.abc import Callable
from typing import Any, ClassVar

from msops import _jax_seam as seam


@dataclasses.dataclass(frozen=True)
class Bound:
    """The parts of a call that a program holds.

    Attributes:
      attributes: of the custom call, but for those of all calls.
      identity: how the program names what is called; the same wherever that is the same.
      keeps: the object of this process that the program must hold; None if none.
    """

    attributes: dict[str, Any]
    identity: str
    keeps: object = None


class ProcessCall(abc.ABC):
    """One call that a program makes; `_calls.lowering.lower_call` adds it to one.

    A call is described when it is made; `bind` prepares this process for it, and says what is
    written into the program.

    Attributes:
      op: name of the op, for the messages of the handlers.
      aliases: pairs of an input and the output that takes over its buffer.
      calls_python: whether the handlers call what the program keeps.
    """

    calls_python: ClassVar[bool] = False
    op: str
    aliases: tuple[tuple[int, int], ...]

    @property
    @abc.abstractmethod
    def target(self) -> str:
        """The name of the handlers in XLA."""

    @property
    def host_function(self) -> Callable[..., Any] | None:
        """The function that a host callback calls; None: it runs the op's own CPU program."""
        return None

    @abc.abstractmethod
    def bind(self, lowering: seam.Lowering, who: str) -> Bound:
        """Prepares this process: opens the library, compiles the code, gives the function its id.

        Args:
          lowering: the equation that becomes the call.
          who: the op and where it runs, for messages.

        Raises:
          BackendError, BuildError: what is called cannot be had here, or not in such a program.
        """
