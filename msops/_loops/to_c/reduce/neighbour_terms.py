"""Terms that a loop nest adds to neighbours of each position, so that another nest can sum them.

    reduction i in 1 .. 99 {                  terms of d: w[i] * 2.0 for d[i - 1], d[i + 1]
      local t: float32[] {
        t[] = w[i] * 2.0               ->     the rest of the nest: none
        d[i - 1] = d[i - 1] + t[]
        d[i + 1] = d[i + 1] + t[]
      }
    }

A term is computed at its element, so the values of variables are written out in it. A value that
takes long to compute, and is a part of terms for several neighbours, is computed once: the nest
keeps it in an array, or the term itself if that is the same for all of them.
"""

from __future__ import annotations

import dataclasses
from collections import Counter, defaultdict
from collections.abc import Collection, Iterator, Mapping, Sequence, Set
from dataclasses import dataclass
from typing import TypeAlias

from msops._loops.analysis.boxes import Box, Span
from msops._loops.analysis.conditions import conjuncts
from msops._loops.analysis.costs import effort, fixed_span
from msops._loops.analysis.updates import update_of
from msops._loops.ir.algebra import binary, integer
from msops._loops.ir.names import Names
from msops._loops.ir.nodes import (
    Buffer,
    Const,
    Expr,
    For,
    If,
    Load,
    Local,
    LoopKind,
    Stmt,
    Store,
    Var,
)
from msops._loops.ir.operators import is_float
from msops._loops.ir.walk import (
    Scope,
    accesses_in,
    accesses_of,
    bodies,
    declared_in,
    exchanged,
    expressions,
    loads,
    map_bodies,
    rewrite,
    statements,
    stored_in,
    substitute,
    with_parts,
)
from msops._loops.to_c.clean.reductions import SUMMED_IN_FLOAT32
from msops._loops.to_c.facts.blocks import index
from msops._loops.to_c.facts.strides import offset

MOST_TERMS = 64
_MOST_KEPT = 4
"""Arrays that keep values which take long; each is written and read again."""
_MOST_PARTS = 64
"""Operations and loads of a term that is written out."""
_QUICK = 5
"""Operations and loads of a value that each neighbour computes again; more are kept instead."""

_Position: TypeAlias = tuple[tuple[str, ...], tuple[int, ...]]
"""The variable that moves each index, and the distance of the index from it."""


@dataclass(frozen=True)
class Term:
    """``target[x + offsets] += value``, for all positions x of a box.

    Attributes:
      value: in terms of the variables.
      conditions: under which it is added, in the same terms.
      is_negated: the value is subtracted.
      variables: the coordinates of the position, in the order of the target's axes.
      offsets: the distance of the element from the position, along each axis.
      box: the positions.
    """

    value: Expr
    conditions: tuple[Expr, ...]
    is_negated: bool
    variables: tuple[str, ...]
    offsets: tuple[int, ...]
    box: Box

    @property
    def read(self) -> set[str]:
        """The arrays that the term reads."""
        return {load.buffer for part in (self.value, *self.conditions) for load in loads(part)}

    @property
    def elements(self) -> Box:
        """The elements that get the term."""
        axes = zip(self.box, self.offsets, strict=True)
        return tuple((low + away, high + away) for (low, high), away in axes)

    def at(self, element: Sequence[Expr], known: Sequence[Span]) -> tuple[tuple[Expr, ...], Expr]:
        """Returns the conditions and the value of the term for an element whose span is known."""
        limits: list[Expr] = []
        for at, (low, high), (begin, end) in zip(element, known, self.elements, strict=True):
            limits += [binary("ge", at, integer(begin))] * (begin > low)
            limits += [binary("lt", at, integer(end))] * (end < high)
        moves = zip(self.variables, element, self.offsets, strict=True)
        position = {var: index("sub", at, integer(away)) for var, at, away in moves}
        conditions = (substitute(condition, position) for condition in self.conditions)
        return (*limits, *conditions), substitute(self.value, position)


@dataclass(frozen=True)
class NeighbourTerms:
    """A nest that adds to neighbours.

    Attributes:
      terms: the terms by array, in the order of the updates; nothing else adds to these arrays.
      rest: the statements of the nest without the terms.
      kept: the arrays in which the rest keeps values that take long to compute.
    """

    terms: Mapping[str, tuple[Term, ...]]
    rest: tuple[Stmt, ...]
    kept: tuple[Buffer, ...]


