"""Whether a scalar is assigned before each read, in whatever way the data decide.

    serial j in 0 .. 8 {
      if j == 0 {
        m[] = x[0]                   <- runs in the first iteration
      } else {
        m[] = max(m[], x[j])         <- so here m has a value
      }
    }

The statements are followed in order, a loop several times: its first iterations, in which the
variable and flags set before it are known, and any later one. Where only one branch assigns, its
condition is kept: a read under the same condition finds a value. So are conditions that reads are
under, where they do not hold before the assignment: `count > 0`.
"""

from __future__ import annotations

import dataclasses
import functools
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field

from msops._loops.ir import scalars
from msops._loops.ir.nodes import (
    Binary,
    Cast,
    Const,
    Expr,
    For,
    If,
    Load,
    Local,
    Stmt,
    Store,
    Unary,
    Var,
)
from msops._loops.ir.operators import COMPARISONS, FLOATS, LOGICAL
from msops._loops.ir.walk import (
    bodies,
    declared_in,
    guarded_loads,
    loads,
    loads_in,
    own_expressions,
    rewrite,
    stored_in,
    variables,
)

FOLLOWED = 3
"""How many iterations of a loop are followed one by one: `i > 1` holds from the third one on.

In each loop inside it is one less, but at least one, so that deep nests end soon.
"""


def unbound_read(body: tuple[Stmt, ...], name: str) -> Load | None:
    """Returns a read of a local scalar that may come before every store to it."""
    walk = _Walk(name, frozenset(_conditions_of_reads(body, name)))
    try:
        walk.run(body, _State())
    except _Unbound as found:
        return found.read
    return None


class _Unbound(Exception):
    def __init__(self, read: Load):
        super().__init__()
        self.read = read


def _conditions_of_reads(body: tuple[Stmt, ...], name: str) -> Iterator[Expr]:
    """Yields the conditions that reads of a scalar are under."""
    for stmt in body:
        for expr in own_expressions(stmt):
            for load, conditions in guarded_loads(expr, ()):
                if load.buffer == name:
                    for condition in conditions:
                        yield from _conjuncts(condition)
        for inner in bodies(stmt):
            yield from _conditions_of_reads(inner, name)
        if isinstance(stmt, If):
            for condition, branch in (
                (stmt.condition, stmt.then), (_negated(stmt.condition), stmt.otherwise),
            ):  # fmt: skip
                if any(load.buffer == name for load in loads_in(branch)):
                    yield from _conjuncts(condition)


@dataclass(frozen=True)
class _State:
    """What is known between two statements.

    Attributes:
      is_bound: the scalar has been assigned.
      needed: conditions that hold only if it has.
      held: conditions that hold.
      known: the values of some scalars and loop variables, which nothing has changed since.
    """

    is_bound: bool = False
    needed: frozenset[Expr] = frozenset()
    held: frozenset[Expr] = frozenset()
    known: Mapping[str, Expr] = field(default_factory=dict)

    def value(self, expr: Expr) -> Expr:
        """Returns an expression with what is known of it; a constant if that is all."""

        def change(part: Expr) -> Expr:
            match part:
                case Var(name=name) | Load(buffer=name, indices=()) if name in self.known:
                    return self.known[name]
            return _computed(part)

        if isinstance(expr, Binary) and expr.op in LOGICAL:
            decisive = expr.op == "lor"
            sides = self.value(expr.left), self.value(expr.right)
            if any(side == Const(decisive, "bool") for side in sides):
                return Const(decisive, "bool")
        found = rewrite(expr, change)
        if found.dtype == "bool" and not isinstance(found, Const):
            if expr in self.held:
                return Const(True, "bool")
            if _negated(expr) in self.held:
                return Const(False, "bool")
        return found

    def fails(self, condition: Expr) -> bool:
        """Returns whether a condition certainly does not hold."""
        return self.value(condition) == Const(False, "bool")

    def implies(self, condition: Expr) -> bool:
        """Returns whether a condition holds only if the scalar has been assigned."""
        return self.is_bound or condition in self.needed or self.fails(condition)

    def under(self, *conditions: Expr) -> _State:
        """Returns the same under conditions, which may say that the scalar has been assigned."""
        held = self.held.union(*map(_conjuncts, conditions))
        is_bound = self.is_bound or bool(held & self.needed) or any(map(self.fails, conditions))
        return dataclasses.replace(self, is_bound=is_bound, held=held)

    def unbound(self) -> _State:
        return dataclasses.replace(self, is_bound=False, needed=frozenset())

    def storing(self, names: set[str], known: Mapping[str, Expr]) -> _State:
        """Returns the state after some buffers and variables have changed, to what is known."""
        new = {name: value for name, value in self.known.items() if not _uses(value, names)}
        new = {name: value for name, value in new.items() if name not in names}
        held = frozenset(each for each in self.held if not _uses(each, names))
        after = _State(self.is_bound, held=held, known={**new, **known})
        needed = (each for each in self.needed if not _uses(each, names) or after.fails(each))
        return dataclasses.replace(after, needed=frozenset(needed))


