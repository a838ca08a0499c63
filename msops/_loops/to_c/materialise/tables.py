"""What a loop around does not change is computed once, before that loop.

    parallel i in 0 .. 400 {                    local table: float64[500] {
      parallel j in 0 .. 500 {                    parallel at in 0 .. 500 {
        y[i, j] = x[i, j]                           table[at] = cos(float64(at) * 0.1)
          * cos(float64(j) * 0.1)      ->         }
      }                                           parallel i in 0 .. 400 {
    }                                               parallel j in 0 .. 500 {
                                                      y[i, j] = x[i, j] * table[j]
                                                      ...

Weights of an interpolation, angles of a rotation or of a Fourier transform, and what is made of a
parameter of the kernel are such values. A table has a dimension for each loop inside that they
depend on. A compiler moves out what no loop changes, but fills no tables, and leaves what is under
a condition. A condition that chooses a value, such as a piecewise polynomial, is part of the value:
compilers make no vectors of a loop with branches and gathers. For the same reason elements that a
product of variables picks, as `cosine[k * t % n]`, go into tables, too. So do floats made of narrow
integers, as quantised weights are: for these two parallel loops are swapped if only one of them
changes the weights.

Functions that several loops call for the same iterations come from tables, too; see `row_values`.

What a condition on data guards stays: it may run seldom. One on positions, as at the border of an
image, holds for most of them.

Values are followed through the variables that hold them, up to those that the loop does not change.
What they read exists also where the loop does not run. A loop over a window, whose begin is data
but whose length is bounded, has a dimension of that length: weights of a resize are
`table[j, k - begin[j]]`.
"""

from __future__ import annotations

import dataclasses
import itertools
import math
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TypeAlias, TypeVar

