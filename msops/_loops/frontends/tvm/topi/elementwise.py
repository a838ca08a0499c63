"""Functions of each element, and binary operations with numpy's broadcasting."""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import Any

from msops._loops.frontends.tvm import expr, intrin
from msops._loops.frontends.tvm.arithmetic import as_condition, binary
from msops._loops.frontends.tvm.compute import compute
from msops._loops.frontends.tvm.dtypes import as_dtype
from msops._loops.frontends.tvm.expr import ScalarExpr, as_expr
from msops._loops.frontends.tvm.tensor import Tensor, as_shape, as_tensor, as_tensors
from msops._loops.frontends.tvm.topi.shapes import broadcast_element, broadcast_shapes, elementwise
from msops._loops.frontends.tvm.tracing import wrong_value

_SCALAR_UNARY: dict[str, Callable[[Any], ScalarExpr]] = {
    **intrin.UNARY,
    "identity": expr.as_expr,
    "negative": lambda x: -expr.as_expr(x),
}


def _unary(name: str) -> Callable[[Any], Any]:
    def apply(x: Any) -> Any:
        return elementwise(name, _SCALAR_UNARY[name], x)

    apply.__name__ = name
    apply.__doc__ = f"Returns {name} of each element."
    return apply


UNARY = {name: _unary(name) for name in _SCALAR_UNARY}
"""The functions of one scalar, elementwise."""


def _logical(op: Any) -> Callable[[Any, Any], ScalarExpr]:
    def apply(x: Any, y: Any) -> ScalarExpr:
        name = f"topi.{op}"
        return binary(op, as_condition(name, x), as_condition(name, y))

    return apply


_SCALAR_BINARY: dict[str, Callable[[Any, Any], ScalarExpr]] = {
    "add": functools.partial(binary, "add"),
    "subtract": functools.partial(binary, "sub"),
    "multiply": functools.partial(binary, "mul"),
    "divide": intrin.div,
    "floor_divide": intrin.floordiv,
    "mod": intrin.truncmod,
    "floor_mod": intrin.floormod,
    "power": intrin.power,
    "maximum": intrin.maximum,
    "minimum": intrin.minimum,
    "left_shift": functools.partial(binary, "shl"),
    "right_shift": functools.partial(binary, "shr"),
    "bitwise_and": functools.partial(binary, "and"),
    "bitwise_or": functools.partial(binary, "or"),
    "bitwise_xor": functools.partial(binary, "xor"),
    "equal": functools.partial(binary, "eq"),
    "not_equal": functools.partial(binary, "ne"),
    "less": functools.partial(binary, "lt"),
    "less_equal": functools.partial(binary, "le"),
    "greater": functools.partial(binary, "gt"),
    "greater_equal": functools.partial(binary, "ge"),
    "logical_and": _logical("land"),
    "logical_or": _logical("lor"),
    "logical_xor": lambda x, y: binary("ne", as_condition("", x), as_condition("", y)),
}


def _binary(name: str) -> Callable[[Any, Any], Any]:
    def apply(lhs: Any, rhs: Any) -> Any:
        return elementwise(name, _SCALAR_BINARY[name], lhs, rhs)

    apply.__name__ = name
    apply.__doc__ = f"Returns {name} of the elements, broadcast together."
    return apply


BINARY = {name: _binary(name) for name in _SCALAR_BINARY}
"""The operations on two operands; each a tensor or a number."""


def logical_not(data: Any) -> Any:
    """Returns whether each element is false."""
    return elementwise("logical_not", lambda value: ~as_condition("topi.logical_not", value), data)


def bitwise_not(data: Any) -> Any:
    """Returns each element with its bits inverted."""
    return elementwise("bitwise_not", lambda value: ~expr.as_expr(value), data)


def cast(x: Any, dtype: Any) -> Any:
    """Returns each element converted; floats to integers truncate."""
    name = as_dtype(dtype)
    if isinstance(x, Tensor) and x.dtype == name:
        return x
    return elementwise("cast", lambda value: expr.cast(value, name), x)


def reinterpret(x: Any, dtype: Any) -> Any:
    """Returns the bits of each integer as another integer of the same width."""
    return elementwise("reinterpret", lambda value: intrin.reinterpret(value, dtype), x)


def clip(x: Any, a_min: Any, a_max: Any) -> Any:
    """Returns each element, at least `a_min` and at most `a_max`, in its dtype."""

    def element(value: Any) -> ScalarExpr:
        number = expr.as_expr(value)
        low, high = (expr.cast(bound, number.dtype) for bound in (a_min, a_max))
        return intrin.maximum(intrin.minimum(number, high), low)

    return elementwise("clip", element, x)


def elemwise_sum(xs: Sequence[Tensor]) -> Any:
    """Returns the sum of several tensors of one shape."""
    tensors = as_tensors("topi.elemwise_sum", xs)
    plus = _SCALAR_BINARY["add"]
    return elementwise("elemwise_sum", lambda *terms: functools.reduce(plus, terms), *tensors)


def where(condition: Any, x: Any, y: Any) -> Any:
    """Returns elements of `x` where the condition holds, else of `y`.

    Args:
      condition: bools or numbers, of which 0 is false; broadcast with the others, of one
        dimension: one for each first index of `x`.
      x: a tensor or a number.
      y: a tensor or a number.
    """
    if isinstance(condition, Tensor) and isinstance(x, Tensor) and condition.ndim == 1 < x.ndim:
        return _where_rows(condition, x, as_tensor(y))
    return elementwise("where", _chosen, condition, x, y)


def _chosen(condition: Any, x: Any, y: Any) -> Any:
    test = as_expr(condition)
    return intrin.if_then_else(test if test.dtype == "bool" else binary("ne", test, 0), x, y)


def _where_rows(condition: Tensor, x: Tensor, y: Tensor) -> Any:
    if condition.shape[0] != x.shape[0] or x.shape != y.shape:
        raise wrong_value(
            f"a condition of {condition.shape[0]} elements does not fit tensors of shapes "
            f"{tuple(map(int, x.shape))} and {tuple(map(int, y.shape))}",
            "A condition of one dimension has one element for each first index of both.",
        )
    return compute(
        x.shape,
        lambda i, *rest: intrin.if_then_else(condition(i), x(i, *rest), y(i, *rest)),
        name="T_where",
    )


def broadcast_to(data: Tensor, shape: Any) -> Any:
    """Returns a tensor repeated along new dimensions and those of extent 1."""
    wanted = as_shape("topi.broadcast_to", shape)
    if broadcast_shapes(data.shape, wanted) != wanted:
        raise wrong_value(
            f"the shape {tuple(map(int, data.shape))} cannot become {tuple(map(int, wanted))}",
            "Broadcasting repeats extents of 1 and adds dimensions in front.",
        )
    return compute(wanted, lambda *indices: broadcast_element(data, indices), name="T_broadcast_to")