def _computed(part: Expr) -> Expr:
    """Returns an operation on integers or bools as a constant, if it is one."""
    if part.dtype in FLOATS:
        return part
    match part:
        case Unary(op=op, operand=Const(value=value, dtype=dtype)):
            return Const(scalars.unary(op, dtype)(value), dtype)
        case Cast(operand=Const(value=value, dtype=dtype), dtype=target) if dtype not in FLOATS:
            return Const(scalars.cast(dtype, target)(value), target)
        case Binary(left=left) if left.dtype in FLOATS:
            return part
        case Binary(op=op, left=Const(value=one, dtype=dtype), right=Const(value=other)):
            return Const(scalars.binary(op, dtype)(one, other), part.dtype)
        case Binary(op=op, left=left, right=right) if left == right and op in COMPARISONS:
            return Const(op in ("eq", "le", "ge"), "bool")
    return part


def _uses(expr: Expr, names: set[str]) -> bool:
    return any(load.buffer in names for load in loads(expr)) or bool(variables(expr) & names)


def _negated(condition: Expr) -> Expr:
    if isinstance(condition, Unary) and condition.op == "not":
        return condition.operand
    return Unary("not", condition, "bool")


def _conjuncts(condition: Expr) -> list[Expr]:
    """Returns a condition and those that hold where it does."""
    match condition:
        case Binary(op="land", left=left, right=right):
            return [condition, *_conjuncts(left), *_conjuncts(right)]
        case Unary(op="not", operand=Binary(op="lor", left=left, right=right)):
            return [condition, *_conjuncts(_negated(left)), *_conjuncts(_negated(right))]
    return [condition]


def _joined(one: _State, other: _State, conditions: Iterable[Expr] = ()) -> _State:
    """Returns what holds after either of two paths; conditions may tell them apart."""
    flags = [
        Load(name, (), "bool")
        for name, value in [*one.known.items(), *other.known.items()]
        if value.dtype == "bool"
    ]
    conditions = {*conditions, *flags, *map(_negated, flags), *one.needed, *other.needed}
    return _State(
        one.is_bound and other.is_bound,
        frozenset(each for each in conditions if one.implies(each) and other.implies(each)),
        one.held & other.held,
        {name: value for name, value in one.known.items() if other.known.get(name) == value},
    )


@dataclass
class _Walk:
    name: str
    conditions: frozenset[Expr]
    depth: int = 0

    def run(self, body: tuple[Stmt, ...], state: _State) -> _State:
        for place, stmt in enumerate(body):
            if state.is_bound:
                # No read after it is of interest: most scalars are assigned at once.
                rest = body[place:]
                return state.storing(stored_in(rest) | declared_in(rest), {})
            for expr in own_expressions(stmt):
                self.reads(expr, state)
            state = self.step(stmt, state)
        return state

    def reads(self, expr: Expr, state: _State) -> None:
        for load, conditions in guarded_loads(expr, ()):
            if load.buffer == self.name and not state.under(*conditions).is_bound:
                raise _Unbound(load)

    def step(self, stmt: Stmt, state: _State) -> _State:
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
                after = self.loop(stmt, state)
                self.depth -= 1
                return after
        return state

    def branch(self, stmt: If, state: _State) -> _State:
        test = stmt.condition
        found = state.value(test)
        if isinstance(found, Const):
            return self.run(stmt.then if found.value else stmt.otherwise, state)
        then = self.run(stmt.then, state.under(test))
        otherwise = self.run(stmt.otherwise, state.under(_negated(test)))
        return _joined(then, otherwise, {test, _negated(test), *self.conditions})

    def loop(self, stmt: For, state: _State) -> _State:
        changed = {stmt.var, *stored_in(stmt.body), *declared_in(stmt.body)}
        begin, end = state.value(stmt.begin), state.value(stmt.end)
        least = int(begin.value) if isinstance(begin, Const) else None
        count = None
        if least is not None and isinstance(end, Const):
            count = max(0, int(end.value) - least)
        # What holds after each number of iterations; None is any greater one.
        after: dict[int | None, _State] = {0: state}
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
        joined = functools.partial(_joined, conditions=self.conditions)
        return functools.reduce(joined, after.values())

    def later(self, stmt: For, entry: _State, changed: set[str]) -> _State:
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
