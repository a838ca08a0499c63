"""Loops that add to the elements of a window become sums over a window for each element.

    reduction i in 0 .. 64 {                     parallel y in 0 .. 66 {
      parallel p in 0 .. 3 {                       reduction p in 0 .. 3 {
        d[i + p] = d[i + p] + g[i] * w[p]   ->       if (((y + p) - 2 >= 0) && ((y + p) - 2 < 64)) {
      }                                                d[y] = d[y] + g[(y + p) - 2] * w[2 - p]
    }                                                }

The gradient of a convolution is such a loop. As written, iterations meet in elements, so that they
run in order. Each element by itself is a convolution again, for which every way out has passes. Of
a convolution with a stride, every second element is one, and so are those between. What is added to
the elements of a filter, ``dw[p] = dw[p] + g[i] * x[i + p]``, becomes a sum over all positions. A
sum beside the loops over a window, as for a bias, gets loops of its own.

The terms of a sum are added up in another order.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Iterator, Mapping, Sequence, Set
from dataclasses import dataclass

from msops._loops.analysis.affine import Affine, affine
from msops._loops.analysis.costs import fixed_span, fixed_trips
from msops._loops.analysis.updates import Update, update_of
from msops._loops.ir.algebra import binary, both, integer
from msops._loops.ir.mirror import mirror
from msops._loops.ir.names import Names, unique_names
from msops._loops.ir.nodes import BinaryOp, Buffer, Expr, For, If, Kernel, Load, Stmt, Store, Var
from msops._loops.ir.ranges import Ranges, nested_ranges, range_of
from msops._loops.ir.walk import Scope, buffers_of, loads, rewrite_loops, substitute, variables
from msops._loops.passes.forward_locals import quick_values_forwarded
from msops._loops.passes.simplify import simplify

_LEAST_INSIDE = 2 / 3
"""Least share of the elements whose windows are whole. At 5 of 9 (an image of 9 x 9, 256 channels)
the sums of elements took three times as long as the loops as they were."""
_FEWEST_TERMS = 2
"""Fewest terms of a sum beside those of a window. With one, as of channels by themselves, a pass to
C adds to the neighbours in vectors, which took 0.3 of the time."""
_FEWEST_POSITIONS = 64
"""Fewest terms in the sum of a filter's element: fewer do not fill vectors."""
_MOST_STEPS = 4
"""Greatest distance of neighbouring positions. Each remainder becomes a nest of its own."""
_MOST_SIDES = 2
"""Most sides of a window: one with three has 27 cases at the borders, and gained nothing."""


def gather_windows(kernel: Kernel) -> Kernel:
    """Returns the kernel with such loops over the elements that they add to."""
    names, buffers = Names(kernel), buffers_of(kernel)

    def change(loop: For, scope: Scope) -> tuple[Stmt, ...] | None:
        gathered: list[Stmt] = []
        found = _added(loop, scope.ranges)
        deepest = max((len(added.loops) for added in found), default=0)
        for added in found:
            buffer = buffers[added.update.target.buffer]
            is_beside = len(added.loops) < deepest and _has_own_variables(added)
            for part in [added] if is_beside else _in_whole_steps(added, names):
                windows = {} if is_beside else _windows(part, buffer.shape)
                if windows is None:
                    # Loops that add to several buffers read what these have in common once.
                    return None
                gathered.append(_gathered(part, windows, scope.ranges, buffer, names))
        return tuple(gathered) or None

    changed = rewrite_loops(kernel, change, "parallel", "reduction")
    return kernel if changed is kernel else simplify(unique_names(changed))


@dataclass(frozen=True)
class _Added:
    """What loops add to a buffer, in any order.

    Attributes:
      loops: by variable, outermost first; their bounds are numbers.
      conditions: what has to hold.
      update: what they do.
    """

    loops: Mapping[str, For]
    conditions: tuple[Expr, ...]
    update: Update

    def along(self, axis: int) -> list[tuple[str, int]]:
        """Returns the variables of an index with their factors, that of the longest loop last."""
        form = affine(self.update.target.indices[axis], self.loops)
        assert form is not None
        return sorted(form.along, key=lambda part: _trips(self.loops[part[0]]))

    def with_loop(self, var: str, loop: For, value: Expr) -> _Added:
        """Returns the same with a loop in place of another one, whose variable has a value."""
        loops = {(loop if name == var else own).var: loop if name == var else own
                 for name, own in self.loops.items()}  # fmt: skip
        values = {var: value}
        update = self.update
        indices = tuple(substitute(index, values) for index in update.target.indices)
        return _Added(
            loops,
            tuple(substitute(condition, values) for condition in self.conditions),
            dataclasses.replace(
                update,
                target=dataclasses.replace(update.target, indices=indices),
                term=substitute(update.term, values),
            ),
        )


