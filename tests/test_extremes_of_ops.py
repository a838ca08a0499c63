"""NaN in the extremes of MindSpore's face and of Ascend's operators; where extremes come from."""

from __future__ import annotations

import ast
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tbe_ops import run
from test_extremes import PLACES, with_nan

import msops
from msops import ops

pytestmark = pytest.mark.usefixtures("as_users_compile")

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


ASCEND: dict[str, tuple[tuple[Any, ...], Callable[[np.ndarray], np.ndarray]]] = {
    "MaxPool": (
        ([2, 2], [2, 2], 0, [0, 0, 0, 0], [1, 1], 0),
        # Windows side by side.
        lambda x: x.reshape(35, 2, 40, 2).max(axis=(1, 3)),
    ),
    "Amax": (([2, 3], False), np.max),
    "Amin": (([3], False), lambda x: np.min(x, 1)),
}
"""An operator's arguments after an image, and the same of numpy on its one plane."""


@pytest.mark.parametrize("name", ASCEND)
def test_images_keep_nan_in_operators_of_ascend(name: str) -> None:
    arguments, expected = ASCEND[name]
    op = msops.Custom(f"aclnn{name}", func_type="aot")
    for place in PLACES:
        x = large(place)
        got = op(x[None, None], *arguments)
        np.testing.assert_array_equal(np.squeeze(got), expected(x))


def _segments(extreme: Callable[..., Any]) -> Callable[[np.ndarray], np.ndarray]:
    return lambda x: np.stack([extreme(x[segment::3], axis=0) for segment in range(3)])


def _in_segments(name: str) -> Callable[..., Any]:
    return lambda te, x: getattr(te, name)(x, [row % 3 for row in range(x.shape[0])], 3)


TBE: dict[str, tuple[Callable[..., Any], Callable[..., Any]]] = {
    "reduce_max of all": (lambda te, x: te.reduce_max(x, [0, 1]), lambda x: np.max(x)[None]),
    "reduce_max": (lambda te, x: te.reduce_max(x, 1), lambda x: np.max(x, 1)),
    "reduce_min of all": (lambda te, x: te.reduce_min(x, [0, 1]), lambda x: np.min(x)[None]),
    "reduce_min": (
        lambda te, x: te.reduce_min(x, 0, keepdims=True), lambda x: np.min(x, 0, keepdims=True)
    ),
    "vmax": (lambda te, x: te.vmax(x, te.vmuls(x, 2.0)), lambda x: np.maximum(x, 2 * x)),
    "vmax, NaN second": (
        lambda te, x: te.vmax(te.broadcast(0.5, x.shape, x.dtype), x),
        lambda x: np.maximum(x, 0.5),
    ),
    "vmin": (lambda te, x: te.vmin(x, te.vmuls(x, 2.0)), lambda x: np.minimum(x, 2 * x)),
    "vmin, NaN second": (
        lambda te, x: te.vmin(te.broadcast(0.5, x.shape, x.dtype), x),
        lambda x: np.minimum(x, 0.5),
    ),
    "vmaxs": (lambda te, x: te.vmaxs(x, 0.5), lambda x: np.maximum(x, 0.5)),
    "vmins": (lambda te, x: te.vmins(x, 0.5), lambda x: np.minimum(x, 0.5)),
    "vrelu": (lambda te, x: te.vrelu(x), lambda x: np.maximum(x, 0)),
    "unsorted_segment_max": (_in_segments("unsorted_segment_max"), _segments(np.max)),
    "unsorted_segment_min": (_in_segments("unsorted_segment_min"), _segments(np.min)),
}  # fmt: skip
"""A function of TBE's DSL, and the same of numpy."""


@pytest.mark.parametrize("dtype", ["float32", "float16"])
@pytest.mark.parametrize("shape", [(7, 8), (70, 80)], ids=["few", "many"])
@pytest.mark.parametrize("name", TBE)
def test_functions_of_tbe_keep_nan(name: str, shape: tuple[int, int], dtype: str) -> None:
    function, expected = TBE[name]
    for place in PLACES:
        x = with_nan(shape, dtype, place)
        want = expected(x)
        np.testing.assert_array_equal(run(function, x, like=want), want)


# Modules whose `max` and `min` are those of numpy arrays on the host.
OF_HOST_ARRAYS = {
    "_ascend/aclnn/indexing.py", "_ascend/aclnn/ordering.py", "_extension/methods.py",
    "_loops/analysis/polyhedral/accesses.py", "_loops/analysis/polyhedral/domain.py",
    "_face/tensor_data.py", "testing/finite_differences.py", "testing/orders.py",
    "testing/tolerances.py",
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
