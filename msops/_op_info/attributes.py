"""Attribute values: what each type accepts, how text is decoded, how a call's values are bound."""

from __future__ import annotations

import json
import math
import numbers
from collections.abc import Callable, Sequence
from functools import lru_cache
from typing import Any

import jax

from msops._op_info.model import Attribute, OpInfo
from msops.errors import OpInfoTypeError, OpInfoValueError, explain


class _Tensor:
    """The type of an attribute that is a tensor, which only operators of Ascend have."""


# Each attribute type is a scalar type in that many lists. "number" and "tensor" are types of
# parameters of Ascend's operators: a number of any kind, and a tensor behind numbers.
TYPES: dict[str, tuple[type, int]] = {
    "int": (int, 0),
    "float": (float, 0),
    "str": (str, 0),
    "bool": (bool, 0),
    "listInt": (int, 1),
    "listFloat": (float, 1),
    "listStr": (str, 1),
    "listBool": (bool, 1),
    "listListInt": (int, 2),
    "listListFloat": (float, 2),
    "double": (float, 0),
    "number": (numbers.Real, 0),
    "tensor": (_Tensor, 0),
}
ANY = "any"
"""The type of an attribute that takes a value of each of `TYPES`."""

_BOOLS = {"true": True, "false": False}
_INT64 = range(-(2**63), 2**63)


def call_attributes(info: OpInfo) -> tuple[Attribute, ...]:
    """Returns the attributes that a call gives, in order: those without a fixed value."""
    return tuple(attribute for attribute in info.attributes if attribute.value is None)


def call_attribute_names(info: OpInfo) -> tuple[str, ...]:
    """Returns the names of the attributes that a call gives, in order."""
    return tuple(attribute.name for attribute in call_attributes(info))


def bind_attributes(
    info: OpInfo, values: Sequence[Any], who: str
) -> tuple[tuple[str, object], ...]:
    """Returns every attribute's value for one call, in the order of the op info.

    An optional attribute that is neither given nor has a default is left out. None means a
    value not given, so that one before the last can be.

    Args:
      info: the op info of the op.
      values: what the call passed after the tensors: Python numbers, texts and (nested) lists of
        them, numpy and JAX scalars, arrays of one element where a number is wanted.
      who: the op, for messages.

    Returns:
      (name, value) pairs; values are bool, int, float, str, tuples, or tuples of tuples of them.

    Raises:
      OpInfoValueError: there are too many values, or a required one is missing.
      OpInfoTypeError: a value does not fit its attribute's type, or is traced.
    """
    if not info.attributes and not values:
        return ()
    called = call_attributes(info)
    if len(values) > len(called):
        raise OpInfoValueError(_too_many(info, called, values, who))
    given = dict(zip([attribute.name for attribute in called], values, strict=False))
    bound = []
    for attribute in info.attributes:
        value = _bind(info, attribute, given.get(attribute.name), who)
        if value is not None:
            bound.append((attribute.name, value))
    return tuple(bound)


def _bind(info: OpInfo, attribute: Attribute, given: Any, who: str) -> object | None:
    """Returns the value of one attribute: fixed, given, default, or None for absent."""
    if attribute.value is not None:
        return attribute.value
    is_declared = not info.target
    if given is not None:
        other = "give it another default" if is_declared else _OTHER_TYPE
        return as_value(attribute.name, attribute.type, given, who, other)
    if attribute.default is not None:
        return decode_text(attribute.type, attribute.default)
    if not attribute.required:
        return None
    raise OpInfoValueError.explained(
        who,
        f"expected a value for the required attribute {attribute.name!r} "
        f"({attribute.type}); got none",
        f"Pass it by name, {attribute.name}=..., or give it a default"
        + (
            f" in the kernel's signature, or by attrs={{{attribute.name!r}: ...}}."
            if is_declared
            else " in attrs=, or with .attr(..., default_value=...)."
        ),
    )


_OTHER_TYPE = "change the attribute's value_type in the op info"


