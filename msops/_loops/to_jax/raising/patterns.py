"""The patterns that loops are matched with, in order; what matches first is what they become.

A pattern of a reduction is a function of it as a plain `Reduce`. One of a loop that keeps an order
gets the scope around it. Each returns None, or no steps, where it does not match. At last the
arrays of each step have their axes in an order that needs few transposes.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Mapping, Sequence

from msops._loops.analysis.costs import fixed_trips
from msops._loops.analysis.updates import kept_extreme_of, update_of
from msops._loops.ir.algebra import integer
from msops._loops.ir.nodes import For, If, Kernel, Load, Local, Stmt, Store, Unary
from msops._loops.ir.operators import is_float
from msops._loops.ir.ranges import loop_range
from msops._loops.ir.walk import Scope, buffers_of, index_variables, loads, with_value
from msops._loops.passes.simplify import simplified_body
from msops._loops.to_jax.raising.nests import Axis, Chain, Nest, axes_around, chain, is_known, nest
from msops._loops.to_jax.raising.products import find_contraction, find_convolution, find_pool
from msops._loops.to_jax.raising.recurrences import find_recurrence, without_choices
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

MOST_KEPT = 1 << 30
"""Iterations among which an int32 says which one of equal zeros comes first."""

REDUCTIONS: tuple[Callable[[Reduce], VectorStep | None], ...] = (
    find_convolution,
    find_contraction,
    find_pool,
)
"""Patterns of a reduction over axes; one that matches none is a plain reduction."""


def raise_kernel(kernel: Kernel) -> tuple[Step, ...]:
    """Returns the steps that compute a kernel.

    Every legal kernel has some: what is not distributed becomes loops over scalar steps.
    """
    steps = _raise_body(kernel.body, Scope.of(kernel))
    return order_axes(steps, {name: b.shape for name, b in buffers_of(kernel).items()})


def _raise_body(body: Sequence[Stmt], scope: Scope) -> tuple[Step, ...]:
    """Returns the steps of statements."""
    return tuple(step for stmt in body for step in _raise_statement(stmt, scope))


def _raise_statement(stmt: Stmt, scope: Scope) -> tuple[Step, ...]:
    """Returns the steps of a statement."""
    parts = chain(stmt)
    steps = _raise_nest(parts, scope) if parts is not None else None
    if steps is not None:
        return steps
    match stmt:
        case For():
            return _raise_loop(stmt, scope)
        case If(then=then, otherwise=otherwise):
            holds, fails = scope.inside(stmt)
            first, second = _raise_body(then, holds), _raise_body(otherwise, fails)
            return (Branch(stmt, first, second),) if first or second else ()
        case Local(buffer=buffer, body=body):
            return (Clear(buffer.name), *_raise_body(body, *scope.inside(stmt)))
        case Store():
            raise AssertionError("a store is a vector nest without loops")


# Loops that keep an order.


def _raise_loop(loop: For, scope: Scope) -> tuple[Step, ...]:
    """Returns the steps of a loop that is no nest, in the first form that it may take."""
    least, greatest = loop_range(loop, scope.ranges)
    axis = Axis(loop.var, least, greatest + 1)
    if not axis.extent:
        return ()
    patterns = (_scan, _scan_after_first, _keep_loop)
    return next((steps for match in patterns if (steps := match(loop, axis, scope))), ())


def _scan(loop: For, axis: Axis, scope: Scope) -> tuple[Step, ...]:
    """Returns the steps of a recurrence, run as a scan."""
    return find_recurrence(loop, axes_around(scope)) if fixed_trips(loop) is not None else ()


def _scan_after_first(loop: For, axis: Axis, scope: Scope) -> tuple[Step, ...]:
    """Returns the steps of a recurrence, run as a scan after its first iteration."""
    if fixed_trips(loop) is None:
        return ()
    rest = without_choices(loop, Axis(axis.var, axis.begin + 1, axis.end))
    found = find_recurrence(rest, axes_around(scope)) if rest else ()
    return (*_raise_body(_at(loop, axis.begin, scope), scope), *found) if found else ()


def _keep_loop(loop: For, axis: Axis, scope: Scope) -> tuple[Step, ...]:
    """Returns the steps of a loop that runs in order."""
    steps = _raise_body(loop.body, *scope.inside(loop))
    hull = axis if is_known(loop, axis.interval) else None
    return (Loop(loop, hull, steps),) if steps else ()


# Vector nests.


def _raise_nest(parts: Chain, scope: Scope) -> tuple[Step, ...] | None:
    """Returns the steps of a nest of one store; None if it is no array operation."""
    box = nest(parts, axes_around(scope))
    if box is None:
        return None
    if any(axis.extent == 0 for axis in box.axes):
        return ()
    return _raise_reduction(box, scope) if box.reduced else (Map(box),)


def _raise_reduction(box: Nest, scope: Scope) -> tuple[Step, ...] | None:
    """Returns the steps of a nest whose store is an update; None if it is none."""
    update = kept_extreme_of(box.store) or update_of(box.store)
    if update is None or (update.keeps and box.iterations > MOST_KEPT):
        return None
    placed = index_variables(box.store)
    over = tuple(axis.var for axis in box.axes if axis.var not in placed)
    is_view = _is_view(box, placed, scope)
    if not is_view and not _can_scatter(update.op, box.store):
        return None
    term = update.term
    value = Unary("neg", term, term.dtype) if update.is_negated else term
    if update.keeps and not is_view and {axis.var for axis in box.axes[1:]} != set(over):
        over = ()  # Which one of equal numbers comes first, all iterations decide together.
    whole = Reduce(box, update.op, value, over, update.keeps)
    if not over:
        return (whole,)
    return (next((step for match in REDUCTIONS if (step := match(whole))), whole),)


def _is_view(box: Nest, placed: set[str], scope: Scope) -> bool:
    """Returns whether the store is a view, so that every element is written once."""
    axes = box.axis_ranges
    view = find_view(box.store.indices, scope.buffers[box.store.buffer].shape, axes)
    return view is not None and placed & set(axes) == set(view.axes)


def _at(loop: For, value: int, scope: Scope) -> tuple[Stmt, ...]:
    # Every operation of an index that JAX traces is one to lower, and to compile.
    return simplified_body(with_value(loop.body, loop.var, integer(value)), scope.ranges)


def _can_scatter(op: str, store: Store) -> bool:
    """Returns whether JAX can combine elements by an operation, with a derivative."""
    dtype = store.value.dtype
    if is_float(dtype):
        return op in ("add", "min", "max")
    return op in (("land", "lor") if dtype == "bool" else ("add", "mul", "min", "max"))


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
