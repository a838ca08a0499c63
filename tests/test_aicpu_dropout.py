"""Dropout2D of the bundled library: its statistics, its seed, its dtypes, and a network with it."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import ml_dtypes
import numpy as np
import pytest
from conftest import ROOT
from seed_documents import seed

from msops import Custom, errors
from msops.ops import CustomRegOp, custom_info_register


def dropout2d(seed: str = "", **options: Any) -> Custom:
    """Returns the op; `seed` says whether op info has that attribute "required" or "optional"."""
    info = (
        CustomRegOp("Dropout2D")
        .input(0, "x")
        .output(0, "y")
        .output(1, "mask")
        .attr("keep_prob", "required", "float")
        .target("Ascend")
    )
    if seed:
        info.attr("seed", seed, "int")
    info.attr("cust_aicpu", "required", "str", "mindspore_aicpu_kernels")

    @custom_info_register(info.get_op_info())
    def dropout2d_aicpu():
        """Stands for the kernel."""

    def shape(x: Any, *attributes: Any) -> Any:
        return x, x

    def dtype(x: Any, *attributes: Any) -> Any:
        return x, np.bool_

    return Custom(dropout2d_aicpu, shape, dtype, func_type="aicpu", **options)


@pytest.mark.parametrize("keep_prob", [0.1, 0.5, 0.85])
@pytest.mark.slow
def test_channels_are_kept_as_often_as_asked(keep_prob: float) -> None:
    n, c = 200, 100
    x = jnp.arange(1, n * c * 6 + 1, dtype=jnp.float32).reshape(n, c, 2, 3)
    y, mask = (np.asarray(a) for a in dropout2d("required")(x, keep_prob, 7))
    kept = mask[:, :, 0, 0]
    assert (mask == kept[:, :, None, None]).all(), "a channel is kept or dropped as a whole"
    np.testing.assert_allclose(y, np.where(mask, np.asarray(x) / np.float32(keep_prob), 0))
    # Bounds that a fair coin misses once in 10**7 or so; of all, of rows, of columns.
    for average in (kept.mean(), *kept.mean(0), *kept.mean(1)):
        count = kept.size if average == kept.mean() else 100
        assert abs(average - keep_prob) < 5.5 * (keep_prob * (1 - keep_prob) / count) ** 0.5
    # Neighbours know nothing of each other.
    both = (kept[:, 1:] & kept[:, :-1]).mean()
    assert abs(both - keep_prob**2) < 0.02
    # The mean survives.
    assert (
        abs(y.mean() / np.asarray(x).mean() - 1) < 5 * ((1 - keep_prob) / keep_prob / n / c) ** 0.5
    )


@pytest.mark.parametrize(("keep_prob", "kept"), [(0.0, False), (1.0, True)])
def test_certain_outcomes(keep_prob: float, kept: bool) -> None:
    x = jnp.ones((4, 5, 2, 2))
    y, mask = dropout2d()(x, keep_prob)
    assert (np.asarray(mask) == kept).all()
    np.testing.assert_array_equal(y, x * kept)


def test_equal_seeds_drop_equal_channels() -> None:
    x = jnp.ones((8, 64, 1, 1))
    op = dropout2d("optional")
    masks = [np.asarray(jax.jit(lambda x, s=seed: op(x, 0.5, s))(x)[1]) for seed in (3, 3, 4, -1)]
    assert (masks[0] == masks[1]).all()
    for other in masks[2:]:
        assert 0.3 < (masks[0] == other).mean() < 0.7


def test_without_a_seed_each_call_draws_anew() -> None:
    x = jnp.ones((8, 64, 1, 1))
    for op in (dropout2d(), dropout2d("optional")):

        @jax.jit
        def twice(x: Any, op: Any = op) -> Any:
            return op(x, 0.5)[1], op(x, 0.5)[1]

        first, second = twice(x)
        again, _ = twice(x)
        assert (first != second).any(), "equal calls were merged"
        assert (first != again).any()


def test_seeded_calls_are_pure() -> None:
    # JAX refuses effects here.
    x = jnp.ones((1, 8, 2, 2))
    checkpointed = jax.checkpoint(lambda x: dropout2d("required")(x, 0.5, 1)[0])
    np.testing.assert_array_equal(checkpointed(x), dropout2d("required")(x, 0.5, 1)[0])
    op = dropout2d(bprop=lambda x, keep_prob, out, dout: (dout[0] * out[1] / keep_prob, None))
    with pytest.raises(NotImplementedError, match="is stateful"):
        jax.grad(lambda x: jax.checkpoint(lambda x: op(x, 0.5)[0])(x).sum())(x)


@pytest.mark.parametrize(
    "dtype",
    [
        *(np.bool_, np.int8, np.int16, np.int32, np.int64, np.uint8, np.uint16, np.uint32),
        *(np.uint64, np.float16, ml_dtypes.bfloat16, np.float32, np.float64),
    ],
)
def test_every_dtype_is_scaled_in_its_own_way(dtype: Any) -> None:
    rng = np.random.default_rng(0)
    with jax.enable_x64(True):
        x = np.round(rng.normal(size=(3, 40, 2, 2)) * 20)
        x = (abs(x) if np.dtype(dtype).kind == "u" else x).astype(dtype)
        y, mask = dropout2d("required")(jnp.asarray(x), 0.75, 2)
        wide = x.astype(np.float64) / 0.75
        kind = np.dtype(dtype).kind
        expected = (np.trunc(wide) if kind in "iu" else wide).astype(dtype)
    assert y.dtype == dtype
    np.testing.assert_array_equal(np.asarray(y), np.where(mask, expected, np.zeros((), dtype)))


def test_quotient_beyond_an_integer_is_its_largest() -> None:
    x = jnp.array([127, -128, 3, 64], jnp.int8).reshape(1, 4, 1, 1)
    y, mask = dropout2d("required")(jnp.tile(x, (64, 1, 1, 1)), 0.5, 1)
    expected = np.where(mask, np.array([127, -128, 6, 127]).reshape(1, 4, 1, 1), 0)
    np.testing.assert_array_equal(y, expected)


def test_every_half_is_divided_as_numpy_divides_it() -> None:
    for dtype in (np.float16, ml_dtypes.bfloat16):
        x = np.arange(2**16, dtype=np.uint16).view(dtype)
        y, _ = dropout2d("required")(jnp.asarray(x).reshape(1, 1, 256, 256), 0.75, 5)
        y = np.asarray(y).ravel().astype(np.float32)
        if not y.any():
            pytest.fail("the seed drops the one channel: choose another")
        with np.errstate(invalid="ignore", over="ignore"):
            expected = (x.astype(np.float32) / np.float32(0.75)).astype(dtype).astype(np.float32)
        # XLA's threads take floats below the normal ones for zeros, as its own loops do.
        expected[np.abs(x.astype(np.float32)) < np.finfo(np.float32).tiny] = 0
        np.testing.assert_array_equal(y, expected)


@pytest.mark.parametrize(
    ("shape", "keep_prob", "text"),
    [
        ((2, 3), 0.5, r"\[Dropout2D\] needs an input of shape \[N, C, H, W\], got one of 2 axes"),
        ((1, 1, 2, 2), 1.5, r"\[Dropout2D\] needs keep_prob in \[0, 1\], got 1.5"),
        ((1, 1, 2, 2), float("nan"), "needs keep_prob in"),
    ],
)
def test_bad_calls_give_the_kernels_own_message(shape: Any, keep_prob: float, text: str) -> None:
    with pytest.raises(errors.KernelError, match=text):
        dropout2d()(jnp.ones(shape), keep_prob)


def test_empty_input() -> None:
    for shape in ((0, 3, 2, 2), (2, 3, 0, 2)):
        y, mask = dropout2d("required")(jnp.ones(shape), 0.5, 1)
        assert y.shape == mask.shape == shape


def test_small_convolutional_network_trains_with_it_under_jit() -> None:
    """Tells bright left halves from bright right ones, with half the channels dropped each step."""
    drop = dropout2d(
        bprop=lambda x, keep_prob, cust, out, dout: (dout[0] * out[1] / keep_prob, None, None)
    )
    rng = np.random.default_rng(0)
    labels = rng.integers(0, 2, 256)
    images = rng.normal(size=(256, 1, 8, 8)).astype(np.float32)
    for image, label in zip(images[:, 0], labels, strict=True):
        image[:, 4 * label : 4 * label + 4] += 1
    weights = {
        "convolution": rng.normal(size=(8, 1, 3, 3)).astype(np.float32) * 0.3,
        "dense": rng.normal(size=(8 * 36, 2)).astype(np.float32) * 0.1,
    }

    def logits(weights: Any, images: Any, dropped: Callable[[Any], Any]) -> Any:
        x = jax.lax.conv(images, weights["convolution"], (1, 1), "VALID")
        return dropped(jax.nn.relu(x)).reshape(len(images), -1) @ weights["dense"]

    def loss(weights: Any) -> Any:
        scores = logits(weights, images, lambda x: drop(x, 0.5, "mindspore_aicpu_kernels")[0])
        chosen = jnp.take_along_axis(jax.nn.log_softmax(scores), labels[:, None], 1)
        return -chosen.mean()

    @jax.jit
    def step(weights: Any) -> Any:
        value, gradient = jax.value_and_grad(loss)(weights)
        return value, jax.tree.map(lambda w, g: w - 0.2 * g, weights, gradient)

    losses = []
    for _ in range(60):
        value, weights = step(weights)
        losses.append(float(value))
    accuracy = (logits(weights, images, lambda x: x).argmax(1) == labels).mean()
    assert np.mean(losses[-10:]) < 0.3 < np.mean(losses[:3])
    assert accuracy > 0.95
    # Other channels each step: the loss is not a smooth curve, and two losses at one point differ.
    assert len({float(loss(weights)) for _ in range(3)}) == 3


@pytest.mark.slow
def test_library_of_the_bundles_name_elsewhere_goes_first(tmp_path) -> None:
    source = tmp_path / "own.cc"
    source.write_text(
        '#include "inc/ms_cpu_kernel.h"\n'
        'namespace { const char* kDropout2D = "Dropout2D"; }\n'
        "struct Own : aicpu::CpuKernel {\n"
        "  uint32_t Compute(aicpu::CpuKernelContext&) override {\n"
        '    KERNEL_LOG_ERROR("my own"); return 1; } };\n'
        "REGISTER_MS_CPU_KERNEL(kDropout2D, Own);\n"
    )
    headers = ROOT / "xla_kernels" / "include" / "aicpu"
    library = tmp_path / "libmindspore_aicpu_kernels.so"
    command = ["g++", "-std=c++17", "-shared", "-fPIC", f"-I{headers}", str(source)]
    subprocess.run([*command, "-o", str(library)], check=True)
    script = tmp_path / "script.py"
    script.write_text(seed("python", 'func_type="aicpu"'))
    done = subprocess.run(
        [sys.executable, "-m", "msops", "run", str(script)],
        env=os.environ | {"MSOPS_AICPU_PATH": str(tmp_path)},
        capture_output=True,
        text=True,
        check=False,
        cwd=ROOT,
    )
    assert done.returncode != 0
    assert "my own" in done.stderr
