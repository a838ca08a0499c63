"""Indices that variables hold are proven to be in range by the conditions around them.

    local j: int32[] {                       local j: int32[] {
      j[] = k                                  j[] = k
      serial step in 0 .. k {                  serial step in 0 .. k {
        if ((j[] > 0)                            if ((j[] > 0)
            && (y[j[] - 1] > v)) {     ->            && (y[within(j[] - 1, 0, 23)] > v)) {
          y[j[]] = y[j[] - 1]                      y[within(j[], 0, 23)] = y[within(...)]
          j[] = j[] - 1                            j[] = j[] - 1
        }                                        }
      }                                        }
    }                                        }

A `while` moves a variable and looks at it before each step. So its interval depends on the order of
statements, at which `ir.contents` does not look. Here each statement maps the intervals before it
to those after it, and a condition narrows them in its branches. A loop begins with intervals that
hold in all of its iterations: what still grows after one iteration is widened to the next number
that conditions compare with, and in the end to all numbers, of which conditions keep some (P.
Cousot, R. Cousot, POPL 1977).

Indices come from floats, too, as where a picture is read between its elements. The interval of a
float is that of the whole number below it: `py < 48.0` leaves 47 as the greatest.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Collection, Mapping
from dataclasses import dataclass

from msops._loops.analysis.affine import Affine, affine
from msops._loops.analysis.conditions import (
    conjuncts,
    float_limits,
    implied,
    inequalities,
    narrow,
    widens_exactly,
)
from msops._loops.ir.nodes import (
    INDEX_DTYPE,
    Binary,
    Cast,
    Const,
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
from msops._loops.ir.operators import COMPARISONS, INTEGERS, is_float
from msops._loops.ir.ranges import (
    Range,
    Ranges,
    dtype_range,
    float_range,
    hull,
    is_within,
    loop_range,
    range_of,
    whole_range,
)
from msops._loops.ir.walk import (
    A,
    buffers_of,
    contents,
    expressions,
    loads,
    loads_in,
    map_operands,
    own_expressions,
    rewrite,
    statements,
    stored_in,
    variables,
    with_parts,
)

_MOST_ROUNDS = 6
"""How often the intervals of a loop go on to the next limit."""


def prove_indices(kernel: Kernel) -> Kernel:
    """Returns the kernel with the intervals of the indices that its variables keep in range."""
    names = _in_indices(kernel)
    if not names:
        return kernel
    body = _Proof(kernel, names).body(kernel.body, _State({}, ()), is_last=True)[0]
    return with_parts(kernel, body=body)


@dataclass(frozen=True)
class _State:
    """What is known between two statements.

    Attributes:
      ranges: the intervals of the variables of loops, and of those that are followed.
      conditions: conditions that hold, of these variables alone.
    """

    ranges: Ranges
    conditions: tuple[Expr, ...]

    def stored(self, name: str, span: Range) -> _State:
        """Returns what is known once a variable holds something else."""
        kept = tuple(c for c in self.conditions if name not in variables(c))
        return _State({**self.ranges, name: span}, kept)

    def joined(self, other: _State) -> _State:
        """Returns what is known if one of two ways led here."""
        ranges = {name: hull(span, other.ranges[name]) for name, span in self.ranges.items()}
        return _State(ranges, tuple(c for c in self.conditions if c in other.conditions))


def _in_indices(kernel: Kernel) -> dict[str, str]:
    """Returns the variables in indices, and those that are in the values of such, with dtypes."""
    parts = statements(kernel.body)
    own = {
        part.buffer.name: part.buffer.dtype
        for part in parts
        if isinstance(part, Local) and part.buffer.shape == ()
        if part.buffer.dtype == INDEX_DTYPE or is_float(part.buffer.dtype)
    }
    accesses: list[Load | Store] = [*loads_in(kernel.body)]
    accesses += [part for part in parts if isinstance(part, Store)]
    found = {
        load.buffer for access in accesses for index in access.indices for load in loads(index)
    } & own.keys()
    todo = list(found)
    read: dict[str, set[str]] = {}
    for part in parts:
        if isinstance(part, Store) and part.buffer in own:
            read.setdefault(part.buffer, set()).update(
                load.buffer for load in loads(part.value) if load.buffer in own
            )
    while todo:
        more = read.get(todo.pop(), set()) - found
        found |= more
        todo += more
    return {name: own[name] for name in found}


class _Proof:
    """Follows variables through a kernel."""

    def __init__(self, kernel: Kernel, names: Mapping[str, str]) -> None:
        self._names = names
        """The variables that are followed, with their dtypes."""
        self._whole = {name: whole_range(dtype) for name, dtype in names.items()}
        self._buffers = buffers_of(kernel)
        held = contents(kernel)
        self._limits = _limits(kernel)
        self._arrays = {name: held[name] for name in held if self._buffers[name].shape}

    def body(
        self, body: tuple[Stmt, ...], state: _State, *, is_last: bool
    ) -> tuple[tuple[Stmt, ...], _State]:
        """Returns a body, and what is known after it.

        Args:
          body: statements.
          state: what is known before them.
          is_last: it is known for certain, so indices may be marked.
        """
        found: list[Stmt] = []
        for stmt in body:
            new, state = self._statement(stmt, state, is_last)
            found.append(new)
        return tuple(found), state

    def _statement(self, stmt: Stmt, state: _State, is_last: bool) -> tuple[Stmt, _State]:
        match stmt:
            case Store():
                return self._store(stmt, state, is_last)
            case Local(buffer=buffer) if buffer.name in self._names:
                # It is zero at first.
                inner, after = self.body(
                    stmt.body, state.stored(buffer.name, (0, 0)), is_last=is_last
                )
                ranges = {name: r for name, r in after.ranges.items() if name != buffer.name}
                kept = tuple(c for c in after.conditions if buffer.name not in variables(c))
                return with_parts(stmt, body=inner), _State(ranges, kept)
            case Local():
                inner, after = self.body(stmt.body, state, is_last=is_last)
                return with_parts(stmt, body=inner), after
            case If():
                return self._if(stmt, state, is_last)
            case For():
                return self._for(stmt, state, is_last)

    def _store(self, store: Store, state: _State, is_last: bool) -> tuple[Stmt, _State]:
        new = store
        if is_last:
            value = self._marked(store.value, state)
            indices = tuple(self._marked(index, state) for index in store.indices)
            new = self._within(dataclasses.replace(store, value=value, indices=indices), state)
        if store.buffer in self._names:
            state = state.stored(store.buffer, self._range(store.value, state))
        return new, state

    def _if(self, stmt: If, state: _State, is_last: bool) -> tuple[Stmt, _State]:
        condition = self._marked(stmt.condition, state) if is_last else stmt.condition
        holds, fails = (self._assumed(stmt.condition, state, truth) for truth in (True, False))
        then, one = self._branch(stmt.then, holds, is_last)
        otherwise, other = self._branch(stmt.otherwise, fails, is_last)
        new = with_parts(stmt, condition=condition, then=then, otherwise=otherwise)
        return new, one.joined(other) if one and other else one or other or state

    def _branch(
        self, body: tuple[Stmt, ...], state: _State | None, is_last: bool
    ) -> tuple[tuple[Stmt, ...], _State | None]:
        return self.body(body, state, is_last=is_last) if state else (body, None)

    def _for(self, loop: For, state: _State, is_last: bool) -> tuple[Stmt, _State]:
        changed = stored_in(loop.body) & state.ranges.keys()
        kept = tuple(c for c in state.conditions if changed.isdisjoint(variables(c)))
        head = _State(state.ranges, kept)
        begin, end = (self._followed(bound) for bound in (loop.begin, loop.end))
        least, greatest = loop_range(
            dataclasses.replace(loop, begin=begin, end=end), self._all(state)
        )

        def inside(head: _State) -> _State:
            ranges = {**head.ranges, loop.var: (least, max(least, greatest))}
            bounds = (
                Binary("le", begin, Var(loop.var), "bool"),
                Binary("lt", Var(loop.var), end, "bool"),
            )
            within = (c for c in bounds if not loads(c) and changed.isdisjoint(variables(c)))
            return _State(ranges, (*head.conditions, *within))

        def after(head: _State) -> Mapping[str, Range]:
            ranges = self.body(loop.body, inside(head), is_last=False)[1].ranges
            return {name: ranges[name] for name in changed}

        def with_ranges(spans: Mapping[str, Range]) -> _State:
            return dataclasses.replace(head, ranges={**head.ranges, **spans})

        if changed:
            known = {name: state.ranges[name] for name in changed}
            rounds = 0
            while (grown := after(with_ranges(known))) and any(
                not is_within(grown[name], known[name]) for name in changed
            ):
                rounds += 1
                limits = self._limits if rounds <= _MOST_ROUNDS else {}
                known = {
                    name: _widened(
                        known[name], grown[name], limits.get(name, ()), self._whole[name]
                    )
                    for name in changed
                }
            head = with_ranges(known)
        if not is_last:
            return loop, head
        body = self.body(loop.body, inside(head), is_last=True)[0]
        bounds = (self._marked(bound, state) for bound in (loop.begin, loop.end))
        return with_parts(loop, body=body, **dict(zip(("begin", "end"), bounds, strict=True))), head

    # Expressions.

    def _all(self, state: _State) -> Ranges:
        return {**self._arrays, **state.ranges}

    def _followed(self, expr: Expr) -> Expr:
        """Returns an expression with the variables that are followed like those of loops."""

        def change(part: Expr) -> Expr:
            # A variable of a loop is an integer: floats stay loads.
            is_followed = isinstance(part, Load) and self._names.get(part.buffer) == INDEX_DTYPE
            return Var(part.buffer) if isinstance(part, Load) and is_followed else part

        return rewrite(expr, change)

    def _range(self, expr: Expr, state: _State) -> Range:
        if isinstance(expr, Select):
            spans = [
                self._range(arm, known)
                for arm, truth in ((expr.then, True), (expr.otherwise, False))
                if (known := self._assumed(expr.condition, state, truth))
            ]
            return hull(spans[0], spans[-1]) if spans else whole_range(expr.dtype)
        span = float_range if is_float(expr.dtype) else range_of
        return span(self._followed(expr), self._all(state))

    def _assumed(self, condition: Expr, state: _State, truth: bool) -> _State | None:
        """Returns what is known where a condition holds, or where it does not.

        None: that is nowhere.
        """
        ranges, known = dict(state.ranges), list(state.conditions)
        for part in conjuncts(self._followed(condition), truth):
            functions = inequalities(part, ranges, ranges) or ()
            for function in functions:
                narrow(dataclasses.replace(function, axes=frozenset(ranges)), ranges)
            for name, (low, high) in float_limits(part, ranges):
                if name in ranges:
                    low, high = max(low, ranges[name][0]), min(high, ranges[name][1])
                    # Where that leaves no number, NaN may come.
                    if low <= high:
                        ranges[name] = (low, high)
            if any(low > high for low, high in ranges.values()):
                return None
            if functions and not loads(part):
                known.append(part)
        return _State(ranges, tuple(known))

    def _marked(self, expr: Expr, state: _State | None) -> Expr:
        """Returns an expression with the intervals of its indices, where they are in range."""
        if state is None:
            return expr
        match expr:
            case Binary(op="land" | "lor" as op, left=left, right=right):
                decided = self._assumed(left, state, op == "land")
                left, right = self._marked(left, state), self._marked(right, decided)
                return dataclasses.replace(expr, left=left, right=right)
            case Select(condition=test, then=then, otherwise=otherwise):
                holds, fails = (self._assumed(test, state, truth) for truth in (True, False))
                test, then = self._marked(test, state), self._marked(then, holds)
                otherwise = self._marked(otherwise, fails)
                return dataclasses.replace(expr, condition=test, then=then, otherwise=otherwise)
        inner = map_operands(expr, lambda part: self._marked(part, state))
        match inner:
            case Load():
                return self._within(inner, state)
            case Cast(operand=operand, dtype=dtype) if (
                dtype in INTEGERS and is_float(operand.dtype) and loads(operand)
            ):
                return self._in_range(inner, state)
        return inner

    def _in_range(self, cast: Cast, state: _State) -> Expr:
        """Returns the integer of a float with its interval, if only conditions say that it has one.

        In it no conversion saturates.
        """
        low, high = dtype_range(cast.dtype)
        inner = (low + 1, high - 1)
        if is_within(float_range(cast.operand, {}), inner) or not is_within(
            float_range(self._followed(cast.operand), self._all(state)), inner
        ):
            return cast
        return Within(cast, *self._range(cast, state), is_guarded=True)

    def _within(self, access: A, state: _State) -> A:
        """Returns an access with the intervals of its indices that are in range."""
        shape = self._buffers[access.buffer].shape
        indices = tuple(
            Within(index, 0, size - 1, is_guarded=True)
            if self._is_proven(index, size, state)
            else index
            for index, size in zip(access.indices, shape, strict=True)
        )
        return access if indices == access.indices else dataclasses.replace(access, indices=indices)

    def _is_proven(self, index: Expr, size: int, state: _State) -> bool:
        if isinstance(index, Within) or self._names.keys().isdisjoint(
            x.buffer for x in loads(index)
        ):
            return False
        followed = self._followed(index)
        if is_within(range_of(followed, self._all(state)), (0, size - 1)):
            return True
        function = affine(followed, state.ranges)
        return (
            function is not None
            and widens_exactly(followed, state.ranges, state.ranges)
            and all(
                implied(limit, state.conditions, state.ranges.keys(), state.ranges)
                for limit in (function, Affine.of_constant(size - 1) - function)
            )
        )


def _widened(known: Range, grown: Range, limits: Collection[int], whole: Range) -> Range:
    """Returns an interval that goes on to the next limit where it has grown."""
    low, high = known
    if grown[0] < low:
        low = max((limit for limit in limits if limit <= grown[0]), default=whole[0])
    if grown[1] > high:
        high = min((limit for limit in limits if limit >= grown[1]), default=whole[1])
    return (low, high)


def _limits(kernel: Kernel) -> dict[str, set[int]]:
    """Returns the numbers with which conditions compare each variable, and those beside them.

    A variable may stop there.
    """
    found: dict[str, set[int]] = {}
    for stmt in statements(kernel.body):
        for expr in own_expressions(stmt):
            for part in expressions(expr):
                if not isinstance(part, Binary) or part.op not in COMPARISONS:
                    continue
                sides = (part.left, part.right)
                numbers = {
                    int(x.value) for x in sides if isinstance(x, Const) if x.dtype in INTEGERS
                }
                beside = {number + step for number in numbers for step in (-1, 0, 1)}
                for load in loads(part):
                    found.setdefault(load.buffer, set()).update(beside)
    return found
