"""Steps, one after another, on the contents of buffers."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Sequence

import numpy as np
from jax import lax

from msops._loops.ir.nodes import Expr
from msops._loops.to_jax.printing.evaluate import evaluate
from msops._loops.to_jax.printing.scope import Machine, Scope
from msops._loops.to_jax.printing.values import Array, Contents, Uniform, contents_array
from msops._loops.to_jax.printing.vector_steps import execute
from msops._loops.to_jax.raising.nests import Axis
from msops._loops.to_jax.raising.steps import Branch, Clear, Loop, Step, written


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
                machine = machine.with_contents({step.nest.store.buffer: execute(step, machine)})
    return machine


def _cleared(contents: Contents) -> Uniform:
    dtype = contents.value.dtype if isinstance(contents, Uniform) else contents.dtype
    return Uniform(np.zeros((), dtype)[()], contents.shape)


def _branch(step: Branch, machine: Machine) -> Machine:
    names = sorted(written(step.then) | written(step.otherwise))
    arrays = lax.cond(
        evaluate(step.branch.condition, Scope(machine, ())).array,
        _after(step.then, names, machine),
        _after(step.otherwise, names, machine),
        _arrays(names, machine),
    )
    return machine.with_contents(dict(zip(names, arrays, strict=True)))


def _loop(step: Loop, machine: Machine) -> Machine:
    """Runs a loop; where its range has a hull for a fixed number of times, as reverse mode wants.

    Iterations of the hull that are not the loop's do nothing.
    """
    names = sorted(written(step.body))
    begin, end = (_bound(bound, machine) for bound in (step.loop.begin, step.loop.end))
    first, last = (begin, end) if step.axis is None else _ends(step.axis)
    ranges = {**machine.ranges, **({step.axis.var: step.axis.interval} if step.axis else {})}

    def body(counter: Array, arrays: Sequence[Array]) -> tuple[Array, ...]:
        # Under jax.enable_x64 the counter of a fixed number of trips is an int64.
        counter = lax.convert_element_type(counter, np.int32)
        scalars = {**machine.scalars, step.loop.var: counter}
        inner = dataclasses.replace(machine, scalars=scalars, ranges=ranges)
        after = _after(step.body, names, inner)
        if step.is_hull:
            runs = lax.bitwise_and(lax.ge(counter, begin), lax.lt(counter, end))
            return lax.cond(runs, after, tuple, arrays)
        return after(arrays)

    arrays = lax.fori_loop(first, last, body, _arrays(names, machine))
    return machine.with_contents(dict(zip(names, arrays, strict=True)))


def _ends(axis: Axis) -> tuple[Array, Array]:
    return np.int32(axis.begin), np.int32(axis.end)


def _bound(expr: Expr, machine: Machine) -> Array:
    value = evaluate(expr, Scope(machine, ())).array
    return lax.convert_element_type(value, np.int32)


def _arrays(names: Sequence[str], machine: Machine) -> tuple[Array, ...]:
    return tuple(contents_array(machine.contents[name]) for name in names)


def _after(
    steps: Sequence[Step], names: Sequence[str], machine: Machine
) -> Callable[[Sequence[Array]], tuple[Array, ...]]:
    """Returns the function from the contents of buffers before steps to those after them."""

    def function(arrays: Sequence[Array]) -> tuple[Array, ...]:
        inner = machine.with_contents(dict(zip(names, arrays, strict=True)))
        return _arrays(names, run(steps, inner))

    return function
