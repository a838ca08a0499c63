"""Primitives that are linear in some of their arguments and have a transpose of their own.

Let L(p, l) be linear in l, with the transpose T: <w, L(p, l)> = <T(p, w), l>. Its derivative in p
along q is linear in q, and as

    <w, d/dp L(p, l) q> = d/dp <T(p, w), l> q

the transpose of that derivative is the gradient of T in p for the cotangents l. So derivatives of
any order, and batches of them, are linear primitives as well. Their transposes consist of T and its
gradients: L itself, which may hold loops that JAX cannot transpose, is not transposed.
"""

from __future__ import annotations

import dataclasses
import functools
from collections.abc import Callable, Sequence
from typing import Any

import jax
from jax.interpreters import ad, batching, mlir

from msops._jax_seam.primitives import OurPrimitive
from msops._jax_seam.values import shaped_array

Function = Callable[..., Sequence[Any]]


@dataclasses.dataclass(frozen=True)
class _Derivative:
    """Differentiates L in the known arguments `positions`; it is linear in directions of these."""

    positions: tuple[int, ...]

    def function(self, linear_map: _LinearMap, *args: Any) -> Sequence[Any]:
        known, directions = _split(args, len(self.positions))
        values = tuple(known[i] for i in self.positions)
        moved = self._moved(known, linear_map.function)
        pushed: Sequence[Any] = jax.jvp(moved, values, tuple(directions))[1]
        return pushed

    def transpose(
        self, linear_map: _LinearMap, known: Sequence[Any], cotangents: Sequence[Any]
    ) -> Sequence[Any]:
        points, directions = _split(known, linear_map.linear)
        values = tuple(points[i] for i in self.positions)
        moved = self._moved(points, lambda *p: linear_map.transpose(p, cotangents))
        gradients: Sequence[Any] = jax.vjp(moved, *values)[1](list(directions))
        return gradients

    def _moved(self, args: Sequence[Any], function: Function) -> Function:
        """Returns `function` of the arguments at the positions."""

        def of_values(*values: Any) -> list[Any]:
            given = dict(zip(self.positions, values, strict=True))
            return list(function(*(given.get(i, arg) for i, arg in enumerate(args))))

        return of_values


@dataclasses.dataclass(frozen=True)
class _Batch:
    """Applies L to each of `size` elements; `axes` says which arguments have them."""

    axes: tuple[int | None, ...]
    size: int

    def function(self, linear_map: _LinearMap, *args: Any) -> Sequence[Any]:
        mapped = jax.vmap(linear_map.function, self.axes, axis_size=self.size)
        results: Sequence[Any] = mapped(*args)
        return results

    def transpose(
        self, linear_map: _LinearMap, known: Sequence[Any], cotangents: Sequence[Any]
    ) -> Sequence[Any]:
        axes = list(self.axes[: len(known)])
        mapped = jax.vmap(linear_map.transpose, (axes, 0), axis_size=self.size)
        gradients: Sequence[Any] = mapped(list(known), list(cotangents))
        return gradients


@dataclasses.dataclass(frozen=True)
class _LinearMap:
    """L, and its transpose T.

    Attributes:
      function: ``(*args) -> results``.
      transpose: ``(known, cotangents) -> cotangents of the linear arguments``, `known` being the
        other arguments.
      linear: the count of trailing arguments in which it is linear.
    """

    function: Function
    transpose: Callable[[Sequence[Any], Sequence[Any]], Sequence[Any]]
    linear: int

    def under(self, step: _Derivative | _Batch) -> _LinearMap:
        """Returns its derivative, or a batch of it."""
        return _LinearMap(
            functools.partial(step.function, self),
            functools.partial(step.transpose, self),
            len(step.positions) if isinstance(step, _Derivative) else self.linear,
        )


