"""A bprop as JAX's reverse-mode rule.

`Custom`'s ``bprop(*inputs, out, dout)`` is attached by `jax.custom_vjp`: forward runs the op,
backward runs bprop on the saved inputs and output. Corresponds to MindSpore's
``mindspore.ops.Custom(bprop=)``, 2.7.2. `Custom.def_vjp` gives the two rules of `jax.custom_vjp`
themselves.
"""

from __future__ import annotations

import dataclasses
import functools
import inspect
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax.tree_util import PyTreeDef

from msops import _jax_seam as seam
from msops._face.tensor import unwrap, wrap
from msops._op.arrays import kind_of
from msops._op.call import Call, fit_arguments, noting, refusing_signature
from msops._op.outputs import Outputs
from msops.errors import ArgumentTypeError, GradientTypeError, GradientValueError


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


@jax.tree_util.register_static
@dataclasses.dataclass(frozen=True)
class _Structs:
    """Shapes and dtypes of inputs, among residuals: a backward pass does not keep the inputs."""

    arrays: tuple[jax.ShapeDtypeStruct, ...]


def attach_vjp(
    forward: Callable[..., Sequence[Any]],
    fwd: Callable[..., Any],
    bwd: Callable[..., Any],
    call: Call,
    outputs: Callable[[Sequence[Any]], Outputs],
    who: str,
) -> Callable[..., Sequence[Any]]:
    """Returns `forward` with the author's two rules of reverse mode.

    Args:
      forward: flat arrays to a flat list of arrays.
      fwd: the inputs of a call to ``(out, residuals)``.
      bwd: ``(residuals, dout)`` to one gradient per input.
      call: structure of the call.
      outputs: given avals of the inputs, what the op returns.
      who: the op, for messages.
    """
    differentiable = jax.custom_vjp(forward)

    def flat_fwd(*flat: Any) -> Any:
        structs = tuple(jax.ShapeDtypeStruct(value.shape, value.dtype) for value in flat)
        with call.face():
            results, residuals = _run_fwd(fwd, call, flat, outputs(structs), who)
        return results, (_Structs(structs), residuals)

    def flat_bwd(saved: Any, cotangents: Sequence[Any]) -> tuple[Any, ...]:
        structs, residuals = saved[0].arrays, saved[1]
        declared = outputs(structs)
        douts = [
            _materialise(dout, struct)
            for dout, struct in zip(cotangents, declared.structs, strict=True)
        ]
        with call.face():
            given = residuals, declared.pack(douts)
            with noting(f"{who}: raised by its bwd function"):
                answer = bwd(*(wrap(given) if call.tensors else given))
            gradients = unwrap(answer)
            rule_name = f"bwd of {who}"
            # Those of attributes, None, may be left out, as of `nondiff_argnums` in JAX.
            attributes = len(call.given)
            if isinstance(gradients, (tuple, list)) and len(gradients) == len(call.layout):
                attributes = 0
            return _check_gradients(gradients, call, attributes, structs, rule_name)

    seam.explain_forward_mode(flat_bwd, functools.partial(refuse_forward_mode, who))
    differentiable.defvjp(flat_fwd, flat_bwd)
    return differentiable


def check_bwd(bwd: Callable[..., Any], who: str) -> None:
    """Checks that the author's bwd takes the residuals and dout.

    Raises:
      ArgumentTypeError: it takes other than two arguments.
    """
    signature = refusing_signature(bwd, 2)
    if signature is not None:
        raise ArgumentTypeError.explained(
            who,
            f"expected bwd(residuals, dout), a function of two arguments; got {signature}",
            "Have fwd return what bwd needs of the inputs as residuals: return out, (x, y) in "
            "fwd, then x, y = residuals in bwd.",
        )


