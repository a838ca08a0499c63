"""Visiting and rewriting the loop IR.

What only reads gets a list, made here in one go: it is quicker than a generator for each node, and
a reader who follows a call stays in one file, which is why it is long. What needs to know where a
statement is gets its scope, too:

    for stmt, scope in visit(kernel):
        ...
"""

from __future__ import annotations

import dataclasses
import functools
import operator
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple, Protocol, TypeAlias, TypeVar, get_args, overload

from msops._loops.ir.algebra import integer
from msops._loops.ir.facts import kept
from msops._loops.ir.nodes import (
    Binary,
    Buffer,
    Cast,
    Const,
    Expr,
    For,
    FunctionCall,
    If,
    Kernel,
    Load,
    Local,
    LoopKind,
    Select,
    Stmt,
    Store,
    Unary,
    Var,
    Within,
)
from msops._loops.ir.operators import INTEGERS
from msops._loops.ir.ranges import Range, Ranges, held_ranges, nested_ranges

A = TypeVar("A", Load, Store)
T = TypeVar("T", bound=Stmt)
N = TypeVar("N", bound="Expr | Stmt | Buffer | Kernel | Scope")


class ChangeAccess(Protocol):
    """Returns a load for a load, and a store for a store."""

    def __call__(self, access: A, /) -> A: ...


ChangeLoop: TypeAlias = "Callable[[For, Scope], tuple[Stmt, ...] | None]"
"""Returns what replaces a loop in a scope; None for the loop with those inside of it changed."""


def operands(expr: Expr) -> tuple[Expr, ...]:
    """Returns the direct operands of an expression, in the order of evaluation."""
    return _OPERANDS[type(expr)](expr)


# By type, as no other function is called as often.
_OPERANDS: Mapping[type[Expr], Callable[[Any], tuple[Expr, ...]]] = {
    Const: lambda expr: (),
    Var: lambda expr: (),
    Load: operator.attrgetter("indices"),
    Unary: lambda expr: (expr.operand,),
    Cast: lambda expr: (expr.operand,),
    Within: lambda expr: (expr.operand,),
    Binary: operator.attrgetter("left", "right"),
    FunctionCall: operator.attrgetter("args"),
    Select: operator.attrgetter("condition", "then", "otherwise"),
}


_LEAVES = frozenset((Const, Var))


def expressions(expr: Expr) -> tuple[Expr, ...]:
    """Returns an expression and everything in it, outermost first."""
    return (expr,) if type(expr) in _LEAVES else _expressions(expr)


@kept
def _expressions(expr: Expr) -> tuple[Expr, ...]:
    found: list[Expr] = []
    ahead = [expr]
    while ahead:
        part = ahead.pop()
        found.append(part)
        kind = type(part)
        if kind not in _LEAVES:
            ahead += _OPERANDS[kind](part)[::-1]
    return tuple(found)


def loads(expr: Expr) -> tuple[Load, ...]:
    """Returns the loads in an expression, those in indices too."""
    return () if type(expr) in _LEAVES else _loads(expr)


@kept
def _loads(expr: Expr) -> tuple[Load, ...]:
    return tuple(part for part in _expressions(expr) if type(part) is Load)


def has_bounds_of_data(loop: For) -> bool:
    """Returns whether a bound of a loop reads data, which the loop might change."""
    return any(map(loads, (loop.begin, loop.end)))


@kept
def variables(expr: Expr) -> frozenset[str]:
    """Returns the names of the loop variables in an expression."""
    return frozenset(part.name for part in expressions(expr) if isinstance(part, Var))


def index_variables(access: Load | Store) -> set[str]:
    """Returns the names of the loop variables in the indices of an access."""
    return set().union(*map(variables, access.indices))


def own_expressions(stmt: Stmt) -> tuple[Expr, ...]:
    """Returns the expressions of a statement itself, without those of its bodies."""
    match stmt:
        case Store(indices=indices, value=value):
            return (*indices, value)
        case For(begin=begin, end=end):
            return (begin, end)
        case If(condition=condition):
            return (condition,)
    return ()


def bodies(stmt: Stmt) -> tuple[tuple[Stmt, ...], ...]:
    """Returns the bodies of a statement."""
    if isinstance(stmt, Store):
        return ()
    return (stmt.then, stmt.otherwise) if isinstance(stmt, If) else (stmt.body,)


