"""Primitives, their rules and effects, and what JAX reports of them."""

from __future__ import annotations

import functools
import logging
import pathlib
import sys
from collections.abc import Callable, Sequence
from typing import Any

import jax
from jax._src import core, dispatch, effects, source_info_util
from jax._src.custom_derivatives import custom_vjp_call_p
from jax._src.interpreters import ad as _ad
from jax._src.interpreters.mlir import _uncacheable_primitives, lower_per_platform
from jax._src.util import weakref_cache_key_types
from jax.interpreters import ad, batching, mlir

from msops._jax_seam.lowering import run_rule
from msops._jax_seam.unknown import unknown_operand
from msops.errors import GradientTypeError, MsopsError

PLATFORMS = ("cpu", "cuda", "rocm", "tpu")
"""JAX's names of the platforms an op has a lowering rule for."""


class _NotOurs(logging.Filter):
    """Keeps errors of ours out of JAX's callback log: they reach the caller as exceptions."""

    def filter(self, record: logging.LogRecord) -> bool:
        error = record.exc_info[1] if record.exc_info else None
        return not isinstance(error, MsopsError)


logging.getLogger("jax._src.callback").addFilter(_NotOurs())


_PACKAGE = f"{pathlib.Path(__file__).parent.parent}/"
# Profilers and XLA's own messages name the line that calls an op, not a line of ours.
source_info_util.register_exclusion(_PACKAGE)


def refuse_jet(values: Sequence[Any], who: str) -> None:
    """Refuses values that `jax.experimental.jet` traces.

    Raises:
      GradientTypeError: there is one.
    """
    # Not a rule of jet's: that would import jet, and JAX's jet of a custom_vjp ends earlier.
    jet = sys.modules.get("jax.experimental.jet")
    if jet is not None and any(isinstance(value, jet.JetTracer) for value in values):
        raise GradientTypeError.explained(
            who,
            "jax.experimental.jet is applied to it, and a kernel has no Taylor series",
            "Nest jax.jvp or jax.jacfwd instead, as often as the order.",
        )


def vary_alike(arrays: Sequence[Any]) -> Sequence[Any]:
    """Returns operands that all vary over the same mesh axes, as `jax.shard_map` asks for."""
    return core.auto_insert_reshard(*arrays)


class OurPrimitive(core.Primitive):
    """A primitive with several results, for operands that any mesh axes vary over.

    It says that `jax.experimental.jet` cannot have it.

    Attributes:
      shared: the primitive that it lowers to, if that is another one.
    """

    multiple_results = True
    shared: core.Primitive | None = None

    def bind(self, *args: Any, **params: Any) -> Any:
        refuse_jet(args, getattr(params.get("operator"), "who", f"'{self.name}'"))
        return super().bind(*vary_alike(args), **params)


def new_primitive(
    name: str,
    *,
    abstract_eval: Callable[..., tuple[list[Any], set[effects.Effect]]],
    lower: Callable[..., Sequence[Any]],
    batch: Callable[..., tuple[Sequence[Any], Sequence[Any]]],
    jvp: Callable[..., tuple[Sequence[Any], Sequence[Any]]],
    transpose: Callable[..., Sequence[Any]],
    impl: Callable[..., Sequence[Any]],
    runs_on_host: bool,
    has_effect: bool,
    hides_inputs: bool = False,
) -> core.Primitive:
    """Returns a new primitive with several results and the given rules.

    Args:
      name: what jaxprs show.
      abstract_eval: ``(*avals, **params) -> (avals, effects)``.
      lower: ``(lowering, *operands, **params) -> results``, with a `Lowering`.
      batch: ``(args, dims, **params) -> (results, dims)``.
      jvp: ``(primals, tangents, **params) -> (results, tangents)``.
      transpose: ``(args, linear, cotangents, **params) -> cotangents of the linear arguments``, for
        `jax.linear_transpose`: `linear` are positions, and `args` has zeros there.
      impl: ``(*arrays, **params) -> results``, for eager use.
      runs_on_host: whether it lowers to a host callback, which needs the devices and an own copy
        of its lowering at each use.
      has_effect: whether its calls stand in the program's body, where they keep their order; else
        equal calls share a function.
      hides_inputs: whether XLA must not know inputs that are constants of a program.
    """
    primitive = OurPrimitive(name)
    primitive.def_effectful_abstract_eval(abstract_eval)

    primitive.def_impl(impl)
    rules: dict[str, Any] = {
        platform: functools.partial(run_rule, lower, platform) for platform in PLATFORMS
    }
    if runs_on_host or has_effect:
        by_platform = functools.partial(_lower_by_platform, name, rules, hides_inputs)
        mlir.register_lowering(primitive, by_platform, cacheable=False)
    else:
        shared = _with_unknown_inputs(primitive) if hides_inputs else primitive
        for platform, rule in rules.items():
            mlir.register_lowering(shared, rule, platform=platform)
    if runs_on_host:
        dispatch.prim_requires_devices_during_lowering.add(primitive)
    batching.primitive_batchers[primitive] = batch
    ad.primitive_jvps[primitive] = jvp
    ad.primitive_transposes[primitive] = functools.partial(_run_transpose, transpose)
    return primitive


