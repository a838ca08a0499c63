"""Random loops over two scalars that are assigned here and there, each from one number.

Some of them raise UnboundLocalError as Python. Guards are what people write: the first iterations
of a loop, a flag, a counter, an element of the data.
"""

from __future__ import annotations

import random
import textwrap


def program(seed: int) -> str:
    """Returns the source of a kernel `k` of four elements."""
    writer = _Writer(random.Random(seed))
    lines = ["y = output_tensor((4,), x.dtype)", "count = 0", "seen = False", writer.loop([], 3)]
    if writer.chance(0.3):
        lines.append(writer.after("".join(lines)))
    if writer.chance(0.3):
        lines.append(writer.loop([], 2))
        lines.append(writer.after("".join(lines)))
    return f"def k(x):\n{_indented(*lines, 'return y')}\n"


class _Writer:
    def __init__(self, choices: random.Random):
        self.choices = choices
        self.budget = 12
        self.loops = 0

    def chance(self, share: float) -> bool:
        return self.choices.random() < share

    def one_of(self, *options: str) -> str:
        return self.choices.choice(options)

    def condition(self, loops: list[str], depth: int = 1) -> str:
        kind = self.choices.random()
        if depth and kind < 0.2:
            sides = self.condition(loops, 0), self.condition(loops, 0)
            return self.one_of(" and ", " or ").join(sides)
        if depth and kind < 0.28:
            return f"not ({self.condition(loops, 0)})"
        if kind < 0.7:
            sign = self.one_of(">", "==", "!=", ">=", "<")
            return f"{self.one_of(*loops)} {sign} {self.one_of(*'000112')}"
        if kind < 0.8:
            return "seen"
        if kind < 0.88:
            return f"count {self.one_of('>', '==', '!=', '>=')} {self.one_of(*'001')}"
        return f"x[{loops[-1]}] > {self.one_of('0.0', '0.5')}"

    def value(self, loops: list[str]) -> str:
        name, element = self.one_of("a", "b"), f"x[{self.one_of(*loops)}]"
        chosen = f"({name} if {self.condition(loops)} else {element})"
        return self.one_of(element, element, name, f"{name} * 0.5 + {element}", "1.0", chosen)

    def body(self, loops: list[str], depth: int) -> str:
        lines = [self.statement(loops, depth)]
        while self.budget > 0 and self.chance(0.6):
            lines.append(self.statement(loops, depth))
        return _indented(*lines)

    def statement(self, loops: list[str], depth: int) -> str:
        self.budget -= 1
        kind = self.choices.random()
        if depth and self.budget > 0 and kind < 0.35:
            text = f"if {self.condition(loops)}:\n{self.body(loops, depth - 1)}"
            return text + f"\nelse:\n{self.body(loops, depth - 1)}" * self.chance(0.4)
        if depth and self.budget > 0 and kind < 0.45:
            return self.loop(loops, depth - 1)
        if kind < 0.5:
            return f"if {self.condition(loops)}:\n    {self.one_of('break', 'continue')}"
        if kind < 0.6:
            return self.one_of("seen = True", "count += 1")
        if kind < 0.85:
            return f"{self.one_of('a', 'b')} = {self.value(loops)}"
        return f"y[{loops[0]}] += {self.value(loops)}"

    def after(self, before: str) -> str:
        """Returns a statement outside of all loops, after some text."""
        name = self.one_of(*([name for name in "ab" if f"{name} = " in before] or "b"))
        other = self.one_of("a", "b") if self.chance(0.2) else name
        value = self.one_of(name, f"{name} * 0.5 + {other}", f"{name} if count > 0 else {other}")
        return self.one_of(f"y[0] += {value}", f"b = {value}\ny[1] += b", f"{name} = {value}")

    def loop(self, loops: list[str], depth: int) -> str:
        self.loops += 1
        var = f"i{self.loops}"
        spans = ["range(1)", "range(2)", "range(4)", "range(1, 4)", "range(3, -1, -1)"]
        spans += ["range(0, 4, 2)", "const_range(2)", "const_range(3)"]
        if loops:
            spans += [f"range({loops[-1]})", f"range(int32(x[{loops[-1]}] * 2.0) % 4)"]
        return f"for {var} in {self.one_of(*spans)}:\n{self.body([*loops, var], depth)}"


def _indented(*lines: str) -> str:
    return textwrap.indent("\n".join(lines), "    ")
