"""NaN in the extremes of MindSpore's face and of Ascend's operators; where extremes come from."""

from __future__ import annotations

import ast
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from test_extremes import PLACES, with_nan

import msops
from msops import ops

SOURCES = Path(msops.__file__).parent


def large(place: float) -> np.ndarray:
    """Returns numbers with a NaN, of a size from which on XLA takes another way."""
    return with_nan((70, 80), "float32", place)


FACE = {
    "ops.amax": (lambda x: ops.amax(x), lambda x: np.max(x)),
    "ops.amin": (lambda x: ops.amin(x, 1), lambda x: np.min(x, 1)),
    "ReduceMax": (lambda x: ops.ReduceMax()(x, 0), lambda x: np.max(x, 0)),
    "ReduceMin": (
        lambda x: ops.ReduceMin(keep_dims=True)(x, 1), lambda x: np.min(x, 1, keepdims=True)
    ),
    "Tensor.max": (lambda x: x.max(), lambda x: np.max(x)),
    "Tensor.min": (lambda x: x.min(axis=0), lambda x: np.min(x, 0)),
    "softmax": (lambda x: ops.softmax(x, 1).sum(1), lambda x: x.sum(1) * 0 + 1),
}  # fmt: skip
"""A function of the face, and the same of numpy."""


@pytest.mark.parametrize("name", FACE)
def test_functions_of_the_face_keep_nan(name: str) -> None:
    function, expected = FACE[name]
    for place in PLACES:
        x = large(place)
        got = function(msops.Tensor(x)).asnumpy()
        np.testing.assert_allclose(got, expected(x), rtol=1e-5)


@pytest.mark.parametrize(("name", "expected"), [("Max", np.max), ("Min", np.min)])
def test_operators_of_ascend_keep_nan_of_large_arrays(
    name: str, expected: Callable[..., Any]
) -> None:
    op = msops.Custom(f"aclnn{name}", lambda x: (1,), lambda x: x, "aot")
    for place in PLACES:
        x = large(place)
        np.testing.assert_array_equal(np.ravel(op(x)), np.ravel(expected(x)))


# Modules whose `max` and `min` are those of numpy arrays on the host.
OF_HOST_ARRAYS = {
    "_ascend/aclnn/indexing.py", "_ascend/aclnn/ordering.py", "_extension/methods.py",
    "_loops/analysis/polyhedral/accesses.py", "_loops/analysis/polyhedral/domain.py",
    "_face/tensor_data.py", "testing/finite_differences.py", "testing/tolerances.py",
}  # fmt: skip
NAMES = {"max", "min", "amax", "amin", "nanmax", "nanmin", "ptp"}
OTHERS = ("lax", "jax.lax", "extremes", "builtins", "np")
"""Of two operands, of the one module, or of the host."""


def raw_extremes(source: str) -> list[int]:
    """Returns the lines that reduce by max or min, of arrays that may be JAX's."""
    tree = ast.parse(source)
    called = {node.func for node in ast.walk(tree) if isinstance(node, ast.Call)}
    lines = set()
    for node in ast.walk(tree):
        if not isinstance(node, ast.Attribute):
            continue
        owner = ast.unparse(node.value)
        if (
            node.attr in ("reduce_max", "reduce_min", "reduce_window_max")
            or (owner in ("jnp", "jax.numpy") and node.attr in NAMES - {"fmax", "fmin"})
            or (node in called and node.attr in NAMES and owner not in OTHERS)
        ):
            lines.add(node.lineno)
    return sorted(lines)


def test_extremes_come_from_one_module() -> None:
    found = {}
    for path in SOURCES.rglob("*.py"):
        name = path.relative_to(SOURCES).as_posix()
        if name != "_base/extremes.py" and name not in OF_HOST_ARRAYS:
            found[name] = raw_extremes(path.read_text())
    # Reduce with msops._base.extremes instead: it keeps NaN.
    assert {name: lines for name, lines in found.items() if lines} == {}


@pytest.mark.parametrize(
    ("source", "lines"),
    [
        ("jnp.max(x)", [1]),
        ("a = 1\nlax.reduce_max(x, (0,))", [2]),
        ("x.min(axis=0)", [1]),
        ("row = {'max': jnp.max}", [1]),
        ("lax.max(x, y); extremes.amax(x); np.max(x)", []),
    ],
)
def test_a_raw_extreme_is_seen(source: str, lines: list[int]) -> None:
    assert raw_extremes(source) == lines


def test_windows_by_max_come_from_one_module() -> None:
    # A `reduce_window` elsewhere adds.
    for path in SOURCES.rglob("*.py"):
        if path.relative_to(SOURCES).as_posix() == "_base/extremes.py":
            continue
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.Call) and ast.unparse(node.func).endswith("lax.reduce_window"):
                assert ast.unparse(node.args[2]).endswith("lax.add"), (path.name, node.lineno)
