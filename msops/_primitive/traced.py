"""Differentiation of ops whose kernels can be written as JAX operations.

Such an op needs no bprop. With f the kernel as JAX code, P its primitive and x' a tangent,

    jvp:        P(x), x'  ->  P(x), f'(x) x'
    transpose:  the transpose of f'(x), which JAX finds

and as f' is JAX code, forward and reverse mode, higher orders and vmap of them follow. Where the
kernel runs as native code, f' serves forward mode and the transpose is native code as well: a
primitive L(x, x') = f'(x) x' is bound whose transpose is the kernel's own pullback. (Linearize and
transpose as in Radul et al., "You Only Linearize Once", 2023.)
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import Any

import jax
import jax.numpy as jnp

from msops import _jax_seam as seam
from msops._op.call import Call
from msops._op.protocols import BoundOp
from msops._op.traced import Function, Traced


def differentiate(
    traced: Traced,
    operator: BoundOp,
    call: Call,
    primals: Sequence[Any],
    tangents: Sequence[Any],
    results: Sequence[Any],
) -> list[Any]:
    """Returns the tangents of `results`, which are those of the op at `primals`."""
    live = tuple(i for i, tangent in enumerate(tangents) if not seam.is_zero(tangent))
    pushed: Sequence[Any] = ()
    if live and any(map(is_inexact, results)):
        directions = [tangents[i] for i in live]
        with jax.named_scope(operator.primitive_name):
            if traced.pullback is None:
                pushed = push_forward(traced.function, live, primals, directions)
            else:
                pushed = _tangent.bind(
                    *primals,
                    *directions,
                    operator=operator,
                    call=call,
                    live=live,
                    linear=len(live),
                )
    given = iter(pushed)
    return [
        next(given) if live and is_inexact(result) else seam.zero_tangent(jax.typeof(result))
        for result in results
    ]


def is_inexact(value: Any) -> bool:
    """Returns whether an array has a tangent of its own dtype: whether it is real or complex."""
    return bool(jnp.issubdtype(value.dtype, jnp.inexact))


def push_forward(
    function: Function, live: Sequence[int], primals: Sequence[Any], directions: Sequence[Any]
) -> Sequence[Any]:
    """Returns the tangents of the float results along `directions` of the inputs `live`."""

    def floats(*moved: Any) -> list[Any]:
        flat = list(primals)
        for position, value in zip(live, moved, strict=True):
            flat[position] = value
        return [result for result in function(*flat) if is_inexact(result)]

    pushed: list[Any] = jax.jvp(floats, tuple(primals[i] for i in live), tuple(directions))[1]
    return pushed


def pull_back(
    traced: Traced, live: Sequence[int], primals: Sequence[Any], cotangents: Sequence[Any]
) -> Sequence[Any]:
    """Returns the gradients of the inputs `live`, given the cotangents of the float results."""
    if traced.pullback is not None:
        return traced.pullback(primals, cotangents, live)
    push = functools.partial(push_forward, traced.function, live, primals)
    transpose = jax.linear_transpose(lambda *moved: push(moved), *(primals[i] for i in live))
    gradients: Sequence[Any] = transpose(list(cotangents))
    return gradients


def _tangent_function(
    *args: Any, operator: BoundOp, call: Call, live: Sequence[int], linear: int
) -> Sequence[Any]:
    primals, directions = args[: len(args) - linear], args[len(args) - linear :]
    # Calls through MindSpore's face may be traced after their x64 context has ended.
    with call.face():
        traced = operator.traced(call, primals)
        assert traced is not None, "only what is traced is differentiated so"
        return push_forward(traced.function, live, primals, directions)


def _tangent_transpose(
    primals: Sequence[Any],
    cotangents: Sequence[Any],
    *,
    operator: BoundOp,
    call: Call,
    live: Sequence[int],
    linear: int,
) -> Sequence[Any]:
    with call.face():
        traced = operator.traced(call, primals)
        assert traced is not None, "only what is traced is differentiated so"
        return pull_back(traced, live, primals, cotangents)


def compile_tangent(
    operator: BoundOp, call: Call, live: Sequence[int], linear: int
) -> Callable[..., Sequence[Any]]:
    """Returns L of these inputs, compiled."""

    def bound(*args: Any) -> Sequence[Any]:
        seam.refuse_special_values(f"derivative of {operator.who}")
        return _tangent_function(*args, operator=operator, call=call, live=live, linear=linear)

    return jax.jit(bound)


def _run_tangent(
    *args: Any, operator: BoundOp, call: Call, live: Sequence[int], linear: int
) -> Sequence[Any]:
    programs = operator.programs()
    if programs is None:
        compiled = compile_tangent(operator, call, live, linear)
    else:
        compiled = programs.tangent(call, live, linear)
    return compiled(*args)


_tangent = seam.new_linear_primitive(
    "custom_tangent",
    _tangent_function,
    _tangent_transpose,
    impl=_run_tangent,
    transposes_derivatives=True,
)
