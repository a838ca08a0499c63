"""MindSpore's own DSL kernels run from their files, unchanged, in every row of their op info.

The files are those of an installed MindSpore, whose Python MSOPS_TEST_MINDSPORE names. What is
expected is written here from the mathematics: Jacob et al., "Quantization and Training of Neural
Networks for Efficient Integer-Arithmetic-Only Inference" (2018), for fake quantisation; Jain et
al., "Trained Quantization Thresholds" (2020), for learned scales; the rest are plain formulas.
"""

from __future__ import annotations

import os
import subprocess
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import msops
from msops._ascend.tbe.kernel_files import carried_op_info, load_kernel

rng = np.random.default_rng(0)
N, C, H, W = 3, 20, 2, 5
IMAGE = (N, C, H, W)


def image() -> np.ndarray:
    return rng.normal(size=IMAGE)


def channel(axis: int = 1) -> np.ndarray:
    return rng.uniform(0.5, 1.5, size=IMAGE[axis])


def along(vector: np.ndarray, axis: int = 1) -> np.ndarray:
    """Returns a vector so that it lies along an axis of an image."""
    return vector.reshape([-1 if i == axis else 1 for i in range(4)])


def nudged(low: Any, high: Any, least: int, most: int) -> tuple[Any, Any, Any]:
    """Returns a range moved so that 0 is a level of it, and the distance of levels."""
    scale = (high - low) / (most - least)
    zero = np.floor(np.clip(least - low / scale, least, most) + 0.5)
    return (least - zero) * scale, (most - zero) * scale, scale


def fake_quant(x: Any, low: Any, high: Any, symmetric: bool, narrow: bool, bits: int) -> Any:
    if symmetric:
        high = np.maximum(-low, high)
        low = -high
    low, high, scale = nudged(low, high, int(narrow), 2**bits - 1)
    return np.floor((np.clip(x, low, high) - low) / scale + 0.5) * scale + low


def between(x: Any, low: Any, high: Any, least: int, most: int) -> Any:
    low, high, _ = nudged(low, high, least, most)
    return (low < x) & (x < high)


def learned(x: Any, alpha: Any, levels: Any, neg_trunc: bool) -> Any:
    """Returns the quantised quotient by alpha, and the quotient itself."""
    quotient = x / alpha
    clipped = np.clip(quotient, 0 if neg_trunc else -1, 1)
    return np.floor(clipped * levels + 0.5) / levels, quotient


def learned_gradient(dout: Any, x: Any, alpha: Any, levels: Any, neg_trunc: bool) -> Any:
    quantised, quotient = learned(x, alpha, levels, neg_trunc)
    outside = (quotient > 1) | (quotient < (0 if neg_trunc else -1))
    inner = quantised - quotient
    return dout * ~outside, dout * np.where(outside, np.sign(quotient), inner)


def updated(x: Any, low: Any, high: Any, ema: bool, decay: float, axes: Any) -> Any:
    decay = decay if ema else 0.0
    least, most = x.min(axes, keepdims=True).ravel(), x.max(axes, keepdims=True).ravel()
    return (
        np.minimum(low * decay + least * (1 - decay), 0),
        np.maximum(high * decay + most * (1 - decay), 0),
    )


def batchnorm_fold(
    x: Any, x_sum: Any, x_squares: Any, mean: Any, variance: Any, momentum: float, epsilon: float
) -> Any:
    count = N * H * W
    batch_mean = x_sum / count
    batch_variance = x_squares / count - batch_mean**2
    return (
        x,
        batch_mean,
        np.sqrt(batch_variance + epsilon),
        mean,
        np.sqrt(variance + epsilon),
        batch_mean * (1 - momentum) + mean * momentum,
        batch_variance * count / (count - 1) * (1 - momentum) + variance * momentum,
    )


@dataclass(frozen=True)
class Kernel:
    """One call of a published kernel.

    Attributes:
      file: its file.
      entry: its function.
      inputs: what it is called with, as float64.
      attributes: further arguments.
      expected: the results, from inputs and attributes.
      formats: the formats it can run in, of those it registers.
    """

    file: str
    entry: str
    inputs: tuple[Any, ...]
    attributes: tuple[Any, ...]
    expected: Callable[..., Any]
    formats: tuple[str, ...] = ("DefaultFormat", "NC1HWC0")

    def __str__(self) -> str:
        return "-".join([self.entry, *map(str, self.attributes)])


