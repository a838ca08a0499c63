"""Which dtypes a function takes, what TBE casts by itself, and the casts a kernel asks for.

Source: AKG of MindSpore 2.0.0, ``te_compute.cast_compute`` and ``elewise_compute``, and its table
of the instructions of the Ascend 910 (``cce.product_conf_intrinsic``, asked on that version); CANN
5's documentation of ``tbe.dsl`` where it knows more dtypes.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from msops._ascend.tbe.operation import DslOperation, apply, check_tensors
from msops._ascend.tbe.session import KernelTypeError
from msops._loops.frontends.tvm.dtypes import as_dtype
from msops._loops.frontends.tvm.tensor import Tensor
from msops._loops.frontends.tvm.tracing import call_error
from msops._loops.ir.operators import is_float

FLOATS = ("float16", "float32")
NUMBERS = ("float16", "float32", "int32")

# What one conversion instruction does; others go through float32 or float16.
_CONVERSIONS = frozenset(
    {
        ("float32", "float16"),
        ("float16", "float32"),
        ("float16", "int8"),
        ("float16", "uint8"),
        ("int8", "float16"),
        ("uint8", "float16"),
        ("int32", "float32"),
        ("int32", "float16"),
        ("float16", "int32"),
        ("float32", "int32"),
        ("bfloat16", "float32"),
        ("float32", "bfloat16"),
        ("bool", "float16"),
        ("bool", "int8"),
        ("int8", "bool"),
    }
)


def _path(source: str, target: str) -> tuple[str, ...] | None:
    """Returns the dtypes that a cast goes through, its end included; None if there is no way."""
    if source == target:
        return ()
    if (source, target) in _CONVERSIONS:
        return (target,)
    for middle in ("float32", "float16"):
        if (source, middle) in _CONVERSIONS and (middle, target) in _CONVERSIONS:
            return (middle, target)
    return None


def convert(array: jax.Array, dtype: str) -> jax.Array:
    """Returns an array in another dtype: floats lose their fraction, and what is too large is cut.

    Args:
      array: numbers.
      dtype: the name of the dtype.
    """
    target = np.dtype(jnp.dtype(dtype))
    if jnp.issubdtype(array.dtype, jnp.floating) and target.kind in "iu":
        array = jnp.trunc(array)
    return array.astype(target)


def cast_to(data: Any, dtype: Any, f1628IntegerFlag: bool = True) -> Tensor:
    """Casts a tensor; floats become integers by truncation.

    Args:
      data: the tensor.
      dtype: text.
      f1628IntegerFlag: whether float16 that becomes 8 bits has no fraction. Not needed here: a
        fraction is dropped.
    """
    (x,) = check_tensors("cast_to", data)
    return cast(x, as_dtype(dtype.lower() if isinstance(dtype, str) else dtype), "cast_to")


def cast(x: Tensor, dtype: str, name: str = "cast") -> Tensor:
    """Returns a tensor in another dtype, by way of the conversions that there are.

    Args:
      x: the tensor.
      dtype: the name of the dtype.
      name: the function that asked for it, for messages.
    """
    path = _path(x.dtype, dtype)
    if path is None:
        raise call_error(
            KernelTypeError,
            name,
            f"Unsupported cast type: {x.dtype} to {dtype}",
            "TBE casts among float16, float32, int32, int8, uint8 and bool.",
        )
    if isinstance(x.op, DslOperation) and x.op.name in _ROUND and dtype == x.op.inputs[0].dtype:
        # Rounded, then a float again: int32 in between costs time, and would cut large numbers.
        return apply(x.op.name, _ROUND[x.op.name], x.op.inputs, x.shape, dtype, dtype)
    for step in path:
        x = apply("cast_to", functools.partial(convert, dtype=step), [x], x.shape, step, step)
    return x


def cast_operands(
    name: str, tensors: Sequence[Tensor], supported: Sequence[str]
) -> tuple[Tensor, ...]:
    """Returns operands in one dtype that a function takes, cast as TBE does by itself.

    They stay as they are if they agree and the function takes them. Else all become float32 where
    the function takes it and each can become it directly, and float16 otherwise.

    Args:
      name: the function.
      tensors: the operands.
      supported: the dtypes the function takes.
    """
    dtypes = {tensor.dtype for tensor in tensors}
    if len(dtypes) == 1 and tensors[0].dtype in supported:
        return tuple(tensors)
    wide = "float32" in supported and all(len(_path(d, "float32") or "") <= 1 for d in dtypes)
    target = "float32" if wide and None not in {_path(d, "float32") for d in dtypes} else "float16"
    if target not in supported:
        raise call_error(
            KernelTypeError,
            name,
            f"expected {', '.join(supported)}; got {', '.join(sorted(dtypes))}",
            "Cast the operands first: cast_to(x, dtype).",
        )
    return tuple(cast(tensor, target, name) for tensor in tensors)


def cast_beside(
    name: str, tensors: Sequence[Tensor], supported: Sequence[str], *numbers: Any
) -> tuple[Tensor, ...]:
    """Returns operands as `cast_operands` does; integers beside a fraction become float32.

    Args:
      name: the function.
      tensors: the operands that are tensors.
      supported: the dtypes the function takes.
      *numbers: those that are numbers, or whatever else they were given as.
    """
    cast_tensors = cast_operands(name, tensors, supported)
    if is_float(cast_tensors[0].dtype) or not any(map(_is_fraction, numbers)):
        return cast_tensors
    return tuple(cast(tensor, "float32", name) for tensor in cast_tensors)


def _is_fraction(number: Any) -> bool:
    value = getattr(number, "value", number)
    return isinstance(value, float) and not value.is_integer()


_ROUND: dict[str, Callable[[jax.Array], jax.Array]] = {
    "ceil": jnp.ceil,
    "floor": jnp.floor,
    "round": jnp.round,
    "round_half_up": lambda x: jnp.floor(x + 0.5),
    "trunc": jnp.trunc,
}


def _rounding(name: str, doc: str) -> Callable[..., Any]:
    rule = _ROUND[name]

    def to_integer(raw_tensor: Any) -> Tensor:
        (x,) = cast_operands(name, check_tensors(name, raw_tensor), FLOATS)
        return apply(name, lambda a: rule(a).astype(jnp.int32), [x], x.shape, "int32")

    to_integer.__name__ = to_integer.__qualname__ = name
    to_integer.__doc__ = f"Returns {doc}, as int32."
    return to_integer


ROUNDINGS: dict[str, Callable[..., Any]] = {
    "ceil": _rounding("ceil", "the least integer that is not less"),
    "floor": _rounding("floor", "the greatest integer that is not greater"),
    "round": _rounding("round", "the nearest integer, the even one of two"),
    "round_half_up": _rounding("round_half_up", "the nearest integer, the greater one of two"),
    "trunc": _rounding("trunc", "the integer part"),
}
"""Functions to integers. Their results are int32, which later float functions cast back."""

NAMES: dict[str, Callable[..., Any]] = {**ROUNDINGS, "cast": cast_to, "cast_to": cast_to}
