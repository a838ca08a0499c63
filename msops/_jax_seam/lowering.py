"""Lowering: what an equation becomes, and what the program around it is."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import jax
import numpy as np
from jax._src import sharding_impls
from jax.interpreters import mlir


def lower_as(
    ctx: Any, function: Callable[..., Sequence[Any]], operands: Sequence[Any]
) -> Sequence[Any]:
    """Lowers an equation as the JAX code of `function` on its operands.

    What XLA is told of each operation names the equation's primitive, as it does of a custom call.
    """
    scoped = jax.named_scope(ctx.primitive.name)(function)
    return mlir.lower_fun(scoped, multiple_results=True)(ctx, *operands)


def is_partitioned(ctx: Any) -> bool:
    """Tells whether XLA is to partition the program over several devices itself."""
    axes = ctx.module_context.axis_context
    if isinstance(axes, sharding_impls.SPMDAxisContext):
        is_local = axes.manual_axes == frozenset(axes.mesh.axis_names)
        return not is_local and axes.mesh.size > 1
    return getattr(axes, "num_devices", 1) > 1


def partition_count(ctx: Any) -> int:
    """Returns over how many devices XLA is to partition what is being lowered.

    Those of a program, unless `jax.shard_map` divides it over some axes of their mesh.
    """
    axes = ctx.module_context.axis_context
    if isinstance(axes, sharding_impls.SPMDAxisContext):
        sizes = axes.mesh.shape.items()
        return math.prod(size for name, size in sizes if name not in axes.manual_axes)
    return getattr(axes, "num_devices", 1)


def devices_of(ctx: Any) -> Any:
    """Returns the devices of a program that XLA partitions, as a mesh of one axis.

    It is an abstract one where JAX lowers without knowing them.
    """
    axes = ctx.module_context.axis_context
    if isinstance(axes, sharding_impls.SPMDAxisContext):
        is_abstract = isinstance(axes.mesh, jax.sharding.AbstractMesh)
        count, devices = axes.mesh.size, None if is_abstract else axes.mesh.devices.flat
    else:
        count, devices = axes.num_devices, axes.device_assignment
    if devices is None:
        return jax.sharding.AbstractMesh((count,), (DEVICES,))
    return jax.sharding.Mesh(np.array(list(devices)), (DEVICES,))


DEVICES = "devices"


def is_exported(ctx: Any) -> bool:
    """Tells whether the program is lowered by `jax.export`, to run in other processes."""
    return ctx.module_context.lowering_parameters.for_export


def hold_host_function(ctx: Any, function: Any) -> None:
    """Has the program that is being lowered hold a Python function that it calls.

    Such programs run in the thread that calls them, as soon as their inputs are there, and do not
    take up a thread of XLA's: a function that itself calls JAX would wait for one. JAX before 0.12
    does not keep them on disk.
    """
    axes = ctx.module_context.axis_context
    if isinstance(axes, OneDevice):
        axes.held.append(function)
    else:
        ctx.module_context.add_host_callback(function)


class OneDevice(sharding_impls.SPMDAxisContext):
    """Where a part is lowered; its program is copied into another, which must hold what it uses."""

    held: list[Any]

    def __init__(self, devices: Any):
        super().__init__(devices, frozenset([DEVICES]))
        object.__setattr__(self, "held", [])  # its base is frozen
