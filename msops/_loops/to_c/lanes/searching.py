"""Searches for the greatest, or smallest, element run in vectors.

    serial j in 0 .. 1000 {        local lanes: float32[32], where: int32[32] { ...
      if (x[i, j] > best[]) {        serial group in 0 .. 31 {
        best[] = x[i, j]               parallel lane in 0 .. 32 {
        at[] = j             ->          if (x[i, 32 * group + lane] > lanes[lane]) {
      }                                    lanes[lane] = x[i, 32 * group + lane]
    }                                      where[lane] = group
                                     ...
                                     best[] = <the greatest of the lanes; of equal ones the first>
                                     at[] = <where it was, if a lane has found one>
                                   }
                                   <the last eight iterations as they are>

Each iteration of a search waits for the comparison of the one before; in lanes it waits for one of
its own. The branch is a choice between values, so that compilers make vectors of it, and NaN
replaces nothing, as in the search. Lanes do not know which of equal elements came first: where some
found 0 and others -0, the row is searched once more for the zero that stays. A row that does not
lie in the order of memory, or takes long to compute, is searched as it stands. One that reads the
element again where it has found it, as in `if x[i, j] > x[i, at]: at = j`, keeps it in a variable:
each comparison would wait for a load.
"""

from __future__ import annotations

from collections.abc import Callable

from msops._loops.analysis.conditions import conjuncts
from msops._loops.analysis.costs import effort, mean_trips
from msops._loops.ir.algebra import binary, element_of, integer, number
from msops._loops.ir.names import Names, unique_names
from msops._loops.ir.nodes import (
    INDEX_DTYPE,
    Buffer,
    Const,
    Expr,
    For,
    If,
    Kernel,
    Load,
    Local,
    LoopHint,
    LoopKind,
    Select,
    Stmt,
    Store,
    Var,
)
from msops._loops.ir.operators import is_float
from msops._loops.ir.ranges import dtype_range
from msops._loops.ir.walk import (
    Scope,
    accesses_in,
    expressions,
    is_innermost,
    loads_in,
    own_expressions,
    rewrite_loops,
    statements,
    substitute,
    with_parts,
)
from msops._loops.passes.elements import exists
from msops._loops.passes.forward_locals import forwarded
from msops._loops.passes.search import Search, find_search, stored_at, with_best
from msops._loops.to_c.facts.blocks import if_it_runs, in_groups, index
from msops._loops.to_c.facts.strides import stride

_LANES = 32
_FEWEST_TRIPS = 2 * _LANES
_MOST_EFFORT = 12
"""Operations for each element, which vectors do even where its guard does not hold."""
_NOWHERE = Const(dtype_range(INDEX_DTYPE)[0], INDEX_DTYPE)
"""The index of what no iteration has found."""


def split_searches(kernel: Kernel) -> Kernel:
    """Returns the kernel with the searches of innermost loops in lanes."""
    names = Names(kernel)

    def change(loop: For, scope: Scope) -> tuple[Stmt, ...] | None:
        if loop.kind != "serial" or not is_innermost(loop):
            return None
        plain = with_parts(loop, body=forwarded(loop.body))
        search = _for_lanes(plain, scope, names)
        if search is None:
            return _with_element(loop, scope, names)
        return _SearchInLanes(plain, search, names).statements(loop, scope)

    changed = rewrite_loops(kernel, change)
    return kernel if changed is kernel else unique_names(changed)


def _with_element(loop: For, scope: Scope, names: Names) -> tuple[Stmt, ...] | None:
    """Returns a search that keeps the element beside where it is; None if it reads none again."""
    match loop.body:
        case (If(then=(Store(buffer=at, indices=()),), otherwise=()) as stmt,):
            through = with_best(loop, stmt, names)
        case _:
            return None
    if through is None or len(conjuncts(stmt.condition)) > 1:
        return None
    best, first, changed = through
    if any(load.buffer == at for load in loads_in(changed.then)):
        return None
    search = with_parts(loop, body=(changed,))
    around = (Local(best, (first, search), location=loop.location),)
    return if_it_runs(loop, around, scope.ranges)


