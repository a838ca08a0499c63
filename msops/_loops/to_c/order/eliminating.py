"""Sums over earlier elements, as updates of the later ones: triangular solvers by columns.

    serial j in 0 .. i {                      serial j in 0 .. i {
      local w: float64[] {                      a[i, j] = a[i, j] / a[j, j]
        w[] = a[i, j]                           parallel l in j + 1 .. i {
        reduction k in 0 .. j {          ->       a[i, l] = a[i, l] - a[i, j] * a[j, l]
          w[] = w[] - a[i, k] * a[k, j]         }
        }                                     }
        a[i, j] = w[] / a[j, j]
      }
    }

The sum jumps down a column of `a`, and each element waits for a whole sum. The updates go along
rows, in vectors. Every element gets its terms in the order that it had. LAPACK's `trsv` goes by
columns for the same reason where its matrix is stored by columns. Four elements are completed at a
time, and then update the rest together, as in blocked factorisations.

Where no element waits for another, the sum goes to its element as well, and the loop over elements
then moves inwards: see memory_order.py. Sums of a fixed length have an array of their own instead,
see widening.py.
"""

from __future__ import annotations

import dataclasses
import functools
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from msops._loops.analysis.costs import mean_trips
from msops._loops.analysis.updates import sum_of
from msops._loops.ir.algebra import element_of, integer
from msops._loops.ir.mirror import mirror
from msops._loops.ir.names import Names, unique_names
from msops._loops.ir.nodes import Expr, For, Kernel, Load, Local, Stmt, Store, Var
from msops._loops.ir.ranges import Ranges
from msops._loops.ir.walk import (
    Scope,
    loads,
    rewrite,
    rewrite_loops,
    substitute,
    variables,
    with_parts,
    with_value,
)
from msops._loops.passes.elements import are_apart, are_same, exists
from msops._loops.passes.simplify import simplify
from msops._loops.passes.simplify_expressions import simplified
from msops._loops.to_c.clean.reductions import SUMMED_IN_FLOAT32
from msops._loops.to_c.facts.blocks import in_groups, index
from msops._loops.to_c.facts.strides import coefficient, stride
from msops._loops.to_c.order.memory_order import is_better_inside

_FEWEST_TERMS = 8
_GROUP = 4
"""Elements that update the later ones together: these are then read and written once for all."""


def update_later_elements(kernel: Kernel) -> Kernel:
    """Returns the kernel with sums that jump through columns as updates along rows."""
    changed = rewrite_loops(kernel, _Elimination(kernel).loop, "serial", "parallel")
    return kernel if changed.body == kernel.body else unique_names(simplify(changed))


@dataclass(frozen=True)
class _Sums:
    """A loop over elements, each of which gets a sum.

    Attributes:
      loop: the loop.
      start: sets an element to what its sum starts from; None if that is what it has.
      terms: the loop over the terms of a sum.
      update: adds a term to the element.
      last: what becomes of the element after its sum, if anything.
    """

    loop: For
    start: Store | None
    terms: For
    update: Store
    last: tuple[Store, ...]

    @property
    def body(self) -> tuple[Stmt, ...]:
        """The body of the loop with the sum in its element."""
        start = () if self.start is None else (self.start,)
        return (*start, with_parts(self.terms, body=(self.update,)), *self.last)


