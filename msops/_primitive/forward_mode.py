"""Forward mode for ops with a rule of their author's.

`jax.custom_vjp` gives reverse mode alone. An op with ``jvp=`` or ``forward=True`` is instead a
`jax.custom_jvp`. With y = P(x) the op, x' and y' tangents and dy a cotangent, it binds a second
primitive L, linear in x':

    jvp:        P(x), x'  ->  P(x), L(x, y, x')
    transpose:  of L(x, y, .) at dy is bprop(x, y, dy)

The value of L is what the author's jvp rule says, or the transpose of bprop, which is found by
differentiating bprop in dy, in which it is linear. L is evaluated in forward mode only: reverse
mode transposes it, and so runs bprop alone. Without a bprop there is no L: JAX transposes the rule.
(Linearize and transpose as in Radul et al., "You Only Linearize Once", 2023.)
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax.custom_derivatives import SymbolicZero

from msops import _jax_seam as seam
from msops._face.tensor import Tensor, unwrap, wrap
from msops._op.arrays import kind_of
from msops._op.call import Call, noting, refusing_signature, width
from msops._op.protocols import BoundOp
from msops._primitive.reverse_mode import apply_bprop, check_entry
from msops._primitive.traced import is_inexact
from msops.errors import GradientTypeError, GradientValueError

_NUMBERS = (jax.Array, np.ndarray, np.number, np.bool_, bool, int, float, complex)


def attach_forward_mode(
    forward: Callable[..., Sequence[Any]], operator: BoundOp, call: Call
) -> Callable[..., Sequence[Any]]:
    """Returns `forward`, flat arrays to a flat list of arrays, with the op's rules for both modes.

    Args:
      forward: binds the op's primitive.
      operator: the op, whose definition has a bprop and ``forward=True``, or a jvp rule.
      call: structure of the call.
    """
    differentiable = jax.custom_jvp(forward)

    def rule(primals: Sequence[Any], tangents: Sequence[Any]) -> tuple[Any, Any]:
        live = tuple(
            i
            for i, (primal, tangent) in enumerate(zip(primals, tangents, strict=True))
            if is_inexact(primal) and not isinstance(tangent, SymbolicZero)
        )
        whole = _rule_that_calls(operator)
        if live and whole is not None:
            return _apply_rule(whole, operator, call, primals, {i: tangents[i] for i in live})
        # The differentiable op, not `forward`: its derivatives may be wanted again.
        results = differentiable(*primals)
        pushed: Any = None
        if live and any(map(is_inexact, results)):
            push = _push if operator.definition.bprop is None else _linear.bind
            pushed = iter(
                push(
                    *primals,
                    *results,
                    *(tangents[i] for i in live),
                    operator=operator,
                    call=call,
                    live=live,
                    linear=len(live),
                )
            )
        return results, [_tangent_of(result, pushed) for result in results]

    differentiable.defjvp(rule, symbolic_zeros=True)
    return differentiable


def tangent_rule(rule: Callable[..., Any]) -> Callable[..., Any]:
    """Returns a rule in the form of `jax.custom_jvp` as one in the form of ``Custom(jvp=)``."""
    # Not a function inside this one, which pickle cannot take.
    return functools.partial(_tangents_alone, rule)


def _tangents_alone(rule: Callable[..., Any], primals: Any, tangents: Any, out: Any) -> Any:
    return _out_and_tangents(rule, primals, tangents)[1]


def _out_and_tangents(rule: Callable[..., Any], primals: Any, tangents: Any) -> Sequence[Any]:
    answer = rule(primals, tuple(map(_with_zeros, primals, tangents)))
    if not isinstance(answer, (tuple, list)) or len(answer) != 2:
        raise GradientTypeError.explained(
            "the rule of def_jvp",
            f"expected (out, tangent_out); got {kind_of(answer)}",
            "Return what the op returns, and its tangent in the same structure.",
        )
    return answer


def _rule_that_calls(operator: BoundOp) -> Callable[..., Any] | None:
    """Returns the rule in the form of `jax.custom_jvp` of an op with an effect, if it has one.

    It calls the op itself: a call beside it would double the effect.
    """
    rule = operator.definition.options.jvp
    if rule is None or not operator.has_effect or not isinstance(rule.function, functools.partial):
        return None
    return rule.function.args[0] if rule.function.func is _tangents_alone else None


def _apply_rule(
    rule: Callable[..., Any],
    operator: BoundOp,
    call: Call,
    primals: Sequence[Any],
    tangents: dict[int, Any],
) -> tuple[Any, Any]:
    """Returns results and tangents, both from a rule in the form of `jax.custom_jvp`."""
    outputs = operator.outputs(call, [jax.typeof(primal) for primal in primals])
    said: list[Any] = []

    def tangents_of(primals: Any, tangents: Any, out: Any) -> Any:
        said[:] = _out_and_tangents(rule, primals, tangents)
        return said[1]

    with call.face():
        # For the structure and dtypes of what it returns.
        shown = [jnp.zeros(struct.shape, struct.dtype) for struct in outputs.structs]
        pushed = iter(ask_rule(tangents_of, operator, call, primals, shown, tangents))
        rule_name = f"jvp of {operator.who}"
        values = outputs.unpack(unwrap(said[0])) or ()
        results = [
            check_entry(value, struct, f"for output {index}", rule_name, "result")
            for index, (value, struct) in enumerate(zip(values, outputs.structs, strict=True))
        ]
    return results, [_tangent_of(result, pushed) for result in results]


def _with_zeros(primal: Any, tangent: Any) -> Any:
    """Returns a tangent with the zeros of `jax.custom_jvp` for None: for integers, of float0."""
    if tangent is None:
        return jax.tree.map(_zero_of, primal, is_leaf=_is_tensor)

    def fill(leaf: Any, given: Any) -> Any:
        return _zero_of(leaf) if given is None else given

    return jax.tree.map(fill, primal, tangent, is_leaf=_is_tensor)


def _is_tensor(value: Any) -> bool:
    return isinstance(value, Tensor)


def _zero_of(primal: Any) -> Any:
    primal = unwrap(primal)
    if not isinstance(primal, _NUMBERS):  # an attribute, which jax.custom_jvp does not take
        return None
    if jnp.issubdtype(jax.dtypes.result_type(primal), jnp.inexact):
        return jnp.zeros_like(primal)
    return np.zeros(np.shape(primal), jax.dtypes.float0)


def _tangent_of(result: Any, pushed: Any) -> Any:
    if not is_inexact(result):
        return np.zeros(result.shape, jax.dtypes.float0)
    return jnp.zeros_like(result) if pushed is None else next(pushed)


def _split(args: Sequence[Any], call: Call, linear: int) -> tuple[Sequence[Any], ...]:
    """Returns primals, results and tangents of the equation L."""
    inputs = sum(map(width, call.layout))
    return args[:inputs], args[inputs : len(args) - linear], args[len(args) - linear :]


def _push(
    *args: Any, operator: BoundOp, call: Call, live: Sequence[int], linear: int
) -> Sequence[Any]:
    """L: the tangents of the float results."""
    primals, results, tangents = _split(args, call, linear)
    # Calls through MindSpore's face may be traced after their x64 context has ended.
    with call.face():
        rule = operator.definition.options.jvp
        if rule is not None:
            directions = dict(zip(live, tangents, strict=True))
            return ask_rule(rule.function, operator, call, primals, results, directions)
        return _transpose_bprop(operator, call, primals, results, live, tangents)


def ask_rule(
    rule: Callable[..., Any],
    operator: BoundOp,
    call: Call,
    primals: Sequence[Any],
    results: Sequence[Any],
    tangents: dict[int, Any],
) -> list[Any]:
    """Returns what the author's jvp rule says; inputs without a tangent have a zero one."""
    outputs = operator.outputs(call, [jax.typeof(primal) for primal in primals])
    flat = [
        tangents.get(i, jnp.zeros_like(primal)) if is_inexact(primal) else None
        for i, primal in enumerate(primals)
    ]
    arguments = tuple(call.arguments_of_rule(primals))
    directions = tuple(call.spread(call.group(flat), [None] * len(call.given)))
    given = arguments, directions, outputs.pack(results)
    rule_name = f"jvp of {operator.who}"
    signature = refusing_signature(rule, 3)
    if signature is not None:
        raise GradientTypeError.explained(
            rule_name,
            f"{signature} cannot take the primals, the tangents and out",
            "Write it as jvp(primals, tangents, out): two tuples with one entry per argument "
            "of the call, and what the op returned.",
        )
    with noting(f"{operator.who}: raised by its jvp function"):
        answer = rule(*(wrap(given) if call.tensors else given))
    answer = unwrap(answer)
    answers = outputs.unpack(answer)
    if answers is None:
        count = len(answer) if isinstance(answer, (tuple, list)) else type(answer).__name__
        expected = f"a tuple of {len(results)} tangents, one per output"
        if outputs.tree is not None:
            expected, count = (
                f"tangents in the structure {outputs.tree}",
                jax.tree.structure(answer),
            )
        raise GradientValueError.explained(
            rule_name,
            f"expected {expected}; got {count}",
            "Return them in the structure of out; None where there is none.",
        )
    return [
        jnp.zeros_like(result)
        if tangent is None
        else check_entry(tangent, result, f"for output {index}", rule_name, "tangent")
        for index, (tangent, result) in enumerate(zip(answers, results, strict=True))
        if is_inexact(result)
    ]