def _added(loop: For, outer: Ranges) -> list[_Added]:
    """Returns what a loop adds to each buffer; nothing if it does more, or at uneven steps."""
    found: list[_Added] = []
    for each in _leaves(quick_values_forwarded((loop,)), {}, ()):
        if each is None:
            return []
        found.append(each)
    targets = {each.update.target.buffer for each in found}
    read = [expr for each in found for expr in (*each.conditions, each.update.term)]
    is_read = any(load.buffer in targets for expr in read for load in loads(expr))
    are_even = all(
        _is_affine(index, each.loops, nested_ranges(each.loops.values(), outer))
        for each in found
        for index in each.update.target.indices
    )
    return found if are_even and not is_read and len(found) == len(targets) else []


def _leaves(
    body: tuple[Stmt, ...], loops: Mapping[str, For], conditions: tuple[Expr, ...]
) -> Iterator[_Added | None]:
    """Yields what a body inside of loops and conditions adds; None for what else it does."""
    for stmt in body:
        match stmt:
            case For(kind="parallel" | "reduction") if fixed_span(stmt):
                yield from _leaves(stmt.body, {**loops, stmt.var: stmt}, conditions)
            case If(otherwise=()):
                yield from _leaves(stmt.then, loops, (*conditions, stmt.condition))
            case Store() if (update := update_of(stmt)) and update.op == "add":
                yield _Added(loops, conditions, update)
            case _:
                yield None


def _is_affine(index: Expr, loops: Mapping[str, For], ranges: Ranges) -> bool:
    form = affine(index, loops)
    if form is None or loads(index) or not form.is_exact(ranges):
        return False
    return variables(index) & loops.keys() == {*dict(form.along)}


def _in_whole_steps(added: _Added, names: Names) -> Iterator[_Added]:
    """Yields parts of what is added, each with elements that are a multiple of the stride apart.

    At stride 2, a window of three elements has two parts: the first and the third element, which
    meet even elements of the buffer, and the second one, which meets odd ones.
    """
    for axis in range(len(added.update.target.indices)):
        *window, (_, factor) = added.along(axis) or [("", 1)]
        for var, times in window:
            count = abs(factor) // math.gcd(factor, times)
            if 1 < count <= _MOST_STEPS:
                for part in _every_other(added, var, count, names):
                    yield from _in_whole_steps(part, names)
                return
    yield added


