"""Lowers calls of code of this process, to a custom call of XLA or to a host callback."""

from __future__ import annotations

import functools
from collections.abc import Sequence
from typing import Any

import jax
import numpy as np

from msops import _jax_seam as seam
from msops._calls.handlers import register_targets
from msops._calls.host_callback import call_on_host
from msops._calls.process_objects import refuse_export
from msops._op.process_call import ProcessCall
from msops._op.request import Request
from msops.errors import BackendError


def lower_call(
    call: ProcessCall,
    has_effect: bool,
    who: str,
    lowering: seam.Lowering,
    operands: Sequence[Any],
) -> Sequence[Any]:
    """Lowers an equation to the custom call.

    Args:
      call: what to call.
      has_effect: whether one call must be one run: XLA may neither merge nor drop it.
      who: the op and where it runs, for messages.
      lowering: the equation.
      operands: the operands' values in the program.

    Raises:
      BackendError: every device of the program would run a call that has an effect; or what is
        called cannot be called from such a program.
      BuildError: a library cannot be opened in this process, or code not compiled.
    """
    if has_effect and lowering.is_partitioned:
        raise refuse_copies(who, seam.partition_count(lowering))
    bound = call.bind(lowering, who)
    register_targets(lowering.platform)
    return seam.custom_call(
        lowering,
        operands,
        call.target,
        {"op": call.op, **bound.attributes},
        has_effect,
        call.aliases,
        bound.keeps,
        call.calls_python and bound.keeps is not None,
    )


def lower_through_host(
    call: ProcessCall | None, request: Request, lowering: seam.Lowering, operands: Sequence[Any]
) -> Sequence[Any]:
    """Lowers an equation to a host callback, with a copy of its arrays each way.

    Args:
      call: of a Python function, which is called; of another kernel the op's own CPU program runs.
      request: the call as its backend gets it.
      lowering: the equation.
      operands: the operands' values in the program.

    Raises:
      BackendError: the program is exported, or is one for several platforms.
    """
    function = call.host_function if call else None
    what = "a Python function" if function else "its CPU kernel through Python"
    refuse_export(lowering, what, request.who)
    if len(lowering.platforms) > 1:
        raise BackendError.explained(
            request.who,
            f"a program for {', '.join(lowering.platforms)} calls {what}, which JAX cannot lower "
            "for several platforms together",
            "Lower one program for each platform.",
        )
    run = function or functools.partial(_run_on_cpu, request)

    def program(*arrays: Any) -> Sequence[Any]:
        return call_on_host(
            run, request.outputs.structs, arrays, request.has_effect, request.is_ordered
        )

    return seam.lower_as(lowering, program, operands)


def _run_on_cpu(request: Request, *arrays: np.ndarray) -> list[np.ndarray]:
    device = jax.local_devices(backend="cpu")[0]
    with jax.default_device(device), jax.enable_x64(True):
        return [np.asarray(result) for result in request.bind(request.call, arrays)]


def refuse_copies(who: str, copies: int) -> BackendError:
    """Returns the error of a stateful op that so many devices would run for the same arrays."""
    return BackendError.explained(
        who,
        f"it is stateful: one call must be one run, and {copies} devices would each run it "
        "for the same arrays",
        "Call it inside jax.shard_map, once per device; or move the inputs to one device with "
        "jax.device_put; or divide them over all devices along what its sharding= allows.",
    )
