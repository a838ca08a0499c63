"""Gradients of loop kernels as adjoint loops: a kernel again, and an op of its own."""

from __future__ import annotations

import dataclasses
import functools
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import jax.numpy as jnp

from msops._backends.loops.kernels import AdjointKernel, Kernels
from msops._op.backend import Backend
from msops._op.definition import Definition
from msops._op.identity import ByIdentity
from msops._op.inference import Inference
from msops._op.request import Options, Request
from msops._primitive.programs import Programs, share_programs

if TYPE_CHECKING:
    from msops._op.call import Call
    from msops._op.sharding_rule import ShardingRule
    from msops._primitive.operator import Operator


def pull_back(
    backend: Backend[Any, Kernels],
    kernel: Kernels,
    request: Request,
    primals: Sequence[Any],
    cotangents: Sequence[Any],
    wanted: Sequence[int],
) -> Sequence[Any]:
    """Runs the adjoint loops of a call, as an op of their own.

    Args:
      backend: what serves them.
      kernel: the call's.
      request: the call.
      primals: its inputs.
      cotangents: one for each float result.
      wanted: the positions of the inputs whose gradients are returned.
    """
    adjoint = adjoint_kernel(kernel, request, wanted)
    rule = request.options.sharding
    if rule is not None:
        floats = [jnp.issubdtype(output.dtype, jnp.inexact) for output in request.outputs.structs]
        rule = rule.adjoint([i for i, is_float in enumerate(floats) if is_float], wanted)
    flat = (*primals, *cotangents)
    operator, call = adjoint_call(backend, adjoint, request, len(flat), rule)
    gradients = operator.bind(call, flat)
    return [
        _sum_to(gradient, primals[position].shape)
        for gradient, position in zip(gradients, wanted, strict=True)
    ]


def adjoint_kernel(kernel: Kernels, request: Request, wanted: Sequence[int]) -> AdjointKernel:
    """Returns the adjoint loops of a call, for the inputs at some positions.

    A kernel that is forced to be native code does not force its adjoint: where that is matrix
    products, native code can take a hundred times as long as XLA.
    """
    return AdjointKernel(
        forward=ByIdentity(kernel),
        layout=request.call.layout,
        attributes=request.attributes,
        attributes_text=repr(request.attributes),
        inputs=len(request.inputs),
        wanted=tuple(wanted),
        lower="xla" if kernel.lower == "xla" else None,
    )


def adjoint_call(
    backend: Backend[Any, Kernels],
    adjoint: AdjointKernel,
    request: Request,
    arguments: int,
    rule: ShardingRule | None = None,
) -> tuple[Operator, Call]:
    """Returns the operator of adjoint loops, and its call with so many arrays."""
    operator = _programs_of(adjoint, backend, f"{request.op}_gradient", rule).operator
    return operator, dataclasses.replace(request.call, layout=(None,) * arguments, given=())


def _sum_to(gradient: Any, shape: tuple[int, ...]) -> Any:
    """Sums over the axes of vmap that have size 1 in the input."""
    axes = tuple(
        axis
        for axis, (got, size) in enumerate(zip(gradient.shape, shape, strict=True))
        if got != size
    )
    return gradient.sum(axes, keepdims=True) if axes else gradient


@functools.lru_cache(maxsize=256)
def _programs_of(
    kernel: AdjointKernel, backend: Backend[Any, Kernels], name: str, rule: ShardingRule | None
) -> Programs:
    return share_programs(
        Definition(
            name=name,
            backend=backend,
            kernel=kernel,
            inference=Inference(None, None),
            bprop=None,
            options=Options(vmap=backend.vmap, sharding=rule),
            infos=(),
            prim_attrs=(),
        )
    )
