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
    from msops._op.sharding_rule import ShardingRule


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
    adjoint = _adjoint_kernel(kernel, request, tuple(wanted))
    rule = request.options.sharding
    if rule is not None:
        floats = [jnp.issubdtype(output.dtype, jnp.inexact) for output in request.outputs.structs]
        rule = rule.adjoint([i for i, is_float in enumerate(floats) if is_float], wanted)
    operator = _programs_of(adjoint, backend, f"{request.op}_gradient", rule).operator
    flat = (*primals, *cotangents)
    call = dataclasses.replace(request.call, layout=(None,) * len(flat), given=())
    gradients = operator.bind(call, flat)
    return [
        _sum_to(gradient, primals[position].shape)
        for gradient, position in zip(gradients, wanted, strict=True)
    ]


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


def _adjoint_kernel(kernel: Kernels, request: Request, wanted: tuple[int, ...]) -> AdjointKernel:
    return AdjointKernel(
        forward=ByIdentity(kernel),
        layout=request.call.layout,
        attributes=request.attributes,
        attributes_text=repr(request.attributes),
        inputs=len(request.inputs),
        wanted=wanted,
    )