from msops._loops.analysis.costs import (
    CACHE_BYTES,
    FIRST_CACHE_BYTES,
    effort,
    mean_trips,
    window_length,
)
from msops._loops.ir.algebra import integer
from msops._loops.ir.facts import kept
from msops._loops.ir.functions import FUNCTIONS
from msops._loops.ir.names import Names, unique_names
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
    Select,
    Stmt,
    Store,
    Var,
    Within,
)
from msops._loops.ir.operators import is_float, itemsize, size_bytes
from msops._loops.ir.ranges import Ranges, range_of
from msops._loops.ir.walk import (
    Scope,
    declared_in,
    expressions,
    loads,
    loads_in,
    map_operands,
    operands,
    own_expressions,
    rewrite_loops,
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
from msops._loops.to_c.materialise.row_values import RowValue, Succession, of_any_iteration

T = TypeVar("T")
_LEAST_EFFORT = 8
"""Operations of a value on floats; a table of less saves little. Indices of arrays and conditions
on them stay as they are: passes split loops by them, but not by products of variables."""
_ROUNDING = 4
"""Operations of a float made an integer, as what is out of range is the nearest one in it."""
_NARROW = ("bool", "int8", "int16", "uint8", "uint16")
"""Integers of which a vector is taken apart before it becomes floats."""
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
    if sum(map(_most_effort, own)) + sum(map(len, chosen)) < _LEAST_EFFORT:
        return kernel
    kernel = _with_rows_inside(kernel)
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


def _with_rows_inside(kernel: Kernel) -> Kernel:
    """Returns the kernel with parallel loops swapped where tables need it.

    In `parallel i { parallel j { reduction k { ... x[i, k] * float32(weight[j, k]) } } }` a table
    of the weights of one j serves all i; one of the weights of all j may be too large.
    """

    def change(loop: For, scope: Scope) -> tuple[Stmt, ...] | None:
        match loop.body:
            case (For(kind="parallel") as inner,) if loop.var not in bounds_of(inner):
                swapped = with_parts(inner, body=(with_parts(loop, body=inner.body),))
                if tables_of(loop, scope) or not any(tables_of(swapped, scope)):
                    return None
                return (swapped,) if _fits_cache(inner, scope) else None
        return None

    def bounds_of(loop: For) -> frozenset[str]:
        return variables(loop.begin) | variables(loop.end)

    def tables_of(loop: For, scope: Scope) -> list[tuple[int, ...]]:
        """Returns the shapes of the tables in a loop; a value has the empty one."""
        tables = _Tables(kernel, {})
        body, _ = tables.succession((loop,), scope, ())
        inside = (stmt.buffer for stmt in statements(body) if isinstance(stmt, Local))
        return [buffer.shape for buffer in inside if buffer.name in tables.depths]

    return rewrite_loops(kernel, change, "parallel")


def _fits_cache(loop: For, scope: Scope) -> bool:
    """Returns whether what every iteration of a loop reads again stays in a cache."""
    read = {load.buffer for load in loads_in(loop.body) if loop.var not in variables(load)}
    return sum(size_bytes(scope.buffers[name]) for name in read - declared_in(loop.body)) <= (
        CACHE_BYTES // 2
    )


class _Unknown(Exception):
    """A value depends on what changes."""


@dataclass(eq=False)
class _Frame:
    """A loop around the statement at hand, and the tables before it.

    Attributes:
      loop: the loop.
      depth: the number of loops around it.
      conditions: the number of conditions on data around it.
      changing: what the loop declares or stores.
      length: the most iterations, if the loop is a window that data may move; else None.
      bounds: of such a loop, in terms of what each loop around does not change.
      succession: the statements that the loop is one of.
      number: of the loop among all.
      fills: loops before it that fill tables of its succession.
      tables: the load of an element, by its value; with the table and what fills it.
    """

    loop: For
    depth: int
    conditions: int
    changing: set[str]
    length: int | None
    bounds: Sequence[tuple[Expr | None, Expr | None]]
    succession: Succession
    number: int
    fills: list[Stmt] = field(default_factory=list)
    tables: dict[Expr, tuple[Load, Buffer, Stmt]] = field(default_factory=dict)


@dataclass(frozen=True)
class _Axis:
    """A dimension of a table.

    Attributes:
      var: the variable of the loop that it is for.
      first: the iteration of its first element.
      size: the number of elements.
      end: the end of a window, which may come before `size` iterations; None for other loops.
    """

    var: str
    first: Expr
    size: int
    end: Expr | None = None

    @property
    def index(self) -> Expr:
        """The index of an iteration."""
        if self.end is not None:
            return _offset(Var(self.var), self.first, self.size)
        return (
            Var(self.var) if self.first == integer(0) else index("sub", Var(self.var), self.first)
        )


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
        self._of_positions: set[str] = set()
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
                    values = self._for_all(values, self._after, (new, stmt), scope)
                    changed.append(new)
                case Local():
                    (inside,) = scope.inside(stmt)
                    inner, values = self._body(stmt.body, inside, values)
                    changed.append(with_parts(stmt, body=inner))
                    self._successions[-1].forget({stmt.buffer.name})
                    continue
                case If():
                    chosen, values = self._branches(stmt, scope, values)
                    changed += chosen
                case For():
                    values = tuple(_without(held, stmt) for held in values)
                    changed += self._loop(stmt, scope, values)
            self._successions[-1].forget(stored_in((stmt,)))
        return tuple(changed), values

    def _for_all(
        self,
        values: tuple[_Values, ...],
        change: Callable[[_Frame, _Values, T, Scope], _Values],
        stmt: T,
        scope: Scope,
    ) -> tuple[_Values, ...]:
        """Returns what variables hold after a statement, for each loop around."""
        return tuple(
            change(frame, held, stmt, scope)
            for frame, held in zip(self._frames, values, strict=True)
        )

    def _loop(self, loop: For, scope: Scope, values: tuple[_Values, ...]) -> tuple[Stmt, ...]:
        """Returns a loop with its tables around it."""
        (inside,) = scope.inside(loop)
        changing = stored_in(loop.body) | declared_in(loop.body)
        length = _window(loop, scope.ranges)
        bounds: list[tuple[Expr | None, Expr | None]] = []
        if length is not None:
            for outer, held in zip(self._frames, values, strict=True):
                begin = self._value(outer, held, loop.begin, scope)
                bounds.append((begin, self._value(outer, held, loop.end, scope)))
        frame = _Frame(
            loop,
            len(self._frames),
            self._conditions,
            changing,
            length,
            bounds,
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

    def _branches(
        self, stmt: If, scope: Scope, values: tuple[_Values, ...]
    ) -> tuple[tuple[Stmt, ...], tuple[_Values, ...]]:
        """Returns a condition, or the variables that it chooses from tables; see `body`."""
        targets = sorted(stored_in((stmt,)) - declared_in((stmt,)))
        choices = self._for_all(values, self._choices, stmt, scope)
        after = tuple(
            {**_without(held, stmt), **each} for held, each in zip(values, choices, strict=True)
        )
        found = {
            name: self._element([held.get(name) for held in choices], scope) for name in targets
        }
        stores = tuple(Store(name, (), load) for name, load in found.items() if load)
        if stores and len(stores) == len(targets):
            for store in stores:
                values = self._for_all(values, self._after, (store,), scope)
            kept = ({**held, **each} for each, held in zip(values, after, strict=True))
            return stores, tuple(kept)
        conditions = self._conditions
        self._conditions += not self._is_of_positions(stmt.condition, scope, values)
        then, otherwise = (
            self.succession(part, inside, values)[0]
            for part, inside in zip((stmt.then, stmt.otherwise), scope.inside(stmt), strict=True)
        )
        self._conditions = conditions
        return (with_parts(stmt, then=then, otherwise=otherwise),), after

    def _is_of_positions(self, condition: Expr, scope: Scope, values: tuple[_Values, ...]) -> bool:
        """Returns whether a condition is a function of loop variables only, as one of borders."""
        if not self._frames:
            return False
        value = self._value(self._frames[0], values[0], condition, scope)
        return value is not None and self._reads_positions(value)

    def _reads_positions(self, value: Expr) -> bool:
        return all(load.buffer in self._of_positions for load in loads(value))

    def _after_branches(self, frame: _Frame, values: _Values, stmt: If, scope: Scope) -> _Values:
        """Returns what variables hold after a condition."""
        return {**_without(values, stmt), **self._choices(frame, values, stmt, scope)}

    def _choices(self, frame: _Frame, values: _Values, stmt: If, scope: Scope) -> _Values:
        """Returns the values of the variables that a condition stores; none if it does more."""
        inside = statements((*stmt.then, *stmt.otherwise))
        if any(
            isinstance(part, For) or (isinstance(part, Store) and part.indices) for part in inside
        ):
            return {}
        condition = self._value(frame, values, stmt.condition, scope)
        if condition is None:
            return {}
        then, otherwise = (
            self._run(frame, values, part, scope) for part in (stmt.then, stmt.otherwise)
        )
        return {
            name: then[name]
            if then[name] == otherwise[name]
            else Select(condition, then[name], otherwise[name], then[name].dtype)
            for name in stored_in((stmt,)) & then.keys() & otherwise.keys()
        }

    def _run(self, frame: _Frame, values: _Values, body: tuple[Stmt, ...], scope: Scope) -> _Values:
        """Returns what variables hold after the statements of a branch."""
        for stmt in body:
            match stmt:
                case Store():
                    values = self._after(frame, values, (stmt,), scope)
                case Local():
                    (inside,) = scope.inside(stmt)
                    values = self._run(frame, values, stmt.body, inside)
                case If():
                    values = self._after_branches(frame, values, stmt, scope)
        return values

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
        if isinstance(expr, Load) and not _is_scattered(expr):
            return expr
        if _most_effort(expr) < _LEAST_EFFORT and not any(
            not load.indices and load.buffer in held for load in loads(expr) for held in values
        ):
            return expr
        # A value that the variable of a loop is in changes with that loop.
        over = variables(expr)
        found = [
            None if frame.loop.var in over else self._value(frame, held, expr, scope)
            for frame, held in zip(self._frames, values, strict=True)
        ]
        element = self._element(found, scope)
        if isinstance(expr, Load):
            return element or expr
        element = element or self._element_of_row(expr, scope, values[-1])
        return element or map_operands(expr, lambda part: self._with_tables(part, scope, values))

    def _element(self, values: Sequence[Expr | None], scope: Scope) -> Load | None:
        """Returns the element of a table that a value is; None if it gets none.

        Args:
          values: the value in terms of what each loop around does not change; None if unknown.
          scope: the scope of the value.
        """
        for frame, value in zip(self._frames, values, strict=True):
            if value is None or frame.conditions < self._conditions:
                continue
            if not _is_worth_a_table(value):
                continue
            axes = self._axes(frame, value, scope)
            if axes is None:
                continue
            reads = math.prod(_trips(f, scope.ranges) for f in self._frames[frame.depth :])
            size = math.prod(axis.size for axis in axes)
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
            row = frame.succession.value(value, frame.loop, frame.number, scope.ranges)
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

    def _axes(self, frame: _Frame, value: Expr, scope: Scope) -> list[_Axis] | None:
        """Returns the dimensions of a table before a loop; None if the value changes with it."""
        over = variables(value)
        axes: list[tuple[tuple[bool, bool], _Axis]] = []
        for inner in reversed(self._frames[frame.depth + 1 :]):
            loop = inner.loop
            if loop.var not in over:
                continue
            low, high = scope.ranges[loop.var]
            axis = _Axis(loop.var, integer(low), high - low + 1)
            if inner.length is not None:
                begin, end = inner.bounds[frame.depth]
                if begin is not None and end is not None:
                    axis = _Axis(loop.var, begin, inner.length, end)
                    over |= variables(begin) | variables(end)
            # Short loops are written out, and the longer ones around them run in vectors.
            is_long = mean_trips(loop, scope.ranges) > _MOST_WRITTEN_OUT
            axes.insert(0, ((axis.end is not None, is_long), axis))
        if frame.loop.var in over:
            return None
        return [axis for _, axis in sorted(axes, key=lambda each: each[0])]

    def _table(self, frame: _Frame, value: Expr, axes: Sequence[_Axis]) -> Load:
        """Returns the element of a table before a loop.

        Args:
          frame: the loop; if it has a table of the same value, the element is of that one.
          value: the value.
          axes: the dimensions of the table, those of windows last.
        """
        if value in frame.tables:
            return frame.tables[value][0]
        shape = tuple(axis.size for axis in axes)
        table = Buffer(self._names.fresh("table"), shape, value.dtype)
        self.depths[table.name] = frame.depth
        if self._reads_positions(value):
            self._of_positions.add(table.name)
        loops: list[For] = []
        at: list[Expr] = []
        begins: dict[str, Expr] = {}
        for axis in axes:
            var = Var(self._names.fresh(axis.var))
            if axis.end is None:
                begins[axis.var] = index("add", axis.first, var)
                at.append(var)
                loop = For(var.name, integer(0), integer(axis.size), (), "parallel")
            else:
                first, end = substitute(axis.first, begins), substitute(axis.end, begins)
                begins[axis.var] = var
                at.append(_offset(var, first, axis.size))
                loop = For(var.name, first, end, (), "parallel")
            loops.append(loop)
        fill = self._filled(Store(table.name, tuple(at), substitute(value, begins)))
        for loop in reversed(loops):
            fill = with_parts(loop, body=(fill,))
        element = Load(table.name, tuple(axis.index for axis in axes), table.dtype)
        frame.tables[value] = (element, table, fill)
        return element

    def _filled(self, store: Store) -> Stmt:
        """Returns a store with the parts of its value that are used again in variables."""
        distinct = dict.fromkeys(expressions(store.value))
        count = Counter(part for each in distinct for part in operands(each))
        held: dict[Expr, tuple[Buffer, Expr]] = {}

        def part(expr: Expr) -> Expr:
            if expr not in held:
                new = map_operands(expr, part)
                # Indices stay as they are.
                is_index = not any(map(_effort, expressions(expr)))
                if count[expr] < 2 or is_index or isinstance(expr, Load):
                    return new
                held[expr] = (Buffer(self._names.fresh("part"), (), expr.dtype), new)
            return Load(held[expr][0].name, (), expr.dtype)

        stmt: Stmt = dataclasses.replace(store, value=part(store.value))
        for buffer, value in reversed(held.values()):
            stmt = Local(buffer, (Store(buffer.name, (), value), stmt))
        return stmt


def _is_slow(part: Expr) -> bool:
    """Returns whether a part of an expression is a function of many instructions."""
    match part:
        case FunctionCall(function=name):
            return not FUNCTIONS[name].is_instruction
        case Binary(op="pow", right=exponent, dtype=dtype):
            return is_float(dtype) and not cost.is_quick_power(exponent)
    return False


def _offset(var: Var, first: Expr, size: int) -> Expr:
    """Returns the index of an iteration of a window."""
    return Within(index("sub", var, first), 0, size - 1)


def _window(loop: For, ranges: Ranges) -> int | None:
    """Returns the length of a window that is shorter than the range of its variable."""
    length = window_length(loop)
    first, last = range_of(loop.begin, ranges)[0], range_of(loop.end, ranges)[1]
    return length if length is not None and 0 < length < last - first else None


def _trips(frame: _Frame, ranges: Ranges) -> float:
    return mean_trips(frame.loop, ranges) if frame.length is None else frame.length


def _is_worth_a_table(value: Expr) -> bool:
    """Returns whether a value takes many operations, each counted once, or is hard to load."""
    if isinstance(value, Load):
        return _is_scattered(value)
    parts = set(expressions(value))
    is_long = sum(map(_effort, parts)) >= _LEAST_EFFORT or (
        is_float(value.dtype) and any(map(_is_widening, parts))
    )
    return is_long and bool(variables(value) or loads(value))


@kept
def _most_effort(expr: Expr) -> float:
    """Returns an effort that no value in an expression exceeds, as long as its variables are not
    followed; one that has a table whatever its effort exceeds any."""
    parts = set(expressions(expr))
    if any(
        _is_widening(part) or _is_slow(part) or (isinstance(part, Load) and _is_scattered(part))
        for part in parts
    ):
        return math.inf
    return sum(map(_effort, parts))


def _is_scattered(load: Load) -> bool:
    """Returns whether a product of variables picks an element, as an angle `k * t % n`."""
    return any(
        isinstance(part, Binary)
        and part.op == "mul"
        and bool(variables(part.left))
        and bool(variables(part.right))
        for at in load.indices
        for part in expressions(at)
    )


def _is_widening(part: Expr) -> bool:
    """Returns whether a narrow integer becomes something else."""
    return isinstance(part, Cast) and part.operand.dtype in _NARROW


def _effort(part: Expr) -> int:
    if isinstance(part, Cast) and is_float(part.operand.dtype):
        return _ROUNDING
    return effort(part) if is_float(part.dtype) else 0


def _most_bytes(value: Expr) -> int:
    """Returns how large a table may be: a further cache is quicker than functions and gathers."""
    is_slow = isinstance(value, Load) or any(map(_is_slow, expressions(value)))
    return CACHE_BYTES // 4 if is_slow else FIRST_CACHE_BYTES // 2


def _without(values: _Values, stmt: Stmt) -> _Values:
    """Returns what is known of variables that a statement does not store."""
    stored = stored_in((stmt,))
    return {name: value for name, value in values.items() if name not in stored}