def size_of(expr: Expr) -> int:
    """Returns the number of nodes of an expression."""
    return len(expressions(expr))


def statements(body: tuple[Stmt, ...]) -> list[Stmt]:
    """Returns all statements, each before those inside it."""
    found: list[Stmt] = []
    for stmt in body:
        if type(stmt) is Store:
            found.append(stmt)
        else:
            found += _with_inner(stmt)
    return found


@kept
def _with_inner(stmt: Stmt) -> tuple[Stmt, ...]:
    return (stmt, *(each for inner in bodies(stmt) for each in statements(inner)))


def is_innermost(loop: For) -> bool:
    """Returns whether there is no loop inside of a loop."""
    return not _kinds_inside(loop)


@kept
def _kinds_inside(stmt: Stmt) -> frozenset[LoopKind]:
    """Returns the kinds of the loops inside of a statement."""
    parts = [part for inner in bodies(stmt) for part in inner]
    own = frozenset(part.kind for part in parts if isinstance(part, For))
    return own.union(*map(_kinds_inside, parts))


@kept
def accesses_of(stmt: Stmt) -> tuple[Load | Store, ...]:
    """Returns the loads of a statement itself, and the statement if it is a store."""
    found = tuple(load for expr in own_expressions(stmt) for load in loads(expr))
    return (*found, stmt) if isinstance(stmt, Store) else found


def accesses_in(body: tuple[Stmt, ...]) -> list[Load | Store]:
    """Returns the loads and stores of all statements."""
    found: list[Load | Store] = []
    for stmt in body:
        found += _accesses_within(stmt)
    return found


@kept
def _accesses_within(stmt: Stmt) -> tuple[Load | Store, ...]:
    """Returns the accesses of a statement, and of those inside of it."""
    inside = (access for inner in bodies(stmt) for access in accesses_in(inner))
    return (*accesses_of(stmt), *inside)


def loads_in(body: tuple[Stmt, ...]) -> list[Load]:
    """Returns the loads of all statements."""
    return [access for access in accesses_in(body) if isinstance(access, Load)]


def is_loaded(buffer: str, body: tuple[Stmt, ...]) -> bool:
    """Returns whether statements load from a buffer."""
    return any(buffer in _names_in(stmt).loaded for stmt in body)


def read_by(stmt: Stmt) -> set[str]:
    """Returns the buffers that a statement itself loads from."""
    return {load.buffer for expr in own_expressions(stmt) for load in loads(expr)}


def touched_in(body: tuple[Stmt, ...]) -> set[str]:
    """Returns the buffers that statements load from or store to."""
    return {access.buffer for access in accesses_in(body)}


def stored_in(body: tuple[Stmt, ...]) -> set[str]:
    """Returns the buffers that statements store to."""
    return {name for stmt in body for name in _names_in(stmt).stored}


def declared_in(body: tuple[Stmt, ...]) -> set[str]:
    """Returns the locals that statements declare."""
    return {name for stmt in body for name in _names_in(stmt).declared}


class _Names(NamedTuple):
    """The buffers that a statement and those inside of it load from, store to, and declare."""

    loaded: frozenset[str]
    stored: frozenset[str]
    declared: frozenset[str]


@kept
def _names_in(stmt: Stmt) -> _Names:
    accesses = accesses_of(stmt)
    loaded = frozenset(access.buffer for access in accesses if type(access) is Load)
    stored = frozenset((stmt.buffer,) if isinstance(stmt, Store) else ())
    declared = frozenset((stmt.buffer.name,) if isinstance(stmt, Local) else ())
    inner = [_names_in(part) for body in bodies(stmt) for part in body]
    return _Names(
        *(
            own.union(*parts)
            for own, parts in zip(
                (loaded, stored, declared),
                zip(*inner, strict=True) if inner else ((), (), ()),
                strict=True,
            )
        )
    )


