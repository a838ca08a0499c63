"""pyfunc: a Python function on numpy arrays, run on the host.

On the CPU a custom call hands it the program's own memory; elsewhere, and by
``compile_attrs={"lower": "callback"}``, it runs through `jax.pure_callback`. Corresponds to
``mindspore.ops.Custom(func_type="pyfunc")``, 2.7.2.
"""

from __future__ import annotations

import inspect
from collections.abc import Sequence
from typing import Any, NoReturn

import numpy as np

from msops._calls.host_function import HostFunction, takes_out
from msops._calls.opaque import OpaqueBackend
from msops._calls.python_call import PythonCall
from msops._op.backend import Backend, Division
from msops._op.identity import LiveFunction
from msops._op.request import Options, Request
from msops._op_info import OpInfo
from msops.errors import ArgumentTypeError, ArgumentValueError

_POSITIONAL = (inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD)


class PyfuncBackend(OpaqueBackend[LiveFunction, LiveFunction]):
    """Runs on the host whatever the platform; guarded by the "CPU" rows."""

    func_type = "pyfunc"
    own_options: tuple[str, ...] = ("stateful", "inplace", "writable")
    guard = "CPU"
    imply_type = "CPU"
    runs_once = True
    may_have_no_outputs = True
    runs_on_host = True
    takes_trees = True
    takes_low_precision = True
    compile_attrs: tuple[str, ...] = ("lower",)

    def read(self, func: Any, options: Options, who: str) -> LiveFunction:
        """Accepts any callable."""
        if not callable(func):
            raise ArgumentTypeError.explained(
                who,
                f"expected a function for func_type 'pyfunc'; got {type(func).__name__}",
                "Pass a Python function over numpy arrays; a str such as './add.cc:Add' is "
                "func_type='aot'.",
            )
        lower = dict(options.compile_attrs).get("lower", "callback")
        if lower != "callback":
            raise ArgumentValueError.explained(
                who,
                f"expected compile_attrs['lower'] to be 'callback' for func_type 'pyfunc'; got "
                f"{lower!r}",
                "Leave it out for the fastest call there is on the platform.",
            )
        # The decorators that carry op info change nothing of the function.
        func = inspect.unwrap(func, stop=lambda wrapper: not hasattr(wrapper, "reg_info"))
        return LiveFunction(func)

    def signature(self, source: LiveFunction) -> inspect.Signature | None:
        """Returns the function's own, but for a parameter `out` that its results are written to."""
        function = source.function
        if isinstance(function, np.ufunc):
            return None
        try:
            signature = inspect.signature(function)
        except (TypeError, ValueError):  # built in, without a signature
            return None
        others = [p for name, p in signature.parameters.items() if name != "out"]
        inputs = sum(p.kind in _POSITIONAL for p in others)
        if "out" in signature.parameters and takes_out(function, inputs):
            return signature.replace(parameters=others)
        return signature

    def infer(
        self,
        kernel: LiveFunction,
        half: str,
        request: Request,
        infos: Sequence[OpInfo],
        who: str,
    ) -> NoReturn:
        """Refuses: a Python function is not asked before it runs."""
        code = getattr(kernel.function, "__code__", None)
        loops = " A loop kernel infers it: pass func_type='akg'."
        raise ArgumentValueError.explained(
            who,
            f"out_{half} is required for func_type 'pyfunc'; got None",
            f"Pass out_{half} as a value or as a function of the inputs', e.g. lambda x: x; or "
            "both in one by out=." + (loops if code and "output_tensor" in code.co_names else ""),
        )

    def call(self, kernel: LiveFunction, request: Request) -> PythonCall:
        """Returns the function with all that the call says of how it is called."""
        function = HostFunction(kernel.function, kernel, request)
        return PythonCall(request.op, function, function.inplace, request)

    def division(self, kernel: LiveFunction, request: Request) -> Division:
        """Returns "parts", unless JAX's callback runs, which is called with whole arrays."""
        by_callback = bool(request.options.compile_attrs) or request.platform != "cpu"
        return "whole" if by_callback else "parts"


def make_backend(func_type: str) -> Backend[Any, Any]:
    """Returns the backend, for the table of func_types."""
    return PyfuncBackend()
