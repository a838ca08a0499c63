"""What a loop around does not change is computed once, before that loop.

    parallel i in 0 .. 400 {                    local table: float64[500] {
      parallel j in 0 .. 500 {                    parallel at in 0 .. 500 {
        y[i, j] = x[i, j]                           table[at] = cos(float64(at) * 0.1)
          * cos(float64(j) * 0.1)      ->         }
      }                                           parallel i in 0 .. 400 {
    }                                               parallel j in 0 .. 500 {
                                                      y[i, j] = x[i, j] * table[j]
                                                      ...

Angles of a rotation or of a Fourier transform, and what is made of a parameter of the kernel are
such values. So are coordinates of points and boxes that lie side by side: vectors would pick them
from memory again and again. A table has a dimension for each loop inside that they depend on. A
compiler moves out what no loop changes, but fills no tables.

Functions that several loops call for the same iterations come from tables, too; see `row_values`.

What a condition guards stays: it may run seldom.

Values are followed through the variables that hold them, up to those that the loop does not change.
What they read exists also where the loop does not run.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TypeAlias

from msops._loops.analysis.costs import CACHE_BYTES, FIRST_CACHE_BYTES, effort, mean_trips
from msops._loops.ir.algebra import integer
from msops._loops.ir.facts import kept
from msops._loops.ir.functions import FUNCTIONS
from msops._loops.ir.names import Names, over_box, unique_names
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
    Stmt,
    Store,
    Var,
)
from msops._loops.ir.operators import is_float, itemsize
from msops._loops.ir.walk import (
    Scope,
    declared_in,
    expressions,
    loads,
    map_operands,
    own_expressions,
    size_of,
    statements,
    stored_in,
    substitute,
    variables,
    visit,
    with_body,
    with_parts,
)
from msops._loops.passes.elements import exists
from msops._loops.passes.simplify import simplify
from msops._loops.to_c import cost
from msops._loops.to_c.facts.blocks import index
from msops._loops.to_c.facts.strides import stride
from msops._loops.to_c.materialise.row_values import RowValue, Succession, of_any_iteration

_LEAST_EFFORT = 8
"""Operations of a value on floats; a table of less saves little. Indices of arrays and conditions
on them stay as they are: passes split loops by them, but not by products of variables."""
_ROUNDING = 4
"""Operations of a float made an integer, as what is out of range is the nearest one in it."""
_FEWEST_READS = 4
"""How often an element of a table is read."""
_MOST_WRITTEN_OUT = 8
"""Iterations of a loop that is surely too short for vectors."""
_MOST_NODES = 400
"""Nodes of a value; a longer one is not followed through variables."""

_Values: TypeAlias = Mapping[str, Expr]
"""What the variables hold that a loop stores, in terms of what it does not change; those that are
not in it are unknown."""
_Planned: TypeAlias = dict[tuple[int, Expr], RowValue]


def tabulate_values(kernel: Kernel) -> Kernel:
    """Returns the kernel with such values in tables."""
    own = [expr for stmt in statements(kernel.body) for expr in own_expressions(stmt)]
    # A condition may choose each value that is stored in it.
    chosen = (stored_in((stmt,)) for stmt in statements(kernel.body) if isinstance(stmt, If))
    if sum(map(_most_effort, own)) + sum(map(len, chosen)) < _LEAST_EFFORT and not any(
        isinstance(stmt, Store) and _reads_apart(stmt.value, scope) for stmt, scope in visit(kernel)
    ):
        return kernel
    planned = None
    if _may_have_rows(kernel):
        planning = _Tables(kernel)
        planning.succession(kernel.body, Scope.of(kernel), ())
        planned = planning.planned
    tables = _Tables(kernel, planned or {})
    body, _ = tables.succession(kernel.body, Scope.of(kernel), ())
    if not tables.depths:
        return kernel
    # The first drops stores to tables that nothing reads, the second what they were computed from.
    return unique_names(simplify(simplify(with_body(kernel, body))))


def _may_have_rows(kernel: Kernel) -> bool:
    """Returns whether several loops call functions, or one that is a sum; see `row_values`."""
    around = [
        scope.loops[-1]
        for stmt, scope in visit(kernel)
        if scope.loops
        and any(_is_slow(part) for own in own_expressions(stmt) for part in expressions(own))
    ]
    return len({loop.var for loop in around}) > 1 or any(loop.kind != "parallel" for loop in around)


class _Unknown(Exception):
    """A value depends on what changes."""


@dataclass(eq=False)
class _Frame:
    """A loop around the statement at hand, and the tables before it.

    Attributes:
      loop: the loop.
      scope: that of the loop.
      depth: the number of loops around it.
      conditions: the number of conditions around it.
      changing: what the loop declares or stores.
      succession: the statements that the loop is one of.
      number: of the loop among all.
      fills: loops before it that fill tables of its succession.
      tables: the load of an element, by its value; with the table and what fills it.
    """

    loop: For
    scope: Scope
    depth: int
    conditions: int
    changing: set[str]
    succession: Succession
    number: int
    fills: list[Stmt] = field(default_factory=list)
    tables: dict[Expr, tuple[Load, Buffer, Stmt]] = field(default_factory=dict)


class _Tables:
    """Rewrites statements in their order.

    Attributes:
      depths: the number of loops around each table.
      planned: the values of rows, by the numbers of the loops that compute them.
    """

    def __init__(self, kernel: Kernel, planned: _Planned | None = None) -> None:
        self._names = Names(kernel)
        self._frames: list[_Frame] = []
        self._successions: list[Succession] = []
        self._numbers = itertools.count()
        self._conditions = 0
        self.depths: dict[str, int] = {}
        self.planned: _Planned = planned or {}
        self._is_planning = planned is None

    def succession(
        self, body: tuple[Stmt, ...], scope: Scope, values: tuple[_Values, ...]
    ) -> tuple[tuple[Stmt, ...], tuple[_Values, ...]]:
        """Returns statements with tables, also those of rows that several loops of them compute.

        Args:
          body: the statements of the kernel, a loop or a branch.
          scope: the scope around them.
          values: what variables hold before them, for each loop around.
        """
        self._successions.append(Succession())
        body, values = self._body(body, scope, values)
        for table in reversed(self._successions.pop().tables):
            body = (Local(table, body),)
        return body, values

    def _body(
        self, body: tuple[Stmt, ...], scope: Scope, values: tuple[_Values, ...]
    ) -> tuple[tuple[Stmt, ...], tuple[_Values, ...]]:
        """Returns statements with tables, and what variables hold after them; see `succession`."""
        changed: list[Stmt] = []
        for stmt in body:
            match stmt:
                case Store():
                    new = with_parts(stmt, value=self._with_tables(stmt.value, scope, values))
                    values = tuple(
                        self._after(frame, held, (new, stmt), scope)
                        for frame, held in zip(self._frames, values, strict=True)
                    )
                    changed.append(new)
                case Local():
                    (inside,) = scope.inside(stmt)
                    inner, values = self._body(stmt.body, inside, values)
                    changed.append(with_parts(stmt, body=inner))
                    self._successions[-1].forget({stmt.buffer.name})
                    continue
                case If():
                    changed.append(self._branches(stmt, scope, values))
                    values = tuple(_without(held, stmt) for held in values)
                case For():
                    values = tuple(_without(held, stmt) for held in values)
                    changed += self._loop(stmt, scope, values)
            self._successions[-1].forget(stored_in((stmt,)))
        return tuple(changed), values

    def _loop(self, loop: For, scope: Scope, values: tuple[_Values, ...]) -> tuple[Stmt, ...]:
        """Returns a loop with its tables around it."""
        (inside,) = scope.inside(loop)
        changing = stored_in(loop.body) | declared_in(loop.body)
        frame = _Frame(
            loop,
            scope,
            len(self._frames),
            self._conditions,
            changing,
            self._successions[-1],
            next(self._numbers),
        )
        self._frames.append(frame)
        body, _ = self.succession(loop.body, inside, (*values, {}))
        self._frames.pop()
        around: tuple[Stmt, ...] = (*frame.fills, with_parts(loop, body=body))
        for _, table, fill in reversed(frame.tables.values()):
            around = (Local(table, (fill, *around), location=loop.location),)
        return around

    def _branches(self, stmt: If, scope: Scope, values: tuple[_Values, ...]) -> Stmt:
        """Returns a condition with tables in its branches."""
        self._conditions += 1
        then, otherwise = (
            self.succession(part, inside, values)[0]
            for part, inside in zip((stmt.then, stmt.otherwise), scope.inside(stmt), strict=True)
        )
        self._conditions -= 1
        return with_parts(stmt, then=then, otherwise=otherwise)

    def _after(
        self, frame: _Frame, values: _Values, forms: Sequence[Store], scope: Scope
    ) -> _Values:
        """Returns what variables hold after a store, by the first of its forms that is known."""
        store = forms[0]
        if store.indices:
            return values
        for each in forms:
            if (value := self._value(frame, values, each.value, scope)) is not None:
                return {**values, store.buffer: value}
        return _without(values, store)

    def _value(self, frame: _Frame, values: _Values, expr: Expr, scope: Scope) -> Expr | None:
        """Returns an expression in terms of what a loop does not change.

        None: it depends on something else, or is long.
        """

        def known(part: Expr) -> Expr:
            if not isinstance(part, Load):
                return map_operands(part, known)
            if not part.indices and part.buffer in values:
                return values[part.buffer]
            element = map_operands(part, known)
            assert isinstance(element, Load)
            if part.buffer in self.depths:
                is_there = self.depths[part.buffer] <= frame.depth
            else:
                is_there = exists(element, scope.ranges, scope.buffers)
            if part.buffer in frame.changing or not is_there:
                raise _Unknown
            return element

        if size_of(expr) > _MOST_NODES:
            return None
        try:
            value = known(expr)
        except _Unknown:
            return None
        return value if size_of(value) <= _MOST_NODES else None

    def _with_tables(self, expr: Expr, scope: Scope, values: tuple[_Values, ...]) -> Expr:
        """Returns an expression whose largest parts of this kind are elements of tables."""
        if isinstance(expr, Const | Var) or not self._frames:
            return expr
        is_apart = _reads_apart(expr, scope)
        if isinstance(expr, Load) and not is_apart:
            return expr
        is_held = any(
            not load.indices and load.buffer in held for load in loads(expr) for held in values
        )
        if not (is_apart or is_held) and _most_effort(expr) < _LEAST_EFFORT:
            return expr
        # A value that the variable of a loop is in changes with that loop.
        over = variables(expr)
        found = [
            None if frame.loop.var in over else self._value(frame, held, expr, scope)
            for frame, held in zip(self._frames, values, strict=True)
        ]
        element = self._element(found, scope) or self._element_of_row(expr, scope, values[-1])
        if element or isinstance(expr, Load):
            return element or expr
        return map_operands(expr, lambda part: self._with_tables(part, scope, values))

    def _element(self, values: Sequence[Expr | None], scope: Scope) -> Load | None:
        """Returns the element of a table that a value is; None if it gets none.

        Args:
          values: the value in terms of what each loop around does not change; None if unknown.
          scope: the scope of the value.
        """
        for frame, value in zip(self._frames, values, strict=True):
            if value is None or frame.conditions < self._conditions:
                continue
            if not _is_worth_a_table(value) and not _reads_apart(value, scope):
                continue
            axes = self._axes(frame, value, scope)
            if axes is None:
                continue
            reads = math.prod(mean_trips(f.loop, scope.ranges) for f in self._frames[frame.depth :])
            size = math.prod(high - low + 1 for _, low, high in axes)
            is_small = size * itemsize(value.dtype) <= _most_bytes(value)
            if is_small and reads >= _FEWEST_READS * size:
                return self._table(frame, value, axes)
        return None

    def _element_of_row(self, expr: Expr, scope: Scope, held: _Values) -> Load | None:
        """Returns the element of a table that several loops share, if there is one of a value.

        Args:
          expr: what a loop computes; a table is for one that calls functions.
          scope: the scope of it.
          held: what variables hold before it, in terms of what the loop does not change.
        """
        frame = self._frames[-1]
        if not (self._is_planning or self.planned):
            return None
        if frame.conditions < self._conditions or not any(map(_is_slow, expressions(expr))):
            return None
        value = self._value(frame, held, expr, scope)
        if value is None or frame.loop.var not in variables(value):
            return None
        key = (frame.number, of_any_iteration(value, frame.loop))
        if self._is_planning:
            row = frame.succession.value(value, frame.loop, frame.number, frame.scope)
            self.planned[key] = row
            return None
        planned = self.planned.get(key)
        if planned is None or not planned.is_worth_a_table:
            return None
        if planned.table is None:
            fill, table = planned.fill(self._names)
            frame.fills.append(fill)
            frame.succession.tables.append(table)
            self.depths[table.name] = frame.depth
        return planned.element(frame.loop.var)

    def _axes(self, frame: _Frame, value: Expr, scope: Scope) -> list[tuple[str, int, int]] | None:
        """Returns the loops with a dimension of a table before a loop: variables and their ranges.

        None: the value changes with the loop.
        """
        over = variables(value)
        if frame.loop.var in over:
            return None
        loops = [inner.loop for inner in self._frames[frame.depth + 1 :] if inner.loop.var in over]
        # Short loops are written out, and the longer ones around them run in vectors.
        loops.sort(key=lambda loop: mean_trips(loop, scope.ranges) > _MOST_WRITTEN_OUT)
        return [(loop.var, *scope.ranges[loop.var]) for loop in loops]

    def _table(self, frame: _Frame, value: Expr, axes: Sequence[tuple[str, int, int]]) -> Load:
        """Returns the element of a table before a loop.

        Args:
          frame: the loop; if it has a table of the same value, the element is of that one.
          value: the value.
          axes: the dimensions of the table, as variables of loops and their ranges.
        """
        if value in frame.tables:
            return frame.tables[value][0]
        shape = tuple(high - low + 1 for _, low, high in axes)
        table = Buffer(self._names.fresh("table"), shape, value.dtype)
        self.depths[table.name] = frame.depth

        def filled(at: tuple[Var, ...]) -> Stmt:
            iterations = {
                var: index("add", integer(low), number)
                for number, (var, low, _) in zip(at, axes, strict=True)
            }
            return Store(table.name, at, substitute(value, iterations))

        fill = over_box(
            [(0, size) for size in shape], [var for var, _, _ in axes], self._names.fresh, filled
        )
        at = tuple(index("sub", Var(var), integer(low)) for var, low, _ in axes)
        element = Load(table.name, at, table.dtype)
        frame.tables[value] = (element, table, fill)
        return element


def _reads_apart(expr: Expr, scope: Scope) -> bool:
    """Returns whether vectors over the innermost loop pick elements from memory lane by lane, or
    from several vectors. What other loops index, too, is a matrix: for it, loops change places."""
    match scope.loops[-1:]:
        case (For(kind="parallel", var=var),):
            return any(
                stride(load, var, scope.buffers) not in (None, 0, 1)
                for load in loads(expr)
                if load.buffer in scope.buffers and variables(load) == {var}
            )
    return False


def _is_slow(part: Expr) -> bool:
    """Returns whether a part of an expression is a function of many instructions."""
    match part:
        case FunctionCall(function=name):
            return not FUNCTIONS[name].is_instruction
        case Binary(op="pow", right=exponent, dtype=dtype):
            return is_float(dtype) and not cost.is_quick_power(exponent)
    return False


def _is_worth_a_table(value: Expr) -> bool:
    """Returns whether a value takes many operations, each counted once."""
    is_long = sum(map(_effort, set(expressions(value)))) >= _LEAST_EFFORT
    return is_long and bool(variables(value) or loads(value))


@kept
def _most_effort(expr: Expr) -> float:
    """Returns an effort that no value in an expression exceeds, as long as its variables are not
    followed; one that has a table whatever its effort exceeds any."""
    parts = set(expressions(expr))
    return math.inf if any(map(_is_slow, parts)) else sum(map(_effort, parts))


def _effort(part: Expr) -> int:
    if isinstance(part, Cast) and is_float(part.operand.dtype):
        return _ROUNDING
    return effort(part) if is_float(part.dtype) else 0


def _most_bytes(value: Expr) -> int:
    """Returns how large a table may be: a further cache is quicker than functions and gathers."""
    is_slow = any(map(_is_slow, expressions(value)))
    return CACHE_BYTES // 4 if is_slow else FIRST_CACHE_BYTES // 2


def _without(values: _Values, stmt: Stmt) -> _Values:
    """Returns what is known of variables that a statement does not store."""
    stored = stored_in((stmt,))
    return {name: value for name, value in values.items() if name not in stored}
