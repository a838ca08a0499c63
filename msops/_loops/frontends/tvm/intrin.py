"""TVM's functions of scalars, under TVM's names."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import ml_dtypes
import numpy as np

from msops._loops.frontends.tvm.arithmetic import (
    as_condition,
    binary,
    matched,
    select,
    true_divide,
    union_of,
)
from msops._loops.frontends.tvm.dtypes import as_dtype
from msops._loops.frontends.tvm.expr import ScalarExpr, as_expr, cast, const
from msops._loops.frontends.tvm.tracing import backend_error, value_error
from msops._loops.ir.functions import FUNCTIONS
from msops._loops.ir.nodes import BinaryOp, FunctionCall
from msops._loops.ir.operators import INTEGERS, is_float


def unary(name: str, value: Any) -> ScalarExpr:
    """Returns a function of one scalar.

    Integers round to themselves and are finite; other functions of floats do not take them.
    """
    x = as_expr(value)
    row = FUNCTIONS[name]
    if row.domain == "float" and not is_float(x.dtype):
        if row.tvm_of_integer == "same":
            return x
        if row.tvm_of_integer is not None:
            return const(row.tvm_of_integer)
        raise value_error(
            f"tvm.{name}",
            f"expected a float; got {x.dtype}",
            f'Cast it first: tvm.{name}(x.astype("float32")).',
        )
    if row.domain == "integer" and x.dtype not in INTEGERS:
        raise value_error(
            f"tvm.{name}",
            f"expected an integer; got {x.dtype}",
            f'Cast it first: tvm.{name}(x.astype("int32")).',
        )
    if x.dtype == "bool":
        x = x.astype("int32")
    dtype = "bool" if row.to_bool else x.dtype
    return ScalarExpr(FunctionCall(name, (x.node,), dtype), x.sources)


def of_two(name: str, left: Any, right: Any) -> ScalarExpr:
    """Returns a function of two floats."""
    x, y = matched(f"tvm.{name}", left, right)
    if not is_float(x.dtype):
        raise value_error(
            f"tvm.{name}",
            f"expected floats; got {x.dtype}",
            'Cast the operands first: x.astype("float32").',
        )
    return ScalarExpr(FunctionCall(name, (x.node, y.node), x.dtype), union_of((x, y)))


UNARY: dict[str, Callable[[Any], ScalarExpr]] = {
    name: functools.partial(unary, name) for name, row in FUNCTIONS.items() if row.arity == 1
}
"""TVM's functions of one scalar by name."""

CALLS: dict[str, Callable[..., ScalarExpr]] = UNARY | {
    name: functools.partial(of_two, name) for name, row in FUNCTIONS.items() if row.arity == 2
}
"""TVM's functions of scalars by name."""


def power(x: Any, y: Any) -> ScalarExpr:
    """Returns x to the power y."""
    return binary("pow", x, y)


def div(x: Any, y: Any) -> ScalarExpr:
    """Returns the quotient; of integers rounded towards zero, as C's."""
    left, right = matched("tvm.div", x, y)
    if is_float(left.dtype):
        return true_divide(left, right)
    return binary("truncdiv", left, right)


def truncmod(x: Any, y: Any) -> ScalarExpr:
    """Returns the remainder of `div`, with the sign of x, as C's."""
    left, right = matched("tvm.truncmod", x, y)
    if is_float(left.dtype):
        return of_two("fmod", left, right)
    return binary("truncmod", left, right)


floordiv = functools.partial(binary, "floordiv")
floormod = functools.partial(binary, "mod")
truncdiv = functools.partial(binary, "truncdiv")
minimum = functools.partial(binary, "min")
maximum = functools.partial(binary, "max")


def ceildiv(x: Any, y: Any) -> ScalarExpr:
    """Returns the quotient of integers, rounded up."""
    left, right = matched("tvm.ceildiv", x, y)
    return floordiv(binary("sub", binary("add", left, right), 1), right)


def all_of(*conditions: Any) -> ScalarExpr:
    """Returns whether all conditions hold (``tvm.all``); later ones are read only then."""
    return _joined("tvm.all", "land", conditions)


def any_of(*conditions: Any) -> ScalarExpr:
    """Returns whether any condition holds (``tvm.any``); later ones are read only if not."""
    return _joined("tvm.any", "lor", conditions)


def _joined(name: str, op: BinaryOp, conditions: tuple[Any, ...]) -> ScalarExpr:
    if not conditions:
        raise value_error(
            name,
            "expected at least one condition; got none",
            f"Pass conditions: {name}(i > 0, i < n).",
        )
    return functools.reduce(
        functools.partial(binary, op), [as_condition(name, value) for value in conditions]
    )


