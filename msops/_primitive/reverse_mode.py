"""A bprop as JAX's reverse-mode rule.

`Custom`'s ``bprop(*inputs, out, dout)`` is attached by `jax.custom_vjp`: forward runs the op,
backward runs bprop on the saved inputs and output. Corresponds to MindSpore's
``mindspore.ops.Custom(bprop=)``, 2.7.2.
"""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Sequence
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from msops import _jax_seam as seam
from msops._face.tensor import unwrap, wrap
from msops._op.call import Call
from msops._op.inference import Outputs
from msops.errors import GradientTypeError, GradientValueError, explain


def attach_bprop(
    forward: Callable[..., Sequence[Any]],
    bprop: Callable[..., Any],
    call: Call,
    outputs: Callable[[Sequence[Any]], Outputs],
    who: str,
) -> Callable[..., Sequence[Any]]:
    """Returns `forward` with `bprop` as its reverse-mode rule.

    Args:
      forward: flat arrays to a flat list of arrays.
      bprop: the author's rule over call arguments.
      call: structure of the call.
      outputs: given avals of the inputs, what the op returns.
      who: the op, for messages.
    """

    differentiable = jax.custom_vjp(forward)

    def fwd(*flat: Any) -> Any:
        # The differentiable op, not `forward`: its own gradient may be wanted again.
        out = differentiable(*flat)
        return out, (flat, out)

    def bwd(saved: Any, cotangents: Sequence[Any]) -> tuple[Any, ...]:
        flat, out = saved
        return apply_bprop(bprop, call, outputs, flat, out, cotangents, who)

    seam.explain_forward_mode(bwd, functools.partial(refuse_forward_mode, who))
    differentiable.defvjp(fwd, bwd)
    return differentiable


def apply_bprop(
    bprop: Callable[..., Any],
    call: Call,
    outputs: Callable[[Sequence[Any]], Outputs],
    flat: Sequence[Any],
    results: Sequence[Any],
    cotangents: Sequence[Any],
    who: str,
) -> tuple[Any, ...]:
    """Returns what `bprop` says: one gradient per flat input, None where there is none."""
    douts = [_materialise(dout, value) for dout, value in zip(cotangents, results, strict=True)]
    pack = outputs([jax.typeof(value) for value in flat]).pack
    arguments = call.arguments_of_rule(flat)
    with call.face():
        given = arguments, pack(results), pack(douts)
        inputs, whole_out, whole_dout = wrap(given) if call.tensors else given
        _check_arity(bprop, len(inputs), who)
        gradients = unwrap(bprop(*inputs, whole_out, whole_dout))
        return _check_gradients(gradients, call, flat, who)


def _check_arity(bprop: Callable[..., Any], inputs: int, who: str) -> None:
    try:
        signature = inspect.signature(bprop)
    except (TypeError, ValueError):  # builtins without a signature
        return
    try:
        signature.bind(*range(inputs + 2))
    except TypeError:
        raise GradientTypeError(
            explain(
                f"bprop of {who}",
                f"{signature} cannot take {inputs} input(s), out and dout",
                "Give it one parameter per argument of the call, attributes included, then out "
                "and dout.",
            )
        ) from None


def refuse_differentiation(who: str) -> GradientTypeError:
    """Returns the error for differentiating an op that has no gradient."""
    return GradientTypeError(
        explain(
            who,
            "it is being differentiated, and has no bprop",
            "Give one: Custom(..., bprop=lambda x, out, dout: (dx,)), with one gradient per "
            "input, for reverse mode (jax.grad); or a rule for both modes, Custom(..., jvp=lambda "
            "primals, tangents, out: dout); or put jax.lax.stop_gradient around its inputs.",
        )
    )


def refuse_transposition(who: str) -> GradientTypeError:
    """Returns the error for the transpose of an op that has no gradient."""
    return GradientTypeError(
        explain(
            who,
            "jax.linear_transpose is applied to it, and it has no bprop",
            "If the op is linear, its transpose is its bprop: Custom(..., bprop=lambda x, out, "
            "dout: (transposed(dout),)).",
        )
    )