def _for_lanes(loop: For, scope: Scope, names: Names) -> Search | None:
    """Returns the search that a loop is, if it may and should run in lanes."""
    if len(loop.body) != 1 or mean_trips(loop, scope.ranges) < _FEWEST_TRIPS:
        return None
    if not _is_worth_it(loop, scope):
        return None
    search = find_search(loop, names, fewest=1)
    return search if search and _may_be_in_lanes(loop, search, scope) else None


def _is_worth_it(loop: For, scope: Scope) -> bool:
    """Returns whether vectors read what a search compares, and little is computed."""
    parts = [
        part
        for stmt in statements(loop.body)
        for own in own_expressions(stmt)
        for part in expressions(own)
    ]
    is_quick = sum(map(effort, parts)) <= _MOST_EFFORT
    return is_quick and all(
        access.buffer in scope.buffers and stride(access, loop.var, scope.buffers) in (0, 1)
        for access in accesses_in(loop.body)
        if isinstance(access, Load)
    )


def _may_be_in_lanes(loop: For, search: Search, scope: Scope) -> bool:
    """Returns whether everything that a search compares exists, also where its guard fails.

    Nor may its element be out of range: then a store is dropped, and a load reads another element.
    """
    (inside,) = scope.inside(loop)
    compared = () if search.extreme.guard is None else loads_in(loop.body)
    return all(
        exists(access, inside.ranges, scope.buffers)
        for access in (search.store, *compared)
        if access.buffer in scope.buffers
    )


