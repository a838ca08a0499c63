"""A kernel as the bprop of another: ``%%aot Swish --bprop SwishGrad``."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import jax.numpy as jnp

from msops._base.building import Build
from msops._base.dtypes import as_dtype
from msops._custom.custom import Custom
from msops.errors import GradientTypeError


def kernel_as_bprop(func: str, build: Build | None = None) -> Callable[..., tuple[Any, ...]]:
    """Returns a bprop that calls a kernel with inputs, outputs and gradients of outputs."""

    def bprop(*args: Any) -> tuple[Any, ...]:
        *inputs, out, dout = args
        if not all(hasattr(value, "dtype") for value in inputs):
            raise GradientTypeError.explained(
                f"bprop {func.rpartition(':')[2]} of %%aot",
                "a kernel as bprop takes tensors only; this op has attributes or lists of "
                "tensors among its inputs",
                "Write it in Python: --bprop 'lambda x, attribute, out, dout: (dx, None)'.",
            )
        wanted = tuple(
            index
            for index, value in enumerate(inputs)
            if jnp.issubdtype(as_dtype(value.dtype).dtype, jnp.inexact)
        )
        gradients = _gradient_op(func, wanted, build)(*inputs, *_as_tuple(out), *_as_tuple(dout))
        by_input = dict(zip(wanted, gradients, strict=True))
        return tuple(by_input.get(index) for index in range(len(inputs)))

    return bprop


@functools.lru_cache(maxsize=256)
def _gradient_op(func: str, wanted: tuple[int, ...], build: Build | None) -> Custom:
    """Returns the op whose outputs are like those of its inputs that `wanted` numbers."""

    def like_wanted(*given: Any) -> tuple[Any, ...]:
        return tuple(given[index] for index in wanted)

    return Custom(func, like_wanted, like_wanted, build=build)


def _as_tuple(value: Any) -> tuple[Any, ...]:
    return value if isinstance(value, tuple) else (value,)
