"""Calling Python functions of this process from programs, on the CPU, without a copy.

A program names a function by an id: the op's name, a digest of the function's code
and of how it is called, and a number that distinguishes functions of equal code. It is the same in
every process that lowers the same calls in the same order, so programs are equal there. A program
that calls Python is kept in JAX's cache on disk from 0.12 on. In another process it is
refused, unless that has the function, by lowering the same call. An exported program has a
description instead of the id, by which another process imports the function; see
exported_function.py.
"""

from __future__ import annotations

import atexit
import dataclasses
import functools

from msops import _jax_seam as seam
from msops._calls import exported_function
from msops._calls.handlers import native_module
from msops._calls.host_function import HostFunction
from msops._calls.process_objects import Ids, describe_function, require_everywhere
from msops._op.process_call import Bound, ProcessCall
from msops._op.request import Request


@dataclasses.dataclass(frozen=True)
class PythonCall(ProcessCall):
    """One call of a Python function.

    Attributes:
      op: name of the op, for the messages of the handler.
      function: what to call.
      aliases: pairs of an input and the output that takes over its buffer.
      request: the call.
    """

    target = "msops_pyfunc"
    calls_python = True

    op: str
    function: HostFunction
    aliases: tuple[tuple[int, int], ...]
    request: Request = dataclasses.field(compare=False)

    @property
    def host_function(self) -> HostFunction:
        """The function itself."""
        return self.function

    def bind(self, lowering: seam.Lowering, who: str) -> Bound:
        """Gives the function an id; programs hold it, or the equal one that has the id.

        Raises:
          BackendError: the program is exported, and another process cannot import the function; or
            processes that run it together call different functions.
        """
        serve_functions()
        if lowering.is_exported:
            described = exported_function.describe(self.function, self.request, who)
            # The program holds no function: it finds this one by its name.
            return Bound({"function": described}, described)
        text = "\n".join([self.function.description, *describe_function(self.function.function)])
        name, function = _functions.identify(self.op, text, self.function)
        require_everywhere(lowering, name, "Python functions", who)
        return Bound({"function": name}, name, function)


_functions: Ids[HostFunction] = Ids()
_WAIT_AT_EXIT_S = 10.0
"""How long the end of Python waits for functions that run on other threads."""


@functools.cache
def serve_functions() -> None:
    """Has the handlers find functions here, and the end of Python wait for those that run."""
    native_module().set_function_finder(_find)
    atexit.register(native_module().await_functions, _WAIT_AT_EXIT_S)


def _find(key: str) -> HostFunction | None:
    seam.leave_room(
        native_module().pacing_hook
    )  # a program with this function is about to be called
    return exported_function.find(key) if key.startswith("{") else _functions.get(key)
