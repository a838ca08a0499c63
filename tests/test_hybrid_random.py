"""Random kernels do the same as Python and as loop IR.

Python itself is the reference: a kernel's body runs as Python on numpy arrays, and in the
interpreter of the IR it became. Values stay small, so that neither side wraps.
"""

from __future__ import annotations

import textwrap
from collections.abc import Callable

import numpy as np
from hypothesis import event, given, settings
from hypothesis import strategies as st
from loop_source import define, run

from msops import kernel

Draw = Callable[[st.SearchStrategy], object]


class Writer:
    """Writes a random kernel on `a` (6 elements), `b` (3 by 4) and temporaries (2 elements)."""

    def __init__(self, draw: Draw):
        self.draw = draw
        self.count = 0
        self.budget = 14

    def fresh(self, letter: str) -> str:
        self.count += 1
        return f"{letter}{self.count}"

    def number(self, low: int, high: int) -> int:
        return int(self.draw(st.integers(low, high)))  # type: ignore[call-overload]

    def choose(self, options: list[str]) -> str:
        return str(self.draw(st.sampled_from(options)))

    def element(self, names: dict[str, str], depth: int) -> str:
        """Returns an element of a tensor, its index in range."""
        tensor = self.choose([name for name, kind in names.items() if kind == "tensor"])
        index = self.value(names, depth - 1)
        if tensor == "b":
            return f"b[({index}) % 3, ({self.value(names, depth - 1)}) % 4]"
        return f"{tensor}[({index}) % {6 if tensor == 'a' else 2}]"

    def value(self, names: dict[str, str], depth: int) -> str:
        """Returns an integer expression below 100 to the power of its leaves."""
        numbers = [name for name, kind in names.items() if kind in ("loop", "scalar")]
        kind = self.number(0, 9)
        if depth <= 0 or kind == 0:
            return self.choose([*numbers, str(self.number(-9, 9))])
        if kind <= 3:
            return f"({self.element(names, depth)} % 97)"
        one, other = self.value(names, depth - 1), self.value(names, depth - 1)
        if kind == 4:
            return f"({one} if {self.condition(names)} else {other})"
        if kind == 5:
            return f"{self.choose(['min', 'max'])}({one}, {other})"
        if kind == 6:
            return f"(({one}) {self.choose(['//', '%'])} {self.choose(['3', '-4', '7'])})"
        return f"({one} {self.choose(['+', '-', '*', '&', '|', '^'])} {other})"

    def condition(self, names: dict[str, str]) -> str:
        sign = self.choose(["<", "<=", "==", "!=", ">"])
        comparison = f"{self.value(names, 1)} {sign} {self.value(names, 1)}"
        form = self.number(0, 5)
        if form == 0:
            return f"not {comparison}"
        if form <= 2:
            joint = self.choose(["and", "or"])
            return f"({comparison} {joint} {self.value(names, 0)} < {self.value(names, 1)})"
        return comparison

    def range_text(self, names: dict[str, str]) -> str:
        loops = [name for name, kind in names.items() if kind == "loop"]
        ends = [*loops, str(self.number(-2, 4))]
        form = self.number(0, 3)
        if form == 0:
            return f"{self.choose(['range', 'serial', 'parallel'])}({self.choose(ends)})"
        begin, end = self.choose(ends), self.choose(ends)
        if form == 1:
            return f"range({begin}, {end})"
        step = self.choose(["1", "2", "3", "-1", "-2"])
        return f"range({begin}, {end}, {step})"

    def block(self, names: dict[str, str], depth: int) -> str:
        """Returns statements; what they declare is seen by those that follow."""
        names = dict(names)
        lines = [self.statement(names, depth) for _ in range(self.number(1, 4))]
        return "\n".join(lines)

    def statement(self, names: dict[str, str], depth: int) -> str:
        self.budget -= 1
        scalars = [name for name, kind in names.items() if kind == "scalar"]
        kind = self.number(0, 8) if depth > 0 and self.budget > 0 else self.number(4, 8)
        if kind <= 1:
            var = self.fresh("i")
            body = self.block({**names, var: "loop"}, depth - 1)
            return f"for {var} in {self.range_text(names)}:\n{indent(body)}"
        if kind == 2:
            text = f"if {self.condition(names)}:\n{indent(self.branch(names, depth))}"
            if self.number(0, 1):
                text += f"\nelif {self.condition(names)}:\n{indent(self.branch(names, depth))}"
            return text + f"\nelse:\n{indent(self.branch(names, depth))}"
        if kind == 3:
            var = self.fresh("t")
            parts = [f"{var}[{index}]" for index in ("0", "-1")]
            body = self.block({**names, **dict.fromkeys(parts, "loop")}, depth - 1)
            return f"for {var} in grid((2, {self.number(0, 3)})):\n{indent(body)}"
        if kind == 4 and scalars:
            scalar = self.choose(scalars)
            return f"{scalar} = ({scalar} + {self.value(names, 2)}) % 97"
        if kind == 5:
            value, name = self.value(names, 2), self.fresh("s")
            names[name] = "scalar"
            return f"{name} = ({value}) % 97"
        if kind == 6 and len(scalars) > 1:
            return f"{scalars[0]}, {scalars[-1]} = {scalars[-1]}, {scalars[0]}"
        if kind == 7:
            return f"{self.element(names, 1)} {self.choose(['+=', '-='])} {self.number(0, 9)}"
        if kind == 8 and self.number(0, 2) == 0:
            name = self.fresh("d")
            names[name] = "tensor"
            return f'{name} = allocate((2,), "int32")'
        return f"{self.element(names, 1)} = {self.value(names, 2)} % 97"

    def branch(self, names: dict[str, str], depth: int) -> str:
        return self.block(names, depth - 1)


def indent(text: str) -> str:
    return textwrap.indent(text, "    ")


@st.composite
def kernels(draw: Draw) -> str:
    body = Writer(draw).block({"a": "tensor", "b": "tensor", "n": "scalar"}, 3)
    return (
        f"def k(a, b, start):\n    n = start + 0\n{indent(body)}\n    a[0] += n\n    return a, b\n"
    )


@settings(max_examples=150, deadline=None)
@given(kernels(), st.integers(0, 2**32 - 1))
def test_python_and_the_interpreter_agree(text: str, seed: int) -> None:
    func = define(text)
    rng = np.random.default_rng(seed)
    a, b = rng.integers(-50, 50, 6).astype(np.int32), rng.integers(-50, 50, (3, 4)).astype(np.int32)
    expected = kernel(func)(a.copy(), b.copy(), 3)
    event(f"{text.count('for ')} loops, {text.count('if ')} conditions")
    for got, wanted in zip(run(func, a, b, attributes={"start": 3}), expected, strict=True):
        np.testing.assert_array_equal(got, wanted)
