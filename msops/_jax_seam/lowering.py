"""Lowering: what an equation becomes, and what the program around it is."""

from __future__ import annotations

import dataclasses
import math
import sys
from collections.abc import Callable, Sequence
from typing import Any

import jax
import numpy as np
from jax._src import distributed, sharding_impls, source_info_util
from jax.interpreters import mlir


@dataclasses.dataclass(frozen=True)
class Lowering:
    """An equation that is being lowered, and the program it belongs to.

    Attributes:
      context: JAX's own, for this package alone.
      platform: JAX's name of the platform that the equation is lowered for.
      platforms: of all platforms that the program is lowered for.
      inputs: abstract values of the operands.
      outputs: abstract values of the results.
      is_exported: whether `jax.export` lowers the program, to run in other processes.
      is_partitioned: whether XLA is to partition the program over several devices itself.
      processes: that run the program together; none if it is for this one alone.
    """

    context: Any
    platform: str
    platforms: Sequence[str]
    inputs: Sequence[Any]
    outputs: Sequence[Any]
    is_exported: bool
    is_partitioned: bool
    processes: tuple[int, ...]


def call_site(lowering: Lowering | None = None) -> tuple[str, int] | None:
    """Returns the file and line of the user's code that made a call, as far as JAX knows them.

    Args:
      lowering: the call's equation; None for the call that is running.
    """
    traceback = None if lowering is None else lowering.context.traceback
    found = source_info_util.user_frame(traceback)
    if found is not None:
        return found.file_name, found.start_line
    # JAX's traceback begins where the innermost function is traced, which may be ours.
    frame = sys._getframe()
    while not source_info_util.is_user_filename(frame.f_code.co_filename):
        if frame.f_back is None:
            return None
        frame = frame.f_back
    return frame.f_code.co_filename, frame.f_lineno


def run_rule(
    lower: Callable[..., Sequence[Any]],
    platform: str,
    context: Any,
    *operands: Any,
    **params: Any,
) -> Sequence[Any]:
    """Runs a lowering rule of ours, which gets a `Lowering` for JAX's context."""
    return lower(_begin_lowering(context, platform), *operands, **params)


def _begin_lowering(context: Any, platform: str) -> Lowering:
    """Returns what a lowering rule gets for JAX's context."""
    module = context.module_context
    return Lowering(
        context=context,
        platform=platform,
        platforms=module.platforms,
        inputs=context.avals_in,
        outputs=context.avals_out,
        is_exported=module.lowering_parameters.for_export,
        is_partitioned=_is_partitioned(module),
        processes=_processes_of(module),
    )


def _is_partitioned(module: Any) -> bool:
    axes = module.axis_context
    if isinstance(axes, sharding_impls.SPMDAxisContext):
        is_local = axes.manual_axes == frozenset(axes.mesh.axis_names)
        return not is_local and axes.mesh.size > 1
    return getattr(axes, "num_devices", 1) > 1


def _processes_of(module: Any) -> tuple[int, ...]:
    """Returns the processes that run the program together; none if it is for this one alone.

    Nor has a part any, which not every process need lower. Processes know of one another by
    `jax.distributed`.
    """
    if distributed.global_state.client is None:
        return ()
    context = module.axis_context
    if isinstance(context, OneDevice):
        return ()
    mesh = getattr(context, "mesh", context)
    if isinstance(mesh, jax.sharding.AbstractMesh):
        return tuple(range(jax.process_count())) if mesh.size > jax.local_device_count() else ()
    devices = mesh.devices.flat if hasattr(mesh, "devices") else mesh.device_assignment or ()
    processes = sorted({device.process_index for device in devices})
    return tuple(processes) if len(processes) > 1 else ()


def lower_as(
    lowering: Lowering, function: Callable[..., Sequence[Any]], operands: Sequence[Any]
) -> Sequence[Any]:
    """Lowers an equation as the JAX code of `function` on its operands.

    The metadata of each operation names the equation's primitive, as that of a custom call does.
    """
    context = lowering.context
    scoped = jax.named_scope(context.primitive.name)(function)
    return mlir.lower_fun(scoped, multiple_results=True)(context, *operands)


def partition_count(lowering: Lowering) -> int:
    """Returns over how many devices XLA is to partition what is being lowered.

    Those of a program, unless `jax.shard_map` divides it over some axes of their mesh.
    """
    axes = lowering.context.module_context.axis_context
    if isinstance(axes, sharding_impls.SPMDAxisContext):
        sizes = axes.mesh.shape.items()
        return math.prod(size for name, size in sizes if name not in axes.manual_axes)
    return getattr(axes, "num_devices", 1)


def device_count(lowering: Lowering) -> int:
    """Returns how many devices run the program, each its part or all of it."""
    axes = lowering.context.module_context.axis_context
    mesh = getattr(axes, "mesh", None)
    count: int = getattr(axes, "num_devices", 1) if mesh is None else mesh.size
    return count


def devices_of(lowering: Lowering) -> jax.sharding.Mesh | jax.sharding.AbstractMesh:
    """Returns the devices of a program that XLA partitions, as a mesh of one axis.

    It is an abstract one where JAX lowers without knowing them.
    """
    axes = lowering.context.module_context.axis_context
    if isinstance(axes, sharding_impls.SPMDAxisContext):
        is_abstract = isinstance(axes.mesh, jax.sharding.AbstractMesh)
        count, devices = axes.mesh.size, None if is_abstract else axes.mesh.devices.flat
    else:
        count, devices = axes.num_devices, axes.device_assignment
    if devices is None:
        return jax.sharding.AbstractMesh((count,), (DEVICES,))
    return jax.sharding.Mesh(np.array(list(devices)), (DEVICES,))


DEVICES = "devices"


class OneDevice(sharding_impls.SPMDAxisContext):
    """Where a part is lowered; its program is copied into another, which must hold what it uses."""

    held: list[Any]

    def __init__(self, devices: Any):
        super().__init__(devices, frozenset([DEVICES]))
        object.__setattr__(self, "held", [])  # its base is frozen