def _transpose_bprop(
    operator: BoundOp,
    call: Call,
    primals: Sequence[Any],
    results: Sequence[Any],
    live: Sequence[int],
    tangents: Sequence[Any],
) -> Sequence[Any]:
    """Returns the transpose of bprop, seen as a function of dout, at the tangents."""
    floats = [result for result in results if is_inexact(result)]

    def pull(*douts: Any) -> Sequence[Any]:
        return pull_back(operator, call, primals, results, live, douts)

    def transpose(douts: Sequence[Any], tangents: Sequence[Any]) -> Sequence[Any]:
        gradients: Sequence[Any] = jax.vjp(pull, *douts)[1](list(tangents))
        return gradients

    zeros = [jnp.zeros_like(result) for result in floats]
    try:
        nonlinear = seam.used_arguments(transpose, zeros, list(tangents))[0]
    except GradientTypeError as error:
        error.add_note(
            f"{operator.who}: raised by differentiating its bprop in dout, for forward=True. An op "
            "that bprop calls needs a bprop of its own; or give a jvp= rule."
        )
        raise
    if nonlinear:
        raise GradientValueError.explained(
            f"bprop of {operator.who}",
            "forward=True expected it to be linear in dout; its derivative depends on dout",
            "Write gradients as products with dout and sums of these, or give a jvp= rule.",
        )
    return transpose(zeros, tangents)