@dataclass(frozen=True, eq=False)
class Scope:
    """The scope of a statement: buffers, loops, conditions, ranges of variables.

    Attributes:
      buffers: parameters, buffers of the kernel and enclosing locals, by name.
      path: the enclosing loops and conditions, outermost first, without their bodies; inside of
        them each condition holds.
      depths: for each enclosing local the number of loops around it.
      outer: the scope of the statement around; None for the body of a kernel.
      contents: returns the intervals of variables that bounds of loops may be made of.
    """

    buffers: Mapping[str, Buffer]
    path: tuple[For | If, ...] = ()
    depths: Mapping[str, int] = dataclasses.field(default_factory=dict)
    outer: Scope | None = None
    contents: Callable[[], Ranges] = dict
    # What `inside` returned, by the identity of each statement, which stays in memory.
    _insides: dict[int, tuple[Stmt, tuple[Scope, ...]]] = dataclasses.field(
        default_factory=dict, init=False, repr=False
    )

    @staticmethod
    def of(kernel: Kernel) -> Scope:
        """Returns the scope of the body of a kernel: one, which all who walk it share."""
        return _outermost(kernel)

    @functools.cached_property
    def loops(self) -> tuple[For, ...]:
        """The enclosing loops, outermost first."""
        return tuple(part for part in self.path if isinstance(part, For))

    @functools.cached_property
    def is_parallel(self) -> bool:
        """Whether one of the enclosing loops is parallel."""
        return any(loop.kind == "parallel" for loop in self.loops)

    @functools.cached_property
    def ranges(self) -> Ranges:
        """The interval of the variable of each enclosing loop."""
        if not any(map(has_bounds_of_data, self.loops)):
            return nested_ranges(self.loops, {})
        ranges = nested_ranges(self.loops, self.contents())
        return {loop.var: ranges[loop.var] for loop in self.loops}

    def inside(self, stmt: Stmt) -> tuple[Scope, ...]:
        """Returns the scope of each body of a statement in this scope."""
        if isinstance(stmt, Store):
            return ()
        # Each scope under nested locals has all of them.
        if len(self.depths) > _MOST_SHARED:
            return self._inside(stmt)
        known = self._insides.get(id(stmt))
        if known is None:
            known = self._insides[id(stmt)] = stmt, self._inside(stmt)
        return known[1]

    def _inside(self, stmt: For | If | Local) -> tuple[Scope, ...]:
        if isinstance(stmt, Local):
            name = stmt.buffer.name
            buffers = {**self.buffers, name: stmt.buffer}
            depths = {**self.depths, name: len(self.loops)}
            return (Scope(buffers, self.path, depths, self, self.contents),)
        return tuple(map(self._under, _heads(stmt)))

    def _under(self, part: For | If) -> Scope:
        return Scope(self.buffers, (*self.path, part), self.depths, self, self.contents)


_MOST_SHARED = 32
"""The most nested locals under which scopes are kept."""


@kept
def _outermost(kernel: Kernel) -> Scope:
    buffers = {b.name: b for b in (*kernel.parameters, *kernel.buffers)}
    return Scope(buffers, contents=functools.cache(lambda: contents(kernel)))


@kept
def _heads(stmt: For | If) -> tuple[For | If, ...]:
    """Returns what stands in the path of each body of a loop or a condition."""
    if isinstance(stmt, For):
        return (with_parts(stmt, body=()),)
    holds = with_parts(stmt, then=(), otherwise=())
    return holds, with_parts(holds, condition=Unary("not", stmt.condition, "bool"))


def visit(kernel: Kernel) -> list[tuple[Stmt, Scope]]:
    """Returns all statements with the scope of each, a statement before those inside it."""
    return _visit(kernel.body, Scope.of(kernel))


def contents(kernel: Kernel) -> dict[str, Range]:
    """Returns intervals of what variables and arrays of integers hold, by name.

    Parameters are not in it, nor what may hold any number of its dtype.
    """
    locals_ = (stmt.buffer for stmt in statements(kernel.body) if isinstance(stmt, Local))
    dtypes = {b.name: b.dtype for b in (*kernel.buffers, *locals_) if b.dtype in INTEGERS}
    if not dtypes:
        return {}
    stores = [
        (stmt, scope.loops)
        for stmt, scope in visit(kernel)
        if isinstance(stmt, Store) and stmt.buffer in dtypes
    ]
    return held_ranges(dtypes, stores)