class _Elimination:
    def __init__(self, kernel: Kernel) -> None:
        self._names = Names(kernel)

    def loop(self, loop: For, scope: Scope) -> tuple[Stmt, ...] | None:
        """Returns what replaces a loop; None to look inside of it."""
        if loop.hint == "serial":
            return None
        row = _in_elements(loop) or _as_it_is(loop)
        if row is None:
            return None
        (inside,) = scope.inside(loop)
        if mean_trips(row.terms, inside.ranges) < _FEWEST_TERMS:
            return None
        (within,) = inside.inside(row.terms)
        if loop.kind == "parallel":
            changed = with_parts(loop, body=row.body)
            is_better = loop.body != row.body and is_better_inside(changed, inside.buffers)
            return (changed,) if is_better and self._is_apart(row, within) else None
        row = self._counted_up(row, inside.ranges)
        (within,) = inside.inside(row.terms)
        if not _is_triangle(row, inside.ranges) or not self._is_apart(row, within):
            return None
        later = self._later(row)
        is_better = _is_along(row, later, within)
        return self._updating(row, later, scope.ranges) if is_better else None

    # Legality.

    def _is_apart(self, row: _Sums, within: Scope) -> bool:
        """Returns whether each element is complete before any other element's sum reads it.

        Args:
          row: the loop over elements.
          within: the scope in the loop over terms.
        """
        loop, store, ranges = row.loop, row.update, within.ranges
        other = self._names.fresh(loop.var)
        any_of_them = _at(store.indices, {loop.var: Var(other)})
        loops = (loop, dataclasses.replace(loop, var=other), row.terms)
        ranges = {**ranges, other: ranges[loop.var]}
        earlier = _at(store.indices, {loop.var: Var(row.terms.var)})

        def is_apart(load: Load) -> bool:
            # Of an index beyond the end the nearest element counts, which may be one of the row.
            is_inside = exists(load, ranges, within.buffers)
            return is_inside and are_apart(load.indices, any_of_them, ranges, loops)

        own = element_of(store)
        values = [part.value for part in (row.start, store, *row.last) if part is not None]
        return exists(store, ranges, within.buffers) and all(
            load.buffer != store.buffer
            or load == own
            or (loop.kind == "serial" and are_same(load.indices, earlier, ranges))
            or is_apart(load)
            for part in (loop.begin, loop.end, *values)
            for load in loads(part)
        )

    # Rewriting.

    def _counted_up(self, row: _Sums, ranges: Ranges) -> _Sums:
        """Returns the row with its terms counted from the end, if only their begin varies."""
        terms = row.terms
        if not coefficient(terms.begin, row.loop.var) or coefficient(terms.end, row.loop.var):
            return row
        var = self._names.fresh(terms.var)
        from_end = mirror(dataclasses.replace(terms, begin=integer(0)), var)
        (update,) = with_value((row.update,), terms.var, from_end)
        assert isinstance(update, Store)
        count = simplified(index("sub", terms.end, terms.begin), ranges)
        counted = dataclasses.replace(terms, var=var, begin=integer(0), end=count)
        return dataclasses.replace(row, terms=counted, update=update)

    def _later(self, row: _Sums) -> For:
        """Returns the loop that adds an element's terms to all elements after it."""
        loop, terms = row.loop, row.terms
        var = self._names.fresh(loop.var)
        at = {loop.var: Var(var), terms.var: Var(loop.var)}
        update = dataclasses.replace(
            row.update,
            indices=_at(row.update.indices, at),
            value=substitute(row.update.value, at),
        )
        after = index("add", Var(loop.var), integer(1))
        return dataclasses.replace(loop, var=var, begin=after, body=(update,), kind="parallel")

    def _updating(self, row: _Sums, later: For, ranges: Ranges) -> tuple[Stmt, ...]:
        """Returns the loop that completes the elements, a group at a time."""
        var = row.loop.var
        updating = with_parts(row.loop, body=(*row.last, later))
        (update,) = later.body
        assert isinstance(update, Store)

        def inside(first: Expr) -> tuple[Stmt, ...]:
            group = [index("add", first, integer(number)) for number in range(_GROUP)]
            body: list[Stmt] = []
            for number, here in enumerate(group):
                body += with_value(row.last, var, here)
                for after in group[number + 1 :]:
                    body += with_value(with_value((update,), later.var, after), var, here)
            each = [substitute(update.value, {var: here}) for here in group]
            total = functools.reduce(functools.partial(_added, element_of(update)), each)
            summed = dataclasses.replace(update, value=total)
            after_group = index("add", first, integer(_GROUP))
            return (*body, with_parts(later, begin=after_group, body=(summed,)))

        updating_all = in_groups(
            updating, _GROUP, self._names.fresh(f"{var}_group"), ranges, inside
        )
        if row.start is None:
            return updating_all
        other = self._names.fresh(var)
        start = with_value((row.start,), var, Var(other))
        return (
            dataclasses.replace(row.loop, var=other, body=start, kind="parallel"),
            *updating_all,
        )


def _added(element: Load, before: Expr, value: Expr) -> Expr:
    """Returns what an update makes of a value instead of the element's."""
    return rewrite(value, lambda part: before if part == element else part)


def _in_elements(loop: For) -> _Sums | None:
    """Returns a loop with the sum of a local in the element that it is stored to."""
    match loop.body:
        case (
            Local(
                buffer=local,
                body=(
                    Store() as start,
                    For(kind="reduction", body=(Store() as update,)) as terms,
                    Store() as last,
                ),
            ),
        ) if start.buffer == update.buffer == local.name and not local.shape:
            pass
        case _:
            return None
    element = element_of(last)
    given = [load for part in (update, last) for load in loads(part.value)]
    if element.dtype != local.dtype or element in given or sum_of(update) is None:
        return None
    total = Load(local.name, (), local.dtype)

    def moved(store: Store) -> Store:
        value = rewrite(store.value, lambda part: element if part == total else part)
        return dataclasses.replace(store, buffer=last.buffer, indices=last.indices, value=value)

    return _checked(
        _Sums(
            loop,
            None if start.value == element else moved(start),
            terms,
            moved(update),
            () if last.value == total else (moved(last),),
        )
    )


def _as_it_is(loop: For) -> _Sums | None:
    """Returns a loop whose sums are in their elements."""
    match loop.body:
        case (For(kind="reduction", body=(Store() as update,)) as terms, *last) if (
            sum_of(update) is not None
        ):
            target = (update.buffer, update.indices)
            stores = tuple(part for part in last if isinstance(part, Store))
            if len(stores) == len(last) and all((s.buffer, s.indices) == target for s in stores):
                return _checked(_Sums(loop, None, terms, update, stores))
    return None


def _checked(row: _Sums) -> _Sums | None:
    """Returns a row if each sum goes to one element and has the element's precision."""
    is_one = not any(row.terms.var in variables(at) for at in row.update.indices)
    return row if is_one and row.update.value.dtype not in SUMMED_IN_FLOAT32 else None


def _is_triangle(row: _Sums, ranges: Ranges) -> bool:
    """Returns whether the terms of an element are of all elements before it."""
    bounds = (row.terms.begin, row.terms.end)
    return are_same(bounds, (row.loop.begin, Var(row.loop.var)), ranges)


def _is_along(row: _Sums, later: For, within: Scope) -> bool:
    """Returns whether terms of one element jump through memory, and terms of a row do not."""
    read = loads(row.update.value)
    jumps = any(stride(load, row.terms.var, within.buffers) not in (0, 1, -1) for load in read)
    (update,) = later.body
    assert isinstance(update, Store)
    accesses: list[Load | Store] = [update, *loads(update.value)]
    first, *steps = (stride(access, later.var, within.buffers) for access in accesses)
    return jumps and first in (1, -1) and all(step in (0, 1, -1) for step in steps)


def _at(indices: Iterable[Expr], values: Mapping[str, Expr]) -> tuple[Expr, ...]:
    return tuple(substitute(at, values) for at in indices)