def pull_back(
    operator: BoundOp,
    call: Call,
    primals: Sequence[Any],
    results: Sequence[Any],
    live: Sequence[int],
    douts: Sequence[Any],
) -> list[Any]:
    """The transpose of L: the gradients of the inputs `live`, for cotangents of float results."""
    bprop = operator.definition.bprop
    assert bprop is not None, "without one, L is not bound"
    given = iter(douts)
    cotangents = [next(given) if is_inexact(result) else _no_dout(result) for result in results]
    gradients = apply_bprop(
        bprop.function,
        call,
        functools.partial(operator.outputs, call),
        primals,
        results,
        cotangents,
        operator.who,
    )
    return [jnp.zeros_like(primals[i]) if gradients[i] is None else gradients[i] for i in live]


def _no_dout(result: Any) -> np.ndarray:
    return np.zeros(result.shape, jax.dtypes.float0)


def _transpose_push(
    known: Sequence[Any],
    cotangents: Sequence[Any],
    *,
    operator: BoundOp,
    call: Call,
    live: Sequence[int],
    linear: int,
) -> Sequence[Any]:
    primals, results, _ = _split(known, call, 0)
    return pull_back(operator, call, primals, results, live, cotangents)


def _infer_push(*args: Any, call: Call, linear: int, **params: Any) -> list[Any]:
    # Without tracing the rule: reverse mode has no use for it.
    return [result for result in _split(args, call, linear)[1] if is_inexact(result)]


_linear = seam.new_linear_primitive(
    "custom_push",
    _push,
    _transpose_push,
    # Not compiled for eager use: a rule reads what its surroundings are when it runs, as that of a
    # jax.custom_jvp does.
    infer=_infer_push,
)
