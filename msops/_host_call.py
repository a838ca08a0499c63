"""Calling Python functions of this process from programs, on the CPU, without a copy.

A program names a function by an id (decision 20): the op's name, a digest of the function's code
and of how it is called, and a number that tells apart functions of equal code. It is the same in
every process that lowers the same calls in the same order, so programs are equal there. A program
that calls Python is neither exported nor cached on disk; one that comes to another process all the
same is refused there, unless it has the function.
"""

from __future__ import annotations

import functools
import hashlib
import itertools
import threading
import types
import weakref
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np

from msops import _jax_seam as seam
from msops._backend import Request
from msops._host_function import HostFunction
from msops._native_call import native_module, register_targets
from msops._process_objects import require_everywhere

TARGET = "msops_pyfunc"

# A compiled program keeps the functions it calls alive; nothing else does.
_functions: weakref.WeakValueDictionary[str, HostFunction] = weakref.WeakValueDictionary()
_lock = threading.Lock()


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
    name, function = _name(function, request.op)
    require_everywhere(ctx, name, "Python functions", request.who)
    seam.hold_host_function(ctx, function)
    arrays = (*request.inputs, *request.outputs.structs)
    attributes = {
        "op": request.op,
        "function": name,
        **seam.frame_attributes(arrays),
        "input_count": np.int64(len(request.inputs)),
    }
    return seam.custom_call(ctx, operands, TARGET, attributes, has_effect, function.inplace)


@functools.cache
def _serve() -> None:
    """Has the handlers find functions here."""
    native_module().set_function_finder(_functions.get)


def _name(function: HostFunction, op: str) -> tuple[str, HostFunction]:
    """Returns an id, and the function that has it: `function`, or an equal one."""
    text = "\n".join([function.description, *_describe(function.function)])
    digest = hashlib.sha256(text.encode()).hexdigest()[:16]
    with _lock:
        for number in itertools.count():
            name = f"{op}-{digest}-{number}"
            known = _functions.setdefault(name, function)
            if known == function:
                return name, known
    raise AssertionError


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