ONE = np.array([0.8])
LEVELS = np.array([127.0])
SUMS = image()


def _channel_kernels(axis: int) -> list[Kernel]:
    others = tuple(i for i in range(4) if i != axis)
    v = lambda: channel(axis)  # noqa: E731
    a = lambda vector: along(vector, axis)  # noqa: E731
    name = "fake_learned_scale_quant_perchannel"
    return [
        Kernel(
            "correction_mul",
            "correction_mul",
            (image(), v(), v()),
            (axis,),
            lambda x, batch, running, _: x * a(batch / running),
        ),
        Kernel(
            "correction_mul_grad",
            "correction_mul_grad",
            (image(), image(), v(), v()),
            (axis,),
            lambda d, x, batch, running, _: (d * a(batch / running), d * x / a(running)),
        ),
        *(
            Kernel(
                "fake_quant_perchannel",
                "fake_quant_perchannel",
                (image(), -v(), v()),
                (symmetric, narrow, 8, axis),
                lambda x, low, high, symmetric, narrow, bits, _: fake_quant(
                    x, a(low), a(high), symmetric, narrow, bits
                ),
            )
            for symmetric, narrow in ((False, False), (True, True))
        ),
        Kernel(
            "fake_quant_perchannel_grad",
            "fake_quant_perchannel_grad",
            (image(), image(), -v(), v()),
            (False, False, 8, axis),
            lambda d, x, low, high, *_: d * between(x, a(low), a(high), 0, 255),
        ),
        *(
            Kernel(
                name,
                name,
                (image(), v(), LEVELS),
                (neg_trunc, axis),
                lambda x, alpha, levels, neg, _: learned(x, a(alpha), levels, neg)[0] * a(alpha),
            )
            for neg_trunc in (False, True)
        ),
        Kernel(
            f"{name}_grad",
            f"{name}_grad_d",
            (image(), image(), v(), LEVELS),
            (False, axis),
            lambda d, x, alpha, levels, neg, _: learned_gradient(d, x, a(alpha), levels, neg),
        ),
        Kernel(
            f"{name}_grad_reduce",
            f"{name}_grad_d_reduce",
            (image(),),
            (axis,),
            lambda d, _: d.sum(others),
            # In NC1HWC0 the kernel sums over the channels of a block.
            ("DefaultFormat", "NC1HWC0") if axis == 0 else ("DefaultFormat",),
        ),
        Kernel(
            "minmax_update_perchannel",
            "minmax_update_perchannel",
            (image(), -v(), v()),
            (True, 0.9, axis),
            lambda x, low, high, ema, decay, _: updated(x, low, high, ema, decay, others),
        ),
    ]


