"""Conversions of arguments that a YAML file may name: ``arg_handler: to_pair``.

Source: MindSpore 2.10.0, mindspore/ops/_utils/arg_handler.py; the numbers of enums as its
``str_to_enum`` gives them.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import numpy as np

from msops._base.dtypes import DType
from msops.errors import ArgumentTypeError, ArgumentValueError

_LAYOUTS = {"NCHW": 0, "NHWC": 1, "NCDHW": 14}
_ENUMS: dict[str, dict[str, int]] = {
    "approximate": {"none": 0, "tanh": 1},
    "coordinate_transformation_mode": {"align_corners": 1, "half_pixel": 2},
    "data_format": _LAYOUTS,
    "format": _LAYOUTS,
    "input_layout": {"BSH": 0, "BNSD": 1, "SBH": 2, "BSND": 3, "TND": 4},
    "interpolation_mode": {"bilinear": 0, "nearest": 1},
    "norm": {"backward": 0, "forward": 1, "ortho": 2},
    "pad_mode": {"pad": 0, "same": 1, "valid": 2},
    "padding_mode": {"zeros": 0, "border": 1, "reflection": 2},
    "reduction": {"sum": 0, "mean": 1, "none": 2},
    "rounding_mode": {"trunc": 1, "floor": 2},
}


def _dtype_to_type_id(who: str, name: str, value: Any) -> int:
    if isinstance(value, DType) and value.type_id is not None:
        return value.type_id
    raise ArgumentTypeError.explained(
        who, f"expected argument '{name}' as a dtype; got {value!r}", "Pass ms.float32, say."
    )


def _str_to_enum(who: str, name: str, value: Any) -> int | None:
    if value is None:
        return None
    if not isinstance(value, str):
        raise ArgumentTypeError.explained(
            who, f"expected argument '{name}' str; got {type(value).__name__}", "Pass a str."
        )
    enum = {text.lower(): number for text, number in _ENUMS.get(name, {}).items()}
    if value.lower() in enum:
        return enum[value.lower()]
    known = f"it knows {', '.join(_ENUMS[name])}" if enum else f"there is no enum '{name}'"
    raise ArgumentValueError.explained(
        who,
        f"expected a text that str_to_enum knows for argument '{name}'; got {value!r}, and {known}",
        f"The arguments with an enum are {', '.join(_ENUMS)}.",
    )


def _refuse(who: str, name: str, value: Any) -> ArgumentValueError:
    return ArgumentValueError.explained(
        who,
        f"expected argument '{name}' as a number, or a tuple or list of numbers; got {value!r}",
        "Pass 2 or (2, 2), say.",
    )


def _to_pair(who: str, name: str, value: Any) -> Any:
    if isinstance(value, (int, float)):
        return (value, value)
    if isinstance(value, (tuple, list)):
        return value
    raise _refuse(who, name, value)


def _last_two(who: str, name: str, value: Any, cuts: bool = True) -> Any:
    """Makes a pair of an int, and with `cuts` of four numbers the last two."""
    if isinstance(value, int):
        return (value, value)
    if isinstance(value, (tuple, list)):
        return (value[2], value[3]) if cuts and len(value) == 4 else value
    raise _refuse(who, name, value)


def _generator(who: str, name: str, value: Any) -> Any:
    if not isinstance(value, (tuple, list)):
        raise _refuse(who, name, value)
    return tuple(np.asarray(item, np.int64) if isinstance(item, int) else item for item in value)


HANDLERS: dict[str, Callable[[str, str, Any], Any]] = {
    "dtype_to_type_id": _dtype_to_type_id,
    "str_to_enum": _str_to_enum,
    "to_pair": _to_pair,
    "to_kernel_size": _last_two,
    "to_strides": _last_two,
    "to_2d_paddings": functools.partial(_last_two, cuts=False),
    "to_dilations": _last_two,
    "to_output_padding": _last_two,
    "to_rates": _last_two,
    "generator_handler": _generator,
}
"""By name: functions of the operator's name, the argument's, and its value."""
