"""What the libraries around msops do against good guesses, and what msops makes of it.

The rows of docs/guides/surprises.md that no other test holds.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from custom_ops import first

import msops
from msops import Custom, Tensor, errors, nn, ops

pytestmark = pytest.mark.usefixtures("as_users_compile")

ROOT = Path(__file__).parents[1]
FINDINGS = sorted(path.name for path in (ROOT / "findings").glob("*.sh"))


@msops.kernel
def power_of_two(x):  # type: ignore[no-untyped-def]
    y = output_tensor(x.shape, x.dtype)  # type: ignore[name-defined]  # noqa: F821
    for i in range(x.shape[0]):
        y[i] = 2.0 ** x[i]
    return y


@pytest.mark.parametrize("repeats", [1, 40])
def test_powers_of_two_are_exact(repeats: int) -> None:
    exponents = np.tile(np.arange(-126, 128), repeats)
    powers = power_of_two(exponents.astype(np.float32))
    np.testing.assert_array_equal(powers, np.ldexp(np.float32(1), exponents))


def roots_and_powers(x):  # type: ignore[no-untyped-def]
    roots = output_tensor(x.shape, x.dtype)  # type: ignore[name-defined]  # noqa: F821
    powers = output_tensor(x.shape, x.dtype)  # type: ignore[name-defined]  # noqa: F821
    for i in range(x.shape[0]):
        roots[i] = x[i] ** 0.5
        powers[i] = exp(x[i])  # type: ignore[name-defined]  # noqa: F821
    return roots, powers


@pytest.mark.parametrize("form", ["xla", "native"])
def test_equal_numbers_have_equal_results_wherever_they_stand(form: str) -> None:
    op = Custom(roots_and_powers, func_type="akg", compile_attrs={"lower": form})
    for number in (-np.inf, *np.linspace(-5, 5, 60)):
        roots, powers = (np.asarray(part) for part in op(np.full(19, number, np.float32)))
        assert len({*powers.tolist()}) == 1
        root = np.inf if np.isinf(number) else np.sqrt(number) if number >= 0 else np.nan
        np.testing.assert_allclose(roots, np.full(19, root), rtol=1e-6)


@pytest.mark.parametrize("form", ["xla", "native"])
def test_a_zero_before_one_keeps_its_sign_as_an_argument(form: str) -> None:
    op = Custom(same, func_type="akg", compile_attrs={"lower": form})
    x = np.float32([-0.0, 1.0])
    assert np.signbit(jax.jit(op)(x)).tolist() == [True, False]
    # XLA has it for an iota before the op gets it.
    assert np.signbit(jax.jit(lambda: op(x))()).tolist() == [False, False]


def same(x):  # type: ignore[no-untyped-def]
    y = output_tensor(x.shape, x.dtype)  # type: ignore[name-defined]  # noqa: F821
    for i in range(x.shape[0]):
        y[i] = x[i]
    return y


def test_topk_puts_every_nan_first() -> None:
    computed = jax.jit(lambda a: jnp.stack([a - a, jnp.float32(1), jnp.float32(3)]))(jnp.inf)
    assert np.signbit(computed)[0]
    for nan in (computed, jnp.array([jnp.nan, 1, 3], jnp.float32)):
        values, places = ops.topk(Tensor(nan), 2)
        np.testing.assert_array_equal(values.asnumpy(), [np.nan, 3])
        np.testing.assert_array_equal(places.asnumpy(), [0, 2])


@pytest.mark.parametrize("wrap", [lambda op: op, jax.jit])
def test_subnormals_are_zeros_in_python_functions(wrap: Any) -> None:
    def is_zero(x: Any) -> Any:
        return np.float32([x[0] == 0, float(x[1]) * 2.0**-60 == 0])

    with jax.enable_x64(True):
        x = np.array([2.0**-1060, 2.0**-1000])
        assert not (x == 0).any()
        op = Custom(is_zero, first, lambda _: "float32", "pyfunc")
        np.testing.assert_array_equal(wrap(op)(x), [1, 1])


def test_integers_of_64_bits_are_kept_or_refused() -> None:
    x = np.array([2**31, 5])
    assert Tensor(x).asnumpy().tolist() == [2**31, 5]
    with pytest.raises(errors.InferenceTypeError, match="64-bit types are off"):
        power_of_two(x)


def test_debug_nans_repeats_the_calls_of_a_stateful_op() -> None:
    noted: list[float] = []

    def note(x: Any) -> Any:
        noted.append(float(x))
        return x

    op = Custom(note, first, first, "pyfunc", stateful=True)
    with jax.debug_nans(True), pytest.raises(FloatingPointError):
        jax.jit(lambda x: jnp.log(op(x)))(jnp.float32(-1))
    jax.effects_barrier()
    assert noted == [-1, -1]


def test_what_changes_in_place_has_the_change_under_all_its_names() -> None:
    given = Tensor([1.0, 2.0])
    other = given
    assert given.add_(1.0) is given
    other[0] = 5.0
    assert given.asnumpy().tolist() == [5, 3]


def test_forward_hooks_of_a_cell_with_its_own_bprop_are_called() -> None:
    class Doubled(nn.Cell):
        def construct(self, x: Any) -> Any:
            return x * 2

        def bprop(self, _x: Any, _out: Any, dout: Any) -> Any:
            return (dout * 2,)

    cell = Doubled()
    cell.register_forward_pre_hook(lambda _cell, inputs: (inputs[0] + 1,))
    cell.register_forward_hook(lambda _cell, _inputs, output: output * 10)
    assert cell(Tensor(1.0)) == 40


def test_the_slope_of_mod_is_that_of_a_remainder_that_truncates() -> None:
    x, y = Tensor([-7.0, 7.0, 7.0]), Tensor([3.0, -3.0, 3.0])
    slopes = msops.grad(lambda x, y: ops.Mod()(x, y).sum(), 1)(x, y)
    assert slopes.asnumpy().tolist() == [2, 2, -2]


def test_a_fraction_fills_a_tensor() -> None:
    filled = ops.full((2,), 1.5)
    assert (filled.dtype, filled.asnumpy().tolist()) == (msops.float32, [1.5, 1.5])


def test_sums_are_in_the_dtype_that_they_are_asked_in() -> None:
    with jax.enable_x64(True):
        sums = Tensor([2.0**24, 1, 1, 1], msops.float32).cumsum(0, dtype=msops.float64)
        assert (sums.asnumpy() - 2**24).tolist() == [0, 1, 2, 3]


@pytest.mark.parametrize("way", [lambda function: function, jax.jit], ids=["eager", "compiled"])
def test_a_part_of_a_row_that_does_not_exist_is_an_error(way: Any) -> None:
    def store(z: Tensor, y: Tensor) -> Tensor:
        z[2, 0:2] = y
        return z

    with pytest.raises(IndexError, match="2 is out of range for axis 0 of extent 2"):
        way(store)(ops.zeros((2, 3), msops.float32), Tensor([7.0, 8.0]))


def test_the_table_names_tests_that_exist() -> None:
    page = (ROOT / "docs" / "guides" / "surprises.md").read_text()
    named = re.findall(r"`(\w+\.py)` \|$", page, re.MULTILINE)
    rows = [line for line in page.splitlines() if line.startswith("|")][2:]
    assert len(named) == len(rows)
    assert [name for name in named if not (ROOT / "tests" / name).exists()] == []


def test_findings_are_listed_and_say_what_they_show() -> None:
    listed = re.findall(
        r"^- \[([\w-]+)\]\(\1\.sh\): ", (ROOT / "findings" / "README.md").read_text(), re.M
    )
    assert sorted(f"{name}.sh" for name in listed) == FINDINGS
    for name in FINDINGS:
        path = ROOT / "findings" / name
        assert path.stat().st_mode & 0o100, name
        header = path.read_text().split("set -euo pipefail")[0]
        for part in ("Guess:", "Seen:", "Versions:", "Needs:"):
            assert f"# {part}" in header, (name, part)