def _every_other(added: _Added, var: str, count: int, names: Names) -> Iterator[_Added]:
    """Yields what every second iteration of a loop adds, or every third, from each first one on."""
    loop = added.loops[var]
    begin, end = fixed_span(loop) or (0, 0)
    for first in range(begin, min(begin + count, end)):
        step = Var(names.fresh(var))
        over = For(step.name, integer(0), integer(-(-(end - first) // count)), (), loop.kind)
        value = Affine({step: count}, first).expression()
        yield added.with_loop(var, over, value)


def _windows(added: _Added, shape: Sequence[int]) -> dict[int, str] | None:
    """Returns, by axis, the variable that a loop over the elements of all windows replaces.

    It is empty if each element has loops of its own. None if iterations meet in another way, or if
    the sums of elements gain nothing.

    Args:
      added: what is added.
      shape: of its buffer.
    """
    loops = added.loops
    found: dict[int, str] = {}
    positions: list[str] = []
    inside: set[str] = set()
    for axis, index in enumerate(added.update.target.indices):
        if not added.along(axis):
            continue
        *window, (var, factor) = added.along(axis)
        positions.append(var)
        if window:
            form = affine(index, loops)
            assert form is not None
            if any(times % factor for times in form.terms.values()):
                return None
            width = sum(abs(times // factor) * (_trips(loops[name]) - 1) for name, times in window)
            elements = min(_trips(loops[var]) + width, -(-shape[axis] // abs(factor)))
            if _trips(loops[var]) - width < _LEAST_INSIDE * elements:
                return None
            found[axis] = var
            inside.update(name for name, _ in window)
    if len({*positions}) < len(positions) or not inside.isdisjoint(positions):
        return None
    if not found:
        return {} if _are_of_filter(added, {*positions}) else None
    terms = math.prod(_trips(loops[var]) for var in loops.keys() - {*positions} - inside)
    return found if len(found) <= _MOST_SIDES and terms >= _FEWEST_TERMS else None


def _has_own_variables(added: _Added) -> bool:
    """Returns whether each index of an element has at most one variable, and no other index has."""
    axes = [added.along(axis) for axis in range(len(added.update.target.indices))]
    found = [var for axis in axes for var, _ in axis]
    return len({*found}) == len(found) and all(len(axis) <= 1 for axis in axes)


def _are_of_filter(added: _Added, positions: Set[str]) -> bool:
    """Returns whether elements have sums of products over all positions of a window.

    Args:
      added: what is added.
      positions: the variables that tell its elements apart.
    """
    read = loads(added.update.term)
    others = added.loops.keys() - positions
    # One factor has channels that the other has not, and vice versa, as in a matrix product.
    factors = [variables(load) & positions for load in read]
    is_product = any(one - other and other - one for one in factors for other in factors)
    indices = [variables(index) for load in read for index in load.indices]
    are_windows = any(at & positions and at & others for at in indices)
    terms = math.prod(_trips(added.loops[var]) for var in others)
    return is_product and are_windows and terms >= _FEWEST_POSITIONS


@dataclass(frozen=True)
class _Element:
    """An axis along which elements have loops of their own.

    Attributes:
      loop: over the elements.
      index: of an element.
      value: what the variable that the loop replaces is, in terms of the others.
    """

    loop: For
    index: Expr
    value: Affine


def _element(
    added: _Added, axis: int, var: str, outer: Ranges, size: int, names: Names
) -> _Element:
    """Returns the elements of an axis, whose windows have them whole steps apart.

    Args:
      added: what is added.
      axis: the axis.
      var: the variable of the loop over positions.
      outer: the ranges of the variables around the loops.
      size: of the axis.
      names: the names of the kernel.
    """
    form = affine(added.update.target.indices[axis], added.loops)
    assert form is not None
    factor = form.terms[Var(var)]
    step, first = abs(factor), form.constant % abs(factor)
    # The index is a number of steps, and what is left of its constant.
    terms = {atom: times // step for atom, times in form.terms.items()}
    steps = Affine(terms, form.constant // step)
    low, high = range_of(steps.expression(), nested_ranges(added.loops.values(), outer))
    begin, end = max(low, 0), min(high, (size - 1 - first) // step) + 1
    element = Var(names.fresh(f"{var}_element"))
    rest = steps - Affine({Var(var): factor // step}, 0)
    return _Element(
        For(element.name, integer(begin), integer(end), (), "parallel"),
        Affine({element: step}, first).expression(),
        (Affine.of_atom(element) - rest).scaled(factor // step),
    )


def _gathered(
    added: _Added, windows: Mapping[int, str], outer: Ranges, buffer: Buffer, names: Names
) -> Stmt:
    """Returns the loops over the elements of a buffer, and those over the terms of each."""
    update, left = added.update, dict(added.loops)
    indices = list(update.target.indices)
    over_elements: list[For] = []
    values: dict[str, Affine] = {}
    for axis, size in enumerate(buffer.shape):
        if axis in windows:
            var = windows[axis]
            element = _element(added, axis, var, outer, size, names)
            values[var] = element.value
            over_elements.append(element.loop)
            indices[axis] = element.index
            del left[var]
        else:
            over_elements += [left.pop(var) for var, _ in added.along(axis)]
    # Windows count up, as where a kernel reads from one.
    turned = {
        var: mirror(loop, var)
        for var, loop in left.items()
        if any(value.terms.get(Var(var), 0) < 0 for value in values.values())
    }
    changed = turned | {v: substitute(f.expression(), turned) for v, f in values.items()}
    # Other conditions may read what only exists within the limits.
    conditions: list[Expr] = []
    for var in values:
        conditions.append(binary("ge", changed[var], added.loops[var].begin))
        conditions.append(binary("lt", changed[var], added.loops[var].end))
    conditions += [substitute(condition, changed) for condition in added.conditions]
    target = Load(buffer.name, tuple(indices), buffer.dtype)
    op: BinaryOp = "sub" if update.is_negated else "add"
    value = binary(op, target, substitute(update.term, changed))
    location = update.target.location
    stmt: Stmt = Store(buffer.name, target.indices, value, location=location)
    if conditions:
        stmt = If(both(conditions), (stmt,), location=location)
    for loop in reversed(left.values()):
        stmt = dataclasses.replace(loop, body=(stmt,), kind="reduction", hint="")
    for loop in reversed(over_elements):
        stmt = dataclasses.replace(loop, body=(stmt,), kind="parallel", hint="")
    return stmt


def _trips(loop: For) -> int:
    return fixed_trips(loop) or 0