KERNELS = [
    *_channel_kernels(0),
    *_channel_kernels(1),
    Kernel(
        "correction_mul_grad",
        "correction_mul_grad_reduce",
        (image(),),
        (0,),
        lambda d, _: d.sum((1, 2, 3)),
    ),
    Kernel(
        "correction_mul_grad",
        "correction_mul_grad_reduce",
        # With axis 1 the kernel does not sum over the first axis: it is for filters of depth.
        (image()[:1],),
        (1,),
        lambda d, _: d.sum((0, 2, 3)),
    ),
    Kernel(
        "batchnorm_fold",
        "batchnorm_fold",
        (SUMS, SUMS.sum((0, 2, 3)), (SUMS**2).sum((0, 2, 3)), channel(), channel()),
        (0.9, 1e-5),
        batchnorm_fold,
    ),
    Kernel(
        "batchnorm_fold_grad",
        "batchnorm_fold_grad",
        (channel(), channel(), image(), channel(), channel()),
        (1e-5, True, 0),
        lambda d_mean, d_std, x, mean, std, *_: (
            (along(d_std) * (x - along(mean)) / along(std) + along(d_mean)) / (N * H * W)
        ),
    ),
    Kernel(
        "batchnorm_fold2",
        "batchnorm_fold2",
        (image(), *(channel() for _ in range(5))),
        (),
        lambda x, beta, gamma, std, mean, running: (
            x * along(running / std) + along(beta - gamma * mean / std)
        ),
    ),
    Kernel(
        "batchnorm_fold2_grad",
        "batchnorm_fold2_grad",
        (image(), *(channel() for _ in range(6))),
        (),
        lambda d, d_sum, dx_sum, gamma, std, mean, running: (
            (d_sum * mean * gamma - dx_sum * running) / std**2,
            -d_sum * gamma / std,
            -d_sum * mean / std,
            d * along(running / std),
        ),
    ),
    Kernel(
        "batchnorm_fold2_grad_reduce",
        "batchnorm_fold2_grad_reduce",
        (image(), image()),
        (),
        lambda d, x: (d.sum((0, 2, 3)), (d * x).sum((0, 2, 3))),
    ),
    *(
        Kernel(
            "fake_quant_perlayer",
            "fake_quant_per_layer",
            (image(), -ONE, ONE + 0.1),
            (symmetric, narrow, 8),
            fake_quant,
        )
        for symmetric, narrow in ((False, False), (True, True))
    ),
    Kernel(
        "fake_quant_perlayer_grad",
        "fake_quant_per_layer_grad",
        (image(), image(), -ONE, ONE),
        (8, False, False),
        lambda d, x, low, high, *_: d * between(x, low, high, 0, 255),
    ),
    Kernel(
        "fake_learned_scale_quant_perlayer",
        "fake_learned_scale_quant_perlayer",
        (image(), ONE, LEVELS),
        (False,),
        lambda x, alpha, levels, neg: learned(x, alpha, levels, neg)[0] * alpha,
    ),
    Kernel(
        "fake_learned_scale_quant_perlayer_grad",
        "fake_learned_scale_quant_perlayer_grad_d",
        (image(), image(), ONE, LEVELS),
        (True,),
        learned_gradient,
    ),
    Kernel(
        "fake_learned_scale_quant_perlayer_grad_reduce",
        "fake_learned_scale_quant_perlayer_grad_d_reduce",
        (image(),),
        (),
        lambda d: d.sum(keepdims=True).reshape(1),
    ),
    Kernel(
        "minmax_update_perlayer",
        "minmax_update_perlayer",
        (image(), -ONE, ONE),
        (True, 0.9),
        lambda x, low, high, ema, decay: updated(x, low, high, ema, decay, (0, 1, 2, 3)),
    ),
]


@pytest.fixture(scope="module")
def folder() -> Path:
    """The folder of MindSpore's kernels."""
    python = os.environ.get("MSOPS_TEST_MINDSPORE")
    if not python:
        pytest.skip("MSOPS_TEST_MINDSPORE names no Python with MindSpore")
    code = "import importlib.util; print(importlib.util.find_spec('mindspore').origin)"
    found = subprocess.run([python, "-c", code], capture_output=True, text=True, check=True)
    kernels = Path(found.stdout.strip()).parent / "ops" / "_op_impl" / "_custom_op"
    if not kernels.is_dir():
        pytest.skip("this MindSpore has no DSL kernels")
    return kernels


def op_of(folder: Path, kernel: Kernel, row: Any, expected: tuple[np.ndarray, ...]) -> msops.Custom:
    """Returns the op of a kernel, with one row of its op info."""
    source = f"{folder / kernel.file}.py:{kernel.entry}"
    (info,) = carried_op_info(load_kernel(source, kernel.entry))
    shapes = tuple(list(value.shape) for value in expected)
    dtypes = tuple(getattr(msops, dtype) for dtype, _ in row[len(kernel.inputs) :])
    return msops.Custom(
        source,
        lambda *_: shapes if len(shapes) > 1 else shapes[0],
        lambda *_: dtypes if len(dtypes) > 1 else dtypes[0],
        func_type="tbe",
        reg_info=info | {"dtype_format": [row]},
    )


@pytest.mark.slow
@pytest.mark.parametrize("kernel", KERNELS, ids=str)
def test_a_published_kernel_computes_its_formula(folder: Path, kernel: Kernel) -> None:
    (info,) = carried_op_info(load_kernel(f"{folder / kernel.file}.py:{kernel.entry}", "test"))
    rows = [row for row in info["dtype_format"] if row[0][1] in kernel.formats]
    assert rows
    for row in rows:
        inputs = [x.astype(dtype) for x, (dtype, _) in zip(kernel.inputs, row, strict=False)]
        exact = kernel.expected(*(x.astype("f8") for x in inputs), *kernel.attributes)
        expected = exact if isinstance(exact, tuple) else (exact,)
        op = op_of(folder, kernel, row, expected)
        got = op(*map(jnp.asarray, inputs), *kernel.attributes)
        for value, wanted in zip(jax.tree.leaves(got), expected, strict=True):
            check(value, wanted, kernel, row)