def _run_fwd(
    fwd: Callable[..., Any], call: Call, flat: Sequence[Any], outputs: Outputs, who: str
) -> tuple[list[Any], Any]:
    """Returns flat results and residuals."""
    rule_name = f"fwd of {who}"
    inputs = call.inputs_of_rule(flat)
    fitting = fit_arguments(fwd, call, wrap(inputs) if call.tensors else inputs)
    if fitting is None:
        raise GradientTypeError.explained(
            rule_name,
            f"{inspect.signature(fwd)} cannot take {len(inputs)} input(s)",
            "Give it the parameters of the call: inputs, then attributes.",
        )
    arguments, named = fitting
    with noting(f"{who}: raised by its fwd function"):
        answer = fwd(*arguments, **named)
    answer = unwrap(answer)
    results = outputs.unpack(answer[0]) if isinstance(answer, tuple) and len(answer) == 2 else None
    if results is None:
        raise GradientTypeError.explained(
            rule_name,
            f"expected (out, residuals); got {jax.tree.structure(answer)}",
            "Return what the op returns, and what bwd needs.",
        )
    checked = [
        check_entry(result, struct, f"for output {index}", rule_name, "result")
        for index, (result, struct) in enumerate(zip(results, outputs.structs, strict=True))
    ]
    return checked, answer[1]


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
    tensors = call.inputs_of_rule(flat)
    with call.face():
        given = tensors, pack(results), pack(douts)
        inputs, whole_out, whole_dout = wrap(given) if call.tensors else given
        fitting = fit_arguments(bprop, call, inputs, after=2)
        if fitting is None:
            raise GradientTypeError.explained(
                f"bprop of {who}",
                f"{inspect.signature(bprop)} cannot take {len(inputs) + len(call.given)} "
                "input(s), out and dout",
                "Give it one parameter per argument of the call, inputs, then attributes, then "
                "out and dout.",
            )
        arguments, named = fitting
        with noting(f"{who}: raised by its bprop function"):
            answer = bprop(*arguments, whole_out, whole_dout, **named)
        gradients = unwrap(answer)
        attributes = len(arguments) - len(inputs)
        return _check_gradients(gradients, call, attributes, flat, f"bprop of {who}")


def refuse_differentiation(who: str) -> GradientTypeError:
    """Returns the error for differentiating an op that has no gradient."""
    return GradientTypeError.explained(
        who,
        "it is being differentiated, and has no bprop",
        "Make it with one: bprop=lambda x, out, dout: (dx,), with one gradient per input, for "
        "reverse mode (jax.grad); or jvp=lambda primals, tangents, out: dout, a rule for both "
        "modes; or put jax.lax.stop_gradient around its inputs.",
    )


def refuse_transposition(who: str) -> GradientTypeError:
    """Returns the error for the transpose of an op that has no gradient."""
    return GradientTypeError.explained(
        who,
        "jax.linear_transpose is applied to it, and it has no bprop",
        "If the op is linear, its transpose is its bprop: make it with bprop=lambda x, out, dout: "
        "(transposed(dout),).",
    )


def refuse_forward_mode(who: str) -> GradientTypeError:
    """Returns the error for forward mode of an op whose bprop gives reverse mode only."""
    return GradientTypeError.explained(
        who,
        "forward mode (jax.jvp, jax.jacfwd, jax.hessian) needs a forward rule; the op has a "
        "bprop, a rule for reverse mode",
        "There are three ways to have both: make the op with forward=True, if bprop is JAX code "
        "and linear in dout; with jvp=lambda primals, tangents, out: dout, a rule of its own; or "
        "from a kernel that is differentiated itself: loops (msops.kernel, func_type 'akg' or "
        "'hybrid') or TBE DSL ('tbe'). jax.jacrev(jax.grad(f)) is a Hessian without forward "
        "mode.",
    )


def _materialise(dout: Any, out: Any) -> Any:
    # JAX gives float0 for integer outputs; a bprop gets zeros it can compute with.
    return jnp.zeros(out.shape, out.dtype) if dout.dtype == jax.dtypes.float0 else dout