def neighbour_terms(loops: tuple[For, ...], scope: Scope, names: Names) -> NeighbourTerms | None:
    """Returns the terms that a perfect nest adds to neighbours; None if it adds none.

    Args:
      loops: the loops of the nest, outermost first; their bounds are constants.
      scope: the scope around the nest.
      names: the names of the kernel.
    """
    *around, inner = loops
    loops = (*around, with_parts(inner, body=_apart(inner.body)))
    positions = dict(_positions(loops, scope))
    if not positions:
        return None
    values = _Values(loops, positions, scope, names)
    values.run(loops[-1].body)
    values.write_out()
    values.keep_terms()
    found = [term for terms in values.terms.values() for term in terms]
    arrays = values.arrays({name for term in found for name in term.read})
    is_long = any(_effort(term.value) > _MOST_PARTS for term in found)
    if values.is_lost or is_long or len(arrays) > _MOST_KEPT:
        return None
    terms = {name: tuple(own) for name, own in values.terms.items()}
    return NeighbourTerms(terms, values.rest(arrays), arrays)


def _apart(body: tuple[Stmt, ...]) -> tuple[Stmt, ...]:
    """Returns a body in which no statement is the same object as another one.

    Facts about statements are kept by their ids, and passes share equal statements.
    """
    return tuple(dataclasses.replace(map_bodies(stmt, _apart)) for stmt in body)


def _bounds(loop: For) -> Span:
    span = fixed_span(loop)
    assert span is not None
    return span


def _positions(loops: tuple[For, ...], scope: Scope) -> Iterator[tuple[int, _Position]]:
    """Yields the ids of stores that update neighbours, each with its position.

    Their arrays are updated in no other way, and nothing else reads them.
    """
    body = loops[-1].body
    variables = {loop.var for loop in loops}
    uses = Counter(access.buffer for stmt in statements(body) for access in accesses_of(stmt))
    found: dict[str, list[tuple[int, tuple[str, ...], tuple[int, ...]]]] = defaultdict(list)
    for store in _stores(body):
        update = update_of(store) if store.buffer in scope.buffers else None
        if update is None or update.op != "add" or not is_float(update.term.dtype):
            continue
        position = _position(store, variables)
        if position is not None and update.term.dtype not in SUMMED_IN_FLOAT32:
            found[store.buffer].append((id(store), *position))
    for name, updates in found.items():
        # Each update loads its element and stores it.
        offsets = {offsets for _, _, offsets in updates}
        is_alone = uses[name] == 2 * len(updates)
        if is_alone and len(offsets) > 1 and len(updates) <= MOST_TERMS:
            yield from ((number, (around, at)) for number, around, at in updates)


def _stores(body: tuple[Stmt, ...]) -> Iterator[Store]:
    """Yields the stores of a body outside of loops."""
    for stmt in body:
        if isinstance(stmt, Store):
            yield stmt
        elif not isinstance(stmt, For):
            for inner in bodies(stmt):
                yield from _stores(inner)


def _position(access: Load | Store, variables: set[str]) -> _Position | None:
    """Returns the position of an access; None if an index is no variable plus a constant."""
    found: list[tuple[str, int]] = []
    for at in access.indices:
        own = {part.name for part in expressions(at) if isinstance(part, Var)}
        if len(own) != 1:
            return None
        (var,) = own
        away = offset(at, var)
        if away is None:
            return None
        found.append((var, away))
    around = tuple(var for var, _ in found)
    if {*around} != variables or len(around) != len(variables):
        return None
    return around, tuple(away for _, away in found)


