"""Ops that run on the host while their program runs elsewhere."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import jax
import numpy as np

from msops import _jax_seam as seam
from msops._calls.host_callback import call_on_host
from msops._calls.process_objects import refuse_export
from msops._op.backend import Request


def lower_through_host(request: Request, ctx: Any, operands: Sequence[Any]) -> Sequence[Any]:
    """Lowers to a host callback that runs the op's own CPU program on copies of its arrays."""
    refuse_export(ctx, "its CPU kernel through Python", request.who)

    def run(*arrays: np.ndarray) -> list[np.ndarray]:
        device = jax.local_devices(backend="cpu")[0]
        with jax.default_device(device), jax.enable_x64(True):
            return [np.asarray(result) for result in request.bind(request.call, arrays)]

    def program(*arrays: Any) -> Sequence[Any]:
        return call_on_host(run, request.outputs.structs, arrays, request.options.stateful)

    return seam.lower_as(ctx, program, operands)
