"""Steps, one after another, on the contents of buffers."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import TypeAlias

import numpy as np
from jax import lax

from msops._loops.ir.nodes import Expr
from msops._loops.to_jax.printing.environment import Environment
from msops._loops.to_jax.printing.evaluate import evaluate
from msops._loops.to_jax.printing.values import Array, Contents, Uniform, contents_array
from msops._loops.to_jax.printing.vector_steps import execute
from msops._loops.to_jax.raising.nests import Axis
from msops._loops.to_jax.raising.steps import Branch, Clear, Loop, Step, written

Arrays: TypeAlias = tuple[Array, ...]


def run(steps: Sequence[Step], env: Environment) -> Environment:
    """Returns the environment after the steps."""
    for step in steps:
        match step:
            case Loop():
                env = _loop(step, env)
            case Branch():
                env = _branch(step, env)
            case Clear(buffer=buffer):
                env = env.after({buffer: _cleared(env.contents[buffer])})
            case _:
                env = env.after({step.nest.store.buffer: execute(step, env)})
    return env


def _cleared(contents: Contents) -> Uniform:
    dtype = contents.value.dtype if isinstance(contents, Uniform) else contents.dtype
    return Uniform(np.zeros((), dtype)[()], contents.shape)


def _branch(step: Branch, env: Environment) -> Environment:
    names = sorted(written(step.then) | written(step.otherwise))
    arrays = env.cond(
        evaluate(step.branch.condition, env).array,
        partial(_after, step.then, names),
        partial(_after, step.otherwise, names),
        _arrays(names, env),
    )
    return env.after(dict(zip(names, arrays, strict=True)))


def _loop(step: Loop, env: Environment) -> Environment:
    """Runs a loop; where its range has a hull for a fixed number of times, as reverse mode wants.

    Iterations of the hull that are not the loop's do nothing.
    """
    names = sorted(written(step.body))
    begin, end = (_bound(bound, env) for bound in (step.loop.begin, step.loop.end))
    first, last = (begin, end) if step.axis is None else _ends(step.axis)
    ranges = {**env.scalar_ranges, **({step.axis.var: step.axis.interval} if step.axis else {})}

    after = partial(_after, step.body, names)

    def body(outer: Environment, counter: Array, arrays: Arrays) -> Arrays:
        inner = outer.counting(step.loop.var, counter, ranges)
        if step.is_hull:
            runs = lax.bitwise_and(lax.ge(counter, begin), lax.lt(counter, end))
            return inner.cond(runs, after, _unchanged, arrays)
        return after(inner, arrays)

    arrays = env.fori_loop(first, last, body, _arrays(names, env))
    return env.after(dict(zip(names, arrays, strict=True)))


def _ends(axis: Axis) -> tuple[Array, Array]:
    return np.int32(axis.begin), np.int32(axis.end)


def _bound(expr: Expr, env: Environment) -> Array:
    value = evaluate(expr, env).array
    return lax.convert_element_type(value, np.int32)


def _arrays(names: Sequence[str], env: Environment) -> Arrays:
    return env.vary([contents_array(env.contents[name]) for name in names])


def _after(steps: Sequence[Step], names: Sequence[str], env: Environment, arrays: Arrays) -> Arrays:
    """Returns the contents of buffers after steps, given those before them."""
    return _arrays(names, run(steps, env.after(dict(zip(names, arrays, strict=True)))))


def _unchanged(env: Environment, arrays: Arrays) -> Arrays:
    return arrays
