"""Functions of each element: of one tensor, of several of one shape, of a tensor and a number."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from msops._ascend.tbe.casting import FLOATS, NUMBERS, cast_beside, cast_operands
from msops._ascend.tbe.operation import (
    DslOperation,
    apply,
    check_same_shape,
    check_tensors,
    number_of,
)
from msops._loops.frontends.tvm.tensor import Tensor

BITS = ("int16", "uint16")

# By name: the dtypes it takes and what it computes; its result has the dtype of its operands.
_UNARY: dict[str, tuple[tuple[str, ...], Callable[[jax.Array], jax.Array]]] = {
    "cos": (FLOATS, jnp.cos),
    "cosh": (FLOATS, jnp.cosh),
    "sin": (FLOATS, jnp.sin),
    "sinh": (FLOATS, jnp.sinh),
    "vabs": (NUMBERS, jnp.abs),
    "vexp": (FLOATS, jnp.exp),
    "vlog": (FLOATS, jnp.log),
    "vnot": (BITS, jnp.bitwise_not),
    "vrec": (FLOATS, lambda x: 1 / x),
    "vrelu": (NUMBERS, lambda x: jnp.maximum(x, 0)),
    "vrsqrt": (FLOATS, jax.lax.rsqrt),
    "vsqrt": (FLOATS, jnp.sqrt),
}
# These ask an Ascend for speed or for precision, by a flag or by a mode. Here they are precise.
_WITH_PRIORITY = ("vlog", "vrec", "vrsqrt", "vsqrt")
_WITH_MODE = ("cos", "sin", "vexp", *_WITH_PRIORITY)
_BINARY: dict[str, tuple[tuple[str, ...], Callable[[jax.Array, jax.Array], jax.Array]]] = {
    "vadd": (NUMBERS, jnp.add),
    "vand": (BITS, jnp.bitwise_and),
    "vdiv": (FLOATS, jnp.divide),
    "vmax": (NUMBERS, jnp.maximum),
    "vmin": (NUMBERS, jnp.minimum),
    "vmod": (FLOATS, lambda x, y: x - jnp.floor(x / y) * y),
    "vmul": (NUMBERS, jnp.multiply),
    "vor": (BITS, jnp.bitwise_or),
    "vsub": (NUMBERS, jnp.subtract),
}
_WITH_NUMBER: dict[str, Callable[[jax.Array, jax.Array], jax.Array]] = {
    "vadds": jnp.add,
    "vmaxs": jnp.maximum,
    "vmins": jnp.minimum,
}
# AKG of MindSpore 2.0.0 documents vmadd and vmla the other way round in `akg.lang.cce.common`; what
# `elewise_compute` exports, and kernels use, is this.
_TERNARY: dict[str, Callable[[jax.Array, jax.Array, jax.Array], jax.Array]] = {
    "vmadd": lambda x, y, z: x * z + y,
    "vmaddrelu": lambda x, y, z: jnp.maximum(x * z + y, 0),
    "vmla": lambda x, y, z: x * y + z,
}


def _named(function: Callable[..., Any], name: str, doc: str) -> Callable[..., Any]:
    function.__name__ = function.__qualname__ = name
    function.__doc__ = doc
    return function


def _unary(name: str) -> Callable[..., Any]:
    supported, rule = _UNARY[name]

    def call(raw_tensor: Any) -> Tensor:
        (x,) = cast_operands(name, check_tensors(name, raw_tensor), supported)
        return apply(name, rule, [x], x.shape, x.dtype)

    def call_with_mode(raw_tensor: Any, impl_mode: Any = None) -> Tensor:
        return call(raw_tensor)

    def call_with_priority(
        raw_tensor: Any, priority_flag: Any = 0, impl_mode: Any = None
    ) -> Tensor:
        return call(raw_tensor)

    taken = call_with_mode if name in _WITH_MODE else call
    doc = f"Returns {name} of each element; takes {', '.join(supported)}."
    return _named(call_with_priority if name in _WITH_PRIORITY else taken, name, doc)


def _binary(name: str) -> Callable[..., Any]:
    supported, rule = _BINARY[name]

    def call(lhs: Any, rhs: Any) -> Tensor:
        tensors = check_tensors(name, lhs, rhs)
        shape = check_same_shape(name, *tensors)
        x, y = cast_operands(name, tensors, supported)
        return apply(name, rule, [x, y], shape, x.dtype)

    doc = f"Returns {name} of two tensors of one shape; takes {', '.join(supported)}."
    return _named(call, name, doc)


def _with_number(name: str) -> Callable[..., Any]:
    rule = _WITH_NUMBER[name]

    def call(raw_tensor: Any, scalar: Any) -> Tensor:
        (x,) = cast_beside(name, check_tensors(name, raw_tensor), NUMBERS, scalar)
        number = number_of(name, scalar, x.dtype)
        return apply(name, _beside(rule, number), [x], x.shape, x.dtype, number)

    return _named(call, name, f"Returns {name} of each element and a number of the same dtype.")


def _ternary(name: str) -> Callable[..., Any]:
    rule = _TERNARY[name]

    def call(x: Any, y: Any, z: Any) -> Tensor:
        tensors = check_tensors(name, x, y, z)
        shape = check_same_shape(name, *tensors)
        # AKG refuses different dtypes here; MindSpore's learned scales in float16 need the cast.
        cast = cast_operands(name, tensors, FLOATS)
        return apply(name, rule, cast, shape, cast[0].dtype)

    return _named(call, name, f"Returns {name} of three tensors of one shape.")


def _beside(
    rule: Callable[[jax.Array, jax.Array], jax.Array], number: Any
) -> Callable[[jax.Array], jax.Array]:
    return lambda x: rule(x, jnp.asarray(number, x.dtype))


def vmuls(raw_tensor: Any, scalar: Any) -> Tensor:
    """Returns each element times a number of the same dtype."""
    (x,) = cast_beside("vmuls", check_tensors("vmuls", raw_tensor), NUMBERS, scalar)
    number = number_of("vmuls", scalar, x.dtype)
    before = x.op.factor if isinstance(x.op, DslOperation) else 1.0
    factor = float(before * number)
    rule = _beside(jnp.multiply, number)
    if x.dtype in FLOATS and factor and not _is_normal(factor, x.dtype):
        # XLA joins (x * a) * b to x * (a * b). Kernels scale the smallest numbers up by steps, none
        # of which overflows, and their product does.
        factor = float(number)
        rule = _beside(lambda a, b: jax.lax.optimization_barrier(a) * b, number)
    return apply("vmuls", rule, [x], x.shape, x.dtype, number, factor)


def _is_normal(number: float, dtype: str) -> bool:
    info = np.finfo(dtype)
    return float(info.tiny) <= abs(number) <= float(info.max)


def vaxpy(lhs: Any, rhs: Any, scalar: Any) -> Tensor:
    """Returns ``scalar * lhs + rhs``."""
    tensors = check_tensors("vaxpy", lhs, rhs)
    shape = check_same_shape("vaxpy", *tensors)
    x, y = cast_operands("vaxpy", tensors, FLOATS)
    number = number_of("vaxpy", scalar, x.dtype)
    rule = lambda a, b: jnp.asarray(number, a.dtype) * a + b  # noqa: E731
    return apply("vaxpy", rule, [x, y], shape, x.dtype, number)


def vlrelu(raw_tensor: Any, alpha: Any = 0) -> Tensor:
    """Returns each element, times `alpha` where it is negative."""
    (x,) = cast_beside("vlrelu", check_tensors("vlrelu", raw_tensor), NUMBERS, alpha)
    number = number_of("vlrelu", alpha, x.dtype)
    rule = lambda a: jnp.where(a >= 0, a, a * jnp.asarray(number, a.dtype))  # noqa: E731
    return apply("vlrelu", rule, [x], x.shape, x.dtype, number)


def round_to(data: Any, max_value: Any, min_value: Any) -> Tensor:
    """Returns each element, but at least `min_value` and at most `max_value`.

    The lower bound comes first, so all are `max_value` where that is less than `min_value`.

    Args:
      data: the tensor.
      max_value: a number.
      min_value: a number.
    """
    given = check_tensors("round_to", data)
    (x,) = cast_beside("round_to", given, NUMBERS, max_value, min_value)
    high, low = (number_of("round_to", bound, x.dtype) for bound in (max_value, min_value))
    rule = lambda a: jnp.clip(a, jnp.asarray(low, a.dtype), jnp.asarray(high, a.dtype))  # noqa: E731
    return apply("round_to", rule, [x], x.shape, x.dtype, f"{high}, {low}")


NAMES: dict[str, Callable[..., Any]] = {
    **{name: _unary(name) for name in _UNARY},
    **{name: _binary(name) for name in _BINARY},
    **{name: _with_number(name) for name in _WITH_NUMBER},
    **{name: _ternary(name) for name in _TERNARY},
    "round_to": round_to,
    "vaxpy": vaxpy,
    "vlrelu": vlrelu,
    "vmuls": vmuls,
}


def supports(name: str, dtype: str) -> bool:
    """Returns whether a function takes operands of a dtype without casting them."""
    table = {**_UNARY, **_BINARY}
    known = table[name][0] if name in table else NUMBERS
    return name in NAMES and (not dtype or dtype in known)
