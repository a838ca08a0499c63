"""Comparisons and choices, over bools and over bits packed eight to a byte."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import jax
import jax.numpy as jnp

from msops._ascend.tbe.casting import NUMBERS, cast_beside, cast_operands
from msops._ascend.tbe.operation import apply, check_same_shape, check_tensors, number_of
from msops._ascend.tbe.session import KernelTypeError
from msops._loops.frontends.tvm.tensor import Tensor
from msops._loops.frontends.tvm.tracing import build_error, call_error

_COMPARE: dict[str, Callable[[Any, Any], jax.Array]] = {
    "eq": jnp.equal,
    "ge": jnp.greater_equal,
    "gt": jnp.greater,
    "le": jnp.less_equal,
    "lt": jnp.less,
    "ne": jnp.not_equal,
}
_LOGIC: dict[str, Callable[..., jax.Array]] = {
    "logic_and": jnp.logical_and,
    "logic_not": jnp.logical_not,
    "logic_or": jnp.logical_or,
}
_COMPARED = (*NUMBERS, "int8", "uint8", "bool")
_CHOSEN = (*NUMBERS, "int8", "uint8")


def vcmp(lhs: Any, rhs: Any, operation: str = "lt", mode: str = "bool") -> Tensor:
    """Compares each element.

    Args:
      lhs: a tensor.
      rhs: a tensor of the same shape, or a number.
      operation: "lt", "le", "gt", "ge", "eq" or "ne".
      mode: "bool": the result has that dtype; "bit": it is uint8, eight results to a byte along the
        last axis, the first one in the lowest bit.
    """
    compare = _choice("vcmp", operation, _COMPARE, "operation")
    packed = _choice("vcmp", mode, {"bool": False, "bit": True}, "mode")
    x, y, number = _operands("vcmp", lhs, rhs, _COMPARED)
    shape = _packed_shape("vcmp", x.shape) if packed else x.shape

    def rule(a: jax.Array, *b: jax.Array) -> jax.Array:
        truth = compare(a, b[0] if b else jnp.asarray(number, a.dtype))
        return jnp.packbits(truth, axis=-1, bitorder="little") if packed else truth

    options = operation if y else f"{number}, {operation}"
    return apply("vcmp", rule, [x, *y], shape, "uint8" if packed else "bool", options)


def vcmpsel(
    lhs: Any, rhs: Any = None, operation: str = "lt", slhs: Any = None, srhs: Any = None
) -> Tensor:
    """Compares each element and chooses one of two values.

    Args:
      lhs: a tensor.
      rhs: a tensor of the same shape, or a number; None is 2.
      operation: "lt", "le", "gt", "ge", "eq" or "ne".
      slhs: what is chosen where it holds, a tensor or a number; None is `lhs`.
      srhs: what is chosen elsewhere; None is `rhs` if that is a tensor, else 0.
    """
    compare = _choice("vcmpsel", operation, _COMPARE, "operation")
    rhs = 2 if rhs is None else rhs
    slhs = lhs if slhs is None else slhs
    srhs = (rhs if isinstance(rhs, Tensor) else 0) if srhs is None else srhs
    check_tensors("vcmpsel", lhs)
    operands = _mixed("vcmpsel", lhs, rhs, slhs, srhs)
    check_same_shape("vcmpsel", *operands.tensors)

    def rule(*arrays: jax.Array) -> jax.Array:
        a, b, yes, no = operands.filled(arrays)
        return jnp.where(compare(a, b), yes, no)

    options = " ".join(filter(None, [operation, operands.numbers]))
    return apply("vcmpsel", rule, operands.tensors, lhs.shape, operands.dtype, options)


def vsel(condition: Any, x: Any, y: Any) -> Tensor:
    """Returns `x` where `condition` holds and `y` elsewhere.

    Args:
      condition: bools, or uint8 with eight bits to a byte along the last axis, as `vcmp` makes.
      x: a tensor or a number.
      y: a tensor or a number; if both are numbers they are float16.
    """
    (where,) = check_tensors("vsel", condition)
    if where.dtype not in ("bool", "uint8"):
        raise call_error(
            KernelTypeError,
            "vsel",
            f"expected bool or uint8 for the condition; got {where.dtype}",
            "Make it by vcmp(x, y, operation, mode='bool').",
        )
    packed = where.dtype == "uint8"
    shape = (*where.shape[:-1], where.shape[-1] * 8) if packed else tuple(where.shape)
    operands = _mixed("vsel", x, y)
    for tensor in operands.tensors:
        if tuple(tensor.shape) != shape:
            raise build_error(
                "vsel",
                f"The condition's shape {tuple(map(int, shape))} must be equal to that of what is "
                f"chosen from, {tuple(map(int, tensor.shape))}",
                "Call broadcast(x, shape) first.",
            )

    def rule(truth: jax.Array, *arrays: jax.Array) -> jax.Array:
        if packed:
            truth = jnp.unpackbits(truth, axis=-1, bitorder="little").astype(bool)
        yes, no = operands.filled(arrays)
        return jnp.where(truth, yes, no)

    inputs = [where, *operands.tensors]
    return apply("vsel", rule, inputs, shape, operands.dtype, operands.numbers)


def vlogic(lhs: Any, rhs: Any = None, operation: str = "logic_and") -> Tensor:
    """Combines bools.

    Args:
      lhs: a tensor of bools.
      rhs: another of the same shape; not looked at by "logic_not".
      operation: "logic_and", "logic_or" or "logic_not".
    """
    combine = _choice("vlogic", operation, _LOGIC, "operation")
    operands = (lhs,) if operation == "logic_not" else (lhs, rhs)
    tensors = check_tensors("vlogic", *operands)
    shape = check_same_shape("vlogic", *tensors)
    for tensor in tensors:
        if tensor.dtype != "bool":
            raise call_error(
                KernelTypeError,
                "vlogic",
                f"expected bool; got {tensor.dtype}",
                "Make it by vcmp(x, y, operation, mode='bool').",
            )
    return apply("vlogic", combine, tensors, shape, "bool", operation)


@dataclass(frozen=True)
class _Mixed:
    """Operands of one dtype, some of them tensors and some numbers.

    Attributes:
      operands: all of them, in order.
      dtype: their dtype.
    """

    operands: tuple[Any, ...]
    dtype: str

    @property
    def tensors(self) -> tuple[Tensor, ...]:
        """Those that are tensors."""
        return tuple(value for value in self.operands if isinstance(value, Tensor))

    @property
    def numbers(self) -> str:
        """Those that are numbers, as text."""
        return ", ".join(str(value) for value in self.operands if not isinstance(value, Tensor))

    def filled(self, arrays: Sequence[jax.Array]) -> list[jax.Array]:
        """Returns all as arrays, given one array per tensor."""
        given = iter(arrays)
        return [
            next(given) if isinstance(value, Tensor) else jnp.asarray(value, self.dtype)
            for value in self.operands
        ]


def _mixed(name: str, *values: Any) -> _Mixed:
    """Returns operands cast as TBE casts them; numbers alone are float16."""
    given = [value for value in values if isinstance(value, Tensor)]
    tensors = cast_beside(name, given, _CHOSEN, *values) if given else ()
    dtype = tensors[0].dtype if tensors else "float16"
    rest = iter(tensors)
    return _Mixed(
        tuple(
            next(rest) if isinstance(value, Tensor) else number_of(name, value, dtype)
            for value in values
        ),
        dtype,
    )


def _operands(
    name: str, lhs: Any, rhs: Any, supported: tuple[str, ...]
) -> tuple[Tensor, list[Tensor], Any]:
    """Returns the left operand, the right one if it is a tensor, and the number if it is one."""
    if not isinstance(rhs, Tensor):
        (x,) = cast_beside(name, check_tensors(name, lhs), supported, rhs)
        return x, [], number_of(name, rhs, x.dtype)
    tensors = check_tensors(name, lhs, rhs)
    check_same_shape(name, *tensors)
    x, y = cast_operands(name, tensors, supported)
    return x, [y], None


def _choice(name: str, given: Any, known: dict[str, Any], what: str) -> Any:
    if not isinstance(given, str) or given not in known:
        raise build_error(
            name,
            f"expected {what} to be one of {', '.join(map(repr, known))}; got {given!r}",
            "Pass one of these.",
        )
    return known[given]


def _packed_shape(name: str, shape: tuple[int, ...]) -> tuple[int, ...]:
    if not shape or shape[-1] % 8:
        raise build_error(
            name,
            f"in mode 'bit' the last axis must be a multiple of 8; got {tuple(map(int, shape))}",
            "Use mode='bool', or pad the last axis.",
        )
    return (*shape[:-1], shape[-1] // 8)