def _visit(body: tuple[Stmt, ...], scope: Scope) -> list[tuple[Stmt, Scope]]:
    found: list[tuple[Stmt, Scope]] = []
    for stmt in body:
        found.append((stmt, scope))
        for part, inside in zip(bodies(stmt), scope.inside(stmt), strict=True):
            found += _visit(part, inside)
    return found


class AccessSite(NamedTuple):
    """A load or store where it is evaluated.

    Attributes:
      access: the load or store.
      statement: what evaluates it.
      order: the number of the statement in the text, counted over the kernel.
      scope: that of the statement.
      conditions: those in the statement that hold where the access is evaluated.
    """

    access: Load | Store
    statement: Stmt
    order: int
    scope: Scope
    conditions: tuple[Expr, ...]


def visit_accesses(kernel: Kernel) -> list[AccessSite]:
    """Returns the accesses of all statements, in the order of the text, reads before the write."""
    found: list[AccessSite] = []
    for order, (stmt, scope) in enumerate(visit(kernel)):
        accesses: list[tuple[Load | Store, tuple[Expr, ...]]] = [
            pair for expr in own_expressions(stmt) for pair in guarded_loads(expr, ())
        ]
        if isinstance(stmt, Store):
            accesses.append((stmt, ()))
        found += [AccessSite(access, stmt, order, scope, held) for access, held in accesses]
    return found


def guarded_loads(expr: Expr, conditions: tuple[Expr, ...]) -> list[tuple[Load, tuple[Expr, ...]]]:
    parts = [(operand, conditions) for operand in operands(expr)]
    match expr:
        case Select(condition=test, then=then, otherwise=otherwise):
            fails = Unary("not", test, "bool")
            parts[1:] = [(then, (*conditions, test)), (otherwise, (*conditions, fails))]
        case Binary(op=("land" | "lor") as op, left=left, right=right):
            decides = left if op == "land" else Unary("not", left, "bool")
            parts[1:] = [(right, (*conditions, decides))]
    found = [pair for part, inner in parts for pair in guarded_loads(part, inner)]
    return [*found, (expr, conditions)] if isinstance(expr, Load) else found


def buffers_of(kernel: Kernel) -> dict[str, Buffer]:
    """Returns all buffers of a kernel, locals too, by name."""
    found = {buffer.name: buffer for buffer in (*kernel.parameters, *kernel.buffers)}
    for stmt in statements(kernel.body):
        if isinstance(stmt, Local):
            found[stmt.buffer.name] = stmt.buffer
    return found


def ranges_of(kernel: Kernel) -> Ranges:
    """Returns the interval of the variable of every loop of a kernel."""
    found: dict[str, tuple[int, int]] = {}
    for stmt, scope in visit(kernel):
        if isinstance(stmt, For):
            found |= nested_ranges((stmt,), scope.ranges)
    return found


# Rewriting. What nothing changes stays the same object, so that a pass that finds nothing to do
# returns its kernel, and what is known of that kernel stays known.


def with_parts(node: N, **parts: Any) -> N:
    """Returns a node with other parts, or the node itself if they are the ones that it has."""
    for name, part in parts.items():
        old = getattr(node, name)
        if part is not old and not (
            isinstance(part, tuple) and len(part) == len(old) and all(map(operator.is_, part, old))
        ):
            kind: Any = type(node)
            kept = {name: getattr(node, name) for name in _fields(kind) if name not in parts}
            return kind(**kept, **parts)
    return node


@functools.cache
def _fields(kind: type[Any]) -> tuple[str, ...]:
    """Returns the names of the parts of a class of nodes; dataclasses asks again each time."""
    return tuple(field.name for field in dataclasses.fields(kind))


def map_operands(expr: Expr, change: Callable[[Expr], Expr]) -> Expr:
    """Returns the expression with `change` applied to its direct operands."""
    kind = type(expr)
    if kind in _LEAVES:
        return expr
    old = _OPERANDS[kind](expr)
    new = tuple(map(change, old))
    return expr if all(map(operator.is_, new, old)) else _WITH_OPERANDS[kind](expr, new)