def as_value(name: str, type_name: str, value: Any, who: str, other: str = _OTHER_TYPE) -> object:
    """Returns `value` as hashable Python, checked against the attribute type `type_name`.

    Args:
      name: of the attribute.
      type_name: a key of `TYPES`.
      value: what a call, or op info, gives it.
      who: the op, for messages.
      other: what to do so that the attribute takes such a value, for messages.
    """
    try:
        return _convert(value, *TYPES[type_of(value) if type_name == ANY else type_name])
    except _TracedError:
        raise OpInfoTypeError.explained(
            who,
            f"expected attribute {name!r} to be a value known when the op is traced; "
            f"got the tracer {value!r}",
            "Pass a Python value, or mark the argument it comes from as static "
            "(static_argnums of jax.jit), or make it a tensor input of the op.",
        ) from None
    except (_MismatchError, OverflowError):
        raise OpInfoTypeError.explained(
            who,
            f"expected attribute {name!r} to be {_wanted(type_name)}; "
            f"got {value!r} ({type(value).__name__})",
            f"Pass {_wanted(type_name)}, or {other}.",
        ) from None


@lru_cache(maxsize=1024)
def decode_text(type_name: str, text: str) -> object:
    """Returns the value that `text` means: the text of a default or of a fixed value.

    Lists are comma-separated (``"1,2,3"``) or JSON (``"[1, 2, 3]"``); lists of lists are JSON.

    Raises:
      ValueError: `text` does not spell a value of that type.
    """
    if type_name == ANY:
        value = json.loads(text)
        return _convert(value, *TYPES[type_of(value)])
    scalar, depth = TYPES[type_name]
    if depth == 0:
        return _convert(_SCALAR_TEXTS[scalar](text), scalar, 0)
    stripped = text.strip()
    if depth == 2 or stripped.startswith("["):
        return _convert(_decode_json(stripped), scalar, depth)
    parts = stripped.split(",") if stripped else []
    return tuple(decode_text(_SCALAR_NAMES[scalar], part.strip()) for part in parts)


def _decode_json(text: str) -> Any:
    try:
        return json.loads(text)
    except RecursionError:
        raise ValueError("lists are nested too deep") from None


def _bool_of(text: str) -> bool:
    value = _BOOLS.get(text.strip().lower())
    if value is None:
        raise ValueError(f"{text!r} is neither true nor false")
    return value


def _number_of(text: str) -> int | float:
    try:
        return int(text)
    except ValueError:
        return float(text)


def _tensor_of(text: str) -> Any:
    raise ValueError("a tensor has no text")


_SCALAR_TEXTS: dict[type, Callable[[str], Any]] = {
    int: int,
    float: float,
    str: str,
    bool: _bool_of,
    numbers.Real: _number_of,
    _Tensor: _tensor_of,
}
_SCALAR_NAMES = {int: "int", float: "float", str: "str", bool: "bool"}


class _MismatchError(ValueError):
    """A value does not fit an attribute type."""


class _TracedError(TypeError):
    """A value is a JAX tracer."""


def _convert(value: Any, scalar: type, depth: int) -> object:
    if depth == 0:
        return _convert_scalar(value, scalar)
    if hasattr(value, "tolist"):
        value = _concrete(value, "tolist")
    if not isinstance(value, (list, tuple)):
        raise _MismatchError
    return tuple(_convert(item, scalar, depth - 1) for item in value)


def _convert_scalar(value: Any, scalar: type) -> object:
    if hasattr(value, "item") and not isinstance(value, (bool, int, float, str)):
        value = _concrete(value, "item")
    if scalar is numbers.Real and isinstance(value, (bool, int, float)):
        return value
    # bool is an int to Python, and would pass silently where a number is meant.
    if isinstance(value, bool) != (scalar is bool):
        raise _MismatchError
    if scalar is float and isinstance(value, (int, float)):
        number = float(value)
        # The one nan object equals itself inside tuples: jit finds the compiled op again.
        return math.nan if math.isnan(number) else number
    if not isinstance(value, scalar) or (scalar is int and value not in _INT64):
        raise _MismatchError
    return scalar(value)


