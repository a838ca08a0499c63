"""Differentiation on MindSpore's face: one function over `jax.vjp`.

Where MindSpore and JAX differ: an integer argument has no gradient here (an error when it was asked
for by position, zeros under ``get_all``), and an integer output passes none back.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from msops._base.kernel_errors import call_compiled
from msops._face import context
from msops._face.cell import Cell
from msops._face.compiled import Compiled, is_array, pack, unpack
from msops._face.leaves import differentiated_by
from msops._face.parameter import Frame, Parameter
from msops._face.saved_tensors import around_gradient
from msops._face.tensor import Tensor, with_hooks, wrap
from msops.errors import (
    ArgumentRuntimeError,
    ArgumentValueError,
    GradientTypeError,
    GradientValueError,
)


@dataclasses.dataclass(frozen=True)
class GradientRequest:
    """The arguments that a gradient is taken for.

    Attributes:
      who: the function asked, for messages.
      positions: arguments to differentiate; None means all arguments that are arrays.
      weights: Parameters to differentiate.
      has_aux: whether all outputs but the first are passed through.
      has_sens: whether the last argument, or one named sens, is the cotangent.
    """

    who: str
    positions: tuple[int, ...] | None
    weights: tuple[Parameter, ...] = ()
    has_aux: bool = False
    has_sens: bool = False


def _is_float(leaf: Any) -> bool:
    return is_array(leaf) and jnp.issubdtype(leaf.dtype, jnp.inexact)


def _chosen(request: GradientRequest, args: tuple[Any, ...]) -> list[int]:
    """Returns the positions to differentiate; raises if one holds nothing with a gradient."""
    if request.positions is None:
        return [n for n, arg in enumerate(args) if any(map(is_array, jax.tree.leaves(arg)))]
    for position in request.positions:
        if position >= len(args):
            raise ArgumentRuntimeError.explained(
                request.who,
                f"grad_position {position} was asked for; the call has {len(args)} "
                "positional argument(s)",
                "Positions count from 0.",
            )
        if not any(map(_is_float, jax.tree.leaves(args[position]))):
            got = getattr(args[position], "dtype", type(args[position]).__name__)
            raise GradientTypeError.explained(
                request.who,
                f"argument {position} has no gradient: expected a float Tensor, got {got}",
                "Cast it to a float dtype, or leave it out of grad_position.",
            )
    return list(request.positions)


def differentiate(
    fn: Callable[..., Any], request: GradientRequest, args: tuple[Any, ...], kwargs: dict[str, Any]
) -> tuple[Any, tuple[Any, ...], tuple[Any, ...]]:
    """Returns the value of ``fn(*args)``, the arguments' gradients and the weights' gradients."""
    sens: Any = None
    if request.has_sens:
        kwargs = dict(kwargs)
        if "sens" in kwargs:
            sens = kwargs.pop("sens")
        elif args:
            args, sens = args[:-1], args[-1]
        else:
            raise ArgumentValueError.explained(
                request.who, "expected sens as the last argument; got none", "Pass it."
            )
    positions = _chosen(request, args)
    leaves, structure = jax.tree_util.tree_flatten([_plain(args[n]) for n in positions])
    floats = [n for n, leaf in enumerate(leaves) if _is_float(leaf)]

    def forward(entries: list[Any], weights: list[Any]) -> Any:
        filled = list(leaves)
        for n, entry in zip(floats, entries, strict=True):
            filled[n] = entry
        inner = list(args)
        tracers = list(map(with_hooks, request.weights, weights))
        values = dict(zip(request.weights, tracers, strict=True))
        for n, arg in zip(positions, jax.tree_util.tree_unflatten(structure, filled), strict=True):
            inner[n] = arg
            if isinstance(arg, Tensor):
                arg.value = with_hooks(args[n], arg.value)
                tracers.append(arg.value)
        with Frame(values) as frame, differentiated_by(tracers), around_gradient():
            result = pack(fn(*inner, **kwargs))
        main = _split(request, result)
        assigned.extend(frame.written)
        return [x for x in jax.tree.leaves(main) if _is_float(x)], (
            result,
            list(frame.written.values()),
        )

    assigned: list[Parameter] = []
    main, backward, (result, values) = jax.vjp(
        forward,
        [leaves[n] for n in floats],
        [weight.value for weight in request.weights],
        has_aux=True,
    )
    for parameter, value in zip(assigned, values, strict=True):
        parameter.value = value
    by_leaf, by_weight = backward(_cotangents(request, result, main, sens))
    # An array without gradient, met under get_all, gets zeros of its own dtype.
    gradients = [jnp.zeros_like(leaf) if is_array(leaf) else None for leaf in leaves]
    for n, gradient in zip(floats, by_leaf, strict=True):
        gradients[n] = gradient
    # A frozen Parameter is a constant to MindSpore: its gradient is zero.
    weights = [
        wrap(gradient if weight.requires_grad else jnp.zeros_like(gradient))
        for weight, gradient in zip(request.weights, by_weight, strict=True)
    ]
    return unpack(result), tuple(jax.tree_util.tree_unflatten(structure, gradients)), tuple(weights)


def _plain(arg: Any) -> Any:
    """An argument with Tensors for its Parameters: their gradients are Tensors."""
    return wrap(arg.value) if isinstance(arg, Parameter) else arg


def _split(request: GradientRequest, result: Any) -> Any:
    """Returns the part of a result that is differentiated."""
    if not request.has_aux:
        return result
    if not isinstance(result, (tuple, list)) or len(result) < 2:
        raise GradientValueError.explained(
            request.who,
            "has_aux expected a function with two outputs or more; got one",
            "Return (value, aux, ...), or leave has_aux out.",
        )
    return result[0]


def _cotangents(request: GradientRequest, result: Any, main: list[Any], sens: Any) -> list[Any]:
    """Returns the cotangent of each float output: ones, or what the caller gave as `sens`."""
    if not request.has_sens:
        return [jnp.ones_like(x) for x in main]
    given = jax.tree.leaves(sens)
    outputs = jax.tree.leaves(_split(request, result))
    if len(given) != len(outputs):
        raise GradientValueError.explained(
            request.who,
            f"sens expected {len(outputs)} Tensor(s), one per output; got {len(given)}",
            "Pass a Tensor, or a tuple of them for several outputs.",
        )
    cotangents = []
    for number, (output, entry) in enumerate(zip(outputs, given, strict=True)):
        if not _is_float(output):
            continue
        if np.ndim(entry) and np.shape(entry) != output.shape:
            raise GradientValueError.explained(
                request.who,
                f"sens of output {number} expected shape {output.shape}; got {np.shape(entry)}",
                "Give it the shape of the output, or a number for all entries.",
            )
        cotangents.append(jnp.broadcast_to(jnp.asarray(entry, output.dtype), output.shape))
    return cotangents


def gradient_function(
    fn: Callable[..., Any], request: GradientRequest, arrange: Callable[..., Any]
) -> Callable[..., Any]:
    """Returns the function of the call's arguments, compiled as a whole in GRAPH_MODE."""

    def gradient(*args: Any, **kwargs: Any) -> Any:
        return differentiate(fn, request, args, kwargs)

    name = getattr(fn, "__name__", type(fn).__name__)
    gradient.__name__ = gradient.__qualname__ = f"{request.who}_{name}"
    compiled = _compiled(fn, request, gradient)

    def call(*args: Any, **kwargs: Any) -> Any:
        if context.is_graph_mode():
            return arrange(*compiled(*args, **kwargs))
        with context.scope():
            return arrange(*call_compiled(lambda: gradient(*args, **kwargs)))

    call.__name__ = call.__qualname__ = gradient.__name__
    return call


def _compiled(
    fn: Callable[..., Any], request: GradientRequest, gradient: Callable[..., Any]
) -> Compiled:
    """Returns `gradient` compiled; a Cell keeps it, as scripts write ``grad(net)(x)`` in loops."""
    if not isinstance(fn, Cell):
        return Compiled(gradient, lambda: request.weights)
    kept = vars(fn)["_gradients"]
    if request not in kept:
        kept[request] = Compiled(gradient, lambda: request.weights, fn._compile_state)
    return kept[request]
