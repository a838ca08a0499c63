"""A kernel as XLA operations, as C, by the interpreter of the IR and as Python: the same values."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from loop_ir import Spec, interpret, read_kernel

from msops import Custom
from msops.ops import kernel

Func = Callable[..., Any]


def forms_of(func: Func) -> dict[str, Custom]:
    """Returns a kernel as XLA operations and as C."""
    return {
        form: Custom(func, func_type="akg", compile_attrs={"lower": form})
        for form in ("xla", "native")
    }


def assert_values_agree(func: Func, *arrays: np.ndarray, rtol: float = 1e-6) -> None:
    """Checks all results of a kernel."""
    wanted = jax.tree.leaves(kernel(func)(*(array.copy() for array in arrays)))
    specs = [Spec(array.shape, array.dtype.name) for array in arrays]
    meaning = read_kernel(func, "akg", "k").specialise(specs, {}, "k")
    ways = {"interpreter": list(interpret(meaning, [*arrays]))}
    with jax.enable_x64(True):
        ways |= {form: jax.tree.leaves(op(*arrays)) for form, op in forms_of(func).items()}
    for way, results in ways.items():
        for got, value in zip(results, wanted, strict=True):
            np.testing.assert_allclose(got, value, rtol, rtol, err_msg=way)


def assert_slopes_agree(func: Func, array: np.ndarray) -> None:
    """Checks the gradient of a kernel of one result against differences of Python's values."""
    x, step = array.astype("float64"), 1e-6
    weights = np.random.default_rng(1).random(kernel(func)(x.copy()).shape)

    def total(at: tuple[int, ...], by: float) -> float:
        moved = x.copy()
        moved[at] += by
        return float((kernel(func)(moved) * weights).sum())

    wanted = np.empty_like(x)
    for at in np.ndindex(x.shape):
        wanted[at] = (total(at, step) - total(at, -step)) / (2 * step)
    with jax.enable_x64(True):
        for form, op in forms_of(func).items():
            got = jax.grad(lambda x, op=op: jnp.sum(op(x) * weights))(x)
            np.testing.assert_allclose(got, wanted, 1e-5, 1e-5, err_msg=form)
