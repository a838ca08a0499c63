"""The transpose of an op that is linear in some of its inputs, for `jax.linear_transpose`.

If y = P(x, z) is linear in x, its derivative in x is P itself, and the gradient is the transpose:
neither depends on x or y. So the transpose is what the op's own rule of differentiation gives at
x = 0. If that rule depends on x or y, P is not linear in x and is refused.
"""

from __future__ import annotations

import dataclasses
import functools
from collections.abc import Callable, Sequence
from typing import Any

import jax
import jax.numpy as jnp

from msops import _jax_seam as seam
from msops._op.call import Call
from msops._op.protocols import BoundOp
from msops._primitive.forward_mode import ask_rule, pull_back
from msops._primitive.reverse_mode import refuse_transposition
from msops._primitive.traced import is_inexact, push_forward
from msops.errors import GradientValueError

Derivative = Callable[..., Sequence[Any]]
"""``(unknown, results, *directions)``: the linear inputs, the results, tangents or cotangents."""


def transpose(
    operator: BoundOp,
    call: Call,
    args: Sequence[Any],
    linear: Sequence[int],
    cotangents: Sequence[Any],
) -> Sequence[Any]:
    """Returns the cotangents of the inputs `linear`, for one cotangent per result.

    Args:
      operator: the op.
      call: structure of the call.
      args: flat inputs, zeros for those of `linear`.
      linear: positions of the inputs in which the call is transposed.
      cotangents: of the results, with their shapes and dtypes.

    Raises:
      GradientTypeError: the op has no rule of differentiation.
      GradientValueError: its rule shows that it is not linear in these inputs.
    """
    # Calls through MindSpore's face may be transposed after their x64 context has ended.
    with call.face():
        definition = operator.definition
        if definition.bprop is None and definition.options.jvp is None:
            return _transpose_traced(operator, call, args, linear, cotangents)
        if call.mapped:
            (size, has), *inner = call.mapped
            one = dataclasses.replace(call, mapped=tuple(inner))
            return _per_element(operator, one, args, linear, cotangents, size, has)
        if call.batch:
            size, *rest = call.batch
            has = tuple(arg.shape[0] == size for arg in args)
            parts = [arg if flag else arg[0] for arg, flag in zip(args, has, strict=True)]
            one = dataclasses.replace(call, batch=tuple(rest))
            found = _per_element(operator, one, parts, linear, cotangents, size, has)
            return [value.reshape(args[i].shape) for i, value in zip(linear, found, strict=True)]
        return _transpose_by_rule(operator, call, args, linear, cotangents)


def _per_element(
    operator: BoundOp,
    call: Call,
    args: Sequence[Any],
    linear: Sequence[int],
    cotangents: Sequence[Any],
    size: int,
    has: Sequence[bool],
) -> Sequence[Any]:
    """Transposes a call for each element of a leading axis, which all cotangents have.

    Args:
      call: the call of one element.
      size: of the axis.
      has: which of `args` have it. All elements use an input without it, so its cotangent is the
        sum over them.
    """

    def one(args: Sequence[Any], cotangents: Sequence[Any]) -> Sequence[Any]:
        return transpose(operator, call, args, linear, cotangents)

    axes = [0 if flag else None for flag in has]
    found = jax.vmap(one, (axes, 0), axis_size=size)(list(args), list(cotangents))
    return [value if has[i] else value.sum(0) for i, value in zip(linear, found, strict=True)]


def _transpose_by_rule(
    operator: BoundOp,
    call: Call,
    args: Sequence[Any],
    linear: Sequence[int],
    cotangents: Sequence[Any],
) -> Sequence[Any]:
    structs = operator.outputs(call, [jax.typeof(arg) for arg in args]).structs
    cotangents = _of_inexact(cotangents, structs)
    unknown = [args[i] for i in linear]
    results = [jnp.zeros(struct.shape, struct.dtype) for struct in structs]
    rule = operator.definition.options.jvp
    if operator.definition.bprop is not None:

        def pulled(unknown: Any, results: Any, *douts: Any) -> Sequence[Any]:
            return pull_back(operator, call, _fill(args, linear, unknown), results, linear, douts)

        _check_linear(pulled, unknown, results, cotangents, operator.who)
        return pulled(unknown, results, *cotangents)
    assert rule is not None, "without a rule, the call is traced"

    def push(unknown: Any, results: Any, *tangents: Any) -> Sequence[Any]:
        whole = _fill(args, linear, unknown)
        directions = dict(zip(linear, tangents, strict=True))
        return ask_rule(rule.function, operator, call, whole, results, directions)

    def transposed(unknown: Any, results: Any, *cotangents: Any) -> Sequence[Any]:
        # In the tangents of the linear inputs only: what the zero ones of others do is not looked
        # at, and may depend on anything.
        pushed = functools.partial(push, unknown, results)
        found: Sequence[Any] = jax.linear_transpose(pushed, *unknown)(list(cotangents))
        return found

    _check_linear(transposed, unknown, results, cotangents, operator.who)
    return transposed(unknown, results, *cotangents)


def _transpose_traced(
    operator: BoundOp,
    call: Call,
    args: Sequence[Any],
    linear: Sequence[int],
    cotangents: Sequence[Any],
) -> Sequence[Any]:
    traced = operator.traced(call, args)
    if traced is None:
        raise refuse_transposition(operator.who)
    unknown = [args[i] for i in linear]
    function = traced.function

    def push(unknown: Any, results: Any, *tangents: Any) -> Sequence[Any]:
        return push_forward(function, linear, _fill(args, linear, unknown), tangents)

    _check_linear(push, unknown, [], unknown, operator.who)
    if traced.pullback is not None:
        return traced.pullback(args, cotangents, linear)
    structs = operator.outputs(call, [jax.typeof(arg) for arg in args]).structs
    cotangents = _of_inexact(cotangents, structs)
    pushed = functools.partial(push, unknown, [])
    found: Sequence[Any] = jax.linear_transpose(pushed, *unknown)(list(cotangents))
    return found


def _of_inexact(
    cotangents: Sequence[Any], structs: Sequence[jax.ShapeDtypeStruct]
) -> Sequence[Any]:
    """Returns the cotangents of real and complex results; those of integers mean nothing."""
    return [ct for ct, struct in zip(cotangents, structs, strict=True) if is_inexact(struct)]


def _fill(args: Sequence[Any], linear: Sequence[int], unknown: Sequence[Any]) -> list[Any]:
    """Returns `args` with other values of the linear inputs."""
    values = dict(zip(linear, unknown, strict=True))
    return [values.get(i, arg) for i, arg in enumerate(args)]


def _check_linear(
    derivative: Derivative,
    unknown: Sequence[Any],
    results: Sequence[Any],
    directions: Sequence[Any],
    who: str,
) -> None:
    """Refuses a derivative that depends on where it is taken."""
    used = seam.used_arguments(derivative, list(unknown), list(results), *directions)
    if any(used[:2]):
        raise GradientValueError.explained(
            who,
            "jax.linear_transpose expected it to be linear; its derivative depends on the "
            f"{'input' if used[0] else 'result'}",
            "Use jax.vjp or jax.grad, which differentiate at a point. The bprop of a linear op "
            "uses dout, and of what it is linear in only shapes and dtypes.",
        )
