"""MindSpore's ``_checkparam`` namespace: checks of arguments that operator scripts call.

Each returns the value it checks, and raises where MindSpore 2.7.2 raises, with the same class of
error.
"""

from __future__ import annotations

import math
import operator
from collections.abc import Callable, Iterable, Sequence
from typing import Any

from msops._base.missing_names import missing_names
from msops.errors import ArgumentTypeError, ArgumentValueError, explain

EQ, NE, LT, LE, GT, GE = range(1, 7)
INC_NEITHER, INC_LEFT, INC_RIGHT, INC_BOTH = range(7, 11)
IN, NOT_IN = 11, 12

_RELATIONS: dict[int, tuple[str, Callable[[Any, Any], bool]]] = {
    EQ: ("equal to", operator.eq),
    NE: ("other than", operator.ne),
    LT: ("less than", operator.lt),
    LE: ("at most", operator.le),
    GT: ("greater than", operator.gt),
    GE: ("at least", operator.ge),
    IN: ("one of", lambda value, values: value in values),
    NOT_IN: ("none of", lambda value, values: value not in values),
}
_RANGES: dict[int, tuple[str, str]] = {
    INC_NEITHER: ("(", ")"),
    INC_LEFT: ("[", ")"),
    INC_RIGHT: ("(", "]"),
    INC_BOTH: ("[", "]"),
}


def _refuse(
    family: type[Exception], prim_name: str | None, name: str | None, expected: str, value: Any
) -> Exception:
    who = prim_name or "_checkparam"
    got = f"{value!r} ({type(value).__name__})"
    text = f"expected {name or 'the argument'} to be {expected}; got {got}"
    return family(explain(who, text, "Correct the argument."))


def _number(value: Any, kind: type, name: str | None, prim_name: str | None) -> Any:
    """Returns a number of a kind: an int is no bool, and a float is finite."""
    if not isinstance(value, kind) or isinstance(value, bool):
        raise _refuse(ArgumentTypeError, prim_name, name, f"of type {kind.__name__}", value)
    if isinstance(value, float) and not math.isfinite(value):
        raise _refuse(ArgumentValueError, prim_name, name, "a finite float", value)
    return value


def _related(value: Any, limit: Any, rel: int, name: str | None, prim_name: str | None) -> Any:
    words, holds = _RELATIONS[rel]
    if not holds(value, limit):
        raise _refuse(ArgumentValueError, prim_name, name, f"{words} {limit!r}", value)
    return value


def _within(
    value: Any, lower: Any, upper: Any, rel: int, name: str | None, prim_name: str | None
) -> Any:
    first, last = _RANGES[rel]
    above = value >= lower if first == "[" else value > lower
    below = value <= upper if last == "]" else value < upper
    if not (above and below):
        where = f"in {first}{lower!r}, {upper!r}{last}"
        raise _refuse(ArgumentValueError, prim_name, name, where, value)
    return value


def check(
    arg_name: str,
    arg_value: Any,
    value_name: str,
    value: Any,
    rel: int = EQ,
    prim_name: str | None = None,
    excp_cls: type[Exception] = ValueError,
) -> Any:
    """Returns `arg_value`, which must have the relation to `value` that `rel` names."""
    words, holds = _RELATIONS[rel]
    if holds(arg_value, value):
        return arg_value
    family = {ValueError: ArgumentValueError, TypeError: ArgumentTypeError}.get(excp_cls, excp_cls)
    raise _refuse(family, prim_name, arg_name, f"{words} {value_name}, {value!r}", arg_value)


def check_int(
    arg_value: Any, value: int, rel: int, arg_name: str | None = None, prim_name: str | None = None
) -> int:
    """Returns an int that has a relation to `value`."""
    number = _number(arg_value, int, arg_name, prim_name)
    return _related(number, value, rel, arg_name, prim_name)


def check_is_int(arg_value: Any, arg_name: str | None = None, prim_name: str | None = None) -> int:
    """Returns an int; a bool is none."""
    return _number(arg_value, int, arg_name, prim_name)


def check_equal_int(
    arg_value: Any, value: int, arg_name: str | None = None, prim_name: str | None = None
) -> int:
    """Returns an int that equals `value`."""
    return check_int(arg_value, value, EQ, arg_name, prim_name)


def check_positive_int(
    arg_value: Any, arg_name: str | None = None, prim_name: str | None = None
) -> int:
    """Returns an int above 0."""
    return check_int(arg_value, 0, GT, arg_name, prim_name)


def check_non_negative_int(
    arg_value: Any, arg_name: str | None = None, prim_name: str | None = None
) -> int:
    """Returns an int of 0 or more."""
    return check_int(arg_value, 0, GE, arg_name, prim_name)


