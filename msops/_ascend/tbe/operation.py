"""An operation of the DSL on whole tensors, beside the loops that `tvm.compute` makes."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import jax.numpy as jnp
import numpy as np

from msops._ascend.tbe.session import KernelTypeError, remember_dtype
from msops._loops.frontends.tvm.expr import ConstExpr, const
from msops._loops.frontends.tvm.tensor import Operation, Tensor, as_shape
from msops._loops.frontends.tvm.tracing import author_location, build_error, call_error, fresh_key
from msops._loops.ir.operators import is_float

Rule = Callable[..., Any]
"""From one array per input to the array of the result, in JAX."""


@dataclass(frozen=True, eq=False, kw_only=True)
class DslOperation(Operation):
    """A tensor made from whole tensors.

    Attributes:
      rule: what it computes.
      options: its further arguments, as text.
      factor: the product of the numbers that a chain of `vmuls` up to here multiplies by.
    """

    rule: Rule
    options: str = ""
    factor: float = 1.0


def apply(
    name: str,
    rule: Rule,
    inputs: Sequence[Tensor],
    shape: Sequence[int],
    dtype: str,
    options: Any = "",
    factor: float = 1.0,
) -> Tensor:
    """Returns the tensor that an operation makes.

    Args:
      name: the DSL's name for it.
      rule: what it computes.
      inputs: the tensors it reads.
      shape: shape of the result.
      dtype: dtype of the result.
      options: its further arguments, for texts.
      factor: see `DslOperation`.
    """
    operation = DslOperation(
        name,
        (as_shape(name, tuple(shape)),),
        (dtype,),
        (fresh_key(name),),
        location=author_location(),
        inputs=tuple(inputs),
        rule=rule,
        options=str(options),
        factor=factor,
    )
    return operation.output(0)


def check_tensors(name: str, *values: Any) -> tuple[Tensor, ...]:
    """Returns operands, which must be tensors; the first one is remembered.

    Args:
      name: the function they were given to.
      *values: the operands.
    """
    for position, value in enumerate(values):
        if not isinstance(value, Tensor):
            raise call_error(
                KernelTypeError,
                name,
                f"expected a tensor as operand {position}; got {type(value).__name__}",
                "Make tensors of numbers by broadcast(number, shape, dtype), or use the function "
                "for scalars (vadds, vmuls, vmaxs, vmins).",
            )
    remember_dtype(values[0].dtype)
    return values


def number_of(name: str, value: Any, dtype: str) -> Any:
    """Returns a scalar operand as a Python number that a dtype holds.

    Args:
      name: the function it was given to.
      value: a Python number or `tvm.const`.
      dtype: the dtype of the tensor beside it.
    """
    if isinstance(value, Tensor) or not isinstance(value, (bool, int, float, ConstExpr)):
        given = getattr(value, "item", None)
        if isinstance(value, Tensor) or given is None:
            raise call_error(
                KernelTypeError,
                name,
                f"expected a number; got {type(value).__name__}",
                "Pass a Python number or tvm.const(value, dtype); for two tensors use the "
                "function without the s (vadd, vmul, vmax, vmin).",
            )
        value = given()
    number = value.value if isinstance(value, ConstExpr) else value
    if not _holds(dtype, number):
        raise call_error(
            KernelTypeError,
            name,
            f"expected a number of {dtype}, the dtype of the tensor; got {number!r}",
            'Cast the tensor first: cast_to(x, "float32").',
        )
    return const(number, dtype).value


def _holds(dtype: str, number: Any) -> bool:
    """Returns whether a dtype has a number, a float one up to rounding."""
    if is_float(dtype):
        return not math.isfinite(number) or abs(number) <= float(jnp.finfo(dtype).max)
    if dtype == "bool":
        return number in (0, 1)
    info = np.iinfo(dtype)
    return math.isfinite(number) and number == int(number) and info.min <= number <= info.max


def check_same_shape(name: str, *tensors: Tensor) -> tuple[int, ...]:
    """Returns the shape that tensors share; TBE broadcasts nothing by itself.

    Args:
      name: the function they were given to.
      *tensors: the operands.
    """
    shapes = [tuple(map(int, tensor.shape)) for tensor in tensors]
    first = shapes[0]
    for shape in shapes[1:]:
        if len(shape) != len(first):
            raise build_error(
                name,
                f"The lhs shape ndim {len(first)} must be equal to the rhs {len(shape)}: got "
                f"{first} and {shape}",
                "Bring both to one shape first: broadcast(x, shape).",
            )
        if shape != first:
            raise build_error(
                name,
                f"The lhs shape must be equal to the rhs: got {first} and {shape}",
                "TBE does not broadcast by itself: call broadcast(x, shape) first.",
            )
    return first
