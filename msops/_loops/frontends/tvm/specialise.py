"""A kernel function of TVM, run once for given shapes, dtypes and attributes."""

from __future__ import annotations

import inspect
import linecache
import types
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from msops._loops.frontends.references import global_names, reachable
from msops._loops.frontends.spec import Spec
from msops._loops.frontends.tvm.lower import identifier, lower
from msops._loops.frontends.tvm.marks import convert
from msops._loops.frontends.tvm.rebinding import rebound
from msops._loops.frontends.tvm.tensor import Tensor, as_tensors, placeholder
from msops._loops.frontends.tvm.tracing import tracing
from msops._loops.ir.nodes import Kernel, Location


def specialise(
    func: Callable[..., Any],
    inputs: Sequence[Spec | tuple[Spec, ...]],
    attributes: Mapping[str, Any],
    who: str,
) -> Kernel:
    """Returns the kernel that a function of TVM describes for given inputs.

    A function of two parameters that uses the IR builder is called ``func(inputs, attributes)``,
    with a list of tensors (a list of lists for several dynamic inputs) and a dict of TVM's numbers;
    any other ``func(*inputs, **attributes)``. An op called with one list passes that list.

    Args:
      func: the author's function, without decorators.
      inputs: shape and dtype of each input; a tuple where an input is a list of tensors.
      attributes: values by name.
      who: how messages name the op.

    Raises:
      MsopsError: the function uses TVM in a way that has no meaning here, or none at all.
    """
    function = inspect.unwrap(func)
    assert isinstance(function, types.FunctionType)
    takes_list = _takes_list(function)
    with tracing(who):
        tensors = _placeholders(inputs, _input_names(function, len(inputs), takes_list))
        run = rebound(function)
        if takes_list:
            if len(tensors) == 1 and isinstance(tensors[0], list):
                tensors = [*tensors[0]]
            result = run(tensors, convert(dict(attributes)))
        else:
            result = run(*tensors, **attributes)
        results = as_tensors(f"kernel {function.__name__!r}", _without_settings(result))
        flat = [tensor for part in tensors for tensor in _listed(part)]
        return lower(results, flat, function.__name__, _definition(function))


def _without_settings(result: Any) -> Any:
    """Returns results without the dict of settings for AKG's compiler that AKG's operators add."""
    if isinstance(result, (tuple, list)) and len(result) > 1 and isinstance(result[-1], dict):
        return result[:-1]
    return result


def _listed(part: Tensor | list[Tensor]) -> list[Tensor]:
    return part if isinstance(part, list) else [part]


def _placeholders(
    inputs: Sequence[Spec | tuple[Spec, ...]], names: Sequence[str]
) -> list[Tensor | list[Tensor]]:
    return [
        [_placeholder(part, f"{name}_{n}") for n, part in enumerate(spec)]
        if isinstance(spec, tuple)
        else _placeholder(spec, name)
        for name, spec in zip(names, inputs, strict=True)
    ]


def _placeholder(spec: Spec, name: str) -> Tensor:
    return placeholder(spec.shape, spec.dtype, identifier(name))


def _input_names(function: types.FunctionType, count: int, takes_list: bool) -> list[str]:
    """Returns the author's names of the inputs, or numbers where they have none."""
    code = function.__code__
    named = () if takes_list else code.co_varnames[: code.co_argcount]
    return [*named[:count], *(f"input_{number}" for number in range(len(named), count))]


def _takes_list(function: types.FunctionType) -> bool:
    parameters = inspect.signature(function).parameters.values()
    plain = [p for p in parameters if p.kind in (p.POSITIONAL_ONLY, p.POSITIONAL_OR_KEYWORD)]
    return len(plain) == len(parameters) == 2 and any(
        "ir_builder" in set(global_names(reached.__code__)) for reached in reachable(function)
    )


def _definition(function: types.FunctionType) -> Location:
    code = function.__code__
    text = linecache.getline(code.co_filename, code.co_firstlineno, function.__globals__)
    text = text.rstrip("\n")
    return Location(
        code.co_filename,
        code.co_firstlineno,
        len(text) - len(text.lstrip()),
        max(len(text), 1),
        text,
    )