def if_then_else(cond: Any, t: Any, f: Any) -> ScalarExpr:
    """Returns `t` where the condition holds, else `f`; only the chosen one is evaluated."""
    return select(cond, t, f)


def likely(expr: Any) -> ScalarExpr:
    """Returns the condition; that it mostly holds is of no use here."""
    return as_expr(expr)


def min_value(dtype: Any) -> ScalarExpr:
    """Returns the smallest finite number of a dtype."""
    return _limit(as_dtype(dtype), "min")


def max_value(dtype: Any) -> ScalarExpr:
    """Returns the largest finite number of a dtype."""
    return _limit(as_dtype(dtype), "max")


def _limit(dtype: str, end: str) -> ScalarExpr:
    if dtype == "bool":
        return const(end == "max")
    info = ml_dtypes.finfo(dtype) if is_float(dtype) else np.iinfo(dtype)
    return const(getattr(info, end).item() if is_float(dtype) else getattr(info, end), dtype)


class ArgExtreme(ScalarExpr):
    """AKG's ``fargmax`` or ``fargmin`` of two elements, which only a reducer can use.

    The reduction is then the index of the extreme element, of the elements' dtype.

    Attributes:
      better: the comparison that holds if the first element is taken.
    """

    __slots__ = ("better", "value")

    def __init__(self, better: BinaryOp, x: Any, y: Any):
        self.better = better
        self.value = as_expr(x)
        self.sources = self.value.sources | as_expr(y).sources

    @property
    def dtype(self) -> str:
        """The dtype, as text."""
        return self.value.dtype

    @property
    def node(self) -> Any:  # type: ignore[override]
        """Raises: an index belongs to a whole reduction."""
        raise value_error(
            "tvm.call_pure_intrin",
            "fargmax and fargmin are only allowed in the function of a tvm.comm_reducer",
            "Write tvm.comm_reducer(lambda x, y: fargmax(x, y), identity), and reduce by it.",
        )


CALLABLE: dict[str, Callable[..., ScalarExpr]] = {
    **CALLS,
    "fargmax": functools.partial(ArgExtreme, "gt"),
    "fargmin": functools.partial(ArgExtreme, "lt"),
    **{alias: CALLS[name] for name, row in FUNCTIONS.items() for alias in row.tvm_aliases},
    "pow": power,
    "power": power,
    "likely": likely,
    "tvm_if_then_else": if_then_else,
}
"""The functions that `tvm.call_pure_intrin` finds by name."""


def call_pure_intrin(dtype: Any, name: str, *args: Any) -> ScalarExpr:
    """Returns an intrinsic function called by name.

    Args:
      dtype: dtype of the result.
      name: one of `CALLABLE`, or ``"reinterpret"`` between integers of one width.
      *args: the arguments.
    """
    if name == "reinterpret":
        return reinterpret(args[0], dtype)
    if name not in CALLABLE:
        raise backend_error(
            "tvm.call_pure_intrin",
            f"the intrinsic {name!r} is not supported",
            f"Supported are {', '.join(sorted([*CALLABLE, 'reinterpret']))}.",
        )
    return cast(CALLABLE[name](*args), dtype)


def reinterpret(value: Any, dtype: Any) -> ScalarExpr:
    """Returns the bits of an integer as another integer of the same width."""
    x, name = as_expr(value), as_dtype(dtype)
    if x.dtype == name:
        return x
    if (
        x.dtype in INTEGERS
        and name in INTEGERS
        and np.dtype(x.dtype).itemsize == np.dtype(name).itemsize
    ):
        return cast(x, name)
    raise backend_error(
        "reinterpret",
        f"the bits of {x.dtype} cannot be read as {name}",
        "Only integers of one width can be reinterpreted; use astype to convert a value.",
    )


def refuse_call(kind: str) -> Callable[..., ScalarExpr]:
    """Returns the function behind a TVM name that calls code outside the kernel."""

    def refuse(*args: Any, **options: Any) -> ScalarExpr:
        names = [arg for arg in args if isinstance(arg, str)]
        # The dtype comes first where there is one.
        function = names[min(1, len(names) - 1)] if names else "?"
        raise backend_error(
            f"tvm.{kind}",
            f"the external function {function!r} is not part of the kernel and cannot be called",
            "Write it by tvm's own functions, or bring C++ code as an operator of func_type "
            '"aot".',
        )

    return refuse
