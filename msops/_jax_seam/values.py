"""Arrays, abstract values and tangents."""

from __future__ import annotations

import functools
import operator
from collections.abc import Callable, Sequence
from typing import Any

import jax
from jax._src import config, core, dtypes
from jax._src.array import ArrayImpl
from jax._src.interpreters import pxla
from jax.interpreters import ad
from jax.interpreters import partial_eval as pe
from jax.sharding import AxisType

ARRAY_TYPE = ArrayImpl
"""The type of a concrete `jax.Array`; comparing with it is the cheapest test there is."""


x64_enabled: Callable[[], bool] = functools.partial(
    operator.attrgetter("jax_enable_x64"), jax.config
)
"""Returns whether 64-bit types are enabled here (the flag, or a surrounding context)."""


def shaped_array(struct: jax.ShapeDtypeStruct, inputs: Sequence[Any], who: str) -> Any:
    """Returns the abstract value of a result.

    Args:
      struct: its shape and dtype.
      inputs: abstract values of the operands; under `jax.shard_map` the result varies over the mesh
        axes that any of them varies over.
      who: the op, for messages of JAX.
    """
    return core.ShapedArray(
        struct.shape,
        struct.dtype,
        sharding=core.get_cur_mesh_sharding(),
        manual_axis_type=core.ManualAxisType(varying=core.standard_vma_rule(who, *inputs)),
    )


def divide_alike(array: Any, like: Any) -> Any:
    """Returns `array` divided as the type of `like` says, in a mesh with Explicit axes."""
    wanted = jax.typeof(like).sharding
    if jax.typeof(array).sharding == wanted or AxisType.Explicit not in wanted.mesh.axis_types:
        return array
    return jax.sharding.reshard(array, wanted)


def used_arguments(function: Callable[..., Any], *arguments: Any) -> list[bool]:
    """Returns for each argument, an array or a list of arrays, whether results depend on it."""
    closed = jax.make_jaxpr(function)(*arguments)
    used = iter(pe.dce_jaxpr(closed.jaxpr, [True] * len(closed.jaxpr.outvars))[1])
    flags = [[next(used) for _ in jax.tree.leaves(argument)] for argument in arguments]
    return [any(of_argument) for of_argument in flags]


def refuse_as_array(kind: type, error: Callable[[], Exception]) -> None:
    """Gives the error for a value of type `kind` where JAX takes arrays and nothing else."""

    def refuse(value: Any) -> Any:
        raise error()

    core.pytype_aval_mappings[kind] = refuse
    dtypes.canonicalize_value_handlers[kind] = refuse


def is_zero(tangent: Any) -> bool:
    """Returns whether a tangent is a symbolic zero."""
    return type(tangent) is ad.Zero


def zero_tangent(aval: Any) -> Any:
    """Returns the symbolic zero tangent of a value with abstract value `aval`."""
    return ad.Zero(aval.to_tangent_aval())


def array_of_memory(memory: Any, like: jax.Array | None) -> jax.Array:
    """Returns an array of numpy memory that is aligned to 64 bytes and never written to again.

    It goes where the array `like` is; None means JAX's default device. (`jax.device_put` does the
    same in five times the time, half of an eager call of a small kernel.)
    """
    if like is None:
        return jax.device_put(memory)
    (device,) = like.devices()
    sharding = jax.sharding.SingleDeviceSharding(device)
    aval = core.ShapedArray(memory.shape, memory.dtype)
    # A result that is handed over is no transfer that jax.transfer_guard is asked to forbid.
    with config.explicit_device_put_scope():
        return pxla.batched_device_put(aval, sharding, [memory], [device], like.committed)
