"""Sums of products: contractions, and convolutions if one factor slides; pooling.

    c[i, j] = c[i, j] + (a[i, k] * b[k, j])                        contraction
    y[o, t] = y[o, t] + (x[c, (2 * t) + k] * w[o, c, k])           convolution

A mask on summed axes becomes a choice of 0 inside the factors. Since 0 times inf is not 0, a step
with a factor that does not have these axes keeps the plain reduction, which is run if a factor is
not finite.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Sequence
from functools import reduce

from msops._loops.ir.nodes import Binary, Cast, Const, Expr, Select, Unary
from msops._loops.ir.operators import is_float
from msops._loops.ir.scalars import identity
from msops._loops.ir.walk import variables
from msops._loops.to_jax.raising.steps import Contract, Convolve, Pool, Product, Reduce
from msops._loops.to_jax.raising.windows import find_windows


def find_convolution(whole: Reduce) -> Convolve | None:
    """Returns a sum as a convolution; None if it is none: one factor must slide over the others."""
    product = _product(whole, most_masked=1)
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
    """Returns a sum as a matrix product; None if it is none.

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


def _product(
    whole: Reduce, most_masked: int | None = None
) -> tuple[tuple[Expr, ...], Product] | None:
    """Returns the factors of a sum of products, and the rest of the step; None if it is none.

    Args:
      whole: the sum.
      most_masked: how many factors a condition may become a part of; None: all.
    """
    parts, is_negated = factors(whole.value)
    if whole.op != "add" or len(parts) < 2 or whole.value.dtype == "bool":
        return None
    nest, over = whole.nest, set(whole.over)
    summed = [c for c in nest.mask if variables(c) & over]
    masked = _with_mask(parts, summed, set(nest.extents), most_masked or len(parts))
    if masked is None:
        return None
    kept = tuple(c for c in nest.mask if c not in summed)
    is_risky = is_float(whole.value.dtype) and not masked.is_everywhere
    box = dataclasses.replace(nest, mask=kept)
    return masked.parts, Product(box, is_negated, whole.over, whole if is_risky else None)


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


@dataclasses.dataclass(frozen=True)
class _Masked:
    """Factors that are 0 where conditions do not hold.

    Attributes:
      parts: the factors.
      is_everywhere: whether each of them is.
    """

    parts: tuple[Expr, ...]
    is_everywhere: bool


def _with_mask(
    parts: Sequence[Expr], conditions: Sequence[Expr], axes: set[str], most: int
) -> _Masked | None:
    """Returns the factors with each condition put into those that have all of its axes.

    None if a condition has no such factor.

    Args:
      parts: the factors.
      conditions: on the axes.
      axes: the variables that count as axes.
      most: how many factors a condition is put into.
    """
    masked, is_everywhere = list(parts), True
    for condition in conditions:
        needed = variables(condition) & axes
        alike = [i for i, part in enumerate(parts) if needed <= variables(part)][:most]
        if not alike:
            return None
        for position in alike:
            part = masked[position]
            zero = Const(0.0 if is_float(part.dtype) else 0, part.dtype)
            masked[position] = Select(condition, part, zero, part.dtype)
        others = (part for i, part in enumerate(parts) if i not in alike)
        is_everywhere &= all(isinstance(o, Const) and math.isfinite(o.value) for o in others)
    return _Masked(tuple(masked), is_everywhere)


def find_pool(whole: Reduce) -> Pool | None:
    """Returns a reduction as one over sliding windows; None if it is none."""
    if whole.op not in ("add", "max", "min"):
        return None
    nest, value = whole.nest, whole.value
    kept = tuple(c for c in nest.mask if variables(c).isdisjoint(whole.over))
    for condition in nest.mask:
        if condition not in kept:
            unchanged = Const(identity(whole.op, value.dtype), value.dtype)
            value = Select(condition, value, unchanged, value.dtype)
    found = find_windows(value, set(nest.extents) - set(whole.over), whole.over)
    if found is None or any(window.dilation < 0 for window in found[0]):
        return None
    box = dataclasses.replace(nest, mask=kept)
    return Pool(box, whole.op, found[1], found[0], whole.over, whole.keeps)
