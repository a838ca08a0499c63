"""Reductions of floats in the printed C: first a result for each lane of a vector, then one of all.

    reduction i in 0 .. n @vector(lanes) {     float s_lane[16];       // each -0.0
      s[] = s[] + a[i]                         for (next = 0; next + 16 <= n; next += 16)
    }                                    ->      for (lane = 0; lane < 16; ++lane)
                                                   s_lane[lane] = s_lane[lane] + a[next + lane];
                                               for (i = next; i < n; ++i) s = s + a[i];
                                               // lane + 8 to lane, then + 4, + 2, + 1; then to s

A compiler that is asked for a reduction (`#pragma omp simd reduction`) adds in an order of its own,
and its minimum and maximum lose NaN. Here the order is that of the text, for every compiler.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from msops._base import processor
from msops._loops.analysis.updates import Update
from msops._loops.ir.sizes import itemsize
from msops._loops.to_c.text import Values, indented
from msops._loops.to_c.text.syntax import SIGNS

_LANES_OF_EXTREMES = 32
_NEUTRAL = {"add": "-0.0", "mul": "1.0"}
"""What each lane begins with; for other operations the variable itself."""


@dataclass(frozen=True)
class LaneLoop:
    """The texts of a loop.

    Attributes:
      var: its variable.
      begin: its first iteration.
      end: the end of its iterations.
      trips: how many there are; None if that is not known.
      in_lane: the lines of an iteration that updates the lane `ms_lane`; see `names_in_lane`.
      rest: the lines of an iteration that updates the variables.
    """

    var: str
    begin: str
    end: str
    trips: int | None
    in_lane: list[str]
    rest: list[str]


def names_in_lane(names: Mapping[str, str]) -> dict[str, str]:
    """Returns what stands for variables in the lane `ms_lane`, by the names of their buffers."""
    return {buffer: f"{_array(name)}[ms_lane]" for buffer, name in names.items()}


def in_lanes(
    loop: LaneLoop, updates: Mapping[str, Update], values: Values, alignment: str
) -> list[str]:
    """Returns a loop that updates variables.

    Args:
      loop: its texts.
      updates: the updates of floats, by the names of the variables in C.
      values: the printer of values.
      alignment: stands before each array.
    """
    count = _count(updates)
    lanes = f"for (int ms_lane = 0; ms_lane < {count}; ++ms_lane)"
    lines = []
    for name, update in updates.items():
        start = _NEUTRAL.get(update.op, name)
        kind = values.value_type(update.target.dtype)
        lines += [f"{alignment} {kind} {_array(name)}[{count}];"]
        lines += [f"{lanes} {_array(name)}[ms_lane] = {start};"]
    lines += [
        f"int64_t ms_next = {loop.begin};",
        # gcc would copy these vectors for each step of a short loop, and take long over it.
        "#pragma GCC unroll 1",
        f"for (; ms_next + {count} <= {loop.end}; ms_next += {count}) {{",
        "#pragma GCC ivdep",
        f"  {lanes} {{",
        f"    const int64_t {loop.var} = ms_next + ms_lane;",
        *indented(indented(loop.in_lane)),
        "  }",
        "}",
    ]
    # gcc warns of an empty loop: it takes its trips for so many that an index wraps.
    if loop.trips is None or loop.trips % count:
        lines += [
            f"for (int64_t {loop.var} = ms_next; {loop.var} < {loop.end}; ++{loop.var}) {{",
            *indented(loop.rest),
            "}",
        ]
    for name, update in updates.items():
        lines += _combined(name, update, count, values)
    return lines


def _array(name: str) -> str:
    return f"ms_{name}_lane"


def _count(updates: Mapping[str, Update]) -> int:
    """Returns how many lanes each variable has: for sums those of a vector."""
    if not all(update.op in _NEUTRAL for update in updates.values()):
        return _LANES_OF_EXTREMES
    return processor.vector_bytes() // max(itemsize(u.target.dtype) for u in updates.values())


def _combined(name: str, update: Update, count: int, values: Values) -> list[str]:
    """Returns the lines that bring the lanes of a variable together."""
    op, dtype = update.op, update.target.dtype

    def result(one: str, other: str) -> str:
        if op in _NEUTRAL:
            return f"{one} {SIGNS[op]} {other}"
        return f"{values.helper(f'{op}__float', dtype)}({one}, {other})"

    # In pairs: in a row each lane would wait for those before.
    halves = [count >> step for step in range(1, count.bit_length())]
    lane = f"{_array(name)}[ms_lane]"
    return [
        *(
            f"for (int ms_lane = 0; ms_lane < {half}; ++ms_lane) "
            f"{lane} = {result(lane, f'{_array(name)}[ms_lane + {half}]')};"
            for half in halves
        ),
        f"{name} = {result(name, f'{_array(name)}[0]')};",
    ]
