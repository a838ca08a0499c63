"""Random kernels do the same as Python, as loop IR, as XLA operations, as C and as CUDA C.

Python itself is the reference: a kernel's body runs as Python on numpy arrays, and in every form
that it becomes. Values stay small, so that neither side wraps.
"""

from __future__ import annotations

import textwrap
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from cuda_emulation import Emulation
from hypothesis import event
from hypothesis import strategies as st
from loop_ir import Spec, cuda_source, pipeline
from loop_source import define, run, specialise
from random_examples import on_random

from msops import Custom
from msops.ops import CustomRegOp, kernel

Draw = Callable[[st.SearchStrategy], object]


class Writer:
    """Writes random functions on `a` (6 elements), `b` (3 by 4) and temporaries (2 elements).

    Args:
      draw: draws from a strategy.
      result: what the function returns; None: a number.
      helpers: functions of `a`, `b` and two numbers that return a number.
      writes: whether it may assign to elements.
    """

    def __init__(
        self, draw: Draw, result: str | None, helpers: Sequence[str] = (), writes: bool = True
    ):
        self.draw = draw
        self.result = result
        self.helpers = helpers
        self.writes = writes
        self.count = 0
        self.budget = 14
        # What jumps may be made: out of the loops around the statement.
        self.jumps: list[str] = []

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
        kind = self.number(0, 10)
        if depth <= 0 or kind == 0:
            return self.choose([*numbers, str(self.number(-9, 9))])
        if kind == 10 and self.helpers:
            return self.helped(self.helpers[0], names, depth)
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

    def helped(self, helper: str, names: dict[str, str], depth: int) -> str:
        return f"{helper}(a, b, {self.value(names, depth - 1)}, q={self.value(names, 0)})"

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

    def loop(self, names: dict[str, str], depth: int, jumps: list[str]) -> str:
        outside, self.jumps = self.jumps, jumps
        body = self.block(names, depth - 1)
        self.jumps = outside
        return indent(body)

    def jump(self, names: dict[str, str]) -> str:
        """Returns a jump, of those that are possible here, under a condition."""
        result = self.result or f"({self.value(names, 1)}) % 97"
        jump = self.choose([*self.jumps, f"return {result}"])
        return f"if {self.condition(names)}:\n{indent(jump)}"

    def counted(self, names: dict[str, str], depth: int) -> str:
        """Returns a `while` whose iterations can be counted."""
        var, step = self.fresh("w"), self.number(1, 2)
        test = self.choose([f"{var} < 3", f"4 > {var}", f"{var} <= 2"])
        if self.number(0, 1):
            test = f"{test} and {self.condition(names)}"
        body = self.loop({**names, var: "loop"}, depth, ["break"])
        return f"{var} = {self.number(-1, 1)}\nwhile {test}:\n{body}\n    {var} += {step}"

    def statement(self, names: dict[str, str], depth: int) -> str:
        self.budget -= 1
        scalars = [name for name, kind in names.items() if kind == "scalar"]
        kind = self.number(0, 11) if depth > 0 and self.budget > 0 else self.number(4, 9)
        if kind <= 1:
            var = self.fresh("i")
            body = self.loop({**names, var: "loop"}, depth, ["break", "continue"])
            return f"for {var} in {self.range_text(names)}:\n{body}"
        if kind == 9:
            return self.jump(names)
        if kind == 10:
            return self.counted(names, depth)
        if kind == 11 and len(self.helpers) > 1:
            name = self.fresh("s")
            call = self.helped(self.helpers[1], names, 2)
            names[name] = "scalar"
            return f"{name} = {call}"
        if kind == 2:
            text = f"if {self.condition(names)}:\n{indent(self.branch(names, depth))}"
            if self.number(0, 1):
                text += f"\nelif {self.condition(names)}:\n{indent(self.branch(names, depth))}"
            return text + f"\nelse:\n{indent(self.branch(names, depth))}"
        if kind == 3:
            var = self.fresh("t")
            parts = [f"{var}[{index}]" for index in ("0", "-1")]
            if self.number(0, 1):
                parts = [self.fresh("i"), self.fresh("j")]
                var = ", ".join(parts)
            # A `break` out of a grid leaves all of it.
            body = self.loop({**names, **dict.fromkeys(parts, "loop")}, depth, ["continue"])
            return f"for {var} in grid((2, {self.number(0, 3)})):\n{body}"
        if kind == 4 and scalars:
            scalar = self.choose(scalars)
            return f"{scalar} = ({scalar} + {self.value(names, 2)}) % 97"
        if kind == 5:
            value, name = self.value(names, 2), self.fresh("s")
            names[name] = "scalar"
            return f"{name} = ({value}) % 97"
        if kind == 6 and len(scalars) > 1:
            return f"{scalars[0]}, {scalars[-1]} = {scalars[-1]}, {scalars[0]}"
        if kind == 7 and self.writes:
            return f"{self.element(names, 1)} {self.choose(['+=', '-='])} {self.number(0, 9)}"
        if kind == 8 and self.number(0, 2) == 0:
            name = self.fresh("d")
            names[name] = "tensor"
            return f'{name} = allocate((2,), "int32")'
        if not self.writes:
            return f"{scalars[0]} = {self.value(names, 2)} % 97"
        return f"{self.element(names, 1)} = {self.value(names, 2)} % 97"

    def branch(self, names: dict[str, str], depth: int) -> str:
        return self.block(names, depth - 1)


