"""Elements of tensors and parts of tuples."""

from __future__ import annotations

import ast

from msops._loops.frontends.hybrid.values import EXPR, Value, WholeTensor, describe
from msops._loops.frontends.reporting import Reporter
from msops._loops.ir.nodes import Const, Expr
from msops._loops.ir.operators import INTEGERS


def element(
    report: Reporter, node: ast.Subscript, tensor: WholeTensor, values: list[Value]
) -> tuple[Expr, ...]:
    """Returns the indices of an element.

    Args:
      report: makes the errors.
      node: the subscript.
      tensor: what is indexed.
      values: what is in the brackets; index tuples of a grid are their elements, and a negative
        constant counts from the end.
    """
    flat = [part for value in values for part in (value if isinstance(value, tuple) else [value])]
    shape = tensor.buffer.shape
    if len(flat) != len(shape):
        name = ast.unparse(node.value)
        raise report.build_error(
            node,
            f"expected {len(shape)} {'index' if len(shape) == 1 else 'indices'} for a tensor of "
            f"shape {shape}; '{ast.unparse(node)}' has {len(flat)}",
            f"The kernel expects '{name}' of rank {len(flat)}: call the op with such an array, or "
            f"give '{name}' one index per dimension.",
        )
    indices = []
    for part, extent in zip(flat, shape, strict=True):
        if not isinstance(part, EXPR) or part.dtype not in INTEGERS:
            raise report.build_error(
                node,
                f"an index is an integer; '{ast.unparse(node)}' has {describe(part)}",
                "Convert the index by int32.",
            )
        if isinstance(part, Const):
            # As in Python, a constant below zero counts from the end.
            value = int(part.value)
            part = Const(value + extent if -extent <= value < 0 else value, "int32")
        indices.append(part)
    return tuple(indices)


def part(
    report: Reporter,
    node: ast.Subscript,
    owner: tuple[Value, ...],
    bounds: list[int | None],
    is_slice: bool,
) -> Value:
    """Returns an element or a slice of a tuple; negative indices count from the end."""
    if is_slice:
        return owner[slice(*bounds)]
    index = bounds[0]
    assert index is not None
    if not -len(owner) <= index < len(owner):
        least = index + 1 if index >= 0 else -index
        name = ast.unparse(node.value)
        raise report.build_error(
            node,
            f"index {index} is out of range for '{name}', which has {len(owner)} elements",
            f"The kernel expects '{name.removesuffix('.shape')}' of rank {least} or more: call the "
            "op with such an array."
            if name.endswith(".shape")
            else "Write an index that the tuple has.",
        )
    return owner[index]
