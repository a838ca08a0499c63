"""Operators of two or three operands: arithmetic, powers, remainders, clamps."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Sequence
from typing import Any, TypeVar

import jax
import jax.numpy as jnp
import numpy as np

from msops._ascend.aclnn.dtypes import dtype_beside, floating, kind_of, number, promote
from msops._ascend.aclnn.kinds import Int, Scalar, Tensor
from msops._ascend.aclnn.outputs import Outputs, declared
from msops._ascend.aclnn.refusal import Refused
from msops._ascend.aclnn.table import aclnn

F = TypeVar("F", bound=Callable[..., jax.Array])


def beside(tensor: jax.Array, scalar: Scalar) -> tuple[jax.Array, jax.Array]:
    """Returns a tensor and a number in the dtype they are computed in."""
    dtype = dtype_beside(tensor, scalar)
    return tensor.astype(dtype), jnp.asarray(number(scalar, dtype, "other"))


def two_operands(tensors: str, number: str = "", of_number: str = "") -> Callable[[F], F]:
    """Returns a decorator that enters a function of two arrays of one dtype, and what follows.

    Args:
      tensors: aclnn's name for it where both operands are tensors.
      number: where the second one is a number; empty if there is none.
      of_number: where the first one is.
    """

    def enter(function: F) -> F:
        first, second = list(inspect.signature(function).parameters)[:2]

        def form(as_arrays: Callable[[Any, Any], Sequence[jax.Array]], one: Any, other: Any) -> Any:
            @functools.wraps(function)
            def call(x: Any, y: Any, *rest: Any) -> Any:
                return function(*as_arrays(x, y), *rest)

            call.__annotations__ = {**function.__annotations__, first: one, second: other}
            return call

        aclnn(tensors)(form(promote, Tensor, Tensor))
        if number:
            aclnn(number)(form(beside, Tensor, Scalar))
        if of_number:
            aclnn(of_number)(form(lambda x, y: beside(y, x)[::-1], Scalar, Tensor))
        return function

    return enter


@aclnn("Add")
def add(self: Tensor, other: Tensor, alpha: Scalar = 1) -> Tensor:
    """``self + alpha * other``."""
    x, y = promote(self, other)
    if alpha == 1:
        return x + y
    _refuse_float_alpha(alpha, x)
    return x + number(alpha, x.dtype, "alpha") * y


@aclnn("Adds")
def adds(self: Tensor, other: Scalar, alpha: Scalar = 1) -> Tensor:
    """``self + alpha * other`` with a number."""
    x, y = beside(self, other)
    _refuse_float_alpha(alpha, x)
    return x + number(alpha, x.dtype, "alpha") * y


@aclnn("Sub")
def sub(self: Tensor, other: Tensor, alpha: Scalar = 1) -> Tensor:
    """``self - alpha * other``."""
    _refuse_booleans(self, other)
    x, y = promote(self, other)
    _refuse_float_alpha(alpha, x)
    return x - number(alpha, x.dtype, "alpha") * y


@aclnn("Subs")
def subs(self: Tensor, other: Scalar, alpha: Scalar = 1) -> Tensor:
    """``self - alpha * other`` with a number."""
    x, y = beside(self, other)
    _refuse_booleans(x)
    _refuse_float_alpha(alpha, x)
    return x - number(alpha, x.dtype, "alpha") * y


def _refuse_float_alpha(alpha: Scalar, x: jax.Array) -> None:
    if isinstance(alpha, float) and kind_of(x.dtype) < 2:
        raise Refused(
            f"expected an integer alpha beside {x.dtype} tensors; got {alpha!r}",
            "Pass e.g. MakeValue<int64_t>(1).",
        )


def _refuse_booleans(*tensors: jax.Array) -> None:
    if all(kind_of(tensor.dtype) == 0 for tensor in tensors):
        raise Refused("booleans cannot be subtracted", "Use aclnnLogicalXor, or cast them.")


@aclnn("Mul")
def mul(self: Tensor, other: Tensor) -> Tensor:
    """``self * other``."""
    x, y = promote(self, other)
    return x * y


@aclnn("Muls")
def muls(self: Tensor, other: Scalar) -> Tensor:
    """``self * other`` with a number; BFloat16 is multiplied in Float32, as CANN does it."""
    x, y = beside(self, other)
    if x.dtype == jnp.bfloat16:
        return (x.astype(jnp.float32) * jnp.float32(other)).astype(x.dtype)
    return x * y


@two_operands("Div", "Divs")
def div(self: Tensor, other: Tensor) -> Tensor:
    """``self / other``, Float32 for integers."""
    return floating(self) / floating(other)


@two_operands("DivMod", "DivMods")
def div_mod(self: Tensor, other: Tensor, mode: Int) -> Tensor:
    """``self / other``: exact (mode 0), towards zero (1), or towards minus infinity (2)."""
    if mode == 0:
        return div(self, other)
    if mode == 2:
        return jnp.floor_divide(self, other)
    if mode != 1:
        raise Refused(f"expected mode 0, 1 or 2; got {mode}", "0 is exact, 1 truncates, 2 floors.")
    if kind_of(self.dtype) < 2:
        return jax.lax.div(*jnp.broadcast_arrays(self, other))
    return jnp.trunc(self / other)


@two_operands("FloorDivide", "FloorDivides")
def floor_divide(self: Tensor, other: Tensor) -> Tensor:
    """``self / other`` towards minus infinity."""
    return jnp.floor_divide(self, other)


@two_operands("RemainderTensorTensor", "RemainderTensorScalar", "RemainderScalarTensor")
def remainder(self: Tensor, other: Tensor) -> Tensor:
    """The remainder with the sign of `other`, as Python's."""
    return jnp.remainder(self, other)


