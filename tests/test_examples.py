"""The examples do what they say; their kernels are checked against numpy in float64."""

from __future__ import annotations

import importlib.util
import os
import re
import subprocess
import sys
import termios
from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import msops
from msops.errors import KernelError

ROOT = Path(__file__).resolve().parents[1]
DIGITS = ROOT / "examples" / "digits.py"
SOURCE = ROOT / "examples" / "activation.cc"

MISSING = [name for name in ("optax", "sklearn", "tqdm") if not importlib.util.find_spec(name)]
needs_demo_extras = pytest.mark.skipif(bool(MISSING), reason=f"pip install .[demo]: no {MISSING}")

mish = msops.Custom(f"{SOURCE}:Mish", lambda x: x, lambda x: x)
mish_grad = msops.Custom(f"{SOURCE}:MishGrad", lambda x, dy: x, lambda x, dy: x)


def exact_mish(x: np.ndarray) -> np.ndarray:
    return x * np.tanh(np.logaddexp(0, x))


def run_digits(
    *args: str, before: str = "", stderr: int = subprocess.PIPE
) -> subprocess.CompletedProcess[str]:
    code = f"import runpy, sys\n{before}\nrunpy.run_path({str(DIGITS)!r}, run_name='__main__')"
    env = {**os.environ, "PYTHONPATH": str(ROOT)}
    return subprocess.run(
        [sys.executable, "-c", code, *args],
        env=env,
        stdout=subprocess.PIPE,
        stderr=stderr,
        text=True,
        timeout=300,
    )


@needs_demo_extras
@pytest.mark.slow
def test_the_demo_trains_both_networks_to_equal_accuracy():
    result = run_digits("--epochs", "10")
    assert result.returncode == 0, result.stderr
    rows = re.findall(r"^(Mish in \S+) +([\d.]+)%( +[\d.]+ s){2} +\d+ us$", result.stdout, re.M)
    assert [name for name, *_ in rows] == ["Mish in C++", "Mish in jax.numpy"]
    accuracies = [float(accuracy) for _, accuracy, _ in rows]
    assert min(accuracies) > 95
    assert abs(accuracies[0] - accuracies[1]) < 0.6
    assert result.stderr == ""


@pytest.mark.slow
@needs_demo_extras
def test_the_demo_fails_when_the_network_did_not_learn():
    result = run_digits("--epochs", "0")
    assert result.returncode == 1
    assert "Wanted more than 95% test accuracy" in result.stderr


@pytest.mark.slow
@needs_demo_extras
def test_the_demo_fails_when_a_kernel_is_wrong_and_shows_its_progress_on_a_terminal():
    # A gradient of the wrong sign in C++ alone: its network cannot learn what the other one does.
    wrong = """
import msops
right = msops.cpp
def wrong(func, bprop=None, **options):
    flipped = bprop and (lambda *given: tuple(-part for part in bprop(*given)))
    return right(func, bprop=flipped, **options)
msops.cpp = wrong
"""
    terminal, stderr = os.openpty()
    termios.tcsetwinsize(terminal, (24, 80))
    assert run_digits("--epochs", "10", before=wrong, stderr=stderr).returncode == 1
    os.close(stderr)
    assert b"10/10" in os.read(terminal, 100_000)
    os.close(terminal)


@pytest.mark.slow
def test_a_missing_package_is_named_with_the_command_that_installs_it():
    # A process for one of them, where the other two were missing before it.
    before = f"""
for module in "sklearn", "tqdm":
    sys.modules[module] = None
    try:
        runpy.run_path({str(DIGITS)!r}, run_name="__main__")
    except SystemExit as exit:
        print(exit.code)
    del sys.modules[module]
sys.modules["optax"] = None
"""
    result = run_digits(before=before)
    assert result.returncode == 1
    said = [*re.split(r"(?m)^(?=digits\.py: )", result.stdout)[1:], result.stderr]
    for module, text in zip(("sklearn", "tqdm", "optax"), said, strict=True):
        assert module in text.splitlines()[0]
        assert "pip install optax scikit-learn tqdm" in text
        assert "Traceback" not in text