def _concrete(value: Any, method: str) -> Any:
    """Returns what `method` of an array makes of it, unless the array is, or wraps, a tracer."""
    if isinstance(getattr(value, "value", value), jax.core.Tracer):
        raise _TracedError
    try:
        return getattr(value, method)()
    except jax.errors.ConcretizationTypeError:
        raise _TracedError from None
    except ValueError:  # item() of an array of several elements
        raise _MismatchError from None


def _wanted(type_name: str) -> str:
    if type_name == ANY:
        return "a bool, an int of 64 bits, a float, a str or a list of these"
    scalar, depth = TYPES[type_name]
    if scalar is _Tensor:
        return "a tensor, which only an operator of Ascend takes among its attributes"
    if scalar is numbers.Real:
        return "a number"
    noun = "an int of 64 bits" if scalar is int else f"a {scalar.__name__}"
    plural = "ints of 64 bits" if scalar is int else f"{scalar.__name__}s"
    return (noun, f"a list of {plural}", f"a list of lists of {plural}")[depth]


def _too_many(info: OpInfo, called: Sequence[Attribute], values: Sequence[Any], who: str) -> str:
    names = f" ({', '.join(attribute.name for attribute in called)})" if called else ""
    count = f"{len(called)} attribute{'' if len(called) == 1 else 's'}"
    return explain(
        who,
        f"expected at most {count}{names} after the tensors; got {len(values)}",
        "Pass no more, or "
        + (
            "register the attribute with .attr(name, 'required', value_type) of CustomRegOp."
            if info.target
            else "declare the attribute: attrs={name: default}."
        ),
    )


def type_of_fixed(type_name: str, value: Any) -> str | None:
    """Returns the type that a fixed value has, where its value_type does not say; else None.

    MindSpore takes any text as value_type, and scripts write "all"; it also takes a bool for "int".
    """
    is_bool_for_int = isinstance(value, bool) and type_name == "int"
    if type_name in TYPES and not is_bool_for_int:
        return None
    try:
        return type_of(value)
    except (_MismatchError, _TracedError, OverflowError):
        return None


_BY_PREFERENCE = (
    *("bool", "int", "float", "str", "listBool", "listInt", "listFloat", "listStr"),
    *("listListInt", "listListFloat"),
)


def type_of(value: Any) -> str:
    """Returns the first type that takes a value.

    Raises:
      ValueError, TypeError: none does, or the value is traced.
    """
    for name in _BY_PREFERENCE:
        try:
            _convert(value, *TYPES[name])
        except (_MismatchError, OverflowError):
            continue
        return name
    raise _MismatchError


def text_of_value(type_name: str, value: Any) -> str:
    """Returns the text that `decode_text` reads as a value."""
    scalar, depth = TYPES[type_name]
    if scalar is bool or depth:
        return json.dumps(_convert(value, scalar, depth))
    return str(_convert(value, scalar, depth))


def read_fixed(name: str, type_name: str, value: Any, who: str) -> object:
    """Returns the fixed value of an attribute: text is decoded, anything else is checked."""
    if isinstance(value, str):
        return read_text(name, type_name, value, "value", who)
    return as_value(name, type_name, value, who)


def read_text(name: str, type_name: str, text: str, what: str, who: str) -> object:
    """Returns `decode_text` of `text`, naming the attribute and `what` it is in errors."""
    try:
        return decode_text(type_name, text)
    except (ValueError, OverflowError, RecursionError):
        raise OpInfoValueError.explained(
            who,
            f"expected the {what} of attribute {name!r} to be the text of "
            f"{_wanted(type_name)}; got {text!r}",
            "Write numbers as '1' or '1.0', bools as 'true' or 'false', "
            "lists as '1,2,3' and lists of lists as '[[1, 2], [3]]'.",
        ) from None