def _with_unknown_inputs(primitive: OurPrimitive) -> core.Primitive:
    """Has a primitive lower to another one, of inputs that XLA does not know; returns that one.

    Constants are seen where the program calls, not in the function that equal calls share.
    """
    shared = primitive.shared = core.Primitive(primitive.name)
    shared.multiple_results = True
    shared.def_effectful_abstract_eval(primitive.abstract_eval)

    def lower(context: Any, *operands: Any, **params: Any) -> Sequence[Any]:
        results, _ = mlir.jaxpr_subcomp(
            context.module_context,
            _one_equation(shared, context, params),
            context.name_stack,
            context.tokens_in,
            (),
            *map(unknown_operand, operands),
            dim_var_values=context.dim_var_values,
            const_lowering=context.const_lowering,
            outer_traceback=context.traceback,
        )
        return results

    mlir.register_lowering(primitive, lower, cacheable=False)
    return shared


def _one_equation(primitive: core.Primitive, context: Any, params: dict[str, Any]) -> core.Jaxpr:
    """Returns the program of one equation, which is the one that is being lowered but for a name.

    `mlir.lower_fun` would lose the line of the user's program.
    """
    inputs = [core.Var(aval) for aval in context.avals_in]
    outputs = [core.Var(aval) for aval in context.avals_out]
    equation = core.new_jaxpr_eqn(
        inputs, outputs, primitive, params, core.no_effects, None, context.jaxpr_eqn_ctx
    )
    names = ("",) * len(inputs), ("",) * len(outputs)
    info = core.DebugInfo("lowering", primitive.name, *names)
    return core.Jaxpr((), inputs, outputs, [equation], debug_info=info)


def _lower_by_platform(
    name: str,
    rules: dict[str, Any],
    hides_inputs: bool,
    context: Any,
    *operands: Any,
    **params: Any,
) -> Any:
    """Runs the rule of each platform that a program is lowered for.

    JAX does so itself for rules that it caches. For others it fails if there are several platforms:
    it adds the results' abstract values, there a tuple, to a list.
    """
    context.avals_out = list(context.avals_out)
    ordered = set(context.tokens_in.effects())
    given = map(unknown_operand, operands) if hides_inputs else operands
    return lower_per_platform(context, name, rules, None, ordered, *given, **params)


def _run_transpose(
    transpose: Callable[..., Sequence[Any]], cotangents: Sequence[Any], *args: Any, **params: Any
) -> Sequence[Any]:
    """Runs a rule of `new_primitive` as JAX calls a transpose rule."""
    linear = tuple(i for i, arg in enumerate(args) if ad.is_undefined_primal(arg))
    known = [
        ad.instantiate_zeros(ad.Zero(a.aval)) if i in linear else a for i, a in enumerate(args)
    ]
    whole = [ad.instantiate_zeros(cotangent) for cotangent in cotangents]
    found = iter(transpose(known, linear, whole, **params))
    return [next(found) if i in linear else None for i in range(len(args))]


_FORWARD_ERROR = "msops_forward_error"


def explain_forward_mode(bwd: Callable[..., Any], error: Callable[[], Exception]) -> None:
    """Gives the error for forward mode of the `jax.custom_vjp` whose backward rule is `bwd`."""
    setattr(bwd, _FORWARD_ERROR, error)


def _refuse_forward_mode(*args: Any, bwd: Any, **params: Any) -> Any:
    """Raises the error an op has for forward mode, or JAX's own.

    JAX linearizes a custom_vjp to this equation, which only transposition can evaluate; its own
    text names neither the op nor a remedy.
    """
    error = getattr(getattr(bwd, "f", None), _FORWARD_ERROR, None)
    raise _ad.raise_custom_vjp_error_on_jvp() if error is None else error()


_ad.custom_lin_p.def_impl(_refuse_forward_mode)


batching.primitive_batchers[_ad.custom_lin_p] = _refuse_forward_mode


mlir.register_lowering(_ad.custom_lin_p, _refuse_forward_mode)


def _transpose_custom_vjp(
    cotangents: Sequence[Any], *args: Any, call_jaxpr: Any, bwd: Any, **params: Any
) -> Sequence[Any]:
    """Transposes the `jax.custom_vjp` that gives an op its gradient, by the op's own rule."""
    # Where the function was written, as JAX puts others around it that know this, too.
    if f" at {_PACKAGE}" not in (bwd.debug_info.func_src_info or ""):
        # What JAX raises without this rule: a gradient of the user's may differ from the op's.
        raise NotImplementedError(
            "Transpose rule (for reverse-mode differentiation) for 'custom_vjp_call' not "
            "implemented"
        )

    def transpose(
        known: Sequence[Any], linear: Sequence[int], cotangents: Sequence[Any]
    ) -> Sequence[Any]:
        def body(*values: Any) -> list[Any]:
            flat = list(known)
            for position, value in zip(linear, values, strict=True):
                flat[position] = value
            return core.jaxpr_as_fun(call_jaxpr)(*flat)

        transposed = jax.linear_transpose(body, *(known[i] for i in linear))
        return transposed(list(cotangents))

    return _run_transpose(transpose, cotangents, *args)


ad.primitive_transposes[custom_vjp_call_p] = _transpose_custom_vjp


def hold_weakly(kind: type) -> None:
    """Makes JAX's caches not keep alive a parameter of primitives that is of type `kind`."""
    weakref_cache_key_types.add(kind)


def forget_primitive(primitive: core.Primitive) -> None:
    """Drops `primitive` from JAX's rule tables, which would keep it and its rules forever."""
    shared = getattr(primitive, "shared", None)
    if shared is not None:
        forget_primitive(shared)
    tables: list[dict[core.Primitive, Any]] = [
        mlir._lowerings,
        *mlir._platform_specific_lowerings.values(),
        batching.fancy_primitive_batchers,
        ad.primitive_jvps,
        ad.primitive_transposes,
    ]
    for table in tables:
        table.pop(primitive, None)
    dispatch.prim_requires_devices_during_lowering.discard(primitive)
    _uncacheable_primitives.discard(primitive)
