"""Sums of products as matrix products."""

from __future__ import annotations

import math
from collections.abc import Sequence

import jax
import numpy as np
from jax import lax

from msops._base.dtypes import as_dtype
from msops._loops.ir.nodes import Cast, Expr
from msops._loops.to_jax.printing.environment import Environment
from msops._loops.to_jax.printing.reductions import reduce_value
from msops._loops.to_jax.printing.values import Array, Value, constant
from msops._loops.to_jax.raising.steps import Contract


def contract(step: Contract, values: Sequence[Value], env: Environment) -> Value:
    """Returns a sum of products, pair by pair, the cheapest pair first.

    Args:
      step: the contraction.
      values: of its factors.
      env: what they were evaluated in.
    """
    kept = {axis for axis in env.order if axis not in step.over}
    dtype = as_dtype(step.nest.store.value.dtype).dtype
    if not _is_one_product(values, kept):
        # Sums and products of int8 would wrap.
        values = [env.apply(lambda x: lax.convert_element_type(x, dtype), v) for v in values]
    total = _contract_all(values, kept, env, dtype)
    missing = [axis for axis in step.over if all(axis not in v.axes for v in values)]
    if missing:
        times = constant(
            math.prod(env.extents[axis] for axis in missing), step.nest.store.value.dtype
        )
        total = env.apply(lax.mul, total, Value(times, ()))
    return env.apply(lax.neg, total) if step.is_negated else total


def narrow_factors(step: Contract) -> tuple[Expr, ...]:
    """Returns the factors of a contraction, those that are all int8 in an int32 as they are.

    XLA multiplies matrices of int8 into one of int32, in less than half the time.
    """
    narrow = [
        factor.operand
        for factor in step.factors
        if isinstance(factor, Cast) and (factor.operand.dtype, factor.dtype) == ("int8", "int32")
    ]
    return tuple(narrow) if len(narrow) == len(step.factors) else step.factors


def _is_one_product(values: Sequence[Value], kept: set[str]) -> bool:
    """Returns whether values are multiplied as matrices, and nothing else is done with them."""
    if len(values) != 2:
        return False
    one, other = (set(value.axes) for value in values)
    return bool((one & other) - kept) and one != other and (one ^ other) <= kept


def _contract_all(
    values: Sequence[Value], kept: set[str], env: Environment, dtype: np.dtype
) -> Value:
    """Returns the product of values in a dtype, summed over all axes that are not kept."""
    left = list(values)
    while len(left) > 1:
        first, second = min(
            ((i, j) for i in range(len(left)) for j in range(i + 1, len(left))),
            key=lambda pair: _pair_cost(left, pair, kept, env),
        )
        other, one = left.pop(second), left.pop(first)
        needed = kept.union(*(value.axes for value in left))
        left.append(_contract_pair(one, other, needed, env, dtype))
    (last,) = left
    return reduce_value("add", last, [axis for axis in last.axes if axis not in kept], env)


def _pair_cost(
    values: Sequence[Value], pair: tuple[int, int], kept: set[str], env: Environment
) -> tuple[int, int]:
    """The size of a pair's result, then the work."""
    one, other = (values[i] for i in pair)
    rest = [value for i, value in enumerate(values) if i not in pair]
    needed = kept.union(*(value.axes for value in rest))
    axes = {*one.axes, *other.axes}
    extents = env.extents
    return (
        math.prod(extents[axis] for axis in axes & needed),
        math.prod(extents[axis] for axis in axes),
    )


def _contract_pair(
    one: Value, other: Value, needed: set[str], env: Environment, dtype: np.dtype
) -> Value:
    shared = set(one.axes) & set(other.axes)
    summed = [axis for axis in env.order if axis in shared and axis not in needed]
    free = [[a for a in value.axes if a not in shared] for value in (one, other)]
    if not summed or not (free[0] or free[1]):
        product = env.apply(lax.mul, one, other)
        return reduce_value("add", product, [a for a in product.axes if a not in needed], env)
    one, other = (
        reduce_value("add", v, [a for a in own if a not in needed], env)
        for v, own in zip((one, other), free, strict=True)
    )
    batch = [axis for axis in env.order if axis in shared and axis in needed]
    numbers = tuple(
        tuple(tuple(value.axes.index(axis) for axis in group) for value in (one, other))
        for group in (summed, batch)
    )
    product = _dot(one.array, other.array, numbers, dtype)
    axes = (
        *batch,
        *(axis for axis in one.axes if axis not in shared),
        *(axis for axis in other.axes if axis not in shared),
    )
    return Value(product, axes)


def precision() -> lax.Precision | None:
    """Returns full precision, unless the user of JAX asked for another by its own setting."""
    asked = jax.config.jax_default_matmul_precision  # type: ignore[attr-defined]
    return None if asked else lax.Precision.HIGHEST


def _dot(one: Array, other: Array, numbers: tuple, dtype: np.dtype) -> Array:
    is_narrow = dtype.itemsize == 2 and dtype.kind not in "iu"
    product = lax.dot_general(
        one, other, numbers, precision=precision(),
        preferred_element_type=np.float32 if is_narrow else dtype,
    )  # fmt: skip
    return lax.convert_element_type(product, dtype) if is_narrow else product
