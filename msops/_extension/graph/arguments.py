"""Arguments of a call of a graph operator: converted, and checked against their kinds."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from msops._extension.graph.definitions import Argument, OperatorDefinition
from msops._extension.graph.handlers import HANDLERS
from msops._extension.graph.kinds import ArgumentKind
from msops._extension.handles import is_array
from msops._face.tensor import Tensor
from msops.errors import ArgumentTypeError, ArgumentValueError

_INT64 = range(-(2**63), 2**63)


def convert(argument: Argument, value: Any, who: str) -> Any:
    """Returns an argument as the operator takes it.

    Raises:
      ArgumentTypeError: it is of another kind.
      ArgumentValueError: a number does not fit, or a tensor stands for a number and has axes.
    """
    if value is None and argument.is_optional:
        return None
    if argument.handler:
        value = HANDLERS[argument.handler](who, argument.name, value)
    else:
        value = _without_tensors(argument, value, who)
    kind = argument.kind
    if not kind.takes(value):
        value = _cast(argument, value)
    if not kind.takes(value):
        others = "".join(f" or {cast.word}" for cast in argument.casts)
        absent = " or None" if argument.is_optional else ""
        raise ArgumentTypeError.explained(
            who,
            f"expected argument '{argument.name}' {kind.word}{others}{absent}; "
            f"got {_describe(value)}",
            "Nothing is converted: write 1.0 for a float, and (1,) for a tuple of one.",
        )
    _check_range(value, argument.name, who)
    return tuple(value) if isinstance(value, list) else value


def _without_tensors(argument: Argument, value: Any, who: str) -> Any:
    """Replaces tensors without axes by the numbers in them, as MindSpore does.

    With ``type_cast: tensor`` a tensor of one entry may have axes.
    """
    if argument.kind.element not in ("int", "float", "number") or not argument.reads_tensor:
        return value
    if not argument.kind.sequence:
        takes_one = ArgumentKind("tensor") in argument.casts
        return _number(value, argument.name, who, takes_one) if is_array(value) else value
    if argument.kind.element == "int" and isinstance(value, (tuple, list)):
        return type(value)(
            _number(item, argument.name, who) if is_array(item) else item for item in value
        )
    return value


def _number(tensor: Any, name: str, who: str, takes_one: bool = False) -> int | float | bool:
    array = tensor.value if isinstance(tensor, Tensor) else tensor
    if array.shape and not (takes_one and array.size == 1):
        raise ArgumentValueError.explained(
            who,
            f"expected argument '{name}' as a number, or a tensor without axes; "
            f"got shape {tuple(array.shape)}",
            "Index the tensor, x[0], or pass a number.",
        )
    if isinstance(array, jax.core.Tracer):
        raise ArgumentTypeError.explained(
            who,
            f"argument '{name}' is being traced, and the operator needs its value",
            "Pass a number that is known when the function is traced: with jax.jit, name it in "
            "static_argnames.",
        )
    number: int | float | bool = np.asarray(array).item()
    return number


def _cast(argument: Argument, value: Any) -> Any:
    """Converts a value of one of the kinds that ``type_cast`` names; returns others as they are."""
    kind = argument.kind
    if not any(cast.takes(value) for cast in argument.casts):
        return value
    if kind.is_tensor:
        return jnp.asarray(value)
    if kind.sequence:
        items = value if isinstance(value, (tuple, list)) else (value,)
        if kind.element != "tensor" and is_array(value):
            items = _numbers_in(value) or ()
        return tuple(items) if kind.sequence == "tuple" else list(items)
    return float(value) if kind.element == "float" and type(value) is int else value


def _describe(value: Any) -> str:
    if isinstance(value, (tuple, list)):
        inside = ", ".join(sorted({type(item).__name__ for item in value}))
        return f"{type(value).__name__}[{inside}]"
    return f"{type(value).__name__}" + ("" if is_array(value) else f" {value!r}")


def _check_range(value: Any, name: str, who: str) -> None:
    for item in value if isinstance(value, (tuple, list)) else (value,):
        if type(item) is int and item not in _INT64:
            raise ArgumentValueError.explained(
                who, f"expected argument '{name}' below 2**63; got {item}", "C++ has 64 bits."
            )


def promote(definition: OperatorDefinition, values: list[Any], who: str) -> list[Any]:
    """Returns the arguments with those of a ``dtype_group`` in one dtype.

    Raises:
      ArgumentTypeError: one that is changed in place would be converted.
    """
    updated = {*definition.written, *definition.results}
    for group in definition.groups:
        members = [at for at in group if is_array(values[at])]
        found = {np.dtype(values[at].dtype) for at in members}
        if len(found) < 2:
            continue
        dtype = jnp.result_type(*found)
        for at in members:
            if np.dtype(values[at].dtype) == dtype:
                continue
            if at in updated:
                raise ArgumentTypeError.explained(
                    who,
                    f"argument '{definition.arguments[at].name}' is changed in place, and its "
                    f"dtype {np.dtype(values[at].dtype)} would be converted to {dtype}",
                    "Cast the other arguments of its dtype_group to its dtype.",
                )
            values[at] = values[at].astype(dtype)
    return values


def contents(values: Sequence[Any], positions: Sequence[int]) -> tuple[Any, ...]:
    """Returns for each argument the numbers in it, None where nobody asks or they are traced."""
    if not positions:
        return (None,) * len(values)
    return tuple(
        _numbers_in(value) if position in positions else None
        for position, value in enumerate(values)
    )


def _numbers_in(value: Any) -> tuple[Any, ...] | None:
    array = value.value if isinstance(value, Tensor) else value
    if not is_array(array) or isinstance(array, jax.core.Tracer):
        return None
    return tuple(np.asarray(array).ravel().tolist())
