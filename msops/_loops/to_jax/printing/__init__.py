"""Raised kernels as JAX functions: the one part of the loop compiler that imports JAX.

Modules: contractions, environment, evaluate, indices, loads, operations, recurrences, reductions,
scatters, shields, sliding, stores, values, vector_steps.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, TypeAlias

import numpy as np
from jax import lax

from msops._base.dtypes import as_dtype
from msops._jax_seam import vary_alike
from msops._loops.ir.nodes import Buffer, Expr, Kernel, Local
from msops._loops.ir.walk import loads_in, statements
from msops._loops.to_jax.printing.environment import Environment
from msops._loops.to_jax.printing.evaluate import evaluate
from msops._loops.to_jax.printing.values import Array, Contents, Uniform, contents_array
from msops._loops.to_jax.printing.vector_steps import execute
from msops._loops.to_jax.raising.steps import Branch, Clear, Loop, Step, written


def build(kernel: Kernel, steps: Sequence[Step]) -> Callable[..., list[Any]]:
    """Returns the pure JAX function that a kernel is.

    Args:
      kernel: any legal one; what is not distributed runs as loops over scalars.
      steps: the array operations that it is, see `raise_kernel`.

    Returns:
      A function of one array per parameter, of its shape and dtype, that returns a list with one
      array per result. It works under every transformation of JAX; 64-bit dtypes need
      `jax.enable_x64` around it.
    """
    local = [stmt.buffer for stmt in statements(kernel.body) if isinstance(stmt, Local)]
    zeros = {buffer.name: _zero(buffer) for buffer in (*kernel.buffers, *local)}
    read = frozenset(load.buffer for load in loads_in(kernel.body))

    def function(*arrays: Any) -> list[Any]:
        inputs = vary_alike(arrays)
        contents: dict[str, Contents] = {
            buffer.name: lax.convert_element_type(array, as_dtype(buffer.dtype).dtype)
            for buffer, array in zip(kernel.parameters, inputs, strict=True)
        }
        env = run(steps, Environment({**zeros, **contents}, inputs=inputs, read=read))
        return [contents_array(env.contents[name]) for name in kernel.results]

    return function


def _zero(buffer: Buffer) -> Uniform:
    return Uniform(np.zeros((), as_dtype(buffer.dtype).dtype)[()], buffer.shape)


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
    first, last, ranges = begin, end, env.scalar_ranges
    if step.axis is not None:
        first, last = np.int32(step.axis.begin), np.int32(step.axis.end)
        ranges = {**ranges, step.axis.var: step.axis.interval}
    after = partial(_after, step.body, names)

    def body(outer: Environment, counter: Array, arrays: Arrays) -> Arrays:
        inner = outer.counting(step.loop.var, counter, ranges)
        if step.is_hull:
            runs = lax.bitwise_and(lax.ge(counter, begin), lax.lt(counter, end))
            return inner.cond(runs, after, lambda _, unchanged: unchanged, arrays)
        return after(inner, arrays)

    arrays = env.fori_loop(first, last, body, _arrays(names, env))
    return env.after(dict(zip(names, arrays, strict=True)))


def _bound(expr: Expr, env: Environment) -> Array:
    value = evaluate(expr, env).array
    return lax.convert_element_type(value, np.int32)


def _arrays(names: Sequence[str], env: Environment) -> Arrays:
    return env.vary([contents_array(env.contents[name]) for name in names])


def _after(steps: Sequence[Step], names: Sequence[str], env: Environment, arrays: Arrays) -> Arrays:
    """Returns the contents of buffers after steps, given those before them."""
    return _arrays(names, run(steps, env.after(dict(zip(names, arrays, strict=True)))))
