"""Sums of products: contractions, and convolutions if one factor slides.

    c[i, j] = c[i, j] + (a[i, k] * b[k, j])                        contraction
    y[o, t] = y[o, t] + (x[c, (2 * t) + k] * w[o, c, k])           convolution

A mask on summed axes becomes a choice of 0 inside a factor. Since 0 times inf is not 0, the step
then keeps the plain reduction, which is run if another factor is not finite.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence

from msops._loops.ir.intrinsics import is_float
from msops._loops.ir.nodes import Binary, Cast, Const, Expr, Select, Unary
from msops._loops.ir.walk import variables
from msops._loops.to_jax.raising.steps import Contract, Convolve, Reduce
from msops._loops.to_jax.raising.windows import find_windows


def find_product(whole: Reduce) -> Contract | Convolve | None:
    """Returns the contraction or convolution that a sum is, if it is one."""
    parts, turned = factors(whole.value)
    if len(parts) < 2 or whole.value.dtype == "bool":
        return None
    nest, over = whole.nest, set(whole.over)
    summed = [c for c in nest.mask if variables(c) & over]
    masked = _with_mask(parts, summed, set(nest.extents))
    if masked is None:
        return None
    kept = tuple(c for c in nest.mask if c not in summed)
    is_risky = bool(summed) and is_float(whole.value.dtype)
    plain = dataclasses.replace(whole, nest=dataclasses.replace(nest, mask=kept))
    fallback = whole if is_risky else None
    return _convolution(plain, masked, turned, fallback) or _contraction(
        plain, masked, turned, fallback
    )


def factors(expr: Expr) -> tuple[tuple[Expr, ...], bool]:
    """Returns the factors of a product, and whether its sign is turned."""
    match expr:
        case Binary(op="mul", left=left, right=right):
            one, turned = factors(left)
            other, also = factors(right)
            return one + other, turned != also
        case Unary(op="neg", operand=operand):
            inner, turned = factors(operand)
            return inner, not turned
        case Cast(operand=Binary(op="mul") as product, dtype="float32") if product.dtype in (
            "float16",
            "bfloat16",
        ):
            # Converting the factors instead saves a rounding.
            inner, turned = factors(product)
            return tuple(Cast(factor, "float32") for factor in inner), turned
    return (expr,), False


def _with_mask(
    parts: Sequence[Expr], conditions: Sequence[Expr], axes: set[str]
) -> tuple[Expr, ...] | None:
    """Returns the factors, one of them 0 where a condition does not hold; it must vary alike."""
    masked = list(parts)
    for condition in conditions:
        needed = variables(condition) & axes
        for position, part in enumerate(masked):
            if needed <= variables(part):
                zero = Const(0.0 if is_float(part.dtype) else 0, part.dtype)
                masked[position] = Select(condition, part, zero, part.dtype)
                break
        else:
            return None
    return tuple(masked)


def _convolution(
    whole: Reduce, parts: tuple[Expr, ...], turned: bool, fallback: Reduce | None
) -> Convolve | None:
    kept = set(whole.nest.extents) - set(whole.over)
    sliding = [(part, found) for part in parts if (found := find_windows(part, kept, whole.over))]
    if len(sliding) != 1:
        return None
    image, (windows, over_windows) = sliding[0]
    fixed = [part for part in parts if part is not image]
    outputs = {window.output for window in windows}
    if any(variables(part) & outputs for part in fixed):
        return None
    return Convolve(
        whole.nest, over_windows, _multiplied(fixed), turned, windows, whole.over, fallback
    )


def _multiplied(parts: Sequence[Expr]) -> Expr:
    product = parts[0]
    for part in parts[1:]:
        product = Binary("mul", product, part, product.dtype)
    return product


def _contraction(
    whole: Reduce, parts: tuple[Expr, ...], turned: bool, fallback: Reduce | None
) -> Contract | None:
    """A matrix product needs two factors that share a summed axis and differ in others."""
    axes = [variables(part) & set(whole.nest.extents) for part in parts]
    over = set(whole.over)
    pairs = [(one, other) for i, one in enumerate(axes) for other in axes[i + 1 :]]
    if any(one & other & over and one != other for one, other in pairs):
        return Contract(whole.nest, parts, turned, whole.over, fallback)
    return None