_WITH_OPERANDS: Mapping[type[Expr], Callable[[Any, Any], Expr]] = {
    Load: lambda e, new: Load(e.buffer, new, e.dtype, location=e.location),
    Unary: lambda e, new: Unary(e.op, new[0], e.dtype),
    Cast: lambda e, new: Cast(new[0], e.dtype),
    Within: lambda e, new: Within(new[0], e.low, e.high, e.is_guarded),
    Binary: lambda e, new: Binary(e.op, new[0], new[1], e.dtype),
    FunctionCall: lambda e, new: FunctionCall(e.function, new, e.dtype),
    Select: lambda e, new: Select(new[0], new[1], new[2], e.dtype),
}


def rewrite(expr: Expr, change: Callable[[Expr], Expr]) -> Expr:
    """Returns the expression with `change` applied to every part, innermost first."""
    return change(map_operands(expr, lambda part: rewrite(part, change)))


def map_expressions(stmt: T, change: Callable[[Expr], Expr]) -> T:
    """Returns the statement with `change` applied to its own expressions, bodies untouched."""
    match stmt:
        case Store(indices=indices, value=value):
            return with_parts(stmt, indices=tuple(map(change, indices)), value=change(value))
        case For(begin=begin, end=end):
            return with_parts(stmt, begin=change(begin), end=change(end))
        case If(condition=condition):
            return with_parts(stmt, condition=change(condition))
    return stmt


def map_bodies(stmt: Stmt, change: Callable[[tuple[Stmt, ...]], tuple[Stmt, ...]]) -> Stmt:
    """Returns the statement with `change` applied to its bodies."""
    if isinstance(stmt, Store):
        return stmt
    if isinstance(stmt, If):
        return with_parts(stmt, then=change(stmt.then), otherwise=change(stmt.otherwise))
    return with_parts(stmt, body=change(stmt.body))


def map_all(body: tuple[Stmt, ...], change: Callable[[Expr], Expr]) -> tuple[Stmt, ...]:
    """Returns the body with `change` applied to every expression of every statement in it."""
    return _same_or(
        body,
        [
            map_bodies(map_expressions(stmt, change), lambda inner: map_all(inner, change))
            for stmt in body
        ],
    )


def map_bodies_within(
    stmt: Stmt, scope: Scope, change: Callable[[tuple[Stmt, ...], Scope], tuple[Stmt, ...]]
) -> Stmt:
    """Returns the statement with `change` applied to its bodies and the scope of each."""
    insides = iter(scope.inside(stmt))
    return map_bodies(stmt, lambda body: change(body, next(insides)))


@overload
def rewrite_statements(
    body: tuple[Stmt, ...], change: Callable[[T], tuple[Stmt, ...]], kind: type[T], /
) -> tuple[Stmt, ...]: ...


@overload
def rewrite_statements(
    body: tuple[Stmt, ...], change: Callable[[T], tuple[Stmt, ...]], /, *kinds: type[Stmt]
) -> tuple[Stmt, ...]: ...


def rewrite_statements(
    body: tuple[Stmt, ...], change: Callable[[Any], tuple[Stmt, ...]], /, *kinds: type[Any]
) -> tuple[Stmt, ...]:
    """Returns the body with statements replaced by what `change` returns, innermost first.

    Args:
      body: the statements.
      change: is called with each statement of some kinds; the others stay.
      kinds: their classes.
    """
    found: list[Stmt] = []
    for old in body:
        stmt = map_bodies(old, lambda inner: rewrite_statements(inner, change, *kinds))
        if isinstance(stmt, kinds):
            found += change(stmt)
        else:
            found.append(stmt)
    return _same_or(body, found)


def rewrite_loops(kernel: Kernel, change: ChangeLoop, *kinds: LoopKind) -> Kernel:
    """Returns the kernel with loops replaced, outermost first.

    Args:
      kernel: the kernel.
      change: is called with a loop and the scope around it. It returns what replaces the loop;
        None leaves it, and goes on with the loops inside.
      kinds: of the loops that it is called with; none for all.
    """
    return with_parts(kernel, body=_rewrite_loops(kernel.body, Scope.of(kernel), change, kinds))


def rewrite_inner_loops(loop: For, scope: Scope, change: ChangeLoop, *kinds: LoopKind) -> For:
    """Returns a loop with those inside replaced, outermost first; see `rewrite_loops`."""
    (inside,) = scope.inside(loop)
    return with_parts(loop, body=_rewrite_loops(loop.body, inside, change, kinds))