def check(value: Any, wanted: np.ndarray, kernel: Kernel, row: Any) -> None:
    assert value.shape == wanted.shape
    error = np.abs(np.asarray(value, "f8") - wanted)
    is_half = any(dtype == "float16" for dtype, _ in row)
    limit = (5e-2 if is_half else 2e-5) * (1 + np.abs(wanted))
    # Rounding puts a few elements on the other side of a threshold, where the function jumps.
    jumps = "quant" in kernel.entry
    assert (error > limit).mean() <= (0.02 if jumps and is_half else 0.005 if jumps else 0), (
        row,
        error.max(),
    )


@pytest.mark.slow
def test_the_way_without_blocks_of_a_published_kernel(folder: Path) -> None:
    # It schedules by a function of CANN's operator library and builds by tvm.build.
    kernel = next(k for k in KERNELS if k.entry == "batchnorm_fold2_grad_reduce")
    expected = kernel.expected(*kernel.inputs)
    op = op_of(folder, kernel, [("float32", "DefaultFormat")] * 4, expected)
    got = op(*(jnp.asarray(x, jnp.float32) for x in kernel.inputs))
    for value, wanted in zip(got, expected, strict=True):
        np.testing.assert_allclose(value, wanted, rtol=1e-4, atol=1e-4)


@pytest.mark.slow
@pytest.mark.parametrize("transposed", [False, True])
def test_a_published_product_in_blocks(folder: Path, transposed: bool) -> None:
    a, b = rng.normal(size=(32, 16)).astype("f2"), rng.normal(size=(16, 48)).astype("f2")
    op = msops.Custom(
        f"{folder / 'matmul_cube_impl.py'}:cus_matmul_cube",
        lambda *_: [32, 48],
        lambda *_: msops.float32,
        func_type="tbe",
    )
    operands = (a.T.copy(), b.T.copy()) if transposed else (a, b)
    got = op(*map(jnp.asarray, operands), transposed, transposed)
    np.testing.assert_allclose(got, a.astype("f4") @ b.astype("f4"), rtol=1e-5, atol=1e-5)


@pytest.mark.slow
def test_published_kernels_in_tik_are_refused_by_name(folder: Path) -> None:
    refused = []
    for path in sorted(folder.glob("*.py")):
        text = path.read_text()
        if "from te import tik" not in text or "@op_info_register" not in text:
            continue
        entry = text[text.index("@op_info_register") :].partition("def ")[2].partition("(")[0]
        function = load_kernel(f"{path}:{entry}", entry)
        assert carried_op_info(function) is not None
        refused.append(entry)
    assert len(refused) >= 10
    op = msops.Custom(
        f"{folder / 'matrix_combine_impl.py'}:cus_matrix_combine",
        lambda x: x,
        lambda x: x,
        func_type="tbe",
    )
    with pytest.raises(msops.errors.BackendError, match="TIK is not supported: the kernel 'cus_"):
        op(jnp.ones((1, 64, 64)))


@pytest.mark.slow
def test_a_published_kernel_is_differentiated_and_batched(folder: Path) -> None:
    kernel = next(k for k in KERNELS if k.entry == "batchnorm_fold2")
    inputs = [jnp.asarray(x, jnp.float32) for x in kernel.inputs]
    row = [("float32", "NC1HWC0")] * 7
    op = op_of(folder, kernel, row, (np.zeros(IMAGE),))
    gradient = jax.jit(jax.grad(lambda x, *rest: (op(x, *rest) ** 2).sum()))(*inputs)
    y = kernel.expected(*kernel.inputs)
    slope = along(kernel.inputs[5] / kernel.inputs[3])
    np.testing.assert_allclose(gradient, 2 * y * slope, rtol=1e-4, atol=1e-4)
    batched = jax.vmap(op, in_axes=(0, *[None] * 5))(jnp.stack([inputs[0]] * 2), *inputs[1:])
    np.testing.assert_allclose(batched[1], op(*inputs), rtol=1e-5, atol=1e-5)
