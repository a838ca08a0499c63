"""Indices that are only known when the program runs."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from jax import lax

from msops._loops.analysis.affine import affine
from msops._loops.ir.nodes import Expr
from msops._loops.ir.ranges import is_within
from msops._loops.ir.walk import variables
from msops._loops.to_jax.printing.environment import Environment, ValueOf
from msops._loops.to_jax.printing.values import Array, Value


def scalar_sum(
    terms: Sequence[tuple[Expr, int]], start: int, size: int, value_of: ValueOf
) -> Array:
    """Returns start + the sum of coefficient * scalar, an int32 scalar.

    Args:
      terms: scalars with their coefficients; one of an unsigned dtype stands alone.
      start: the constant.
      size: of the dimension; a wide sum beyond -1 or `size` may become one of them.
      value_of: evaluates the scalars.
    """
    is_wide = any(expr.dtype == "int64" for expr, _ in terms)
    dtype = np.dtype("int64" if is_wide else "int32")
    total: Array = _wrapped(start, dtype)
    for expr, coefficient in terms:
        value = _clamped(value_of(expr).array, size) if not is_wide else value_of(expr).array
        value = lax.convert_element_type(value, dtype)
        if coefficient != 1:
            value = lax.mul(value, _wrapped(coefficient, dtype))
        is_first = isinstance(total, np.generic) and total == 0
        total = value if is_first else lax.add(total, value)
    return _clamped(total, size)


def _wrapped(number: int, dtype: np.dtype) -> Array:
    """Returns a number as a dtype, wrapped as sums and products of it are."""
    return np.array(number % (1 << 64), "uint64").astype(dtype)[()]


@dataclass(frozen=True)
class IndexTuples:
    """Index tuples for a gather or a scatter.

    Attributes:
      indices: int32[batch..., indexed dimensions].
      batch: the axes that the index tuples vary with.
      indexed: the dimensions that they index.
      windows: the axes that run along the other dimensions, by dimension.
    """

    indices: Array
    batch: tuple[str, ...]
    indexed: tuple[int, ...]
    windows: dict[int, str]


def find_windows(
    indices: Sequence[Expr], shape: Sequence[int], apart: set[str], env: Environment
) -> dict[int, str]:
    """Returns the dimensions along which an axis runs alone, with step 1 and inside.

    Args:
      indices: an expression a dimension.
      shape: of the buffer.
      apart: axes that may not run along a dimension.
      env: what the indices are evaluated in.
    """
    found = {}
    for position, (index, size) in enumerate(zip(indices, shape, strict=True)):
        function = affine(index, env.axis_ranges)
        if function is None or function.scalars or len(function.along) != 1:
            continue
        ((axis, coefficient),) = function.along
        others = [*indices[:position], *indices[position + 1 :]]
        if (
            coefficient == 1
            and axis not in apart
            and is_within(function.range(env.axis_ranges), (0, size - 1))
            and all(axis not in variables(other) for other in others)
        ):
            found[position] = axis
    return found


def as_index(value: Value, size: int, env: Environment) -> Value:
    """Returns an index as int32; one beyond -1 or `size` may become one of them."""
    return env.apply(lambda x: _clamped(x, size), value)


def _clamped(x: Array, size: int) -> Array:
    dtype = np.dtype(x.dtype)
    if dtype == np.int32:
        return x
    if dtype.itemsize >= 4:
        low = 0 if dtype.kind == "u" else -1
        x = lax.clamp(dtype.type(low), x, dtype.type(size))
    return lax.convert_element_type(x, np.int32)


def stacked(columns: Sequence[Array]) -> Array:
    """Returns int32 arrays of one shape along a new last dimension."""
    rank = np.ndim(columns[0])
    expanded = [lax.expand_dims(column, (rank,)) for column in columns]
    return expanded[0] if len(expanded) == 1 else lax.concatenate(expanded, rank)
