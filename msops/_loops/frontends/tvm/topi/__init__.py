"""`topi`: operators on whole tensors, each a few stages of `compute`.

Source: names, signatures and results observed on AKG of MindSpore 2.0.0.

Modules: creation, elementwise, indexing, nn, products, reduction, shapes, transform.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from msops._loops.frontends.tvm.kernel_module import functions_of
from msops._loops.frontends.tvm.topi import (
    creation,
    elementwise,
    indexing,
    nn,
    products,
    reduction,
    transform,
)

NN_NAMES: dict[str, Callable[..., Any]] = {
    **functions_of(nn),
    "batch_matmul": products.batch_matmul,
    "concatenate": transform.concatenate,
    "dense": products.dense,
    "strided_slice": transform.strided_slice,
}
"""The contents of `topi.nn`."""

NAMES: dict[str, Callable[..., Any]] = {
    **elementwise.UNARY,
    **elementwise.BINARY,
    **functions_of(creation),
    **functions_of(elementwise),
    **functions_of(indexing),
    **functions_of(reduction),
    **functions_of(transform),
    "matmul": products.matmul,
    "tensordot": products.tensordot,
}
"""The contents of `topi`."""
