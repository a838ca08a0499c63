"""`opcheck`'s gradient check gives rules cotangents of 0, of any size and sign, and NaN."""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from custom_ops import first
from test_opcheck import check_one

from msops import Custom, pyfunc
from msops.testing import Finding

X = np.linspace(1, 2, 4, dtype=np.float32)


def squared(gradient: Any) -> Finding:
    op = Custom(np.square, first, first, bprop=lambda x, out, dout: (gradient(x, dout),))
    return check_one(op, "gradient", X)


def leaves_memory(x: np.ndarray, dout: np.ndarray, out: np.ndarray) -> None:
    np.multiply(2 * x, dout, out=out, where=dout != 0)


def refuses(x: np.ndarray, dout: np.ndarray) -> np.ndarray:
    if not dout.any():
        raise ValueError("nothing to do")
    return 2 * x * dout


NONLINEAR = {
    "cotangents of 0: gradient of input 0: 4 of 4 elements": lambda x, dout: 2 * x * dout**2 / dout,
    "cotangents of 0: KernelError": pyfunc(refuses, out=first),
    "cotangents of which each second is 0": pyfunc(leaves_memory, out=first),
    "large cotangents": lambda x, dout: 2 * x * jnp.clip(dout, -9, 9),
    "small cotangents": lambda x, dout: 2 * x * jnp.sign(dout) * jnp.sqrt(dout * dout),
    "cotangents of NaN": lambda x, dout: 2 * x * jnp.nan_to_num(dout),
}


@pytest.mark.parametrize("said", NONLINEAR)
def test_a_gradient_that_is_not_linear_in_its_cotangent_is_found(said: str) -> None:
    finding = squared(NONLINEAR[said])
    assert finding.verdict == "failed", finding
    assert any(line.startswith(said) for line in finding.details), finding


def test_a_slope_that_is_not_finite_is_none_of_the_cotangent() -> None:
    """JAX's own gradient of a root at 0 is 0 * inf."""
    rule = lambda x, out, dout: jax.vjp(jnp.sqrt, x)[1](dout)  # noqa: E731
    op = Custom(np.sqrt, first, first, bprop=rule)
    finding = check_one(op, "gradient", np.array([0, 1, 4], np.float32))
    assert finding.verdict == "skipped" or not any("linear" in d for d in finding.details), finding


def test_a_gradient_that_picks_cotangents_is_linear() -> None:
    finding = squared(
        lambda x, dout: jnp.where(x > 1, 2 * x * dout, 2 * x * jnp.flip(jnp.flip(dout)))
    )
    assert finding.verdict == "passed", finding