def check_int_range(
    arg_value: Any,
    lower_limit: int,
    upper_limit: int,
    rel: int,
    arg_name: str | None = None,
    prim_name: str | None = None,
) -> int:
    """Returns an int within limits; `rel` says which of them belong to the range."""
    number = _number(arg_value, int, arg_name, prim_name)
    return _within(number, lower_limit, upper_limit, rel, arg_name, prim_name)


def check_is_float(
    arg_value: Any, arg_name: str | None = None, prim_name: str | None = None
) -> float:
    """Returns a finite float."""
    return _number(arg_value, float, arg_name, prim_name)


def check_float(
    arg_value: Any,
    value: float,
    rel: int,
    arg_name: str | None = None,
    prim_name: str | None = None,
) -> float:
    """Returns a float that has a relation to `value`."""
    number = _number(arg_value, float, arg_name, prim_name)
    return _related(number, value, rel, arg_name, prim_name)


def check_positive_float(
    arg_value: Any, arg_name: str | None = None, prim_name: str | None = None
) -> float:
    """Returns a float above 0."""
    return check_float(arg_value, 0, GT, arg_name, prim_name)


def check_non_negative_float(
    arg_value: Any, arg_name: str | None = None, prim_name: str | None = None
) -> float:
    """Returns a float of 0 or more."""
    return check_float(arg_value, 0, GE, arg_name, prim_name)


def check_float_range(
    arg_value: Any,
    lower_limit: float,
    upper_limit: float,
    rel: int,
    arg_name: str | None = None,
    prim_name: str | None = None,
) -> float:
    """Returns a float within limits; `rel` says which of them belong to the range."""
    number = _number(arg_value, float, arg_name, prim_name)
    return _within(number, lower_limit, upper_limit, rel, arg_name, prim_name)


def check_bool(arg_value: Any, arg_name: str | None = None, prim_name: str | None = None) -> bool:
    """Returns a bool."""
    if not isinstance(arg_value, bool):
        raise _refuse(ArgumentTypeError, prim_name, arg_name, "a bool", arg_value)
    return arg_value


def check_string(
    arg_value: Any,
    valid_values: Sequence[str],
    arg_name: str | None = None,
    prim_name: str | None = None,
) -> str:
    """Returns one of `valid_values`."""
    if not isinstance(arg_value, str) or arg_value not in valid_values:
        expected = f"one of {', '.join(map(repr, valid_values))}"
        raise _refuse(ArgumentValueError, prim_name, arg_name, expected, arg_value)
    return arg_value


def check_value_type(
    arg_name: str, arg_value: Any, valid_types: Any, prim_name: str | None = None
) -> Any:
    """Returns a value of one of `valid_types`; a bool is an int only where bool is listed."""
    kinds = tuple(valid_types) if isinstance(valid_types, Iterable) else (valid_types,)
    is_stray_bool = isinstance(arg_value, bool) and bool not in kinds
    if is_stray_bool or not isinstance(arg_value, kinds):
        names = " or ".join(getattr(kind, "__name__", str(kind)) for kind in kinds)
        raise _refuse(ArgumentTypeError, prim_name, arg_name, f"of type {names}", arg_value)
    return arg_value


def check_isinstance(arg_name: str, arg_value: Any, classes: Any) -> Any:
    """Returns an instance of one of `classes`."""
    if not isinstance(arg_value, classes):
        raise _refuse(ArgumentValueError, None, arg_name, f"of type {classes}", arg_value)
    return arg_value


def check_tensor_dtype_valid(
    arg_name: str, arg_type: Any, valid_dtypes: Iterable[Any], prim_name: str | None
) -> Any:
    """Returns a dtype that is one of `valid_dtypes`."""
    allowed = tuple(valid_dtypes)
    if arg_type not in allowed:
        names = ", ".join(map(str, allowed))
        raise _refuse(ArgumentTypeError, prim_name, arg_name, f"one of {names}", arg_type)
    return arg_type


def check_tensors_dtypes_same_and_valid(
    args: dict[str, Any], valid_dtypes: Iterable[Any], prim_name: str | None
) -> Any:
    """Returns the dtype that all `args` have, by name; it is one of `valid_dtypes`."""
    allowed = tuple(valid_dtypes)
    first = next(iter(args.values()))
    for name, dtype in args.items():
        check_tensor_dtype_valid(name, dtype, allowed, prim_name)
        if dtype != first:
            raise _refuse(ArgumentTypeError, prim_name, name, f"{first}, as the others", dtype)
    return first


__getattr__ = missing_names(__name__)
