"""Loops in generated C: vectorised inner loops, and reductions in several lanes."""

from __future__ import annotations

from collections.abc import Collection

from msops._loops.analysis.costs import mean_trips
from msops._loops.analysis.ranges import range_of
from msops._loops.ir.nodes import Buffer, For, Kernel, Local
from msops._loops.ir.sizes import size_bytes
from msops._loops.ir.walk import statements
from msops._loops.to_c.reductions import Accumulators, accumulate
from msops._loops.to_c.text import CLike, Unproven, bare, indented

_FEW_TRIPS = 8
# GCC's max-completely-peel-times; it keeps its hands off loops under `omp simd`.
_PEELED_TRIPS = 16
_LANES = 32
_LARGE_LOCAL_BYTES = 4096


class CLoops(CLike):
    """Prints loops as C that a compiler vectorises.

    Attributes:
      large_locals: the arrays of the function being printed that need memory from outside.
    """

    def __init__(
        self,
        kernel: Kernel,
        unproven: Unproven | None,
        overwritten: Collection[str] = (),
        check_bounds: bool = False,
    ) -> None:
        """Prepares to print; see `CLikeValues`."""
        super().__init__(kernel, unproven, overwritten, check_bounds)
        self.large_locals: list[Buffer] = []
        self._number = 0

    def loop(self, stmt: For) -> list[str]:
        """Returns a loop in the best form that its kind allows."""
        is_innermost = not any(isinstance(inner, For) for inner in statements(stmt.body))
        if is_innermost and stmt.kind == "parallel":
            pragma = "omp simd" if self._is_peeled(stmt) else "GCC ivdep"
            return [f"#pragma {pragma}", *super().loop(stmt)]
        if is_innermost and stmt.kind == "reduction":
            return self._reduction(stmt)
        return super().loop(stmt)

    def _is_peeled(self, stmt: For) -> bool:
        """Tells whether a compiler would write a loop out before it looks for vectors."""
        begin, end = range_of(stmt.begin, self.ranges), range_of(stmt.end, self.ranges)
        is_fixed = begin[0] == begin[1] and end[0] == end[1]
        return is_fixed and end[0] - begin[0] <= _PEELED_TRIPS and not self.check_bounds

    def next_number(self) -> int:
        """Returns a number for names of the printer's own."""
        self._number += 1
        return self._number

    # Reductions.

    def _reduction(self, stmt: For) -> list[str]:
        """Returns a reduction with its sums in variables, reassociated for vector registers."""
        found = accumulate(stmt, f"ms_sum{self.next_number()}_")
        if found is None:
            return super().loop(stmt)
        for buffer in found.buffers:
            self.names[buffer.name] = buffer.name
            self.declare(buffer)
        lines = [self.definition(buffer) for buffer in found.buffers]
        lines += self.statements(found.before)
        if mean_trips(stmt, self.ranges) < _FEW_TRIPS:
            lines += super().loop(found.loop)
        elif found.is_extremum:
            lines += self._lanes(found)
        else:
            if found.clauses:
                signs = " ".join(f"reduction({sign}:{name})" for sign, name in found.clauses)
                lines.append(f"#pragma omp simd {signs}")
            lines += super().loop(found.loop)
        lines += self.statements(found.after)
        begin, end = range_of(stmt.begin, self.ranges), range_of(stmt.end, self.ranges)
        if begin[1] < end[0]:
            return ["{", *indented(lines), "}"]
        return [f"if ({self.index(stmt.begin)} < {self.index(stmt.end)}) {{", *indented(lines), "}"]

    def _lanes(self, found: Accumulators) -> list[str]:
        """Returns a minimum or maximum of floats, one in each of some lanes and then of them."""
        (total,), (operation,) = found.buffers, found.operations
        var, name = self.names[found.loop.var], total.name
        lane = f"{name}_lane[ms_lane]"
        lanes = f"for (int ms_lane = 0; ms_lane < {_LANES}; ++ms_lane)"
        begin, end = bare(self.index(found.loop.begin)), bare(self.index(found.loop.end))
        rest = self.loop_body(found.loop)
        self.names[name] = lane
        in_lane = self.loop_body(found.loop)
        self.names[name] = name
        combine = self.helper(f"{operation}__float", total.dtype)
        return [
            f"{self.value_types[total.dtype]} {name}_lane[{_LANES}];",
            f"{lanes} {lane} = {name};",
            f"int64_t ms_next = {begin};",
            f"for (; ms_next + {_LANES} <= {end}; ms_next += {_LANES}) {{",
            "#pragma GCC ivdep",
            f"  {lanes} {{",
            f"    const int64_t {var} = ms_next + ms_lane;",
            *indented(indented(in_lane)),
            "  }",
            "}",
            f"for (int64_t {var} = ms_next; {var} < {end}; ++{var}) {{",
            *indented(rest),
            "}",
            f"{lanes} {name} = {combine}({name}, {lane});",
        ]

    # Local arrays.

    def local(self, stmt: Local) -> list[str]:
        """Returns a block with a zeroed local; a large array lies in memory that is reused."""
        size = size_bytes(stmt.buffer)
        if not stmt.buffer.shape or size <= _LARGE_LOCAL_BYTES:
            return super().local(stmt)
        self.declare(stmt.buffer)
        self.large_locals.append(stmt.buffer)
        name = self.names[stmt.buffer.name]
        zero = [] if stmt.buffer.name in self.overwritten else [f"memset({name}, 0, {size});"]
        return [*zero, *self.statements(stmt.body)]
