"""The order in which the arrays of a step have its axes: one that needs few transposes."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping

from msops._loops.ir.nodes import Load, Store
from msops._loops.ir.operators import is_float
from msops._loops.ir.walk import index_variables, loads
from msops._loops.to_jax.raising.nests import Axis, Nest
from msops._loops.to_jax.raising.steps import (
    Branch,
    Clear,
    Contract,
    Loop,
    Map,
    Reduce,
    Step,
    VectorStep,
)
from msops._loops.to_jax.raising.views import find_view


def order_axes(steps: tuple[Step, ...], shapes: Mapping[str, tuple[int, ...]]) -> tuple[Step, ...]:
    """Returns steps with the axes of their arrays in order.

    Args:
      steps: the steps.
      shapes: of the buffers of the kernel, locals too, by name.
    """
    return tuple(_ordered(step, shapes) for step in steps)


def _ordered(step: Step, shapes: Mapping[str, tuple[int, ...]]) -> Step:
    match step:
        case Loop(body=body):
            return dataclasses.replace(step, body=order_axes(body, shapes))
        case Branch(then=then, otherwise=otherwise):
            return dataclasses.replace(
                step, then=order_axes(then, shapes), otherwise=order_axes(otherwise, shapes)
            )
        case Clear():
            return step
    nest = dataclasses.replace(step.nest, ordered_axes=_axes(step, shapes))
    return dataclasses.replace(step, nest=nest)


def _axes(step: VectorStep, shapes: Mapping[str, tuple[int, ...]]) -> tuple[Axis, ...]:
    """Returns the axes of a step in order.

    A map follows the memory of what it stores, anything else that of the largest thing it reads. In
    a product of integers that is a factor: XLA is slow where their summed axes are the last. An
    extreme that is scattered counts its iterations as they run.
    """
    nest = step.nest
    if isinstance(step, Reduce) and step.keeps and not step.over:
        return nest.axes
    leading: Store | Load = nest.store
    if not isinstance(step, Map):
        is_of_factors = isinstance(step, Contract) and not is_float(nest.store.value.dtype)
        read = [
            load
            for load in loads(nest.store.value)
            if not (is_of_factors and load.buffer == nest.store.buffer)
        ]
        leading = max(read, key=lambda load: _axis_count(load, nest), default=leading)
    view = find_view(leading.indices, shapes[leading.buffer], nest.axis_ranges)
    first = view.axes if view else ()
    axes = {axis.var: axis for axis in nest.axes}
    rest = [axis for axis in nest.axes if axis.var not in first]
    return (*(axes[name] for name in first), *rest)


def _axis_count(load: Load, nest: Nest) -> int:
    return len(index_variables(load) & set(nest.extents))