def refuse_forward_mode(who: str) -> GradientTypeError:
    """Returns the error for forward mode of an op whose bprop gives reverse mode only."""
    return GradientTypeError(
        explain(
            who,
            "forward mode (jax.jvp, jax.jacfwd, jax.hessian) is asked of it, and its bprop gives "
            "reverse mode",
            "There are three ways to have both: Custom(..., forward=True), if bprop is JAX code "
            "and linear in dout; Custom(..., jvp=lambda primals, tangents, out: dout), a rule of "
            "its own; or a kernel that is differentiated itself: loops (func_type 'akg' or "
            "'hybrid') or TBE DSL ('tbe'). jax.jacrev(jax.grad(f)) is a Hessian without forward "
            "mode.",
        )
    )


def _materialise(dout: Any, out: Any) -> Any:
    # JAX gives float0 for integer outputs; a bprop gets zeros it can compute with.
    return jnp.zeros(out.shape, out.dtype) if dout.dtype == jax.dtypes.float0 else dout


def _check_gradients(gradients: Any, call: Call, flat: Sequence[Any], who: str) -> tuple[Any, ...]:
    """Returns one cotangent per flat input; None where there is none."""
    expected = len(call.layout) + len(call.given)
    if not isinstance(gradients, (tuple, list)):
        raise GradientTypeError(
            explain(
                f"bprop of {who}",
                f"expected a tuple of {expected} gradient(s), one per input; "
                f"got {type(gradients).__name__}",
                "Return a tuple even for one gradient: return (dx,).",
            )
        )
    if len(gradients) != expected:
        raise GradientValueError(
            explain(
                f"bprop of {who}",
                f"expected {expected} gradient(s), one per input; got {len(gradients)}",
                "Attributes count as inputs; return None where there is no gradient.",
            )
        )
    cotangents: list[Any] = []
    # A number beside Tensors has no gradient, as an integer has none, nor has a tuple of them.
    inputs = call.group(None if i in call.numbers else value for i, value in enumerate(flat))
    for position, (value, gradient) in enumerate(
        zip(inputs, call.of_tensors(gradients), strict=True)
    ):
        what = f"input {position}"
        if isinstance(value, tuple):
            cotangents += value
            continue
        if not isinstance(value, list):
            cotangents.append(_check_gradient(gradient, value, what, who))
            continue
        parts = [None] * len(value) if gradient is None else gradient
        if not isinstance(parts, (tuple, list)) or len(parts) != len(value):
            raise GradientValueError(
                explain(
                    f"bprop of {who}",
                    f"expected for {what} a list of {len(value)} gradients, as the input is a "
                    f"list; got {_describe(parts)}",
                    "Return one gradient per tensor of the list, or None for all of them.",
                )
            )
        cotangents += [
            _check_gradient(part, item, f"element {index} of {what}", who)
            for index, (part, item) in enumerate(zip(parts, value, strict=True))
        ]
    return tuple(cotangents)


def _check_gradient(gradient: Any, value: Any, what: str, who: str) -> Any:
    if gradient is None or value is None or not jnp.issubdtype(value.dtype, jnp.inexact):
        return None
    return check_entry(gradient, value, f"for {what}", f"bprop of {who}", "gradient")


def check_entry(gradient: Any, value: Any, what: str, place: str, kind: str) -> Any:
    """Returns a gradient or tangent as an array of the shape and dtype of `value`."""
    try:
        shape, dtype = np.shape(gradient), jax.dtypes.result_type(gradient)
        # A Python number has no dtype of its own and takes the input's, if that can hold it.
        weak = isinstance(gradient, (bool, int, float)) or (
            isinstance(gradient, complex) and jnp.issubdtype(value.dtype, jnp.complexfloating)
        )
    except TypeError:
        raise GradientTypeError(
            explain(
                place,
                f"expected {what} an array of shape {value.shape} and dtype {value.dtype}; "
                f"got {type(gradient).__name__}",
                f"Return an array, or None where there is no {kind}.",
            )
        ) from None
    if shape != value.shape or (dtype != value.dtype and not weak):
        raise GradientValueError(
            explain(
                place,
                f"expected {what} a {kind} of shape {value.shape} and dtype {value.dtype}; "
                f"got shape {shape} and dtype {dtype}",
                "Sum over broadcast axes and cast to that dtype, or return None where there is no "
                f"{kind}.",
            )
        )
    return jnp.asarray(gradient, value.dtype)


def _describe(value: Any) -> str:
    if isinstance(value, (tuple, list)):
        return f"{len(value)} gradients"
    return f"{type(value).__name__}"
