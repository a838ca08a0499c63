"""When two results of one kernel agree: rule 6 of meaning in msops/_loops/README.md."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence

import ml_dtypes
import numpy as np
from loop_ir import (
    FLOATS,
    Binary,
    Buffer,
    Cast,
    Const,
    Expr,
    FunctionCall,
    Kernel,
    Load,
    Stmt,
    Store,
    interpret,
    map_bodies,
    statements,
)

COUNT = Buffer("count_of_stores", (), "float64")
LARGEST = Buffer("largest_stored", (), "float64")


def assert_agree(
    kernel: Kernel,
    inputs: Sequence[np.ndarray],
    expected: Sequence[np.ndarray],
    got: Sequence[np.ndarray],
) -> None:
    """Checks that two executions computed the same: integers exactly, floats up to rounding.

    Args:
      kernel: what was run.
      inputs: what it was run on.
      expected: what the interpreter returned.
      got: what another executor returned.
    """
    assert len(got) == len(expected) == len(kernel.results)
    pairs = list(zip(kernel.outputs, expected, map(np.asarray, got), strict=True))
    for buffer, want, have in pairs:
        assert (have.shape, have.dtype.name) == (buffer.shape, buffer.dtype), buffer.name
        if buffer.dtype not in FLOATS:
            np.testing.assert_array_equal(have, want, buffer.name)
    if any(
        buffer.dtype in FLOATS and not np.array_equal(have, want, equal_nan=True)
        for buffer, want, have in pairs
    ):
        tolerance = rounding_bound(kernel, inputs)
        for buffer, want, have in pairs:
            np.testing.assert_allclose(
                have.astype("float64"), want.astype("float64"), 0, tolerance, err_msg=buffer.name
            )


def rounding_bound(kernel: Kernel, inputs: Sequence[np.ndarray]) -> float:
    """Returns what roundings can amount to: their number, times eps, times the largest value.

    The kernel itself counts its stores to floats and keeps the largest value it stores.
    """
    stores = [stmt for stmt in statements(kernel.body) if isinstance(stmt, Store)]
    dtypes = {stmt.value.dtype for stmt in stores} & set(FLOATS)
    if not dtypes:
        return 0.0
    eps = max(float(ml_dtypes.finfo(dtype).eps) for dtype in dtypes)
    watched = dataclasses.replace(
        kernel,
        buffers=(*kernel.buffers, COUNT, LARGEST),
        results=(COUNT.name, LARGEST.name),
        body=_watched(kernel.body),
    )
    count, largest = (float(array) for array in interpret(watched, inputs))
    # One statement has several operations, on values up to a few times what it stores.
    return 16 * eps * max(count, 1.0) * max(largest, 1.0)


def _watched(body: tuple[Stmt, ...]) -> tuple[Stmt, ...]:
    found: list[Stmt] = []
    for stmt in body:
        if isinstance(stmt, Store) and stmt.value.dtype in FLOATS:
            value = FunctionCall("abs", (Cast(stmt.value, "float64"),), "float64")
            found.append(_update(COUNT, "add", Const(1.0, "float64")))
            found.append(_update(LARGEST, "max", value))
        found.append(map_bodies(stmt, _watched))
    return tuple(found)


def _update(scalar: Buffer, op: str, value: Expr) -> Store:
    old = Load(scalar.name, (), scalar.dtype)
    return Store(scalar.name, (), Binary(op, old, value, scalar.dtype))  # type: ignore[arg-type]
