"""Hypothesis: random nests of the forms that array operations are looked for in.

loop_strategies.py draws any legal kernel; few of those have recurrences, strides, windows, several
stores that a loop carries along, or loops that depend on one another. These have little else.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from hypothesis import assume
from hypothesis import strategies as st
from loop_ir import check_bounds, parse_kernel, verify
from loop_strategies import Case, inputs_of

RANKS = {"a": 1, "b": 2, "c": 1, "d": 2, "t": 1, "z": 0}
"""Inputs a and b; results c, d, t and z."""
WRITTEN = ("c", "d", "t", "z")


@st.composite
def patterns(draw: st.DrawFn, dtypes: Sequence[str] = ("float64", "int32")) -> Case:
    """Draws a legal kernel and its inputs."""
    writer = _Writer(draw, draw(st.sampled_from(dtypes)))
    kernel = parse_kernel(writer.kernel())
    verify(kernel)
    assume(not check_bounds(kernel).findings)
    return Case(kernel, inputs_of(kernel, draw(st.integers(0, 99))))


class _Writer:
    """Writes the text of a kernel."""

    def __init__(self, draw: st.DrawFn, dtype: str):
        self._draw = draw
        self._dtype = dtype
        self._loops = 0
        self._size = self._number(3, 6)
        # Half of the kernels shift all indices, so that those a little below 0 are legal.
        self._shift = 2 * self._number(0, 1)

    def _number(self, low: int, high: int) -> int:
        return self._draw(st.integers(low, high))

    def _one(self, *options: str) -> str:
        return self._draw(st.sampled_from(options))

    def kernel(self) -> str:
        n, dtype = self._size + (self._size + 5 if self._shift else 0), self._dtype
        body = "".join(self._loop((), 3) for _ in range(self._number(1, 2)))
        return f"""kernel pattern(a: {dtype}[{n + 2}], b: {dtype}[{n + 1}, {n}]) -> (c, d, t, z) {{
          buffer c: {dtype}[{n + 1}]
          buffer d: {dtype}[{n}, {n + 1}]
          buffer t: {dtype}[{n}]
          buffer z: {dtype}[]
          {body}
        }}"""

    def _loop(self, outer: tuple[str, ...], depth: int) -> str:
        self._loops += 1
        var = f"i{self._loops}"
        ranges = [f"0 .. {self._size}", f"1 .. {self._size}", f"0 .. {self._size - 1}"]
        if outer:
            ranges += [f"{outer[-1]} .. {self._size}", f"0 .. ({outer[-1]} + 1)"]
        inside = (*outer, var)
        parts = [self._statement(inside, depth - 1) for _ in range(self._number(1, 3))]
        return f"serial {var} in {self._one(*ranges)} {{ {' '.join(parts)} }}\n"

    def _statement(self, loops: tuple[str, ...], depth: int) -> str:
        kind = self._number(0, 9)
        if depth > 0 and kind < 4:
            return self._loop(loops, depth)
        store = self._store(loops)
        return f"if ({self._condition(loops)}) {{ {store} }}" if kind == 9 else store

    def _store(self, loops: tuple[str, ...]) -> str:
        target = self._element(self._one(*WRITTEN), loops)
        kind = self._number(0, 3)
        if kind == 0:
            return f"{target} = {self._value(loops)}"
        if kind == 1:
            return f"{target} = {self._value(loops, WRITTEN)}"
        op = self._one("+", "+", "-", "*", "min", "max")
        old = target
        if kind == 2:
            var = self._one(*loops)
            old = re.sub(rf"\b{var}\b", f"({var} - 1)", target)
        return f"{target} = {self._joined(op, old, self._value(loops))}"

    def _value(self, loops: tuple[str, ...], names: tuple[str, ...] = ("a", "b")) -> str:
        kind = self._number(0, 5)
        first = self._element(self._one(*names), loops)
        if kind < 2:
            return first
        second = self._element(self._one("a", "b"), loops)
        if kind == 2:
            return f"({self._condition(loops)} ? {first} : {second})"
        return self._joined(self._one("*", "+", "-", "min"), first, second)

    def _joined(self, op: str, left: str, right: str) -> str:
        return f"{op}({left}, {right})" if op in ("min", "max") else f"({left} {op} {right})"

    def _condition(self, loops: tuple[str, ...]) -> str:
        var, number = self._one(*loops), self._number(0, self._size)
        return self._one(
            f"({var} < {number})",
            f"({var} != {number})",
            f"(({var} % 2) == 0)",
            f"({var} >= {self._one(*loops)})",
        )

    def _element(self, name: str, loops: tuple[str, ...]) -> str:
        return f"{name}[{', '.join(self._index(loops) for _ in range(RANKS[name]))}]"

    def _index(self, loops: tuple[str, ...]) -> str:
        var, other = self._one(*loops), self._one(*loops)
        index = self._one(
            var,
            var,
            f"{var} + 1",
            f"{var} - 1",
            f"2 * {var}",
            f"{self._size - 1} - {var}",
            f"{var} // 2",
            f"{var} % 2",
            f"{var} + {other}",
            str(self._number(0, 2)),
        )
        return f"({index}) + {self._shift}" if self._shift else index
