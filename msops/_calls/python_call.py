"""Calling Python functions of this process from programs, on the CPU, without a copy.

A program names a function by an id (decision 20): the op's name, a digest of the function's code
and of how it is called, and a number that tells apart functions of equal code. It is the same in
every process that lowers the same calls in the same order, so programs are equal there. A program
that calls Python is not exported; JAX keeps it in its cache on disk from 0.12 on. In another
process it is refused, unless that has the function, by lowering the same call.
"""

from __future__ import annotations

import functools
import types
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np

from msops import _jax_seam as seam
from msops._calls.host_function import HostFunction
from msops._calls.library_call import native_module, register_targets
from msops._calls.process_objects import Ids, require_everywhere
from msops._op.backend import Request

TARGET = "msops_pyfunc"

_functions: Ids[HostFunction] = Ids()


def lower_host_call(
    function: HostFunction,
    request: Request,
    has_effect: bool,
    ctx: Any,
    operands: Sequence[Any],
) -> Sequence[Any]:
    """Lowers an equation to the custom call of a Python function.

    Args:
      function: what to call.
      request: the call.
      has_effect: whether XLA may neither merge nor drop the call.
      ctx: JAX's lowering context.
      operands: the operands' values in the program.

    Raises:
      BackendError: processes that run the program together call different functions.
    """
    _serve()
    register_targets("cpu")
    name, function = agree_on_function(function, request, ctx)
    seam.hold_host_function(ctx, function)
    arrays = (*request.inputs, *request.outputs.structs)
    attributes = {
        "op": request.op,
        "function": name,
        **seam.frame_attributes(arrays),
        "input_count": np.int64(len(request.inputs)),
    }
    return seam.custom_call(ctx, operands, TARGET, attributes, has_effect, function.inplace)


def agree_on_function(
    function: HostFunction, request: Request, ctx: Any
) -> tuple[str, HostFunction]:
    """Returns the id of a function that a program is to call, and the function that has it.

    Args:
      function: what to call; what has the id is equal to it.
      request: the call.
      ctx: JAX's lowering context.

    Raises:
      BackendError: processes that run the program together call different functions.
    """
    text = "\n".join([function.description, *_describe(function.function)])
    name, function = _functions.identify(request.op, text, function)
    require_everywhere(ctx, name, "Python functions", request.who)
    return name, function


@functools.cache
def _serve() -> None:
    """Has the handlers find functions here."""
    native_module().set_function_finder(_functions.get)


def _describe(function: Callable[..., Any]) -> Iterator[str]:
    """Yields what a function is, as far as that is the same in every process."""
    if isinstance(function, functools.partial):
        yield from _describe(function.func)
    elif isinstance(function, types.MethodType):
        yield from _describe(function.__func__)
    elif isinstance(function, types.FunctionType):
        yield function.__module__ or ""
        yield from _describe_code(function.__code__)
    else:
        named = function if hasattr(function, "__name__") else type(function)
        yield f"{getattr(named, '__module__', '')} {named.__name__}"


def _describe_code(code: types.CodeType) -> Iterator[str]:
    yield f"{code.co_name} {code.co_code.hex()} {code.co_names} {code.co_varnames}"
    for value in code.co_consts:
        if isinstance(value, types.CodeType):
            yield from _describe_code(value)
        elif isinstance(value, frozenset):
            yield str(sorted(map(repr, value)))
        else:
            yield repr(value)
