"""Kinds of parameters and results of an aclnn operator, as annotations of its function.

A function of this package is written with aclnn's names and order; its annotations say how each
argument is read, so that the signature is the whole declaration of an operator.
"""

from __future__ import annotations

import dataclasses
import inspect
import types
import typing
from collections.abc import Callable, Sequence
from typing import Annotated, Any

import jax
import jax.numpy as jnp
import numpy as np

from msops._ascend.aclnn.dtypes import read_dtype


@dataclasses.dataclass(frozen=True)
class Kind:
    """One kind of parameter.

    Attributes:
      name: what is expected, for messages.
      read: returns an argument as the function takes it; raises TypeError if it is of another kind.
      is_updated: whether the operator writes to the argument.
      follows_outputs: whether aclnn has the parameter after the outputs.
      is_tensor: whether it is one tensor.
    """

    name: str
    read: Callable[[Any], Any]
    is_updated: bool = False
    follows_outputs: bool = False
    is_tensor: bool = False


def _read_tensor(value: Any) -> jax.Array:
    if not hasattr(value, "shape") or not hasattr(value, "dtype"):
        raise TypeError
    return jnp.asarray(value)


def _read_list(value: Any) -> Sequence[Any]:
    if not isinstance(value, (list, tuple)):
        raise TypeError
    return value


def _read_tensors(value: Any) -> list[jax.Array]:
    return [_read_tensor(item) for item in _read_list(value)]


def _read_indices(value: Any) -> list[jax.Array | None]:
    return [None if item is None else _read_tensor(item) for item in _read_list(value)]


def _read_some_tensors(value: Any) -> list[jax.Array]:
    return _read_tensors(value if isinstance(value, (list, tuple)) else [value])


def _read_scalar(value: Any) -> Any:
    value = value.item() if isinstance(value, np.generic) else value
    if not isinstance(value, (bool, int, float, complex)):
        raise TypeError
    return value


def _read_int(value: Any) -> int:
    if not isinstance(value, (int, np.integer)):
        raise TypeError
    return int(value)


def _read_ints(value: Any) -> tuple[int, ...]:
    return tuple(_read_int(item) for item in _read_list(value))


def _read_bool(value: Any) -> bool:
    if not isinstance(value, (int, np.bool_)) or value not in (0, 1):
        raise TypeError
    return bool(value)


def _read_bools(value: Any) -> tuple[bool, ...]:
    return tuple(_read_bool(item) for item in _read_list(value))


def _read_text(value: Any) -> str:
    if not isinstance(value, str):
        raise TypeError
    return value


def _read_float(value: Any) -> float:
    if not isinstance(value, (int, float, np.integer, np.floating)):
        raise TypeError
    return float(value)


Tensor = Annotated[jax.Array, Kind("a tensor", _read_tensor, is_tensor=True)]
UpdatedTensor = Annotated[
    jax.Array, Kind("a tensor", _read_tensor, is_updated=True, is_tensor=True)
]
Tensors = Annotated[list[jax.Array], Kind("a list of tensors", _read_tensors)]
SomeTensors = Annotated[list[jax.Array], Kind("a tensor or a list of them", _read_some_tensors)]
Indices = Annotated[
    list[jax.Array | None], Kind("a list of tensors, None for a whole axis", _read_indices)
]
Scalar = Annotated[Any, Kind("a number", _read_scalar)]
Int = Annotated[int, Kind("an int", _read_int)]
Ints = Annotated[tuple[int, ...], Kind("a list of ints", _read_ints)]
Float = Annotated[float, Kind("a float", _read_float)]
Bool = Annotated[bool, Kind("a bool", _read_bool)]
Bools = Annotated[tuple[bool, ...], Kind("a list of bools", _read_bools)]
Text = Annotated[str, Kind("a text", _read_text)]
DType = Annotated[np.dtype, Kind("a dtype", read_dtype)]
CubeMathType = Annotated[int, Kind("an int (cubeMathType)", _read_int, follows_outputs=True)]
"""How matrix units may round. It stands after the outputs in aclnn's functions for products."""

_ANY = Kind("anything", lambda value: value)


@dataclasses.dataclass(frozen=True)
class AclnnParameter:
    """One parameter of an operator."""

    name: str
    kind: Kind
    is_optional: bool
    has_default: bool


@dataclasses.dataclass(frozen=True)
class AclnnSignature:
    """How an operator is called.

    Attributes:
      parameters: those of its inputs; None if it takes any.
      results: per output whether it may be left out; None if there may be any number. The function
        returns the new values of inputs that it updates after them.
      takes_outputs: whether the function wants to see the declared outputs.
    """

    parameters: tuple[AclnnParameter, ...] | None
    results: tuple[bool, ...] | None
    takes_outputs: bool

    @property
    def updated(self) -> tuple[int, ...]:
        """The positions of the inputs that the operator writes to."""
        return tuple(
            n for n, parameter in enumerate(self.parameters or ()) if parameter.kind.is_updated
        )


def read_signature(function: Callable[..., Any]) -> AclnnSignature:
    """Returns the signature a function declares; where it has no annotations, anything goes."""
    hints = typing.get_type_hints(function, include_extras=True)
    signature = inspect.signature(function)
    known = signature.parameters.values()
    takes_outputs = any(parameter.name == "outputs" for parameter in known)
    parameters = tuple(
        _read_parameter(parameter, hints.get(parameter.name, Any))
        for parameter in known
        if parameter.kind in (parameter.POSITIONAL_ONLY, parameter.POSITIONAL_OR_KEYWORD)
    )
    takes_any = any(parameter.kind is parameter.VAR_POSITIONAL for parameter in known)
    results = _read_results(hints.get("return", Any))
    updated = sum(parameter.kind.is_updated for parameter in parameters)
    if results is not None:
        results = results[: len(results) - updated]
    return AclnnSignature(None if takes_any else parameters, results, takes_outputs)


def _read_parameter(parameter: inspect.Parameter, hint: Any) -> AclnnParameter:
    plain, is_optional = _without_none(hint)
    return AclnnParameter(
        parameter.name,
        next((note for note in getattr(plain, "__metadata__", ()) if isinstance(note, Kind)), _ANY),
        is_optional,
        parameter.default is not parameter.empty,
    )


def _read_results(hint: Any) -> tuple[bool, ...] | None:
    if hint is Any or typing.get_origin(hint) is list:
        return None
    if typing.get_origin(hint) is tuple:
        return tuple(_without_none(item)[1] for item in typing.get_args(hint))
    return (False,)


def _without_none(hint: Any) -> tuple[Any, bool]:
    """Returns the part of ``T | None`` that is not None, and whether None was there."""
    if typing.get_origin(hint) not in (typing.Union, types.UnionType):
        return hint, False
    parts = [part for part in typing.get_args(hint) if part is not type(None)]
    return parts[0], len(parts) < len(typing.get_args(hint))