class _SearchInLanes:
    """A search in lanes.

    Args:
      loop: the loop, its locals forwarded.
      search: what it does.
      names: the names of the kernel.
    """

    def __init__(self, loop: For, search: Search, names: Names) -> None:
        self._loop = loop
        self._search = search
        self._names = names
        store = search.store
        self._best = element_of(store)
        self._lanes = Buffer(names.fresh("lanes"), (_LANES,), store.value.dtype)
        self._where = Buffer(names.fresh("where"), (_LANES,), INDEX_DTYPE)
        self._at = Buffer(names.fresh(f"{store.buffer}_at"), (), INDEX_DTYPE)
        self._sign = Buffer(names.fresh("sign"), (), store.value.dtype)
        self._buffers: tuple[Buffer, ...] = (self._lanes,)
        if search.payload:
            self._buffers += (self._where, self._at)

    def statements(self, loop: For, scope: Scope) -> tuple[Stmt, ...]:
        """Returns what replaces the loop; `loop` is as it was before its locals were forwarded."""
        group = self._names.fresh(f"{loop.var}_group")
        # Rows are not put in lanes for the sake of the last few steps.
        steps = with_parts(loop, hint="serial")
        groups, *rest = in_groups(
            steps, _LANES, group, scope.ranges, lambda first: (self._step(Var(group), first),)
        )
        found: tuple[Stmt, ...] = (
            self._over_lanes(self._first),
            groups,
            self._over_lanes(self._combined, "serial"),
        )
        if not self._search.payload and is_float(self._best.dtype):
            group = self._names.fresh(f"{loop.var}_group")
            again, *_ = in_groups(steps, _LANES, group, scope.ranges, self._zero_that_stays)
            found += (self._if_zeros_differ(again),)
        if self._search.payload:
            at = _element(self._at)
            kept = stored_at(self._search.payload, loop.var, at)
            found = (
                Store(self._at.name, (), _NOWHERE),
                *found,
                If(binary("ne", at, _NOWHERE), kept),
            )
        for buffer in self._buffers:
            found = (Local(buffer, found, location=loop.location),)
        return self._search.around((*found, *rest))

    def _first(self, lane: Var) -> tuple[Stmt, ...]:
        best = Store(self._lanes.name, (lane,), self._best)
        nowhere = Store(self._where.name, (lane,), _NOWHERE)
        return (best, nowhere) if self._search.payload else (best,)

    def _step(self, group: Var, first: Expr) -> For:
        """Returns the step of all lanes, from the first of their iterations."""

        def step(lane: Var) -> tuple[Stmt, ...]:
            here: dict[str, Expr] = {self._loop.var: index("add", first, lane)}
            value = substitute(self._search.store.value, here)
            kept, where = _element(self._lanes, lane), _element(self._where, lane)
            guard, better = self._search.extreme.guard, self._search.extreme.better
            is_better: Expr = binary(better, value, kept)
            if guard is not None:
                # Vectors evaluate both in any case.
                is_better = binary("and", substitute(guard, here), is_better)
            if not self._search.payload:
                return (_choice(is_better, kept, value),)
            chosen = Buffer(self._names.fresh("is_better"), (), "bool")
            return (
                Local(
                    chosen,
                    (
                        Store(chosen.name, (), is_better),
                        _choice(_element(chosen), kept, value),
                        _choice(_element(chosen), where, group),
                    ),
                ),
            )

        return self._over_lanes(step)

    def _combined(self, lane: Var) -> tuple[Stmt, ...]:
        """Returns what makes a lane's element the best, if it is better, or as good and counts."""
        extreme = self._search.extreme
        value, where, at = _element(self._lanes, lane), _element(self._where, lane), self._at
        group = index("mul", where, integer(_LANES))
        here = index("add", index("add", self._loop.begin, group), lane)
        is_better = binary("gt" if extreme.op == "max" else "lt", value, self._best)
        best = with_parts(self._search.store, value=value)
        if not self._search.payload:
            return (If(is_better, (best,)),)
        counts = binary("lt" if extreme.is_strict else "gt", here, _element(at))
        is_as_good = binary("land", binary("eq", value, self._best), counts)
        condition = binary(
            "land", binary("ne", where, _NOWHERE), binary("lor", is_better, is_as_good)
        )
        return (If(condition, (best, Store(at.name, (), here))),)

    def _if_zeros_differ(self, again: Stmt) -> Stmt:
        """Returns the loop again, under the condition that lanes have found 0 and -0."""
        sign, best = _element(self._sign), self._best

        def infinite(lane: Var) -> tuple[Stmt, ...]:
            value = _element(self._lanes, lane)
            added = binary("add", sign, binary("div", number(1, value.dtype), value))
            return (If(binary("eq", value, best), (Store(sign.buffer, (), added),)),)

        signs = (
            Store(sign.buffer, (), number(0, sign.dtype)),
            self._over_lanes(infinite, "serial"),
            # The sum of two infinities.
            If(binary("ne", sign, sign), (again,)),
        )
        return If(binary("eq", best, number(0, best.dtype)), (Local(self._sign, signs),))

    def _zero_that_stays(self, first: Expr) -> tuple[Stmt, ...]:
        """Returns what makes the first zero of a group the best, or the last one if it counts."""
        extreme, sign = self._search.extreme, _element(self._sign)

        def choose(lane: Var) -> tuple[Stmt, ...]:
            here: dict[str, Expr] = {self._loop.var: index("add", first, lane)}
            value = substitute(self._search.store.value, here)
            is_it: Expr = binary("eq", value, number(0, value.dtype))
            if extreme.guard is not None:
                is_it = binary("land", substitute(extreme.guard, here), is_it)
            stores: tuple[Stmt, ...] = (with_parts(self._search.store, value=value),)
            if extreme.is_strict:
                is_it = binary("land", binary("ne", sign, sign), is_it)
                stores += (Store(sign.buffer, (), number(0, sign.dtype)),)
            return (If(is_it, stores),)

        return (self._over_lanes(choose, "serial"),)

    def _over_lanes(
        self, body: Callable[[Var], tuple[Stmt, ...]], kind: LoopKind = "parallel"
    ) -> For:
        lane = self._names.fresh("lane")
        begin, end, location = integer(0), integer(_LANES), self._loop.location
        hint: LoopHint = "serial" if kind == "serial" else ""
        return For(lane, begin, end, body(Var(lane)), kind, hint, location=location)


def _element(buffer: Buffer, *indices: Expr) -> Load:
    return Load(buffer.name, indices, buffer.dtype)


def _choice(condition: Expr, old: Load, new: Expr) -> Store:
    """Returns what gives an element a value where a condition holds."""
    return Store(old.buffer, old.indices, Select(condition, new, old, old.dtype))
