"""Sums of products: contractions, and convolutions if one factor slides.

    c[i, j] = c[i, j] + (a[i, k] * b[k, j])                        contraction
    y[o, t] = y[o, t] + (x[c, (2 * t) + k] * w[o, c, k])           convolution

A mask on summed axes becomes a choice of 0 inside a factor. Since 0 times inf is not 0, the step
then keeps the plain reduction, which is run if another factor is not finite.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from functools import reduce

from msops._loops.ir.nodes import Binary, Cast, Const, Expr, Select, Unary
from msops._loops.ir.operators import is_float
from msops._loops.ir.walk import variables
from msops._loops.to_jax.raising.steps import Contract, Convolve, Product, Reduce
from msops._loops.to_jax.raising.windows import find_windows


def find_convolution(whole: Reduce) -> Convolve | None:
    """Returns the convolution that a sum is, if it is one: one factor slides over the others."""
    product = _product(whole)
    if product is None:
        return None
    parts, rest = product
    kept = set(whole.nest.extents) - set(whole.over)
    sliding = [(part, found) for part in parts if (found := find_windows(part, kept, whole.over))]
    if len(sliding) != 1:
        return None
    image, (windows, over_windows) = sliding[0]
    fixed = [part for part in parts if part is not image]
    outputs = {window.output for window in windows}
    if any(variables(part) & outputs for part in fixed):
        return None
    kernel = reduce(lambda one, other: Binary("mul", one, other, one.dtype), fixed)
    return Convolve(
        rest.nest, rest.is_negated, rest.over, rest.fallback, over_windows, kernel, windows
    )


def find_contraction(whole: Reduce) -> Contract | None:
    """Returns the matrix product that a sum is, if it is one.

    It needs two factors that share a summed axis and differ in others.
    """
    product = _product(whole)
    if product is None:
        return None
    parts, rest = product
    axes = [variables(part) & set(whole.nest.extents) for part in parts]
    over = set(whole.over)
    pairs = [(one, other) for i, one in enumerate(axes) for other in axes[i + 1 :]]
    if not any(one & other & over and one != other for one, other in pairs):
        return None
    return Contract(rest.nest, rest.is_negated, rest.over, rest.fallback, parts)


def _product(whole: Reduce) -> tuple[tuple[Expr, ...], Product] | None:
    """Returns the factors of a sum of products, and the rest of the step; None if it is none."""
    parts, is_negated = factors(whole.value)
    if whole.op != "add" or len(parts) < 2 or whole.value.dtype == "bool":
        return None
    nest, over = whole.nest, set(whole.over)
    summed = [c for c in nest.mask if variables(c) & over]
    masked = _with_mask(parts, summed, set(nest.extents))
    if masked is None:
        return None
    kept = tuple(c for c in nest.mask if c not in summed)
    is_risky = bool(summed) and is_float(whole.value.dtype)
    box = dataclasses.replace(nest, mask=kept)
    return masked, Product(box, is_negated, whole.over, whole if is_risky else None)


def factors(expr: Expr) -> tuple[tuple[Expr, ...], bool]:
    """Returns the factors of a product, and whether it is negated."""
    match expr:
        case Binary(op="mul", left=left, right=right):
            one, is_negated = factors(left)
            other, also = factors(right)
            return one + other, is_negated != also
        case Unary(op="neg", operand=operand):
            inner, is_negated = factors(operand)
            return inner, not is_negated
        case Cast(operand=Binary(op="mul") as product, dtype="float32") if product.dtype in (
            "float16",
            "bfloat16",
        ):
            # Converting the factors instead saves a rounding.
            inner, is_negated = factors(product)
            return tuple(Cast(factor, "float32") for factor in inner), is_negated
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