def _check_gradients(
    gradients: Any, call: Call, attributes: int, flat: Sequence[Any], rule_name: str
) -> tuple[Any, ...]:
    """Returns one cotangent per flat input; None where there is none.

    Args:
      gradients: what a rule returned.
      call: the call.
      attributes: number of attributes that the rule was given, which may have entries, too.
      flat: the inputs.
      rule_name: for messages.
    """
    # Attributes have no gradients: their entries, each None, may be left out.
    count = len(call.layout)
    counts = f"{count} gradient(s), one per input"
    if attributes:
        counts += f" (or {count + attributes}, with a None per attribute)"
    if not isinstance(gradients, (tuple, list)):
        raise GradientTypeError.explained(
            rule_name,
            f"expected a tuple of {counts}; got {kind_of(gradients)}",
            "Return a tuple even for one gradient: return (dx,).",
        )
    is_of_inputs = len(gradients) == count
    if len(gradients) not in (count, count + attributes):
        raise GradientValueError.explained(
            rule_name,
            f"expected {counts}; got {len(gradients)}",
            "Return None where there is no gradient.",
        )
    cotangents: list[Any] = []
    # A number beside Tensors has no gradient, as an integer has none, nor has a tuple of them.
    inputs = call.group(None if i in call.numbers else value for i, value in enumerate(flat))
    own = gradients if is_of_inputs else call.of_tensors(gradients)
    entries = zip(call.layout, inputs, own, strict=True)
    for position, (slot, value, gradient) in enumerate(entries):
        what = f"input {position}"
        if slot is None:
            cotangents.append(_check_gradient(gradient, value, what, rule_name))
        elif isinstance(slot, PyTreeDef):
            cotangents += _check_tree(gradient, slot, value, what, rule_name)
        elif isinstance(value, tuple):
            cotangents += value
        else:
            parts = [None] * len(value) if gradient is None else gradient
            if not isinstance(parts, (tuple, list)) or len(parts) != len(value):
                raise GradientValueError.explained(
                    rule_name,
                    f"expected for {what} a list of {len(value)} gradients, as the input is a "
                    f"list; got {_describe(parts)}",
                    "Return one gradient per tensor of the list, or None for all of them.",
                )
            cotangents += [
                _check_gradient(part, item, f"element {index} of {what}", rule_name)
                for index, (part, item) in enumerate(zip(parts, value, strict=True))
            ]
    return tuple(cotangents)


def _check_tree(
    gradient: Any, tree: PyTreeDef, value: Any, what: str, rule_name: str
) -> Iterator[Any]:
    """Yields the cotangents of the leaves of an input."""
    leaves = tree.flatten_up_to(value)
    if gradient is None:
        parts: Sequence[Any] = [None] * len(leaves)
    else:
        try:
            parts = tree.flatten_up_to(gradient)
        except (TypeError, ValueError) as error:
            raise GradientValueError.explained(
                rule_name,
                f"expected for {what} gradients in its structure, {tree}; got "
                f"{jax.tree.structure(gradient)}",
                "Return one gradient per array of the input, None for one without, or None "
                "for all of them.",
            ) from error
    for part, leaf, path in zip(parts, leaves, _paths(tree), strict=True):
        yield _check_gradient(part, leaf, f"{what}{path}", rule_name)


def _paths(tree: PyTreeDef) -> list[str]:
    """Returns how programs write the path to each leaf."""
    numbered = tree.unflatten(range(tree.num_leaves))
    return [jax.tree_util.keystr(p) for p, _ in jax.tree_util.tree_leaves_with_path(numbered)]


def _check_gradient(gradient: Any, value: Any, what: str, rule_name: str) -> Any:
    if gradient is None or value is None or not jnp.issubdtype(value.dtype, jnp.inexact):
        return None
    return check_entry(gradient, value, f"for {what}", rule_name, "gradient")


def check_entry(gradient: Any, value: Any, what: str, rule_name: str, kind: str) -> Any:
    """Returns a gradient or tangent as an array of the shape and dtype of `value`."""
    try:
        shape, dtype = np.shape(gradient), jax.dtypes.result_type(gradient)
        # A Python number has no dtype of its own and takes the input's, if that can hold it.
        weak = isinstance(gradient, (bool, int, float)) or (
            isinstance(gradient, complex) and jnp.issubdtype(value.dtype, jnp.complexfloating)
        )
    except TypeError:
        raise GradientTypeError.explained(
            rule_name,
            f"expected {what} an array of shape {value.shape} and dtype {value.dtype}; "
            f"got {type(gradient).__name__}",
            f"Return an array, or None where there is no {kind}.",
        ) from None
    if shape != value.shape or (dtype != value.dtype and not weak):
        raise GradientValueError.explained(
            rule_name,
            f"expected {what} a {kind} of shape {value.shape} and dtype {value.dtype}; "
            f"got shape {shape} and dtype {dtype}",
            "Sum over broadcast axes and cast to that dtype, or return None where there is no "
            f"{kind}.",
        )
    return jnp.asarray(gradient, value.dtype)


def _describe(value: Any) -> str:
    if isinstance(value, (tuple, list)):
        return f"{len(value)} gradients"
    return f"{type(value).__name__}"
