"""A custom call that ends a program of one CPU with an error if an index is out of range.

XLA itself knows no such error: where an index is out of range, JAX reads NaN or a clamped element,
and drops what is stored.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import jax
import numpy as np

from msops import _jax_seam as seam
from msops._base.kernel_errors import call_compiled
from msops._calls.handlers import register_targets

_CHECKED = {f"{kind}{bits}" for kind in ("int", "uint") for bits in (8, 16, 32, 64)}


def check_indices(indices: Any, extent: int, who: str, place: str) -> Any:
    """Returns the indices of an axis, which a compiled program compares with its extent.

    Programs for other devices than a CPU, for several devices, and exported ones do not.

    Args:
      indices: traced integers; negative ones count from the end.
      extent: of the axis.
      who: what takes them, for the error.
      place: says which axis, for the error.
    """
    if indices.dtype.name not in _CHECKED:
        return indices
    (checked,) = _check.bind(indices, extent=extent, who=who, place=place)
    return checked


def _lower(lowering: seam.Lowering, indices: Any, *, extent: int, who: str, place: str) -> Any:
    if lowering.platform != "cpu" or lowering.is_exported or lowering.is_partitioned:
        return [indices]
    register_targets(lowering.platform)
    attributes = {"op": who, "extent": np.int64(extent), "place": place}
    return seam.custom_call(lowering, [indices], "msops_indices", attributes, False, [(0, 0)])


def _run(indices: Any, **params: Any) -> Sequence[Any]:
    # The elements of an eager `jax.vmap`: an error now names the line.
    return call_compiled(lambda: jax.block_until_ready(_compiled(indices, **params)))


def _batch(args: Sequence[Any], dims: Sequence[Any], **params: Any) -> Any:
    return _check.bind(*args, **params), dims


def _jvp(primals: Sequence[Any], tangents: Sequence[Any], **params: Any) -> Any:
    return _check.bind(*primals, **params), [seam.zero_tangent(jax.typeof(primals[0]))]


def _transpose(*_: Any, **__: Any) -> Sequence[Any]:
    raise NotImplementedError("integers have no cotangents")


_check = seam.new_primitive(
    "check_indices",
    abstract_eval=lambda indices, **_: ([indices], set()),
    lower=_lower,
    batch=_batch,
    jvp=_jvp,
    transpose=_transpose,
    impl=_run,
    runs_on_host=False,
    has_effect=False,
)
_compiled = jax.jit(_check.bind, static_argnames=("extent", "who", "place"))
