"""Attributes that an author declares without op info: ``Custom(attrs={"alpha": 0.5})``."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from msops._op_info.attributes import ANY, text_of_value, type_of
from msops._op_info.model import Attribute, OpInfo, Port
from msops.errors import OpInfoTypeError

_SCALARS = {bool: "bool", int: "int", float: "float", str: "str"}

REQUIRED: Any = object()
"""Marks the default of an attribute of any type that a call must give."""


def declare_attributes(
    op_name: str, values: Mapping[str, Any], inputs: Sequence[Port], by_name: bool, who: str
) -> OpInfo:
    """Returns op info of no target with the attributes.

    Args:
      op_name: the op's name.
      values: by name the default, whose type the attribute has; one of the types bool, int, float
        and str of an attribute that a call must give; None for an attribute of any type that has no
        value unless a call gives it; or `REQUIRED`.
      inputs: the inputs, if their number is known.
      by_name: whether a call gives attributes by name only.
      who: the op, for messages.

    Raises:
      OpInfoTypeError: a value is none of these.
    """
    attributes = tuple(_declare(name, value, who) for name, value in values.items())
    return OpInfo(op_name, "", tuple(inputs), (), attributes, (), by_name)


def is_attribute(value: Any) -> bool:
    """Returns whether a default in a signature makes its parameter an attribute."""
    if value is None:
        return True
    if not isinstance(value, (bool, int, float, str, list, tuple)):
        return False
    try:
        type_of(value)
    except (TypeError, ValueError):
        return False
    return True


def _declare(name: str, value: Any, who: str) -> Attribute:
    if value is REQUIRED:
        return Attribute(name, True, ANY)
    if value is None:
        return Attribute(name, False, ANY)
    if isinstance(value, type) and value in _SCALARS:
        return Attribute(name, True, _SCALARS[value])
    try:
        type_name = type_of(value)
    except (TypeError, ValueError):
        raise OpInfoTypeError.explained(
            who,
            f"expected attribute {name!r} to be declared by its default, a bool, int, float, "
            f"str or a list of these, or by its type; got {value!r}",
            'Write attrs={"alpha": 0.5}, or attrs={"alpha": float} if a call must give it.',
        ) from None
    if isinstance(value, (list, tuple)) and not value:
        # It says nothing of its elements.
        return Attribute(name, False, ANY, "[]")
    return Attribute(name, False, type_name, text_of_value(type_name, value))
