"""A project of graph operators as projects for Ascend are written: module.h, kernels of aclnn."""

from __future__ import annotations

import subprocess
import sys
import warnings

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from extension_modules import SOURCES

import msops as ms
from msops.ops import CustomOpBuilder

FOLDER = SOURCES / "graph_project"
X = jnp.array([1.0, 2.0, 3.0], jnp.float16)
Y = jnp.array([4.0, 5.0, 6.0], jnp.float16)
# The same in all builds, so that they share what they compile.
FLAGS = "-O0 -DQUOTED=\"'x y'\""


@pytest.fixture(scope="module")
def ops():
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "msops: there is no Ascend device")
        return CustomOpBuilder(
            "graph_project",
            tuple(str(FOLDER / name) for name in ("scaled_sum.cpp", "join.cpp", "module.cpp")),
            backend="Ascend",
            cflags=FLAGS,
            op_def=[str(FOLDER / "operators.yaml"), str(FOLDER / "more_operators.yaml")],
            op_doc=str(FOLDER / "operators.yaml"),
        ).load()


def same(ours, theirs):
    np.testing.assert_array_equal(np.asarray(ours), np.asarray(theirs))


def test_an_operator_of_aclnn(ops):
    for wrap in (lambda f: f, jax.jit):
        same(wrap(ops.scaled_sum)(X, Y), X + Y)
        same(wrap(lambda x, y: ops.scaled_sum(x, y, 2.0))(X, Y), X + 2 * Y)
        same(wrap(lambda x, y: ops.scaled_sum(x, y, alpha=3))(X, Y), X + 3 * Y)
    same(jax.vmap(ops.scaled_sum, (None, 0))(X, jnp.stack([X, Y])), jnp.stack([2 * X, X + Y]))
    same(jax.grad(lambda y: ops.scaled_sum(X, y, 2.0).sum())(Y), np.full(3, 2))
    with pytest.raises(TypeError, match=r"Custom_scaled_sum: a floating alpha needs .* got Int32"):
        ops.scaled_sum(X.astype(jnp.int32), Y.astype(jnp.int32), 2.0)


@pytest.mark.parametrize("mode", [ms.GRAPH_MODE, ms.PYNATIVE_MODE])
def test_in_a_cell(ops, mode):
    class Net(ms.nn.Cell):
        def construct(self, x, y):
            out = ops.scaled_sum(x, y, 1)
            return ops.scaled_sum(out, y, 1)

    before = ms.get_context("mode")
    ms.set_context(mode=mode)
    try:
        x, y = ms.Tensor(np.asarray(X)), ms.Tensor(np.asarray(Y))
        same(Net()(x, y).asnumpy(), X + Y + Y)
        same(ms.grad(Net(), 1)(x, y).asnumpy(), np.full(3, 2))
    finally:
        ms.set_context(mode=before)


def test_an_operator_in_place(ops):
    @ms.jit
    def twice(x, y):
        ops.add_to(x, y)
        return ops.add_to(x, y, 2) * 1

    x, y = ms.Tensor(np.asarray(X)), ms.Tensor(np.asarray(Y))
    assert ops.add_to(x, y) is x
    same(x.asnumpy(), X + Y)
    same(twice(x, y).asnumpy(), X + 4 * Y)
    same(jax.jit(ops.add_to)(X, Y), X + Y)


def test_a_tuple_of_tensors_and_a_function_of_the_module(ops):
    x, y = ms.Tensor(np.asarray(X)), ms.Tensor(np.asarray(Y))
    same(ms.jit(lambda x, y: ops.join([x, y]))(x, y).asnumpy(), [*X, *Y])
    same(ops.join((x, y)).asnumpy(), X)
    with pytest.raises(ValueError, match="Custom_join: no tensors to join"):
        ms.jit(lambda x: ops.join(()) + x)(x)


def test_optional_tensors_and_three_results(ops):
    x = jnp.arange(12, dtype=jnp.float32).reshape(3, 2, 2)
    mean, variance = x.mean((0, 2)), x.var((0, 2))
    expected = (x - mean[:, None]) / jnp.sqrt(variance[:, None] + 1e-5)
    for wrap in (lambda f: f, jax.jit):
        output, saved_mean, _ = wrap(ops.normalize)(x)
        np.testing.assert_allclose(output, expected, rtol=1e-5, atol=1e-5)
        np.testing.assert_allclose(saved_mean, mean, rtol=1e-6)
        scaled = wrap(lambda x, w: ops.normalize(x, w)[0])(x, jnp.array([2.0, -1.0]))
        np.testing.assert_allclose(scaled[:, 1], -expected[:, 1], rtol=1e-5, atol=1e-5)


def test_a_kernel_that_launches_several_operators(ops):
    for wrap in (lambda f: f, jax.jit):
        same(wrap(ops.square_and_add)(X), X * X + X)
    same(jax.grad(lambda x: ops.square_and_add(x).sum())(X), 2 * X + 1)


@pytest.mark.slow
def test_operators_are_imported_from_build_dir(tmp_path):
    """In another process and folder, as scripts do that came with a build."""
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "msops: there is no Ascend device")
        CustomOpBuilder(
            "graph_import",
            [str(FOLDER / name) for name in ("scaled_sum.cpp", "join.cpp", "module.cpp")],
            backend="Ascend",
            cflags=FLAGS,
            build_dir=tmp_path / "kernel_meta" / "graph_import",
            op_def=(str(FOLDER / "operators.yaml"), str(FOLDER / "more_operators.yaml")),
            op_doc=str(FOLDER / "operators.yaml"),
        ).build()
    folder = tmp_path / "kernel_meta" / "graph_import" / "graph_import_auto_generate"
    assert "gCustom_scaled_sumFuncImpl" in (folder / "gen_custom_ops_def.cc").read_text()
    assert sorted(entry.name for entry in folder.parent.iterdir()) == [
        "graph_import.so",
        "graph_import_auto_generate",
    ]
    script = """
import jax.numpy as jnp
from kernel_meta.graph_import.graph_import_auto_generate.gen_ops_def import scaled_sum
from kernel_meta.graph_import.graph_import_auto_generate.gen_ops_prim import scaled_sum_op
print(scaled_sum(jnp.ones(2), jnp.ones(2), 2.0), scaled_sum_op is scaled_sum)
"""
    done = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", script],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        timeout=120,
    )
    assert (done.stdout, done.returncode) == ("[3. 3.] True\n", 0), done.stderr