def new_linear_primitive(
    name: str,
    function: Function,
    transpose: Callable[..., Sequence[Any]],
    *,
    infer: Function | None = None,
    impl: Function | None = None,
    transposes_derivatives: bool = False,
) -> OurPrimitive:
    """Makes a primitive that is linear in some of its arguments, with a transpose of its own.

    Args:
      name: what jaxprs show.
      function: ``(*args, linear, **params) -> results`` in JAX code; `linear` counts the trailing
        arguments in which it is linear.
      transpose: ``(args, cotangents, **params) -> cotangents of the linear arguments``, `args`
        without those.
      infer: ``(*args, **params) -> results`` as `jax.ShapeDtypeStruct`s; by default `function` is
        traced for them.
      impl: ``(*arrays, **params) -> results``, for eager use; by default `function` is called.
      transposes_derivatives: whether derivatives and batches of it are transposed by means of
        `transpose`; else JAX transposes those of `function`.
    """
    primitive = OurPrimitive(name)

    def linear_map(steps: Sequence[_Derivative | _Batch], linear: int, params: Any) -> _LinearMap:
        given = {"linear": linear, **params}
        base = _LinearMap(
            functools.partial(function, **given), functools.partial(transpose, **given), linear
        )
        return functools.reduce(_LinearMap.under, steps, base)

    def run(*args: Any, linear: int, steps: Any = (), **params: Any) -> Sequence[Any]:
        return linear_map(steps, linear, params).function(*args)

    def run_eagerly(*args: Any, steps: Any = (), **params: Any) -> Sequence[Any]:
        return run(*args, steps=steps, **params) if steps or impl is None else impl(*args, **params)

    def abstract_eval(*avals: Any, steps: Any = (), **params: Any) -> Any:
        # `jax.eval_shape` takes keywords for arrays, too.
        args = [jax.ShapeDtypeStruct(aval.shape, aval.dtype) for aval in avals]
        structs = (
            jax.eval_shape(functools.partial(run, steps=steps, **params), *args)
            if steps or infer is None
            else infer(*args, **params)
        )
        return [shaped_array(struct, avals, name) for struct in structs]

    def jvp(
        primals: Sequence[Any], tangents: Sequence[Any], *, steps: Any = (), **params: Any
    ) -> tuple[Sequence[Any], Sequence[Any]]:
        if not transposes_derivatives:
            whole = tuple(map(ad.instantiate_zeros, tangents))
            return jax.jvp(functools.partial(run, **params), tuple(primals), whole)
        results = primitive.bind(*primals, steps=steps, **params)
        known, directions = _split(tangents, _count(steps, params["linear"]))
        moved = tuple(i for i, tangent in enumerate(known) if type(tangent) is not ad.Zero)
        parts: list[Sequence[Any]] = []
        if moved:
            further = (*steps, _Derivative(moved))
            pushed = [known[i] for i in moved]
            parts.append(primitive.bind(*primals, *pushed, steps=further, **params))
        if any(type(tangent) is not ad.Zero for tangent in directions):
            linear = map(ad.instantiate_zeros, directions)
            points = primals[: len(known)]
            parts.append(primitive.bind(*points, *linear, steps=steps, **params))
        return results, [
            functools.reduce(ad.add_tangents, each) for each in zip(*parts, strict=True)
        ]

    def transpose_rule(
        cotangents: Sequence[Any], *args: Any, linear: int, steps: Any = (), **params: Any
    ) -> Sequence[Any]:
        found = linear_map(steps, linear, params)
        known, _ = _split(args, found.linear)
        whole = [ad.instantiate_zeros(cotangent) for cotangent in cotangents]
        return [*(None for _ in known), *found.transpose(known, whole)]

    def batch(
        args: Sequence[Any], dims: Sequence[Any], *, steps: Any = (), **params: Any
    ) -> tuple[Sequence[Any], Sequence[int]]:
        if not transposes_derivatives:
            found = jax.vmap(functools.partial(run, **params), tuple(dims))(*args)
            return found, [0] * len(found)
        known, _ = _split(args, _count(steps, params["linear"]))
        size = next(a.shape[d] for a, d in zip(args, dims, strict=True) if d is not None)
        # The cotangents of the linear arguments are those of one element each.
        has = [d is not None or i >= len(known) for i, d in enumerate(dims)]
        moved = [
            batching.bdim_at_front(arg, dim, size) if flag else arg
            for arg, dim, flag in zip(args, dims, has, strict=True)
        ]
        step = _Batch(tuple(0 if flag else None for flag in has), size)
        results = primitive.bind(*moved, steps=(*steps, step), **params)
        return results, [0] * len(results)

    primitive.def_abstract_eval(abstract_eval)
    primitive.def_impl(run_eagerly)
    mlir.register_lowering(primitive, mlir.lower_fun(run, multiple_results=True))
    batching.primitive_batchers[primitive] = batch
    ad.primitive_jvps[primitive] = jvp
    ad.primitive_transposes[primitive] = transpose_rule
    return primitive


def _count(steps: Sequence[_Derivative | _Batch], linear: int) -> int:
    """Returns in how many arguments L is linear after the steps."""
    directions = [len(step.positions) for step in steps if isinstance(step, _Derivative)]
    return directions[-1] if directions else linear


def _split(values: Sequence[Any], last: int) -> tuple[Sequence[Any], Sequence[Any]]:
    count = len(values) - last
    return values[:count], values[count:]
