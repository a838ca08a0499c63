"""MindSpore's names for the arguments of functions and methods.

The functions of arrays take them by place; many are those of `jax.numpy`, whose names differ, and
MindSpore itself names one argument differently in a function, a method and a primitive.
"""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable
from typing import Any

_ROWS = (
    (
        "input",
        "abs ceil cos cosh erf exp expm1 floor isfinite isnan log log1p logical_not neg "
        "reciprocal relu rsqrt sigmoid sign sin sinh square tan tanh",
    ),
    ("x", "sqrt addn"),
    (
        "input other",
        "add sub mul maximum minimum bitwise_and bitwise_or bitwise_xor equal not_equal "
        "less less_equal greater greater_equal tensor_add tensor_sub tensor_mul eq ne lt le "
        "gt ge",
    ),
    ("input/x other/y", "logical_and logical_or"),
    ("x y", "floor_mod mod tensor_div"),
    ("x/input y/other", "floor_div"),
    ("dividend divisor", "true_divide"),
    ("input exponent", "pow tensor_pow"),
    ("input other rounding_mode", "div"),
    ("input/x other/mat2/y", "matmul"),
    ("input/input_x dtype", "cast"),
    ("input/x axis keep_dims", "all any"),
    ("input/x axis keepdims", "amax amin"),
    ("x axis keep_dims", "mean"),
    ("input/x axis keep_dims dtype", "prod"),
    ("x axis keep_dims", "reduce_sum"),
    ("input dim keepdim dtype", "sum"),
    ("input dim keepdim", "argmax"),
    ("input axis keepdims", "argmin"),
    ("x axis keep_dims dtype", "count_nonzero"),
    ("input axis ddof keepdims", "var"),
    ("input min max", "clamp clip"),
    ("x clip_value_min clip_value_max", "clip_by_value"),
    ("condition input other", "select where"),
    ("input_params input_indices axis batch_dims", "gather"),
    ("tensors axis", "concat cat stack"),
    ("tensor split_size_or_sections axis", "split"),
    ("input_x axis descending", "sort"),
    ("input k dim largest sorted", "topk"),
    ("input axis dtype", "softmax"),
    ("input decimals", "round"),
    ("input shape", "reshape broadcast_to"),
    ("input dims", "transpose"),
    ("input axis", "permute"),
    ("input dims", "tile"),
    ("input axis", "squeeze"),
    ("input_x axis", "expand_dims"),
    ("input/input_x order", "flatten"),
    ("input_x/input begin size", "slice"),
    ("input fill_value dtype", "full_like"),
    ("input/x dtype", "zeros_like ones_like"),
    ("value", "stop_gradient"),
    ("input_x/x", "shape rank size"),
    ("x", "dtype"),
    ("input_x", "tensor_shape"),
    ("variable value", "assign"),
)
"""Names in the order of the arguments, "/" between several of one; and who has them."""

ARGUMENTS = {function: names for names, functions in _ROWS for function in functions.split()}


def named(function: Callable[..., Any], names: str) -> Callable[..., Any]:
    """Returns `function` with more names for its arguments.

    Args:
      function: takes its arguments by place; it keeps its own names.
      names: the others, in the order of the arguments, as in `ARGUMENTS`.
    """
    places = {name: n for n, entry in enumerate(names.split()) for name in entry.split("/")}

    @functools.wraps(function)
    def call(*args: Any, **kwargs: Any) -> Any:
        if kwargs:
            args, kwargs = _placed(function, places, args, kwargs)
        return function(*args, **kwargs)

    return call


def _placed(
    function: Callable[..., Any],
    places: dict[str, int],
    args: tuple[Any, ...],
    kwargs: dict[str, Any],
) -> tuple[tuple[Any, ...], dict[str, Any]]:
    given: dict[int | str, Any] = {}
    for name, value in kwargs.items():
        place = places.get(name, name)
        if place in given:
            raise TypeError(f"{function.__name__}() got two values for one argument: {name!r}")
        given[place] = value
    # By place as far as possible: functions of jax.numpy have arguments without names.
    while len(args) in given:
        args = (*args, given.pop(len(args)))
    own = list(inspect.signature(function).parameters)
    return args, {own[at] if isinstance(at, int) else at: value for at, value in given.items()}
