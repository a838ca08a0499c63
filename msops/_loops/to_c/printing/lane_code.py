"""Innermost loops as explicit vector code: statements on several iterations at once.

    parallel i in 0 .. n {            for (; i + 16 <= n; i += 16) {
      b[i] = a[i] * 2.0         ->      *(M*)&b[i] = *(const M*)&a[i] * 2.0f;
    }                                 }
                                      ... smaller vectors, then one by one ...
    reduction i in 0 .. n {           V sum_0 = -0.0 - V{}, sum_1 = -0.0 - V{};
      sum[] = sum[] + a[i] * b[i]     for (; i + 32 <= n; i += 32) {
    }                           ->      sum_0 = ms_fma(*(const M*)&a[i], *(const M*)&b[i], sum_0);
                                        sum_1 = ...
                                      }
                                      ... one vector, and what is left ...
                                      sum = sum + ms_all_add(sum_0 + sum_1);

What a condition guards is computed in all lanes, and stored in those where it holds. What is left
of a long body runs in one vector under a mask, unless the loop is shorter than a vector. Iterations
that read nothing of what the loop stores may run twice, which fills the last vector. A reduction
has several vectors of each of its variables, so that no operation waits for the one before; its
order is that of the text, for every compiler. A loop that vectors do not print (see `lane_values`)
stays a loop.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping
from dataclasses import dataclass

from msops._base import processor
from msops._loops.analysis.affine import affine
from msops._loops.analysis.updates import Update
from msops._loops.ir.facts import kept
from msops._loops.ir.functions import FUNCTIONS
from msops._loops.ir.nodes import (
    Binary,
    Cast,
    Const,
    Expr,
    For,
    FunctionCall,
    If,
    Load,
    Stmt,
    Store,
)
from msops._loops.ir.operators import is_float
from msops._loops.ir.ranges import loop_range
from msops._loops.ir.walk import (
    declared_in,
    expressions,
    has_bounds_of_data,
    loads_in,
    own_expressions,
    statements,
    stored_in,
)
from msops._loops.passes.simplify_expressions import difference
from msops._loops.to_c.facts.work import work
from msops._loops.to_c.printing.lane_statements import LaneStatements
from msops._loops.to_c.printing.lane_values import LaneValues
from msops._loops.to_c.printing.vector_types import UnprintableError, bytes_of
from msops._loops.to_c.text import Values, bare, indented

_MOST_VECTORS = 4
"""Vectors of one variable of a reduction."""
_MOST_VECTORS_TOGETHER = 8
"""Vectors of all its variables: half of the registers that every processor has."""
_LANES_OF_DATA = 8
"""Iterations at once of a reduction whose length is data: most lanes of more would be off."""
_LONG = 400
"""Letters of a body that is printed once more, for the last iterations under a mask, instead of
once for each smaller vector. A mask touches what may just have been stored, and waits for it."""
_NEUTRAL = {"add": "-0.0", "mul": "1.0"}
_NEUTRAL_INTEGER = {"add": "0", "mul": "1", "xor": "0"}
"""What each lane begins with; for other operations the variable itself."""


def trips_of(loop: For) -> int | None:
    """Returns how many iterations a loop runs, if both bounds move alike; else None."""
    begin, end = affine(loop.begin, ()), affine(loop.end, ())
    if begin is None or end is None:
        return None
    trips = end - begin
    return None if trips.terms else max(0, trips.constant)


def has_halves(loop: For, trips: int | None) -> bool:
    """Returns whether a loop is more than one vector, longer than the shortest one."""
    lanes = _lanes(loop, trips)
    return lanes != trips and lanes * _widest(loop) > processor.LEAST_VECTOR_BYTES


def _lanes(loop: For, trips: int | None) -> int:
    """Returns how many iterations run at once; 0 if vectors would not be filled."""
    widest = _widest(loop)
    if not widest:
        return 0
    lanes = processor.vector_bytes() // widest
    if loop.kind == "reduction" and has_bounds_of_data(loop):
        lanes = min(lanes, _LANES_OF_DATA)
    while trips is not None and lanes > trips:
        lanes //= 2
    return lanes if lanes >= _fewest_lanes(loop) else 0


def _fewest_lanes(loop: For) -> int:
    return max(2, processor.LEAST_VECTOR_BYTES // _widest(loop))


@kept
def _widest(loop: For) -> int:
    """Returns the most bytes of a value that a loop computes."""
    parts = (part for stmt in statements(loop.body) for part in _computed(stmt))
    return max(map(_bytes, parts), default=0)


def _bytes(part: Expr) -> int:
    """Returns the bytes in which a value is computed: a quotient of int32 is one of float64."""
    return bytes_of("float64" if _is_quotient(part) else part.dtype)


def _is_quotient(part: Expr) -> bool:
    """Returns whether a value is a quotient or remainder of int32 by one that is no constant."""
    match part:
        case Binary(op="floordiv" | "mod", dtype="int32", right=right):
            return not isinstance(right, Const)
    return False


def _computed(stmt: Stmt) -> list[Expr]:
    """Returns the values that a statement computes, outside of indices."""
    match stmt:
        case Store(value=whole) | If(condition=whole):
            return [
                part
                for part in expressions(whole)
                if isinstance(part, Load | Cast) or part is whole or _is_quotient(part)
            ]
    return []


@dataclass(frozen=True)
class VectorLoop:
    """A loop in vectors.

    Attributes:
      loop: an innermost loop, parallel or a reduction of variables.
      begin: the first iteration, as C.
      end: the one after the last, as C.
      trips: how many iterations it has; None if that is not known.
      values: the printer of values.
      updates: by their names, those of the variables that a reduction updates.
      rest: returns the lines of one iteration.
    """

    loop: For
    begin: str
    end: str
    trips: int | None
    values: Values
    updates: Mapping[str, Update]
    rest: Callable[[], list[str]]

    def lines(self) -> list[str] | None:
        """Returns the lines; None if the loop stays as it is."""
        values = self.values
        if values.check_bounds or not self._most:
            return None
        values.ranges[self.loop.var] = loop_range(self.loop, values.ranges)
        helpers, names = dict(values.helpers), dict(values.names)
        try:
            return ["{", *indented(self._lines()), "}"]
        except UnprintableError:
            values.helpers.clear()
            values.helpers.update(helpers)
            return None
        finally:
            values.names.update(names)

    @functools.cached_property
    def _most(self) -> int:
        if self.trips is not None:
            return _lanes(self.loop, self.trips)
        span = difference(self.loop.end, self.loop.begin, self.values.ranges)
        # Few iterations, whose number varies, seldom fill even the smallest vector.
        is_short = span is not None and span[1] < 2 * _fewest_lanes(self.loop)
        return 0 if is_short else _lanes(self.loop, span and span[1])

    @functools.cached_property
    def _name(self) -> str:
        return self.values.names[self.loop.var]

    @functools.cached_property
    def _sums(self) -> dict[str, str]:
        return {name: self.values.names[name] for name in self.updates}

    def _lines(self) -> list[str]:
        trips, lanes, name = self.trips, self._most, self._name
        if trips == lanes and not self.updates:
            return [f"const int64_t {name} = {self.begin};", *self._body(lanes)]
        if trips is None or not self._overlaps(trips):
            return self._in_vectors()
        count = -(-trips // lanes)
        return [
            f"int64_t ms_next = {self.begin};",
            f"for (int ms_times = 0; ms_times < {count}; ++ms_times, ms_next += {lanes}) {{",
            f"  const int64_t {name} = ms_times < {count - 1} ? ms_next : {self.end} - {lanes};",
            *indented(self._body(lanes)),
            "}",
        ]

    def _in_vectors(self) -> list[str]:
        """Returns loops over groups of vectors and vectors, and what is left."""
        name, lanes, left = self._name, self._most, self.trips
        count = self._vectors()
        lines = [
            f"{self._types(lanes).value_type(self._dtype(sum_))} {self._part(sum_, lanes, k)} = "
            f"{self._first(sum_)};"
            for sum_ in self.updates
            for k in range(count)
        ]
        lines += [f"const int64_t ms_last = {self.end};", f"int64_t {name} = {self.begin};"]
        for together in sorted({count, 1}, reverse=True):
            size = together * lanes
            if left is None or left >= size:
                body = [line for k in range(together) for line in self._numbered(k)]
                lines += [self._repeated(size, left), *indented(body), "}"]
            left = None if left is None else left % size
        for sum_ in self.updates:
            first, *others = (self._part(sum_, lanes, k) for k in range(count))
            lines += [f"{first} = {self._joined(sum_, lanes, first, other)};" for other in others]
        if left != 0:
            is_whole = lanes == _lanes(self.loop, None)
            is_long = is_whole and self._is_long(self._body(lanes)) and not self._is_once(left)
            if is_long or (self.updates and has_bounds_of_data(self.loop)):
                lines += [f"if ({name} < ms_last) {{", *indented(self._masked()), "}"]
            else:
                more, lanes = self._in_halves(left)
                lines += more
        return lines + [self._total(sum_, lanes) for sum_ in self.updates]

    def _repeated(self, size: int, left: int | None) -> str:
        """Returns the head of a loop; a compiler may write out what it knows the number of."""
        name = self._name
        if left is None:
            return f"for (; {name} + {size} <= ms_last; {name} += {size}) {{"
        times = f"int ms_times = 0; ms_times < {left // size}; ++ms_times"
        return f"for ({times}, {name} += {size}) {{"

    def _in_halves(self, left: int | None) -> tuple[list[str], int]:
        """Returns the remaining iterations in smaller vectors and one by one, and the last size."""
        name, lanes, lines = self._name, self._most, []
        while lanes // 2 >= _fewest_lanes(self.loop) and (left is None or left):
            lanes //= 2
            for sum_ in self.updates:
                whole = self._part(sum_, 2 * lanes)
                halves = self._types(2 * lanes).halves(whole, self._dtype(sum_))
                kind = self._types(lanes).value_type(self._dtype(sum_))
                own = self._part(sum_, lanes)
                lines.append(f"{kind} {own} = {self._joined(sum_, lanes, *halves)};")
            if left is None:
                body = [*self._body(lanes), f"{name} += {lanes};"]
                lines += [f"if ({name} + {lanes} <= ms_last) {{", *indented(body), "}"]
            elif left >= lanes:
                lines += ["{", *indented(self._body(lanes)), "}", f"{name} += {lanes};"]
                left -= lanes
        if left != 0:
            lines += [f"for (; {name} < ms_last; ++{name}) {{", *indented(self.rest()), "}"]
        return lines, lanes

    def _is_once(self, left: int | None) -> bool:
        """Returns whether the remaining iterations are one smaller vector, or one by one."""
        fewest = _fewest_lanes(self.loop)
        return left is not None and (left < fewest or left.bit_count() == 1)

    @staticmethod
    def _is_long(body: list[str]) -> bool:
        """Returns whether a body is too long to be printed again for vectors of other sizes."""
        return sum(map(len, body)) > _LONG

    def _vectors(self) -> int:
        """Returns the number of vectors of each variable; 1 of a parallel loop."""
        if not self.updates or has_bounds_of_data(self.loop):
            return 1
        parts = [
            part
            for stmt in statements(self.loop.body)
            for own in own_expressions(stmt)
            for part in expressions(own)
        ]
        calls = [part for part in parts if isinstance(part, FunctionCall)]
        most = _MOST_VECTORS_TOGETHER / len(self.updates)
        if not all(FUNCTIONS[call.function].is_instruction for call in calls):
            # Such a function takes longer than the operation.
            most = 1
        if self.trips is not None:
            most = min(most, self.trips // self._most)
        count = _MOST_VECTORS
        while count > max(1, most):
            count //= 2
        return count

    def _overlaps(self, trips: int) -> bool:
        """Returns whether the last vector has some of the iterations before it again.

        What reads an element soon after would wait for two stores, which a copy is not worth.
        """
        body = self.loop.body
        changed = stored_in(body) - declared_in(body)
        is_apart = changed.isdisjoint(load.buffer for load in loads_in(body))
        # A single iteration takes no longer alone.
        is_worth = trips % self._most > 1 and bool(work(statements(body)))
        return is_worth and not self.updates and is_apart

    def _numbered(self, number: int) -> list[str]:
        """Returns the iterations of a vector of a group."""
        body = self._body(self._most, number)
        if not number:
            return body
        first = f"const int64_t ms_at_{number} = {self._name} + {number * self._most};"
        return ["{", *indented([first, *body]), "}"]

    def _body(self, lanes: int, number: int = 0) -> list[str]:
        """Returns an iteration in all lanes, which goes to some part of each variable."""
        if number > 1:
            # It differs from the one before in names only.
            text = "\n".join(self._body(lanes, 1))
            text = text.replace("ms_at_1", f"ms_at_{number}")
            return text.replace("ms_part_1_", f"ms_part_{number}_").splitlines()
        if (lanes, number) not in self._bodies:
            self._bodies[lanes, number] = self._printed(lanes, number)
        return self._bodies[lanes, number]

    @functools.cached_property
    def _bodies(self) -> dict[tuple[int, int], list[str]]:
        return {}

    def _printed(self, lanes: int, number: int) -> list[str]:
        values, loop = self.values, self.loop
        values.names[loop.var] = f"ms_at_{number}" if number else self._name
        for name in self.updates:
            values.names[name] = self._part(name, lanes, number)
        lines = LaneStatements(values, loop, lanes, self.updates).lines()
        values.names[loop.var] = self._name
        values.names.update(self._sums)
        return lines

    def _masked(self) -> list[str]:
        """Returns the last iterations, in lanes some of which are off."""
        values, loop, lanes = self.values, self.loop, self._most
        least, most = values.ranges[loop.var]
        values.ranges[loop.var] = (least, most + lanes - 1)
        for name in self.updates:
            values.names[name] = self._part(name, lanes)
        body = LaneStatements(values, loop, lanes, self.updates)
        kind, numbers = body.lanes.mask(4), ", ".join(map(str, range(lanes)))
        test = f"(int32_t)(ms_last - {self._name}) > {kind}{{{numbers}}}"
        body.lanes.has_more = True
        with body.lanes.where("ms_left", 4):
            lines = [f"const {kind} ms_left = {test};", *body.lines()]
        values.names.update(self._sums)
        values.ranges[loop.var] = (least, most)
        return lines

    # Variables of a reduction.

    def _types(self, lanes: int) -> LaneValues:
        return LaneValues(self.values, self.loop, lanes)

    def _part(self, name: str, lanes: int, number: int = 0) -> str:
        return f"ms_part_{number}_{lanes}_{self._sums[name]}"

    def _dtype(self, name: str) -> str:
        return self.updates[name].target.dtype

    def _op(self, name: str) -> str:
        return self.updates[name].op

    def _first(self, name: str) -> str:
        neutral = _NEUTRAL if is_float(self._dtype(name)) else _NEUTRAL_INTEGER
        first = neutral.get(self._op(name), self._sums[name])
        return bare(self._types(self._most).everywhere(first, self._dtype(name)))

    def _joined(self, name: str, lanes: int, one: str, other: str) -> str:
        return self._types(lanes).joined(self._op(name), self._dtype(name), one, other)

    def _total(self, name: str, lanes: int) -> str:
        """Returns what adds all lanes to a variable."""
        own, types = self._sums[name], self._types(lanes)
        total = f"{types.total(self._op(name), self._dtype(name))}({self._part(name, lanes)})"
        joined = self.values.joined(self._op(name), self._dtype(name), own, total)
        return f"{own} = {joined};"
