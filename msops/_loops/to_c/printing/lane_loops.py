"""Reductions of floats in the printed C: first a result for each lane of a vector, then one of all.

    reduction i in 0 .. n @vector(lanes) {     float s_lane[16];       // each -0.0
      s[] = s[] + a[i]                         for (next = 0; next + 16 <= n; next += 16)
    }                                    ->      for (lane = 0; lane < 16; ++lane)
                                                   s_lane[lane] = s_lane[lane] + a[next + lane];
                                               for (i = next; i < n; ++i) s = s + a[i];
                                               // lane + 8 to lane, then + 4, + 2, + 1; then to s

The greatest and the least element have their sign beside them, the sign bit of all numbers or of
any. It matters for 0 and -0 alone, and nothing waits for it: a maximum with its sign takes two
instructions, of which each waits for those of the iteration before.

    m[] = max(m[], a[i])    ->    signs_lane[lane] = signs_lane[lane] & bits(a[next + lane]);
                                  m_lane[lane] = either_max(m_lane[lane], a[next + lane]);

A compiler that is asked for a reduction (`#pragma omp simd reduction`) adds in an order of its own,
and its minimum and maximum lose NaN. Here the order is that of the text, for every compiler.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from msops._base import processor
from msops._loops.analysis.updates import Update
from msops._loops.ir.sizes import itemsize
from msops._loops.to_c.text import Values, bare, indented
from msops._loops.to_c.text.syntax import SIGNS, computed

_LANES_OF_EXTREMES = 32
_NEUTRAL = {"add": "-0.0", "mul": "1.0"}
"""What each lane begins with; for other operations the variable itself."""
_SIGNS_TOGETHER = {"max": "&", "min": "|"}
"""What brings the sign bits of numbers together: a minimum is -0 if one number is."""


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


@dataclass(frozen=True)
class _Part:
    """What each lane keeps of its own.

    Attributes:
      name: the variable in C that gets it all.
      kind: its type.
      lanes: the array of the lanes.
      start: what each begins with.
      together: prints what two lanes are together.
    """

    name: str
    kind: str
    lanes: str
    start: str
    together: Callable[[str, str], str]


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
    extremes = {name: u for name, u in updates.items() if u.op not in _NEUTRAL}
    parts = [_part(name, update, values) for name, update in updates.items()]
    beside = [_signs(name, update) for name, update in extremes.items()]
    lines = [
        f"{part.kind} {part.name} = {_bits_of(name, update, values)};"
        for part, (name, update) in zip(beside, extremes.items(), strict=True)
    ]
    for part in (*parts, *beside):
        lines += [f"{alignment} {part.kind} {part.lanes}[{count}];"]
        lines += [f"{lanes} {part.lanes}[ms_lane] = {part.start};"]
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
    for part in parts:
        lines += _combined(part, count)
    for name, update in extremes.items():
        lines += _signed(name, update, count, values)
    return lines


def update_beside_signs(update: Update, name: str, beside: str, values: Values) -> list[str]:
    """Returns the lines of an update of an extreme.

    Args:
      update: the update.
      name: what stands for the variable.
      beside: what stands for its signs.
      values: the printer of values.
    """
    dtype = update.target.dtype
    helper = values.extreme(f"{update.op}_either", computed(dtype), update.term)
    sign, bits = _SIGNS_TOGETHER[update.op], _bits_of("ms_term", update, values)
    return [
        "{",
        f"  const {values.value_type(dtype)} ms_term = {bare(values.value(update.term))};",
        f"  {beside} = {beside} {sign} {bits};",
        f"  {name} = {helper}({name}, ms_term);",
        "}",
    ]


def signs(name: str) -> str:
    """Returns the variable of the signs of an extreme."""
    return f"ms_{name}_signs"


def signs_in_lane(name: str) -> str:
    """Returns the array of its lanes' signs."""
    return f"{signs(name)}_lane"


def _array(name: str) -> str:
    return f"ms_{name}_lane"


def _count(updates: Mapping[str, Update]) -> int:
    """Returns how many lanes each variable has: for sums those of a vector."""
    if not all(update.op in _NEUTRAL for update in updates.values()):
        return _LANES_OF_EXTREMES
    return processor.vector_bytes() // max(itemsize(u.target.dtype) for u in updates.values())


def _bits_of(text: str, update: Update, values: Values) -> str:
    return f"{values.helper('bits_of', computed(update.target.dtype))}({text})"


def _part(name: str, update: Update, values: Values) -> _Part:
    """Returns what each lane keeps for a variable."""
    op, dtype = update.op, update.target.dtype
    kind = values.value_type(dtype)
    if op in _NEUTRAL:
        return _Part(name, kind, _array(name), _NEUTRAL[op], lambda a, b: f"{a} {SIGNS[op]} {b}")
    helper = values.extreme(f"{op}_either", computed(dtype))
    return _Part(name, kind, _array(name), name, lambda a, b: f"{helper}({a}, {b})")


def _signs(name: str, update: Update) -> _Part:
    """Returns what each lane keeps beside an extreme."""
    sign, beside = _SIGNS_TOGETHER[update.op], signs(name)
    kind = "uint64_t" if update.target.dtype == "float64" else "uint32_t"
    return _Part(beside, kind, signs_in_lane(name), beside, lambda a, b: f"{a} {sign} {b}")


def _signed(name: str, update: Update, count: int, values: Values) -> list[str]:
    """Returns the lines that give a zero its sign."""
    helper = values.extreme(f"{update.op}_signed", computed(update.target.dtype))
    return [
        f"if ({values.rare(f'{name} == 0')}) {{",
        *indented(_combined(_signs(name, update), count)),
        f"  {name} = {helper}({name}, {signs(name)});",
        "}",
    ]


def _combined(part: _Part, count: int) -> list[str]:
    """Returns the lines that bring the lanes of a variable together."""
    # In pairs: in a row each lane would wait for those before.
    halves = [count >> step for step in range(1, count.bit_length())]
    lane = f"{part.lanes}[ms_lane]"
    return [
        *(
            f"for (int ms_lane = 0; ms_lane < {half}; ++ms_lane) "
            f"{lane} = {part.together(lane, f'{part.lanes}[ms_lane + {half}]')};"
            for half in halves
        ),
        f"{part.name} = {part.together(part.name, f'{part.lanes}[0]')};",
    ]
