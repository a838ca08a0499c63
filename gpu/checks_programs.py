"""What programs do with kernels on a GPU: loops, batches, gradients, modules, and wrong indices."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from unittest import mock

import jax
import numpy as np
from checks_report import Row
from checks_table import KERNELS

from msops import Custom
from msops.ops import CustomOpBuilder

_TOLERANCE = 1e-5


def decaying_sums(a):
    out = output_tensor(a.shape, a.dtype)  # noqa: F821
    for i in range(a.shape[0]):
        out[i, 0] = a[i, 0]
        for j in range(1, a.shape[1]):
            out[i, j] = out[i, j - 1] * 0.5 + a[i, j]
    return out


def picked(a, index):
    out = output_tensor(index.shape, a.dtype)  # noqa: F821
    for i in range(index.shape[0]):
        out[i] = a[index[i]]
    return out


def program_checks(device: jax.Device) -> Iterator[tuple[str, Callable[[], Row]]]:
    """Yields the name of each check, and what runs it."""
    for name, run in (
        ("kernel in a loop of a program", in_a_loop),
        ("kernel under vmap, gradient", under_vmap),
        ("index out of range, checked", out_of_range),
        ("module of CustomOpBuilder", of_a_module),
    ):
        yield name, lambda name=name, run=run: _row(name, run(device))


def in_a_loop(device: jax.Device) -> float:
    """Runs a kernel 20 times in one program; returns the largest error."""
    x = np.random.default_rng(0).normal(size=(300, 40)).astype(np.float32)
    op = Custom(decaying_sums, func_type="akg", compile_attrs={"lower": "native"})
    got = jax.jit(lambda x: jax.lax.fori_loop(0, 20, lambda _, x: op(x) / 2, x))(
        jax.device_put(x, device)
    )
    expected = x
    for _ in range(20):
        expected = _decaying_sums(expected) / 2
    return _error(got, expected, device)


def under_vmap(device: jax.Device) -> float:
    """Takes the gradient of a batched kernel; returns the largest error."""
    x = np.random.default_rng(0).normal(size=(7, 30, 40)).astype(np.float32)
    op = Custom(decaying_sums, func_type="akg", compile_attrs={"lower": "native"})
    got = jax.jit(jax.grad(lambda x: (jax.vmap(op)(x) ** 2).sum()))(jax.device_put(x, device))
    back = 2 * _decaying_sums(x)[..., ::-1]
    return _error(got, _decaying_sums(back)[..., ::-1], device)


def out_of_range(device: jax.Device) -> float:
    """Reads beside an array under MSOPS_DEBUG=bounds, then inside of it; returns the error."""
    a = jax.device_put(np.arange(5, dtype=np.float32), device)
    with mock.patch.dict("os.environ", {"MSOPS_DEBUG": "bounds"}):
        function = jax.jit(Custom(picked, func_type="akg").__call__)
        try:
            jax.block_until_ready(function(a, jax.device_put(np.int32([1, 7]), device)))
        except jax.errors.JaxRuntimeError as error:
            if "out of range" not in str(error):
                raise
        else:
            raise AssertionError("expected an error: index 7 of 5 elements")
        inside = function(a, jax.device_put(np.int32([1, 4]), device))
    return _error(inside, np.float32([1, 4]), device)


def of_a_module(device: jax.Device) -> float:
    """Builds a module with nvcc and runs its operator in a program; returns the largest error."""
    module = CustomOpBuilder("axpy_on_gpu", str(KERNELS / "axpy_extension.cu"), "GPU").load()
    x, y = np.random.default_rng(0).normal(size=(2, 1000)).astype(np.float32)
    arrays = jax.device_put((x, y), device)
    eagerly = module.axpy(2.5, *arrays)
    jitted = jax.jit(lambda x, y: module.axpy(2.5, x, y))(*arrays)
    return float(np.max([_error(got, 2.5 * x + y, device) for got in (eagerly, jitted)]))


def _decaying_sums(a: np.ndarray) -> np.ndarray:
    sums = np.copy(a)
    for j in range(1, a.shape[-1]):
        sums[..., j] += sums[..., j - 1] * np.float32(0.5)
    return sums


def _error(got: jax.Array, expected: np.ndarray, device: jax.Device) -> float:
    """Returns the largest error relative to the largest expected value."""
    if got.shape != expected.shape or got.devices() != {device}:
        raise ValueError(f"expected {expected.shape} on {device}; got {got.shape}, {got.devices()}")
    largest = float(np.abs(expected).max())
    return float(np.abs(np.asarray(got, np.float64) - expected).max()) / largest


def _row(name: str, error: float) -> Row:
    # Not `error > tolerance`: that would let NaN pass.
    failure = "" if error <= _TOLERANCE else f"largest error {error:.2e} exceeds {_TOLERANCE:.0e}"
    return Row(name, error, failure=failure)
