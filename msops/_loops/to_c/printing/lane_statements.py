"""Statements of an innermost loop in the lanes of vectors.

    if (a[i] > 0.0) {                 const ms_vector_int32_t_16 ms_on_1 = a > 0.0f;
      b[i] = a[i]               ->    ms_put_f32_16(&b[i], a, ms_on_1);
    }                                                          where a is *(const M*)&a[i]

What a condition guards is computed in all lanes, and stored in those where it holds. Elements that
data picks are stored lane by lane. What was stored is not loaded again: after a store under a mask,
a load waits until memory has it. A variable of the loop is one of the block around: elements that
take turns in memory are stored together, also if they are computed in unlike variables.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

from msops._loops.analysis.updates import Update, sum_of
from msops._loops.ir.facts import kept
from msops._loops.ir.nodes import Binary, Expr, For, If, Load, Local, Stmt, Store
from msops._loops.ir.operators import is_float
from msops._loops.ir.walk import accesses_in, declared_in, loads, loads_in, statements, with_parts
from msops._loops.to_c.facts.strides import is_of_its_own
from msops._loops.to_c.facts.work import work
from msops._loops.to_c.printing.lane_elements import MOST_STEP
from msops._loops.to_c.printing.lane_values import LaneValues
from msops._loops.to_c.printing.vector_types import UnprintableError, bytes_of
from msops._loops.to_c.text import Values, bare, indented
from msops._loops.to_c.text.syntax import ROUNDED


@dataclass(frozen=True, eq=False)
class _Row:
    """Stores whose elements take turns in memory.

    Attributes:
      stores: in the order of their elements.
      vectors: what is stored, where that is known already.
    """

    stores: tuple[Store, ...]
    vectors: dict[Store, str] = field(default_factory=dict)


@kept
def _loaded(loop: For) -> frozenset[tuple[str, tuple[Expr, ...]]]:
    """Returns what a loop loads, as buffers and indices."""
    return frozenset((load.buffer, load.indices) for load in loads_in(loop.body))


@kept
def _computes(loop: For) -> bool:
    """Returns whether a loop does more than to copy."""
    return bool(work(statements(loop.body)))


class LaneStatements:
    """Prints the body of a loop for all lanes.

    Attributes:
      lanes: prints its expressions.
    """

    def __init__(
        self, values: Values, loop: For, lanes: int, updates: Mapping[str, Update]
    ) -> None:
        self._values = values
        self._loop = loop
        self.lanes = LaneValues(values, loop, lanes, updates)
        self._own = declared_in(loop.body)
        self._updates = updates
        self._conditions_around: dict[str, int] = {}
        self._conditions = self._kept = 0
        # By variable, a mark of its value; and the marks that the condition around compares.
        self._rows: dict[Store, _Row] = {}

    def lines(self) -> list[str]:
        """Returns the lines."""
        return self._block(self._loop.body)

    def _block(self, body: tuple[Stmt, ...]) -> list[str]:
        before, lines = dict(self.lanes.stored), []
        body = (*_in_line(body),)
        for stmt in body:
            if isinstance(stmt, Local):
                self._values.declare(stmt.buffer)
        self._rows |= self._rows_in(body)
        for number, stmt in enumerate(body):
            lines += self._statement(stmt, body[number + 1 :])
        after = self.lanes.stored
        self.lanes.stored = {at: name for at, name in before.items() if after.get(at) == name}
        return lines

    def _statement(self, stmt: Stmt, following: tuple[Stmt, ...]) -> list[str]:
        match stmt:
            case Store(buffer=name) if name in self._updates:
                return [self._updated(stmt)]
            case Store(buffer=name) if name in self._own:
                return [self._assigned(stmt)]
            case Store():
                return self._stored(stmt, following)
            case If():
                return self._branch(stmt)
            case Local(buffer=buffer, body=()) if not buffer.shape:
                self._conditions_around[buffer.name] = self.lanes.conditions
                kind = self.lanes.of_own(buffer.dtype)
                return [f"{kind} {self._values.names[buffer.name]} = {{}};"]
        raise UnprintableError

    def _updated(self, store: Store) -> str:
        """Returns the update of a variable; products are added in one rounding."""
        update = sum_of(store)
        assert update is not None
        name, types = self._values.names[store.buffer], self.lanes
        dtype = update.target.dtype
        if update.op == "add" and is_float(dtype):
            total = self._summed(update)
        else:
            term = self._bool(update.term) if dtype == "bool" else self.lanes.value(update.term)
            total = types.joined("sub" if update.is_negated else update.op, dtype, name, term)
        on = self.lanes.on(bytes_of(dtype))
        return f"{name} = {on} ? {total} : {name};" if on else f"{name} = {bare(total)};"

    def _bool(self, expr: Expr) -> str:
        """Returns a condition as it is in memory: 0 or 1 in a byte."""
        return f"({self.lanes.value_type('bool')})({self.lanes.condition(expr, 1)} & 1)"

    def _as_stored(self, expr: Expr) -> str:
        """Returns a vector of values as they are in memory."""
        if expr.dtype == "bool":
            return self._bool(expr)
        return self.lanes.to_storage(self.lanes.value(expr), expr.dtype)

    def _summed(self, update: Update) -> str:
        """Returns the sum of an element or variable and a term."""
        total, dtype = self.lanes.value(update.target), update.target.dtype
        for is_negated, part in _addends(update.term, update.is_negated):
            match part:
                case Binary(op="mul", left=left, right=right):
                    one, other = self.lanes.value(left), self.lanes.value(right)
                    one = f"-{one}" if is_negated else bare(one)
                    fma = self.lanes.helper("fma", dtype)
                    total = f"{fma}({one}, {bare(other)}, {bare(total)})"
                case _:
                    sign = "-" if is_negated else "+"
                    total = f"({total} {sign} {self.lanes.value(part)})"
        return total

    def _assigned(self, store: Store) -> str:
        """Returns the assignment of a local variable."""
        name, types = self._values.names[store.buffer], self.lanes
        dtype = self._values.buffers[store.buffer].dtype
        width = types.bool_bytes if dtype == "bool" else bytes_of(dtype)
        if dtype == "bool":
            value = self.lanes.condition(store.value, width)
        else:
            value = self.lanes.value(store.value)
        # Nothing reads a variable outside of the conditions around it. An index stays in range.
        first = self._conditions_around.get(store.buffer, 0) if is_float(dtype) else 0
        on = self.lanes.on(width, first)
        return f"{name} = {on} ? {value} : {name};" if on else f"{name} = {bare(value)};"

    def _stored(self, store: Store, following: tuple[Stmt, ...]) -> list[str]:
        """Returns a store: of a vector of neighbours, or lane by lane in order."""
        dtype = self._values.buffers[store.buffer].dtype
        types, shape = self.lanes, self._values.buffers[store.buffer].shape
        if 0 in shape:
            return []
        row = self._rows.get(store)
        step = self.lanes.step(store)
        is_in_line = step == 1 or (step == -1 and dtype != "bool")
        if not (row or is_in_line or _computes(self._loop)):
            # Nothing but a copy of elements one by one.
            raise UnprintableError
        if dtype in ROUNDED and store.buffer in self._values.variables:
            # A variable outside of the loop, which is a float until it is stored.
            raise UnprintableError
        # A tile: alone, a sum would wait longer for a fused operation than for an addition.
        is_tile = self._values.is_local(store.buffer) and len(self._loop.body) > 1
        is_sum = self._loop.kind == "reduction" or is_tile
        update = sum_of(store) if is_sum and dtype in ("float32", "float64") else None
        value = (
            self._summed(update)
            if update is not None and update.op == "add"
            else self._as_stored(store.value)
        )
        dtype = "uint16" if dtype in ROUNDED else dtype
        on = self.lanes.on(bytes_of(dtype))
        if on and self._may_be_stored_to(store):
            # A load waits until memory has what was stored under a mask.
            old = self._as_stored(Load(store.buffer, store.indices, store.value.dtype))
            value, on = self.lanes.chosen(value, old, bytes_of(dtype)), ""
        self._forget(store.buffer)
        if row and not on:
            return self._put_in_turn(store, row, dtype, value)
        if not is_in_line:
            return self._scattered(store, dtype, value, on)
        # What moves with the lanes is in range.
        tests = " && ".join(self._values.tests(store))
        test = f"if ({tests}) " if tests else ""
        lines = []
        if not tests and dtype != "uint16" and self._is_loaded(store):
            self._kept += 1
            name = f"ms_stored_{self._kept}"
            lines.append(f"const {types.value_type(dtype)} {name} = {bare(value)};")
            self.lanes.stored[store.buffer, store.indices] = value = name
            if _is_replaced(store, following):
                return lines
        place = f"&{self._place(store)}"
        if step != 1:
            place, value = f"({place} - {types.lanes - 1})", types.turned(dtype, value)
            on = types.turned(f"int{8 * bytes_of(dtype)}", on) if on else ""
        if on:
            return [
                *lines,
                f"{test}{types.helper('put', dtype)}({bare(place)}, {bare(value)}, {bare(on)});",
            ]
        return [*lines, f"{test}*({types.in_memory(dtype)}*){place} = {bare(value)};"]

    def _may_be_stored_to(self, store: Store) -> bool:
        """Returns whether the lanes that are off may store what is there: nothing else does."""
        is_whole = self.lanes.step(store) == 1 and self.lanes.is_safe(store)
        is_own = self._values.is_local(store.buffer) or is_of_its_own(store.buffer, self._loop)
        return is_whole and is_own and not self.lanes.has_more

    def _rows_in(self, body: tuple[Stmt, ...]) -> dict[Store, _Row]:
        """Returns the stores of a block whose elements take turns in memory."""
        stores = [stmt for stmt in body if isinstance(stmt, Store)]
        found: dict[Store, _Row] = {}
        for first in stores:
            step = self.lanes.step(first) or 0
            if not 1 < step <= MOST_STEP or self._values.tests(first):
                continue
            near = {
                distance: other
                for other in reversed(stores)
                if other.buffer == first.buffer and other not in found
                if (distance := self.lanes.distance(other, first)) is not None
                and 0 <= distance < step
            }
            row = _Row(tuple(near.get(place, first) for place in range(step)))
            if len(near) == step and self._may_wait(row, body):
                found |= dict.fromkeys(row.stores, row)
        return found

    def _may_wait(self, row: _Row, body: tuple[Stmt, ...]) -> bool:
        """Returns whether the stores of a row may all be made with the last of them."""
        places = [body.index(store) for store in row.stores]
        for at in range(min(places), max(places) + 1):
            for access in accesses_in((body[at],)):
                if access.buffer != row.stores[0].buffer or access in row.stores:
                    continue
                for place, store in zip(places, row.stores, strict=True):
                    distance = self.lanes.distance(access, store)
                    is_before = isinstance(access, Load) and at <= place
                    if distance is None or (distance == 0 and not is_before):
                        return False
        return len(set(places)) == len(places)

    def _put_in_turn(self, store: Store, row: _Row, dtype: str, value: str) -> list[str]:
        """Returns a store of a row: all of them are made with the last one."""
        self._kept += 1
        name = f"ms_stored_{self._kept}"
        row.vectors[store] = name
        lines = [f"const {self.lanes.value_type(dtype)} {name} = {bare(value)};"]
        if dtype != "uint16" and self._is_loaded(store):
            self.lanes.stored[store.buffer, store.indices] = name
        if len(row.vectors) == len(row.stores):
            put = self.lanes.put_apart(dtype, len(row.stores))
            vectors = ", ".join(row.vectors[each] for each in row.stores)
            lines.append(f"{put}(&{self._place(row.stores[0])}, {vectors});")
            row.vectors.clear()
        return lines

    def _is_loaded(self, store: Store) -> bool:
        """Returns whether the body loads what a store stores, from indices that do not change."""
        at = store.buffer, store.indices
        return at in _loaded(self._loop) and not any(map(loads, store.indices))

    def _forget(self, buffer: str) -> None:
        """Forgets what elements of a buffer hold."""
        stored = self.lanes.stored
        self.lanes.stored = {at: name for at, name in stored.items() if at[0] != buffer}

    def _scattered(self, store: Store, dtype: str, value: str, on: str) -> list[str]:
        """Returns a loop that stores each lane of a vector of a dtype."""
        with self.lanes.by_lane(self.lanes.own_in(store.indices)):
            element, tests = self._place(store), self._values.tests(store)
        lines = [f"const {self.lanes.value_type(dtype)} ms_new = {bare(value)};"]
        if on:
            mask = self.lanes.mask(bytes_of(dtype))
            lines.append(f"const {mask} ms_stored = {bare(on)};")
            tests.insert(0, "ms_stored[ms_lane]")
        test = f"if ({' && '.join(tests)}) " if tests else ""
        lines += [
            f"#pragma GCC unroll {self.lanes.lanes}",
            f"for (int ms_lane = 0; ms_lane < {self.lanes.lanes}; ++ms_lane)",
            f"  {test}{element} = ms_new[ms_lane];",
        ]
        return ["{", *indented(lines), "}"]

    def _place(self, store: Store) -> str:
        """Returns an element as memory holds it: those of 16 bits are integers."""
        element = self._values.element(store.buffer, store.indices)
        is_rounded = self._values.buffers[store.buffer].dtype in ROUNDED
        return f"*(uint16_t*)&{element}" if is_rounded else element

    def _branch(self, branch: If) -> list[str]:
        """Returns both branches, each for the lanes where it is chosen."""
        if self.lanes.is_uniform(branch.condition):
            lines = [f"if ({bare(self._values.value(branch.condition))}) {{"]
            lines += indented(self._block(branch.then))
            if branch.otherwise:
                lines += ["} else {", *indented(self._block(branch.otherwise))]
            return [*lines, "}"]
        width = self.lanes.width(branch.condition)
        self._conditions += 1
        name = f"ms_on_{self._conditions}"
        kind = self.lanes.mask(width)
        condition = self.lanes.condition(branch.condition, width)
        lines = [f"const {kind} {name} = {bare(condition)};"]
        with self.lanes.where(name, width):
            lines += self._block(branch.then)
        with self.lanes.where(f"(~{name})", width):
            lines += self._block(branch.otherwise)
        return ["{", *indented(lines), "}"]


def _in_line(body: tuple[Stmt, ...]) -> Iterator[Stmt]:
    """Yields the statements of a block, those around which a variable is after its declaration."""
    for stmt in body:
        if isinstance(stmt, Local):
            yield with_parts(stmt, body=())
            yield from _in_line(stmt.body)
        else:
            yield stmt


def _is_replaced(store: Store, following: tuple[Stmt, ...]) -> bool:
    """Returns whether one of the next statements stores the same elements.

    Those before it load nothing else of the buffer.
    """
    for stmt in following:
        if not isinstance(stmt, Store):
            return False
        read = [load for part in (*stmt.indices, stmt.value) for load in loads(part)]
        if any(load.buffer == store.buffer and load.indices != store.indices for load in read):
            return False
        if stmt.buffer == store.buffer:
            return stmt.indices == store.indices
    return False


def _addends(term: Expr, is_negated: bool) -> Iterator[tuple[bool, Expr]]:
    """Yields the parts of a sum, each with whether it is subtracted."""
    match term:
        case Binary(op="add" | "sub" as op, left=left, right=right):
            yield from _addends(left, is_negated)
            yield from _addends(right, is_negated != (op == "sub"))
        case _:
            yield is_negated, term