def indent(text: str) -> str:
    return textwrap.indent(text, "    ")


@st.composite
def kernels(draw: Draw) -> str:
    """Returns a kernel and two helpers, of which the second one writes."""
    tensors = {"a": "tensor", "b": "tensor"}
    numbers = {"p": "scalar", "q": "scalar"}
    helpers = [
        Writer(draw, None, writes=False).block(tensors | numbers, 2),
        Writer(draw, None, ["g"]).block(tensors | numbers, 2),
    ]
    body = Writer(draw, "a, b", ["g", "h"]).block({**tensors, "n": "scalar"}, 3)
    return "".join(
        f"def {name}(a, b, {parameters}):\n{indent(text)}\n"
        for name, parameters, text in [
            ("g", "p, q=2", f"{helpers[0]}\nreturn p % 97"),
            ("h", "p, q=2", f"{helpers[1]}\nreturn p % 97"),
            ("k", "start", f"n = start + 0\n{body}\na[0] += n\nreturn a, b"),
        ]
    )


def inputs(seed: int) -> list[np.ndarray]:
    rng = np.random.default_rng(seed)
    return [rng.integers(-50, 50, shape).astype(np.int32) for shape in ((6,), (3, 4))]


def as_python(func: Callable[..., Any], arrays: Sequence[np.ndarray]) -> Sequence[np.ndarray]:
    return kernel(func)(*(array.copy() for array in arrays), 3)


seeds = st.integers(0, 2**32 - 1)


def check_interpreter(text: str, seed: int) -> None:
    """Python and the interpreter agree."""
    func, arrays = define(text), inputs(seed)
    event(f"{text.count('for ')} loops, {text.count('if ')} conditions")
    got = run(func, *arrays, attributes={"start": 3})
    for have, wanted in zip(got, as_python(func, arrays), strict=True):
        np.testing.assert_array_equal(have, wanted)


def check_forms(text: str, seed: int) -> None:
    """Python, XLA operations, C and CUDA C agree."""
    func, arrays = define(text), inputs(seed)
    wanted = as_python(func, arrays)
    for form in ("xla", "native"):
        op = Custom(func, func_type="akg", reg_info=INFO, compile_attrs={"lower": form})
        for have, want in zip(op(*arrays, 3), wanted, strict=True):
            np.testing.assert_array_equal(have, want, form)
    specs = [Spec(array.shape, array.dtype.name) for array in arrays]
    told = pipeline.analyse(specialise(func, *specs, attributes={"start": 3}))
    loops = pipeline.run(told.kernel, pipeline.PASSES_TO_CUDA)
    cuda = Emulation(loops, cuda_source(loops, told.unproven, told.overwritten))
    for have, want in zip(cuda.run(arrays), wanted, strict=True):
        np.testing.assert_array_equal(have, want, "cuda")


INFO = (
    CustomRegOp()
    .input(0, "a")
    .input(1, "b")
    .attr("start", "required", "int")
    .output(0, "c")
    .output(1, "d")
    .target("CPU")
    .get_op_info()
)

test_python_and_the_interpreter_agree = on_random(kernels(), seeds, quick=20, thorough=300)(
    check_interpreter
)
test_all_forms_agree = on_random(kernels(), seeds, quick=2, thorough=20)(check_forms)
