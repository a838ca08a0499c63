"""Sums whose length is data, as in a sparse product, in vectors whose last lanes may be off.

    reduction k in first[i] .. first[i + 1] {
      sum[] = sum[] + value[k] * x[column[k]]
    }
                         ->
    local part, factor, factor_1: float32[8]
    reduction k_group in 0 .. (first[i + 1] - first[i] + 7) // 8 {
      if (first[i] + 8 * k_group + 7 < first[i + 1]) {
        parallel lane in 0 .. 8 {
          factor[lane] = value[first[i] + 8 * k_group + lane]
          factor_1[lane] = x[column[first[i] + 8 * k_group + lane]]
        }
      } else if (first[i] + 8 * k_group + 7 < the elements of value and column) {
        parallel lane in 0 .. 8 {
          factor[lane] = (first[i] + 8 * k_group + lane < first[i + 1] ? value[...] : 0)
          factor_1[lane] = ...
        }
      } else {
        parallel lane in 0 .. 8 {
          if (first[i] + 8 * k_group + lane < first[i + 1]) {
            ...
          } else {
            factor[lane] = 0
            factor_1[lane] = 0
          }
        }
      }
      parallel lane in 0 .. 8 { part[lane] = part[lane] + factor[lane] * factor_1[lane] }
    }
    sum[] = sum[] + (the sum of all lanes of part)

A processor predicts the end of a loop from its last runs. If lengths are data, it is wrong once in
most rows. Groups of lanes have fewer ends to predict, and their elements are loaded at once. This
needs a processor that loads only some lanes of a vector (AVX-512). Whole groups have a branch
without masks: with a mask for each, sums over arrays beyond the caches take 1.7 times as long.
Elements past the end of a sum are mostly those of the next one. They are loaded and not chosen, as
gcc 12 gathers nothing under a mask: sums take 0.8 of the time. Only the last elements of the arrays
need a branch for each lane.

Sums of what the iteration before stored, as in a solver, stay: a gather would wait for the store.
So do sums of columns, as in a resize of an image by weights: in groups they take 2.3 times as long.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping
from functools import partial

from msops._base import processor
from msops._loops.analysis.costs import estimated_trips
from msops._loops.analysis.updates import Update
from msops._loops.ir.algebra import add, mul, number
from msops._loops.ir.building import binary, integer
from msops._loops.ir.names import Names, unique_names
from msops._loops.ir.nodes import (
    INDEX_DTYPE,
    Binary,
    BinaryOp,
    Buffer,
    Cast,
    Expr,
    For,
    If,
    Kernel,
    Load,
    Local,
    Select,
    Stmt,
    Store,
    Var,
    Within,
)
from msops._loops.ir.sizes import itemsize
from msops._loops.ir.walk import (
    Scope,
    buffers_of,
    has_bounds_of_data,
    loads,
    rewrite,
    rewrite_loops,
    statements,
    stored_in,
    variables,
)
from msops._loops.passes.simplify import simplify
from msops._loops.to_c.clean.reductions import fixed_updates
from msops._loops.to_c.facts.blocks import index
from msops._loops.to_c.facts.moving import exact, exact_number
from msops._loops.to_c.facts.strides import coefficient, step
from msops._loops.to_c.lanes.lane_sums import lanes_added, lanes_in_total, over_lanes

_LANES = 8
"""Elements of a group: two of these are faster than one of 16, half of whose lanes are off."""
_FEWEST_TRIPS = 3
"""Estimated elements of a sum. In groups, sums of 2 take twice as long, and sums of 3 as long."""
_DTYPES = ("float32", "float64")
_EXACT = "int64"


def sum_under_masks(kernel: Kernel) -> Kernel:
    """Returns the kernel with such sums in groups of lanes."""
    if not processor.has_mask_registers():
        return kernel
    names, buffers = Names(kernel), buffers_of(kernel)
    loops = [stmt for stmt in statements(kernel.body) if isinstance(stmt, For)]
    stored = {loop.var: stored_in(loop.body) for loop in loops if loop.kind == "serial"}

    def change(loop: For, scope: Scope) -> tuple[Stmt, ...] | None:
        update = _sum_of_data(loop, scope, buffers)
        if update is None or estimated_trips(loop, scope) < _FEWEST_TRIPS:
            return None
        around = stored.get(scope.loops[-1].var) if scope.loops else None
        if around and any(x.indices and x.buffer in around for x in loads(update.term)):
            # A gather waits until what was stored just before is in the cache.
            return None
        return _MaskedSum(loop, update, names).in_groups()

    changed = rewrite_loops(kernel, change, "reduction")
    return kernel if changed is kernel else simplify(unique_names(changed))


class _MaskedSum:
    """A sum whose length is data.

    Args:
      loop: a reduction whose body is one update.
      update: that of a variable, by sums.
      names: the names of the kernel.
    """

    def __init__(self, loop: For, update: Update, names: Names) -> None:
        self._loop = loop
        self._total = Buffer(update.target.buffer, (), update.target.dtype)
        self._names = names
        self._op: BinaryOp = "sub" if update.is_negated else "add"
        self._group = names.fresh(f"{loop.var}_group")
        self._part = self._vector("part")
        match update.term:
            case Binary(op="mul", left=left, right=right):
                # A product is added in one rounding, and 0 where both factors are.
                self._factors = {self._vector("factor"): left, self._vector("factor"): right}
            case term:
                self._factors = {self._vector("term"): term}

    def in_groups(self) -> tuple[Stmt, ...]:
        """Returns the sum in groups of lanes."""
        loop = self._loop
        span = index("sub", loop.end, loop.begin)
        count = index("floordiv", index("add", span, integer(_LANES - 1)), integer(_LANES))
        last = binary("lt", self._at(exact_number(_LANES - 1)), exact(loop.end))
        whole = self._filled()
        others = If(self._exist(), (self._chosen(),), (self._masked(),), location=loop.location)
        filled = If(last, (whole,), (others,))
        body: tuple[Stmt, ...] = (filled, self._added())
        for factor in self._factors:
            body = (Local(factor, body, location=loop.location),)
        groups = For(self._group, integer(0), count, body, "reduction", location=loop.location)
        return (Local(self._part, (groups, *self._in_total(self._part)), location=loop.location),)

    def _vector(self, stem: str, lanes: int = _LANES) -> Buffer:
        return Buffer(self._names.fresh(stem), (lanes,), self._total.dtype)

    def _in_total(self, part: Buffer) -> tuple[Stmt, ...]:
        """Returns what adds all lanes of a vector to the sum, by halves."""
        lanes = part.shape[0] // 2
        if lanes * itemsize(part.dtype) < processor.LEAST_VECTOR_BYTES:
            return (lanes_in_total(self._total, part),)
        half, location = self._vector("part", lanes), self._loop.location
        lane = Var(self._names.fresh("lane"))
        added = lanes_added(lane, half, part, part, lanes, "add", location)
        return (Local(half, (added, *self._in_total(half)), location=location),)

    def _at(self, lane: Expr) -> Expr:
        """Returns the iteration of a lane of a group; the exact sum shows which are neighbours."""
        first = add(exact(self._loop.begin), mul(exact(Var(self._group)), exact_number(_LANES)))
        return add(first, lane)

    def _exist(self) -> Expr:
        """Returns whether what the last lane of a group reads exists; the first is in the sum."""
        last, var = exact_number(_LANES - 1), self._loop.var
        read = (load for value in self._factors.values() for load in loads(value))
        indices = dict.fromkeys(
            index
            for load in read
            for index in load.indices
            if isinstance(index, Within) and var in variables(index)
        )
        tests = [
            binary("le", self._in_lane(index.operand, last), exact_number(index.high))
            if (coefficient(index, var) or 0) > 0
            else binary("ge", self._in_lane(index.operand, last), exact_number(index.low))
            for index in indices
        ]
        return functools.reduce(partial(binary, "land"), tests)

    def _in_lane(self, expr: Expr, lane: Expr) -> Expr:
        """Returns a value in the iteration of a lane."""
        at = self._at(exact(lane))
        narrow = Cast(at, INDEX_DTYPE)

        def moved(part: Expr) -> Expr:
            if part == Var(self._loop.var):
                return narrow
            return at if part == Cast(narrow, _EXACT) else part

        return rewrite(expr, moved)

    def _is_on(self, lane: Expr) -> Expr:
        """Returns whether a lane is in the sum."""
        return binary("lt", self._at(exact(lane)), exact(self._loop.end))

    def _filled(self) -> For:
        """Returns the loop that computes the factors of a whole group."""
        return self._over_lanes(lambda lane: self._stores(lane, lambda value: value))

    def _chosen(self) -> For:
        """Returns the loop that computes the factors of all lanes, and has 0 past the end."""

        def stores(lane: Var) -> tuple[Stmt, ...]:
            test = self._is_on(lane)
            return self._stores(lane, lambda x: Select(test, x, number(0, x.dtype), x.dtype))

        return self._over_lanes(stores)

    def _masked(self) -> For:
        """Returns the loop that computes the factors of the lanes that are on, and has 0 after."""

        def stores(lane: Var) -> tuple[Stmt, ...]:
            values, none = (
                self._stores(lane, change) for change in (lambda x: x, lambda x: number(0, x.dtype))
            )
            return (If(self._is_on(lane), values, none, location=self._loop.location),)

        return self._over_lanes(stores)

    def _stores(self, lane: Var, change: Callable[[Expr], Expr]) -> tuple[Stmt, ...]:
        """Returns the stores of the factors of a lane, each changed."""
        return tuple(
            Store(
                factor.name,
                (lane,),
                change(self._in_lane(value, lane)),
                location=self._loop.location,
            )
            for factor, value in self._factors.items()
        )

    def _over_lanes(self, stores: Callable[[Var], tuple[Stmt, ...]]) -> For:
        lane = Var(self._names.fresh("lane"))
        return over_lanes(lane, self._part, stores(lane), self._loop.location)

    def _added(self) -> For:
        """Returns the loop that adds the products of all lanes."""
        lane = Var(self._names.fresh("lane"))
        term, *others = (_lanes(factor, lane) for factor in self._factors)
        value = binary(self._op, _lanes(self._part, lane), functools.reduce(mul, others, term))
        body = (Store(self._part.name, (lane,), value),)
        return over_lanes(lane, self._part, body, self._loop.location)


def _sum_of_data(loop: For, scope: Scope, buffers: Mapping[str, Buffer]) -> Update | None:
    """Returns the update of a variable that a loop with data as bounds does, and nothing else."""
    updates = fixed_updates(loop, scope.ranges, buffers)
    if not has_bounds_of_data(loop) or len(updates) != 1:
        return None
    if [type(stmt) for stmt in loop.body] != [Store]:
        return None
    ((_, indices), update), *_ = updates.items()
    is_sum = update.op == "add" and update.target.dtype in _DTYPES and not indices
    # Elements that are evenly apart gain less from vectors than gathering them costs.
    steps = {step(load, loop, buffers) for load in loads(update.term)}
    is_dense = steps <= {None, -1, 0, 1}
    return update if is_sum and is_dense and _is_proven(loop, update.term) else None


def _is_proven(loop: For, term: Expr) -> bool:
    """Returns whether all indices that move with a loop are known to be in range.

    Then the number of groups does not wrap, or all their lanes are off.
    """
    moving = [
        index
        for load in loads(term)
        for index in load.indices
        if loop.var in variables(index)
        and not any(loop.var in variables(inner) for inner in loads(index))
    ]
    return bool(moving) and all(isinstance(index, Within) for index in moving)


def _lanes(vector: Buffer, lane: Var) -> Expr:
    return Load(vector.name, (lane,), vector.dtype)