@settings(deadline=None, max_examples=60)
@given(st.lists(st.floats(-(2.0**127), 2.0**127, width=32), min_size=1, max_size=70))
def test_mish_is_exact_to_a_few_units_in_the_last_place(values: list[float]):
    x = np.array(values, np.float32)
    expected = exact_mish(x.astype(np.float64))
    np.testing.assert_allclose(mish(x), expected, rtol=1e-6, atol=1e-30)


def test_mish_gradient_agrees_with_finite_differences():
    x = np.linspace(-90, 90, 4001, dtype=np.float32)
    dy = np.random.default_rng(0).normal(size=x.shape).astype(np.float32)
    wide, step = x.astype(np.float64), 1e-5
    slope = (exact_mish(wide + step) - exact_mish(wide - step)) / (2 * step)
    np.testing.assert_allclose(mish_grad(x, dy), dy * slope, rtol=1e-5, atol=1e-6)


def test_mish_keeps_what_is_not_a_number_and_saturates_far_out():
    x = jnp.array([np.nan, np.inf, -np.inf, 1e30, -1e30], jnp.float32)
    np.testing.assert_allclose(mish(x), [np.nan, np.inf, 0, 1e30, 0], atol=1e-30)
    np.testing.assert_allclose(mish_grad(x, jnp.ones(5)), [np.nan, 1, 0, 1, 0], atol=1e-30)


@pytest.mark.parametrize(
    ("inputs", "code"),
    [
        ((jnp.ones(3),), 1),
        ((jnp.ones(3, jnp.int32), jnp.ones(3)), 2),
        ((jnp.ones(3), jnp.ones(2)), 3),
    ],
    ids=["count", "dtype", "size"],
)
def test_the_kernel_refuses_what_it_cannot_do(inputs: tuple[jax.Array, ...], code: int):
    op = msops.Custom(f"{SOURCE}:MishGrad", lambda *_: (3,), jnp.float32)
    with pytest.raises(KernelError, match=f"kernel returned {code}, expected 0"):
        op(*inputs).block_until_ready()


@pytest.mark.slow
@pytest.mark.skipif(not importlib.util.find_spec("optax"), reason="pip install .[demo]")
def test_the_spirals_train_alike_in_cpp_and_in_jax_numpy():
    done = subprocess.run(
        [sys.executable, str(ROOT / "examples" / "spirals.py"), "--steps", "600"],
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert "Accuracy: 100.0% with C++, 100.0% with jax.numpy" in done.stdout


@pytest.mark.slow
def test_the_layer_of_the_spirals_agrees_with_its_twin():
    spec = importlib.util.spec_from_file_location("spirals", ROOT / "examples" / "spirals.py")
    spirals = importlib.util.module_from_spec(spec)
    pytest.importorskip("optax")
    spec.loader.exec_module(spirals)
    builder = msops.ops.CustomOpBuilder("bias_swish", str(spirals.SOURCE), cflags="-O0")
    layer = builder.load().bias_swish
    x = jnp.linspace(-4, 4, 12).reshape(4, 3)
    bias = jnp.array([0.5, 0.0, -1.0])

    def loss(layer):
        return jax.jit(jax.value_and_grad(lambda *args: (layer(*args) ** 2).sum(), (0, 1)))

    for ours, theirs in zip(
        jax.tree.leaves(loss(layer)(x, bias)),
        jax.tree.leaves(loss(spirals.plain_bias_swish)(x, bias)),
        strict=True,
    ):
        np.testing.assert_allclose(ours, theirs, rtol=1e-5, atol=1e-5)
    with pytest.raises(ValueError, match="expected x of shape"):
        layer(x, x)
    with pytest.raises(TypeError, match="expected float32"):
        layer(x.astype(jnp.float16), bias)
