"""Loops that add to the elements of a window become sums over a window for each element.

    reduction i in 0 .. 64 {                     parallel y in 0 .. 66 {
      parallel p in 0 .. 3 {                       reduction p in 0 .. 3 {
        d[i + p] = d[i + p] + g[i] * w[p]   ->       if (((y + p) - 2 >= 0) && ((y + p) - 2 < 64)) {
      }                                                d[y] = d[y] + g[(y + p) - 2] * w[2 - p]
    }                                                }

The gradient of a convolution is such a loop. As written, iterations meet in elements, so that they
run in order. Each element by itself is a convolution again, for which every way out has passes. Of
a convolution with a stride, every second element is one, and so are those between. What is added to
the elements of a filter, ``dw[p] = dw[p] + g[i] * x[i + p]``, becomes a sum over all positions.

The terms of a sum are added up in another order.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from msops._loops.analysis.affine import Affine, affine
from msops._loops.analysis.costs import fixed_span, fixed_trips
from msops._loops.analysis.updates import Update, update_of
from msops._loops.ir.algebra import both
from msops._loops.ir.building import binary, integer
from msops._loops.ir.mirror import mirror
from msops._loops.ir.names import Names, unique_names
from msops._loops.ir.nodes import (
    BinaryOp,
    Buffer,
    Expr,
    For,
    If,
    Kernel,
    Load,
    Stmt,
    Store,
    Var,
)
from msops._loops.ir.ranges import nested_ranges, range_of
from msops._loops.ir.walk import (
    Scope,
    buffers_of,
    loads,
    rewrite_loops,
    substitute,
    variables,
)
from msops._loops.passes.forward_locals import quick_values_forwarded
from msops._loops.passes.simplify import simplify

_LEAST_INSIDE = 2 / 3
"""The part of the elements that all positions of a window exist for: the others take longer."""
_FEWEST_TERMS = 2
"""Terms of a sum at each position of its window. Shorter sums do not pay in tiles."""
_FEWEST_POSITIONS = 64
"""Positions of a window whose elements have sums; shorter ones do not fill vectors."""
_MOST_STEPS = 4
"""Elements between neighbouring positions of a window; each makes a case of its own."""
_MOST_SIDES = 2
"""Sides of a window: of one with three there would be 27 cases at the borders."""


def gather_windows(kernel: Kernel) -> Kernel:
    """Returns the kernel with such loops over the elements that they add to."""
    names, buffers = Names(kernel), buffers_of(kernel)

    def change(loop: For, scope: Scope) -> tuple[Stmt, ...] | None:
        gathered: list[Stmt] = []
        for added in _added(loop):
            buffer = buffers[added.update.target.buffer]
            for part in _in_whole_steps(added, names):
                windows = _windows(part, buffer.shape)
                if windows is None:
                    # Loops that add to several buffers read what these have in common once.
                    return None
                gathered.append(_gathered(part, windows, scope, buffer, names))
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


def _added(loop: For) -> list[_Added]:
    """Returns what a loop adds to each buffer; nothing if it does more, or at uneven steps."""
    loops: dict[str, For] = {}
    conditions: list[Expr] = []
    body = quick_values_forwarded((loop,))
    while True:
        match body:
            case (For(kind="parallel" | "reduction") as inner,) if fixed_span(inner):
                loops[inner.var] = inner
                body = inner.body
            case (If(otherwise=()) as branch,):
                conditions.append(branch.condition)
                body = branch.then
            case _:
                break
    updates = [update_of(stmt) if isinstance(stmt, Store) else None for stmt in body]
    found = [update for update in updates if update is not None and update.op == "add"]
    targets = {update.target.buffer for update in found}
    read = [*conditions, *(update.term for update in found)]
    is_read = any(load.buffer in targets for expr in read for load in loads(expr))
    indices = [index for update in found for index in update.target.indices]
    are_apart = not is_read and len(found) == len(body) == len(targets)
    if not are_apart or not all(_is_affine(index, loops) for index in indices):
        return []
    return [_Added(loops, tuple(conditions), update) for update in found]


def _is_affine(index: Expr, loops: Mapping[str, For]) -> bool:
    form = affine(index, loops)
    if form is None or loads(index):
        return False
    return variables(index) & loops.keys() == {*dict(form.along)}


def _in_whole_steps(added: _Added, names: Names) -> Iterator[_Added]:
    """Yields parts of what is added whose windows have their elements whole steps apart.

    A window of three elements whose positions are two apart has one of two elements, with every
    second element of the buffer, and one of one.
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
    others = loops.keys() - {*positions}
    if found:
        terms = math.prod(_trips(loops[var]) for var in others - inside)
        return found if len(found) <= _MOST_SIDES and terms >= _FEWEST_TERMS else None
    # The elements of a filter have sums over all positions. They are tiles, as of a matrix product,
    # if one factor has channels that the other has not, and vice versa.
    factors = [variables(load) & {*positions} for load in loads(added.update.term)]
    is_product = any(one - other and other - one for one in factors for other in factors)
    read = [variables(index) for load in loads(added.update.term) for index in load.indices]
    are_correlated = any(at & {*positions} and at & others for at in read)
    is_long = math.prod(_trips(loops[var]) for var in others) >= _FEWEST_POSITIONS
    return {} if is_product and are_correlated and is_long else None


def _gathered(
    added: _Added, windows: Mapping[int, str], scope: Scope, buffer: Buffer, names: Names
) -> Stmt:
    """Returns the loops over the elements of a buffer, and those over the terms of each."""
    update, loops = added.update, added.loops
    ranges = nested_ranges(loops.values(), scope.ranges)
    left = dict(loops)
    indices = list(update.target.indices)
    over_elements: list[For] = []
    values: dict[str, Affine] = {}
    for axis, index in enumerate(indices):
        if axis in windows:
            var = windows[axis]
            form = affine(index, loops)
            assert form is not None
            factor = form.terms[Var(var)]
            step, first = abs(factor), form.constant % abs(factor)
            # The index is a number of steps, and what is left of its constant.
            terms = {atom: times // step for atom, times in form.terms.items()}
            steps = Affine(terms, form.constant // step)
            low, high = range_of(steps.expression(), ranges)
            begin, end = max(low, 0), min(high, (buffer.shape[axis] - 1 - first) // step) + 1
            element = Var(names.fresh(f"{var}_element"))
            over = For(element.name, integer(begin), integer(end), (), "parallel")
            over_elements.append(over)
            rest = steps - Affine({Var(var): factor // step}, 0)
            values[var] = (Affine.of_atom(element) - rest).scaled(factor // step)
            indices[axis] = Affine({element: step}, first).expression()
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
    conditions = [substitute(condition, changed) for condition in added.conditions]
    for var in values:
        conditions.append(binary("ge", changed[var], loops[var].begin))
        conditions.append(binary("lt", changed[var], loops[var].end))
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
