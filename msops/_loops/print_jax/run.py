"""Steps, one after another, on the contents of buffers."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Mapping, Sequence

import numpy as np
from jax import lax

from msops._loops.ir import Const, Load, Store
from msops._loops.print_jax.evaluate import evaluate, guarded
from msops._loops.print_jax.recurrences import accumulate, recur
from msops._loops.print_jax.reductions import contract, convolve, pool, reduce_expression
from msops._loops.print_jax.scope import Machine, Scope
from msops._loops.print_jax.stores import store
from msops._loops.print_jax.values import Array, Contents, Uniform, Value, constant, contents_array
from msops._loops.raising.nests import Axis, Nest
from msops._loops.raising.steps import (
    Accumulate,
    Branch,
    Clear,
    Contract,
    Convolve,
    Loop,
    Map,
    Pool,
    Recur,
    Reduce,
    Step,
    VectorStep,
    written,
)
from msops._loops.raising.views import find_view
from msops._loops.raising.windows import Window


def run(steps: Sequence[Step], machine: Machine) -> Machine:
    """Returns the machine after the steps."""
    for step in steps:
        match step:
            case Loop():
                machine = _loop(step, machine)
            case Branch():
                machine = _branch(step, machine)
            case Clear(buffer=buffer):
                machine = machine.with_contents({buffer: _cleared(machine.contents[buffer])})
            case _:
                name = step.nest.store.buffer
                machine = machine.with_contents({name: _vector(step, machine)})
    return machine


def _cleared(contents: Contents) -> Uniform:
    return Uniform(np.zeros((), contents_dtype(contents))[()], contents.shape)


def contents_dtype(contents: Contents) -> np.dtype:
    """Returns the dtype of a buffer's elements."""
    value = contents.value if isinstance(contents, Uniform) else contents
    return np.dtype(value.dtype)


# Vector steps.


def _vector(step: VectorStep, machine: Machine) -> Contents:
    nest = step.nest
    scope = guarded(nest.mask, Scope(machine, _ordered_axes(step, machine)))
    match step:
        case Map():
            return _map(nest, scope)
        case Reduce(op=op, value=value, over=over):
            result = reduce_expression(op, value, over, scope)
            if not scope.mask or not (set(scope.mask.axes) & set(over)):
                return store(nest.store, result, op, scope)
            return store(nest.store, result, op, dataclasses.replace(scope, mask=None))
        case Contract():
            return store(nest.store, contract(step, scope), "add", scope)
        case Convolve():
            wide = _widened(scope, step.windows)
            return store(nest.store, convolve(step, scope, wide), "add", scope)
        case Pool():
            wide = _widened(scope, step.windows)
            return store(nest.store, pool(step, scope, wide), step.op, scope)
        case Accumulate():
            return store(nest.store, accumulate(step, scope), None, scope)
        case Recur():
            return store(nest.store, recur(step, scope), None, scope)


def _map(nest: Nest, scope: Scope) -> Contents:
    old = scope.machine.contents[nest.store.buffer]
    if isinstance(nest.store.value, Const) and scope.mask is None:
        view = find_view(nest.store.indices, old.shape, scope.axis_ranges)
        if view is not None and all(d.length == d.size and not d.start and not d.rest
                                    and all(l.step == 1 or len(d.levels) > 1 for l in d.levels)
                                    for d in view.dimensions):  # fmt: skip
            return Uniform(constant(nest.store.value.value, nest.store.value.dtype), old.shape)
    return store(nest.store, evaluate(nest.store.value, scope), None, scope)


def _ordered_axes(step: VectorStep, machine: Machine) -> tuple[Axis, ...]:
    """Returns the axes in the order that needs the fewest transposes.

    A map follows the memory of what it stores, anything else that of the largest thing it reads.
    """
    nest = step.nest
    first: Store | Load = nest.store
    axes = {axis.var: axis for axis in nest.axes}
    contents = machine.contents[first.buffer]
    view = find_view(first.indices, contents.shape, nest.axis_ranges())
    order = [name for name in (view.axes if view else ()) if name in axes]
    return tuple(
        [axes[name] for name in order] + [axis for axis in nest.axes if axis.var not in order]
    )


def _widened(scope: Scope, windows: Sequence[Window]) -> Scope:
    """Returns the scope with the windows' own axes in place of their outputs'."""
    own = {}
    for window in windows:
        low, high = window.interval(scope.axis_ranges)
        own[window.output] = Axis(window.axis, low, high + 1)
    taps = {window.tap for window in windows}
    axes = [own.get(axis.var, axis) for axis in scope.axes if axis.var not in taps]
    return dataclasses.replace(scope, axes=tuple(axes))


# Loops and branches.


def _carried(names: Sequence[str], machine: Machine) -> tuple[Array, ...]:
    return tuple(contents_array(machine.contents[name]) for name in names)


def _after(
    steps: Sequence[Step], names: Sequence[str], machine: Machine
) -> Callable[[Sequence[Array]], tuple[Array, ...]]:
    """Returns the function from the contents of buffers before steps to those after them."""

    def function(arrays: Sequence[Array]) -> tuple[Array, ...]:
        inner = machine.with_contents(dict(zip(names, arrays, strict=True)))
        return _carried(names, run(steps, inner))

    return function


def _loop(step: Loop, machine: Machine) -> Machine:
    names = sorted(written(step.body))
    loop, axis = step.loop, step.axis
    begin, end = (_bound(bound, machine) for bound in (loop.begin, loop.end))
    fixed = isinstance(begin, int) and isinstance(end, int)
    ranges: Mapping[str, tuple[int, int]] = machine.ranges
    if axis is not None:
        ranges = {**ranges, axis.var: axis.interval}
        low, high = axis.begin, axis.end
    hull = axis is not None and not fixed

    def body(counter: Array, arrays: tuple[Array, ...]) -> tuple[Array, ...]:
        inner = dataclasses.replace(
            machine, scalars={**machine.scalars, loop.var: counter}, ranges=ranges
        )
        after = _after(step.body, names, inner)
        if not hull:
            return after(arrays)
        runs = lax.bitwise_and(lax.ge(counter, np.int32(begin)), lax.lt(counter, np.int32(end))) \
            if isinstance(begin, int) and isinstance(end, int) else lax.bitwise_and(
                lax.ge(counter, begin), lax.lt(counter, end))  # fmt: skip
        return lax.cond(runs, after, lambda same: tuple(same), arrays)

    if axis is not None:
        begin_trip, end_trip = np.int32(low), np.int32(high)
    else:
        begin_trip, end_trip = begin, end
    arrays = lax.fori_loop(begin_trip, end_trip, body, _carried(names, machine))
    return machine.with_contents(dict(zip(names, arrays, strict=True)))


def _bound(expr: object, machine: Machine) -> Array:
    if isinstance(expr, Const):
        return int(expr.value)
    value: Value = evaluate(expr, Scope(machine, ()))  # type: ignore[arg-type]
    return lax.convert_element_type(value.array, np.int32)


def _branch(step: Branch, machine: Machine) -> Machine:
    names = sorted(written(step.then) | written(step.otherwise))
    condition = evaluate(step.branch.condition, Scope(machine, ())).array
    arrays = lax.cond(
        condition,
        _after(step.then, names, machine),
        _after(step.otherwise, names, machine),
        _carried(names, machine),
    )
    return machine.with_contents(dict(zip(names, arrays, strict=True)))