_KINDS = get_args(LoopKind)


def _rewrite_loops(
    body: tuple[Stmt, ...], scope: Scope, change: ChangeLoop, kinds: tuple[LoopKind, ...]
) -> tuple[Stmt, ...]:
    found: list[Stmt] = []
    for stmt in body:
        if isinstance(stmt, For) and (not kinds or stmt.kind in kinds):
            new = change(stmt, scope)
            if new is not None:
                found += new
                continue
        # Under nested locals each would look through all that is inside of it.
        if isinstance(stmt, Local) or not _kinds_inside(stmt).isdisjoint(kinds or _KINDS):
            stmt = map_bodies_within(
                stmt, scope, lambda part, inside: _rewrite_loops(part, inside, change, kinds)
            )
        found.append(stmt)
    return _same_or(body, found)


def _same_or(body: tuple[Stmt, ...], found: list[Stmt]) -> tuple[Stmt, ...]:
    """Returns a body if what was found instead is the same, else that."""
    is_same = len(found) == len(body) and all(map(operator.is_, found, body))
    return body if is_same else tuple(found)


def map_accesses(body: tuple[Stmt, ...], change: ChangeAccess) -> tuple[Stmt, ...]:
    """Returns the body with `change` applied to every load and store, inner loads first."""

    def part(expr: Expr) -> Expr:
        return change(expr) if isinstance(expr, Load) else expr

    loads_changed = map_all(body, lambda expr: rewrite(expr, part) if loads(expr) else expr)
    return rewrite_statements(loads_changed, lambda store: (change(store),), Store)


def rewrite_all(body: tuple[Stmt, ...], change: Callable[[Expr], Expr]) -> tuple[Stmt, ...]:
    """Returns the body with `change` applied to every part of every expression in it."""
    return map_all(body, lambda expr: rewrite(expr, change))


def exchanged(expr: Expr, old: Expr, new: Expr) -> Expr:
    """Returns the expression with one part in place of another, wherever that is."""
    return rewrite(expr, lambda part: new if part == old else part)


def replaced(body: tuple[Stmt, ...], old: Expr, new: Expr) -> tuple[Stmt, ...]:
    """Returns the body with one expression in place of another, wherever that is."""
    return map_all(body, lambda expr: exchanged(expr, old, new))


def substitute(expr: Expr, values: Mapping[str, Expr]) -> Expr:
    """Returns the expression with loop variables replaced."""
    if variables(expr).isdisjoint(values):
        return expr
    return rewrite(
        expr, lambda part: values.get(part.name, part) if isinstance(part, Var) else part
    )


def with_value(body: tuple[Stmt, ...], var: str, value: Expr) -> tuple[Stmt, ...]:
    """Returns the body of a loop for one value of its variable."""
    return map_all(body, lambda expr: substitute(expr, {var: value}))


def nested(body: tuple[Stmt, ...], parts: Sequence[For | If]) -> tuple[Stmt, ...]:
    """Returns statements inside loops and conditions, given outermost first."""
    for part in reversed(parts):
        is_loop = isinstance(part, For)
        body = (with_parts(part, body=body) if is_loop else with_parts(part, then=body),)
    return body


def within_locals(buffers: Iterable[Buffer], body: tuple[Stmt, ...]) -> tuple[Stmt, ...]:
    """Returns statements in the scope of those buffers that they use, the last one outermost."""
    for buffer in buffers:
        if any(access.buffer == buffer.name for access in accesses_in(body)):
            body = (Local(buffer, body),)
    return body


def iterations(loop: For, span: tuple[int, int]) -> tuple[Stmt, ...]:
    """Returns the body of a loop for each value of its variable, one after another.

    Args:
      loop: the loop.
      span: the first value, and the one after the last.
    """
    return tuple(
        stmt for value in range(*span) for stmt in with_value(loop.body, loop.var, integer(value))
    )


def with_body(kernel: Kernel, body: tuple[Stmt, ...]) -> Kernel:
    """Returns the kernel with another body, or the kernel itself if that is the one it has."""
    return with_parts(kernel, body=body)
