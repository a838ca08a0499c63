"""Whether a scalar is assigned before each read, in whatever way the data decide.

    serial j in 0 .. 8 {
      if j == 0 {
        m[] = x[0]                   <- runs in the first iteration
      } else {
        m[] = max(m[], x[j])         <- so here m has a value
      }
    }

The statements are followed in order, a loop several times: its first iterations, in which the
variable and flags set before it are known, and any later one. What a loop assigns has a value after
it if the bounds say that it runs. Where only one branch assigns, its condition is kept: a read
under the same condition finds a value. So are conditions that reads are under, where they do not
hold before the assignment: `count > 0`.
"""

from __future__ import annotations

import dataclasses
import functools
from collections.abc import Iterator
from dataclasses import dataclass, field

from msops._loops.frontends.hybrid.paths import Conditions, PathFacts, conjuncts, joined
from msops._loops.ir import scalars
from msops._loops.ir.algebra import binary, negation
from msops._loops.ir.nodes import Const, Expr, For, If, Load, Local, Stmt, Store
from msops._loops.ir.ranges import Range, loop_range, range_of
from msops._loops.ir.walk import (
    bodies,
    declared_in,
    guarded_loads,
    loads,
    own_expressions,
    stored_in,
    variables,
)

FOLLOWED = 3
"""How many iterations of a loop are followed one by one: `i > 1` holds from the third one on.

In each loop inside it is one less, but at least one, so that deep nests end soon.
"""


def unbound_read(body: tuple[Stmt, ...], name: str) -> Load | None:
    """Returns a read of a local scalar that may come before every store to it."""
    walk = _Walk(name, frozenset(_conditions_of_reads(body, name, ())))
    try:
        walk.run(body, PathFacts())
    except _Unbound as found:
        return found.read
    return None


class _Unbound(Exception):
    def __init__(self, read: Load):
        super().__init__()
        self.read = read


def _conditions_of_reads(
    body: tuple[Stmt, ...], name: str, around: tuple[Expr, ...]
) -> Iterator[Conditions]:
    """Yields the conditions that reads of a scalar are under: each, and all of scalars alone."""
    for stmt in body:
        for expr in own_expressions(stmt):
            for load, conditions in guarded_loads(expr, around):
                if load.buffer == name:
                    parts = [part for condition in conditions for part in conjuncts(condition)]
                    yield from (frozenset([part]) for part in parts)
                    yield frozenset(filter(_is_of_scalars, parts))
        if isinstance(stmt, If):
            yield from _conditions_of_reads(stmt.then, name, (*around, stmt.condition))
            failed = negation(stmt.condition)
            yield from _conditions_of_reads(stmt.otherwise, name, (*around, failed))
        else:
            for inner in bodies(stmt):
                yield from _conditions_of_reads(inner, name, around)


def _is_of_scalars(condition: Expr) -> bool:
    """Returns whether a condition stays as it is in the next iteration unless a scalar changes."""
    return not variables(condition) and not any(load.indices for load in loads(condition))


@dataclass
class _Walk:
    name: str
    conditions: frozenset[Conditions]
    depth: int = 0
    ranges: dict[str, Range] = field(default_factory=dict)

    def run(self, body: tuple[Stmt, ...], state: PathFacts) -> PathFacts:
        for place, stmt in enumerate(body):
            if state.is_bound:
                # No read after it is of interest: most scalars are assigned at once.
                rest = body[place:]
                return state.storing(stored_in(rest) | declared_in(rest), {})
            for expr in own_expressions(stmt):
                self.reads(expr, state)
            state = self.step(stmt, state)
        return state

    def reads(self, expr: Expr, state: PathFacts) -> None:
        for load, conditions in guarded_loads(expr, ()):
            if load.buffer == self.name and not state.under(*conditions).is_bound:
                raise _Unbound(load)

    def step(self, stmt: Stmt, state: PathFacts) -> PathFacts:
        match stmt:
            case Store(buffer=self.name):
                return dataclasses.replace(state.storing({self.name}, {}), is_bound=True)
            case Store(buffer=buffer, indices=indices, value=value):
                found = state.value(value)
                is_known = not indices and isinstance(found, Const)
                return state.storing({buffer}, {buffer: found} if is_known else {})
            case Local(buffer=buffer, body=body) if buffer.name == self.name:
                return self.run(body, state.unbound()).unbound()
            case Local(buffer=buffer, body=body):
                start = {buffer.name: Const(scalars.zero(buffer.dtype), buffer.dtype)}
                return self.run(body, state.storing({buffer.name}, {} if buffer.shape else start))
            case If():
                return self.branch(stmt, state)
            case For():
                self.depth += 1
                self.ranges[stmt.var] = loop_range(stmt, self.ranges)
                after = self.loop(stmt, state)
                self.depth -= 1
                return after
        return state

    def branch(self, stmt: If, state: PathFacts) -> PathFacts:
        test = stmt.condition
        found = state.value(test)
        if isinstance(found, Const):
            return self.run(stmt.then if found.value else stmt.otherwise, state)
        then = self.run(stmt.then, state.under(test))
        otherwise = self.run(stmt.otherwise, state.under(negation(test)))
        tests = {frozenset([test]), frozenset([negation(test)])}
        return joined(then, otherwise, tests | self.conditions)

    def loop(self, stmt: For, state: PathFacts) -> PathFacts:
        changed = {stmt.var, *stored_in(stmt.body), *declared_in(stmt.body)}
        begin, end = state.value(stmt.begin), state.value(stmt.end)
        least = int(begin.value) if isinstance(begin, Const) else None
        count = None
        if least is not None and isinstance(end, Const):
            count = max(0, int(end.value) - least)
        # What holds after each number of iterations; None is any greater one.
        after: dict[int | None, PathFacts] = {0: state}
        entry = state
        for done in range(1 if least is None else max(1, FOLLOWED + 1 - self.depth)):
            if done == count or (done and entry.is_bound):
                break
            value = begin if least is None else Const(least + done, begin.dtype)
            start = entry.storing({stmt.var}, {stmt.var: value})
            entry = self.run(stmt.body, start).storing({stmt.var}, {})
            after[done + 1] = entry
        if count is None or count > len(after) - 1:
            after[None] = self.later(stmt, entry, changed)
        if count is not None:
            return after[count] if count in after else after[None]
        if range_of(binary("sub", stmt.end, stmt.begin), self.ranges)[0] > 0:
            del after[0]
        join = functools.partial(joined, conditions=self.conditions)
        return functools.reduce(join, after.values())

    def later(self, stmt: For, entry: PathFacts, changed: set[str]) -> PathFacts:
        """Returns what holds after any iteration that is not followed by itself.

        At first as much is taken for granted as holds before. A read that finds no value even so
        finds none with less.
        """
        needed = frozenset(filter(entry.implies, self.conditions | entry.needed))
        while True:
            start = dataclasses.replace(entry.storing(changed, {}), needed=needed)
            later = self.run(stmt.body, start).storing({stmt.var}, {})
            kept = frozenset(filter(later.implies, needed))
            if entry.is_bound <= later.is_bound and kept == needed:
                return later
            entry = dataclasses.replace(entry, is_bound=entry.is_bound and later.is_bound)
            needed = kept
