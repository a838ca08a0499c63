"""Arrays, abstract values and tangents."""

from __future__ import annotations

import contextlib
import functools
import operator
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import jax
import numpy as np
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


def process_settings() -> dict[str, Any]:
    """Returns JAX's settings of the process, which a thread may have other values of."""
    holders = jax.config._value_holders.items()
    return {
        name: holder.get_global() if isinstance(holder, config.State) else holder.value
        for name, holder in holders
    }


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


def explain_escaped(explain: Callable[[Any], Exception | None]) -> None:
    """Has JAX raise other errors for values that are used outside of the function they belong to.

    Args:
      explain: returns the error for a traced value, or None for JAX's own.
    """
    by_jax = core.escaped_tracer_error

    @functools.wraps(by_jax)
    def error_of(value: Any, detail: str | None = None) -> Exception:
        return explain(value) or by_jax(value, detail)

    core.escaped_tracer_error = error_of


def refuse_special_values(what: str) -> None:
    """Ends the call that JAX makes of a function of ours whose program has returned a NaN.

    With `jax_debug_nans` or `jax_debug_infs`, JAX calls the function without compiling it, to find
    the operation that computed the value. A kernel can only run compiled, so it would run again.
    While the function is traced, or with `jax_disable_jit`, this does nothing.

    Args:
      what: computed the value.

    Raises:
      FloatingPointError: JAX calls the function for that.
    """
    is_called = isinstance(core.trace_ctx.trace, core.EvalTrace) and not config.disable_jit.value
    if is_called and _special_tests():
        raise _special_value_error(what)


def check_special_values(arrays: Sequence[np.ndarray], what: str) -> None:
    """Looks at results that no program of JAX returns, as `jax_debug_nans` wants.

    Raises:
      FloatingPointError: `what` computed a value that this finds.
    """
    for finds in _special_tests().values():
        for array in arrays:
            if dtypes.issubdtype(array.dtype, np.inexact) and finds(array).any():
                raise _special_value_error(what)


@contextlib.contextmanager
def naming_special_values(what: str) -> Iterator[None]:
    """Names `what` in the FloatingPointError of an operation of JAX that it is made of."""
    try:
        yield
    except FloatingPointError as error:
        if what in str(error):
            raise
        raise FloatingPointError(f"{what}: {error}") from None


def _special_tests() -> dict[str, Callable[[np.ndarray], np.ndarray]]:
    """Returns the tests that are on for results, by the name of JAX's setting."""
    tests = {"jax_debug_nans": np.isnan, "jax_debug_infs": np.isinf}
    return {name: test for name, test in tests.items() if getattr(jax.config, name)}


def _special_value_error(what: str) -> FloatingPointError:
    names = [*_special_tests()]
    return FloatingPointError(
        f"{what}: its results hold a value that {' or '.join(names)} forbids. Check the inputs and "
        f"the kernel, or turn {names[0] if len(names) == 1 else 'both'} off."
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
