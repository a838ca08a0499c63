"""Products under a sum: the factors a contraction multiplies."""

from __future__ import annotations

from msops._loops.intrinsics import is_float
from msops._loops.ir import Binary, Cast, Expr, Unary


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
        case Cast(operand=Binary(op="mul") as product, dtype=dtype) if _widens(
            product.dtype, dtype
        ):
            inner, turned = factors(product)
            return tuple(Cast(factor, dtype) for factor in inner), turned
    return (expr,), False


def _widens(source: str, target: str) -> bool:
    # float32(a * b) of 16-bit floats: the factors may be converted instead, with one rounding less.
    return is_float(source) and is_float(target) and source != "float32" and target == "float32"