class _Values:
    """The values of the variables in one iteration of a nest, where its terms are computed.

    Attributes:
      terms: what becomes of the stores that update neighbours, by array.
      is_lost: whether a term has a value or condition that nothing keeps.
    """

    def __init__(
        self, loops: tuple[For, ...], moved: Mapping[int, _Position], scope: Scope, names: Names
    ) -> None:
        self._loops = loops
        self._moved = moved
        self._scope = scope
        self._names = names
        body = loops[-1].body
        self._changing = stored_in(body) | declared_in(body)
        self._spans = {loop.var: _bounds(loop) for loop in loops}
        self._shape = tuple(end - begin for begin, end in self._spans.values())
        self._at = tuple(index("sub", Var(loop.var), loop.begin) for loop in loops)
        self._now: dict[str, Expr] = {}
        # By the id of a statement, what may be kept after it.
        self._keeping: dict[int, list[tuple[Buffer, Expr]]] = defaultdict(list)
        # By the name of the array that keeps it, a long value.
        self._long: dict[str, Expr] = {}
        self.terms: dict[str, list[Term]] = defaultdict(list)
        self.is_lost = False

    def run(self, body: tuple[Stmt, ...], conditions: tuple[Expr | None, ...] = ()) -> None:
        """Finds the values and terms of a body that runs under some conditions.

        Args:
          body: the body.
          conditions: in terms of elements; None for each that is no such expression.
        """
        for stmt in body:
            match stmt:
                case Local(buffer=buffer):
                    if not buffer.shape:
                        self._now[buffer.name] = _zero(buffer.dtype)
                    self.run(stmt.body, conditions)
                case Store() if id(stmt) in self._moved:
                    self._update(stmt, conditions)
                case Store() if stmt.buffer in self._now:
                    self._set(stmt.buffer, stmt, self._resolved(stmt.value))
                case Store():
                    continue
                case If(condition=condition, then=then, otherwise=otherwise):
                    before = dict(self._now)
                    for part, holds in ((then, True), (otherwise, False)):
                        self._now = dict(before)
                        own = map(self._resolved, conjuncts(condition, holds))
                        self.run(part, (*conditions, *own))
                    self._now = before
                    self._forget(stmt)
                case _:
                    self._forget(stmt)

    def _forget(self, stmt: Stmt) -> None:
        """Takes the variables that a statement stores to as they are after it."""
        for name in sorted(stored_in((stmt,)) & self._now.keys()):
            self._set(name, stmt, None)

    def _set(self, name: str, after: Stmt, value: Expr | None) -> None:
        """Takes a variable as its value after a statement; a long or unknown value is kept."""
        if value is None or _effort(value) > _QUICK:
            element = self._kept(after, Load(name, (), self._now[name].dtype))
            if value is not None and _effort(value) <= _MOST_PARTS:
                self._long[element.buffer] = value
            value = element
        self._now[name] = value

    def _kept(self, after: Stmt, value: Expr) -> Load:
        """Returns the element of an array that keeps a value after a statement."""
        array = Buffer(self._names.fresh("kept"), self._shape, value.dtype)
        self._keeping[id(after)].append((array, value))
        return Load(array.name, self._at, array.dtype)

    def _resolved(self, expr: Expr) -> Expr | None:
        """Returns an expression with values for variables; None if the nest changes other loads."""
        if any(load.buffer in self._changing - self._now.keys() for load in loads(expr)):
            return None

        def change(part: Expr) -> Expr:
            return self._now.get(part.buffer, part) if isinstance(part, Load) else part

        return rewrite(expr, change)

    def _update(self, store: Store, conditions: tuple[Expr | None, ...]) -> None:
        """Takes a store as a term of the positions where its conditions hold."""
        update = update_of(store)
        assert update is not None
        value = self._resolved(update.term)
        # A value that is kept under conditions would be one of another time elsewhere.
        self.is_lost |= None in conditions or (value is None and bool(conditions))
        value = value or self._kept(store, update.term)
        around, offsets = self._moved[id(store)]
        box = tuple(self._spans[var] for var in around)
        holds = tuple(each for each in conditions if each is not None)
        term = Term(value, holds, update.is_negated, around, offsets, box)
        self.terms[store.buffer].append(term)

    def write_out(self) -> None:
        """Writes out the long values that the terms of one element alone read."""
        for array, value in reversed(self._long.items()):
            readers = {
                (name, term.offsets)
                for name, terms in self.terms.items()
                for term in terms
                if array in term.read
            }
            if len(readers) == 1:
                ((name, _),) = readers

                def change(part: Expr, array: str = array, value: Expr = value) -> Expr:
                    return value if isinstance(part, Load) and part.buffer == array else part

                self.terms[name] = [
                    dataclasses.replace(
                        term,
                        value=rewrite(term.value, change),
                        conditions=tuple(rewrite(each, change) for each in term.conditions),
                    )
                    for term in self.terms[name]
                ]

    def keep_terms(self) -> None:
        """Keeps the term of several elements that a kept value is a part of, instead of that."""
        names = {array.name for kept in self._keeping.values() for array, _ in kept}
        for kept in self._keeping.values():
            for number, (array, value) in enumerate(kept):
                whole = self._only_term_of(array.name, names)
                if whole is None:
                    continue
                instead = Buffer(self._names.fresh("kept"), self._shape, whole.dtype)
                part = Load(array.name, self._at, array.dtype)
                kept[number] = (instead, exchanged(whole, part, value))
                element = Load(instead.name, self._at, instead.dtype)
                for terms in self.terms.values():
                    terms[:] = [
                        dataclasses.replace(term, value=exchanged(term.value, whole, element))
                        for term in terms
                    ]

    def _only_term_of(self, array: str, kept: Set[str]) -> Expr | None:
        """Returns the one term in which a kept value is read, also as a part of other terms.

        None if there are several, or if a condition may guard what else the term reads.
        """
        readers = [term for terms in self.terms.values() for term in terms if array in term.read]
        whole = min((term.value for term in readers), key=_effort, default=None)
        if whole is None or isinstance(whole, Load) or sum(t.value == whole for t in readers) < 2:
            return None
        nothing = _zero(whole.dtype)
        left = [
            part for t in readers for part in (exchanged(t.value, whole, nothing), *t.conditions)
        ]
        is_alone = all(load.buffer != array for part in left for load in loads(part))
        others = [load for load in loads(whole) if load.buffer != array]
        are_inside = all(load.buffer not in kept and self._is_inside(load) for load in others)
        return whole if is_alone and are_inside else None

    def _is_inside(self, load: Load) -> bool:
        """Returns whether each iteration has an element of its own at the indices of a load."""
        position = _position(load, {*self._spans})
        if position is None:
            return False
        spans = [self._spans[var] for var in position[0]]
        shape = self._scope.buffers[load.buffer].shape
        return all(
            begin + away >= 0 and end + away <= size
            for (begin, end), away, size in zip(spans, position[1], shape, strict=True)
        )

    # The nest without the terms.

    def arrays(self, read: Set[str]) -> tuple[Buffer, ...]:
        """Returns the arrays that keep values, of those that terms read."""
        return tuple(a for kept in self._keeping.values() for a, _ in kept if a.name in read)

    def rest(self, arrays: Collection[Buffer]) -> tuple[Stmt, ...]:
        """Returns the nest without the terms, and with the stores of the values that are kept."""

        def left(body: tuple[Stmt, ...]) -> tuple[Stmt, ...]:
            return tuple(new for stmt in body for new in changed(stmt))

        def changed(stmt: Stmt) -> Iterator[Stmt]:
            if id(stmt) not in self._moved:
                yield map_bodies(stmt, left)
            for array, value in self._keeping.get(id(stmt), ()):
                if array in arrays:
                    yield Store(array.name, self._at, value)

        loops = self._loops
        body = left(loops[-1].body)
        outer = stored_in(body) - declared_in(body)
        if not outer:
            return ()
        is_apart = all(_is_of_each(name, body, {loop.var for loop in loops}) for name in outer)
        for loop in reversed(loops):
            kind: LoopKind = "parallel" if is_apart else loop.kind
            body = (with_parts(loop, body=body, kind=kind),)
        return body


def _is_of_each(name: str, body: tuple[Stmt, ...], variables: set[str]) -> bool:
    """Returns whether each iteration of a nest touches one element of an array, its own."""
    touched = {a.indices: a for a in accesses_in(body) if a.buffer == name}
    return len(touched) == 1 and all(_position(a, variables) is not None for a in touched.values())


def _effort(expr: Expr) -> int:
    return sum(map(effort, expressions(expr)))


def _zero(dtype: str) -> Const:
    return Const(0.0 if is_float(dtype) else False if dtype == "bool" else 0, dtype)