@two_operands("FmodTensor", "FmodScalar")
def fmod(self: Tensor, other: Tensor) -> Tensor:
    """The remainder with the sign of `self`, as C's."""
    return jnp.fmod(self, other)


@two_operands("PowTensorTensor", of_number="PowScalarTensor")
def power(self: Tensor, exponent: Tensor) -> Tensor:
    """``self ** exponent``."""
    return jnp.power(self, exponent)


@aclnn("PowTensorScalar")
def pow_tensor_scalar(self: Tensor, exponent: Scalar) -> Tensor:
    """``self ** exponent``; an integer exponent of a float stays exact."""
    if isinstance(exponent, int) and kind_of(self.dtype) >= 2:
        return jnp.power(self, int(exponent))
    if isinstance(exponent, int) and exponent < 0:
        raise Refused(
            f"expected an exponent of 0 or more for {self.dtype}; got {exponent}",
            "Cast the tensor to a float dtype.",
        )
    return jnp.power(*beside(self, exponent))


@two_operands("Maximum")
def maximum(self: Tensor, other: Tensor) -> Tensor:
    """The greater of two, NaN if one is."""
    return jnp.maximum(self, other)


@two_operands("Minimum")
def minimum(self: Tensor, other: Tensor) -> Tensor:
    """The smaller of two, NaN if one is."""
    return jnp.minimum(self, other)


@two_operands("Atan2")
def atan2(self: Tensor, other: Tensor) -> Tensor:
    """The angle of the point ``(other, self)``."""
    return jnp.arctan2(floating(self), floating(other))


@aclnn("Addcmul")
def addcmul(self: Tensor, tensor1: Tensor, tensor2: Tensor, value: Scalar) -> Tensor:
    """``self + value * tensor1 * tensor2``."""
    x, a, b = promote(self, tensor1, tensor2)
    _refuse_float_alpha(value, x)
    return x + number(value, x.dtype, "value") * a * b


@aclnn("Addcdiv")
def addcdiv(self: Tensor, tensor1: Tensor, tensor2: Tensor, value: Scalar) -> Tensor:
    """``self + value * tensor1 / tensor2``."""
    x, a, b = map(floating, promote(self, tensor1, tensor2))
    return x + number(value, x.dtype, "value") * a / b


@aclnn("Lerp")
def lerp(self: Tensor, end: Tensor, weight: Tensor) -> Tensor:
    """``self + weight * (end - self)``."""
    x, y, w = promote(self, end, weight)
    return x + w * (y - x)


@aclnn("Lerps")
def lerps(self: Tensor, end: Tensor, weight: Scalar) -> Tensor:
    """``self + weight * (end - self)`` with a number."""
    x, y = map(floating, promote(self, end))
    return x + number(weight, x.dtype, "weight") * (y - x)


@aclnn("Clamp")
def clamp(
    self: Tensor, clip_min: Scalar | None, clip_max: Scalar | None, *, outputs: Outputs
) -> Tensor:
    """`self` moved into ``[clip_min, clip_max]``, either of which may be None.

    The bounds are taken in the dtype of the output, which is that of `self` unless it is declared:
    2.5 is 2 for integers.
    """
    if clip_min is None and clip_max is None:
        raise Refused("expected a bound; got none", "Pass clipValueMin, clipValueMax or both.")
    x = self if outputs is None else self.astype(declared(outputs).dtype)
    if clip_min is not None:
        x = jnp.maximum(x, _bound(clip_min, x.dtype))
    return x if clip_max is None else jnp.minimum(x, _bound(clip_max, x.dtype))


def _bound(bound: Scalar, dtype: np.dtype) -> Any:
    """Returns a bound in the dtype of what it bounds; integers have none beyond their range."""
    if kind_of(dtype) == 1 and bound == bound:
        info = np.iinfo(dtype)
        bound = min(max(bound, info.min), info.max)
    return number(int(bound) if kind_of(dtype) == 1 else bound, dtype, "a bound")


@aclnn("ClampTensor")
def clamp_tensor(self: Tensor, clip_min: Tensor | None, clip_max: Tensor | None) -> Tensor:
    """`self` moved into bounds that broadcast against it."""
    bounds = [bound for bound in (clip_min, clip_max) if bound is not None]
    x = promote(self, *bounds)[0]
    if clip_min is not None:
        x = jnp.maximum(x, clip_min.astype(x.dtype))
    return x if clip_max is None else jnp.minimum(x, clip_max.astype(x.dtype))


@aclnn("AddCustom")
def add_custom(x: Tensor, y: Tensor) -> Tensor:
    """``x + y``: the custom operator of MindSpore's and CANN's tutorials."""
    return add(x, y)


@aclnn("SubCustom")
def sub_custom(x: Tensor, y: Tensor) -> Tensor:
    """``x - y``: the custom operator of MindSpore's tests."""
    return sub(x, y)
