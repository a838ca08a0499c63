"""Launches of aclnn operators: looked up by name, computed by JAX, rebound into the outputs."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import jax

from msops._extension.calls import current_frame
from msops._extension.handles import Handle


def launch_aclnn(name: str, arguments: Sequence[Any], outputs: Sequence[Any] | None) -> None:
    """Serves ``CustomLaunchAclnn``, ``LAUNCH_ACLNN``, ``RunAtbOp`` and ``RunAsdSipFFTOp``.

    Args:
      name: the operator, ``aclnnMul``; of other libraries what `lookup_library` takes.
      arguments: its inputs in aclnn's order: handles, numbers, text, None, and lists of them.
      outputs: handles of its outputs; None if they are among the arguments.

    Raises:
      MsopsError: there is no such operator, or it cannot serve these arguments.
    """
    # Only modules that launch operators need the table.
    from msops._ascend.aclnn import lookup
    from msops._ascend.libraries import lookup_library

    who = f"extension module '{current_frame().module.name}'"
    find = lookup_library if name.startswith(("atb::", "asd")) else lookup
    operator = find(name, who)
    if outputs is None:
        arguments, outputs = operator.split(list(arguments))
    structs = [
        None if handle is None else jax.ShapeDtypeStruct(handle.shape, handle.dtype)
        for handle in outputs
    ]
    results = operator([_value(argument) for argument in arguments], structs)
    updated = [arguments[position] for position in operator.updated]
    for handle, result in zip((*outputs, *updated), results, strict=True):
        if handle is not None:
            handle.array = result


def _value(argument: Any) -> Any:
    if isinstance(argument, Handle):
        return argument.array
    if isinstance(argument, (list, tuple)):
        return [_value(item) for item in argument]
    return argument
