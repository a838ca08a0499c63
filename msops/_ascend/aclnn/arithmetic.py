"""Operators of two or three operands: arithmetic, powers, remainders, clamps."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from msops._ascend.aclnn.dtypes import dtype_beside, floating, kind_of, number, promote
from msops._ascend.aclnn.kinds import Int, Scalar, Tensor
from msops._ascend.aclnn.outputs import Outputs, declared
from msops._ascend.aclnn.refusal import Refused
from msops._ascend.aclnn.table import aclnn


def beside(tensor: jax.Array, scalar: Scalar) -> tuple[jax.Array, jax.Array]:
    """Returns a tensor and a number in the dtype they are computed in."""
    dtype = dtype_beside(tensor, scalar)
    return tensor.astype(dtype), jnp.asarray(number(scalar, dtype, "other"))


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


@aclnn("Div")
def div(self: Tensor, other: Tensor) -> Tensor:
    """``self / other``, Float32 for integers."""
    x, y = promote(self, other)
    return floating(x) / floating(y)


@aclnn("Divs")
def divs(self: Tensor, other: Scalar) -> Tensor:
    """``self / other`` with a number."""
    x, y = beside(self, other)
    return floating(x) / floating(y)


@aclnn("DivMod")
def div_mod(self: Tensor, other: Tensor, mode: Int) -> Tensor:
    """``self / other``: exact (mode 0), towards zero (1), or towards minus infinity (2)."""
    x, y = promote(self, other)
    return _divide(x, y, mode)


@aclnn("DivMods")
def div_mods(self: Tensor, other: Scalar, mode: Int) -> Tensor:
    """``self / other`` with a number: exact (mode 0), towards zero (1), minus infinity (2)."""
    x, y = beside(self, other)
    return _divide(x, y, mode)


def _divide(x: jax.Array, y: jax.Array, mode: int) -> jax.Array:
    if mode == 0:
        return floating(x) / floating(y)
    if mode == 2:
        return jnp.floor_divide(x, y)
    if mode != 1:
        raise Refused(f"expected mode 0, 1 or 2; got {mode}", "0 is exact, 1 truncates, 2 floors.")
    return jax.lax.div(*jnp.broadcast_arrays(x, y)) if kind_of(x.dtype) < 2 else jnp.trunc(x / y)


@aclnn("FloorDivide")
def floor_divide(self: Tensor, other: Tensor) -> Tensor:
    """``self / other`` towards minus infinity."""
    return jnp.floor_divide(*promote(self, other))


@aclnn("FloorDivides")
def floor_divides(self: Tensor, other: Scalar) -> Tensor:
    """``self / other`` towards minus infinity, with a number."""
    return jnp.floor_divide(*beside(self, other))


@aclnn("RemainderTensorTensor")
def remainder(self: Tensor, other: Tensor) -> Tensor:
    """The remainder with the sign of `other`, as Python's."""
    return jnp.remainder(*promote(self, other))


@aclnn("RemainderTensorScalar")
def remainder_scalar(self: Tensor, other: Scalar) -> Tensor:
    """The remainder by a number, with its sign."""
    return jnp.remainder(*beside(self, other))


@aclnn("RemainderScalarTensor")
def remainder_of_scalar(self: Scalar, other: Tensor) -> Tensor:
    """The remainder of a number, with the sign of `other`."""
    y, x = beside(other, self)
    return jnp.remainder(x, y)


@aclnn("FmodTensor")
def fmod(self: Tensor, other: Tensor) -> Tensor:
    """The remainder with the sign of `self`, as C's."""
    return jnp.fmod(*promote(self, other))


@aclnn("FmodScalar")
def fmod_scalar(self: Tensor, other: Scalar) -> Tensor:
    """The remainder by a number with the sign of `self`."""
    return jnp.fmod(*beside(self, other))


@aclnn("PowTensorTensor")
def pow_tensor_tensor(self: Tensor, exponent: Tensor) -> Tensor:
    """``self ** exponent``."""
    return jnp.power(*promote(self, exponent))


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


@aclnn("PowScalarTensor")
def pow_scalar_tensor(self: Scalar, exponent: Tensor) -> Tensor:
    """``self ** exponent`` of a number."""
    y, x = beside(exponent, self)
    return jnp.power(x, y)


def _enter(name: str, function: Callable[..., jax.Array], text: str) -> None:
    def binary(self: Tensor, other: Tensor) -> Tensor:
        return function(*promote(self, other))

    binary.__doc__ = text
    aclnn(name)(binary)


_enter("Maximum", jnp.maximum, "The greater of two, NaN if one is.")
_enter("Minimum", jnp.minimum, "The smaller of two, NaN if one is.")


@aclnn("Atan2")
def atan2(self: Tensor, other: Tensor) -> Tensor:
    """The angle of the point ``(other, self)``."""
    x, y = promote(self, other)
    return jnp.arctan2(floating(x), floating(y))


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
