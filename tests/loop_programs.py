"""Random functions in the language of loop kernels, as Python source, each from one number.

    program(7).text     the source of a kernel `k`, and of the helpers that it calls
    program(7).inputs() what it runs on: wrapping integers, NaN, infinities, subnormals

Every index is in range, but for programs that say `is_wild`; every name is bound before it is
read. So Python runs the same source. Values may be anything: `loop_rounding.py` says how far two
executions may differ.
"""

from __future__ import annotations

import dataclasses
import random
import re
import textwrap
from dataclasses import dataclass

import numpy as np
from loop_program_data import values
from loop_program_expressions import INTEGERS, Expressions, Scope, Tensor

# XLA computes some reductions otherwise from 4,096 elements on.
LARGE = (4095, 4096, 4097, 5000)
SMALL = (1, 2, 3, 4, 5, 7, 8, 9, 16, 17, 33)


@dataclass(frozen=True)
class Program:
    """A random kernel.

    Attributes:
      seed: what makes it, and its inputs.
      text: its source.
      parameters: its tensors by name.
      is_wild: indices that are data may be out of range: Python has another meaning then.
      is_smooth: made of float64 and smooth operations, but for conditions, extremes and `abs`.
    """

    seed: int
    text: str
    parameters: dict[str, Tensor]
    is_wild: bool
    is_smooth: bool

    def inputs(self) -> list[np.ndarray]:
        """Returns an array for each parameter."""
        numbers = np.random.default_rng(self.seed)
        return [
            values(numbers, each, self.is_wild, self.is_smooth) for each in self.parameters.values()
        ]


def program(seed: int, is_smooth: bool = False) -> Program:
    """Returns the program of a number; a smooth one has a gradient where it is differentiable."""
    return _Writer(random.Random(2 * seed + is_smooth), is_smooth).program(seed)


# Source.


class _Writer(Expressions):
    """Writes one program."""

    def __init__(self, choices: random.Random, is_smooth: bool):
        super().__init__(choices, is_smooth)
        self.procedure = ""

    def program(self, seed: int) -> Program:
        choices = self.choices
        self.is_large = not self.is_smooth and self.chance(1 / 40)
        self.is_wild = self.chance(1 / 8)
        self.budget = 3 if self.is_large else choices.randint(3, 9)
        rows = choices.choice(LARGE if self.is_large else SMALL)
        self.sizes = (rows, choices.choice((2, 3) if self.is_large else SMALL[:8]))
        # Few dtypes, so that tensors meet in expressions.
        self.dtypes = ["float64"] if self.is_smooth else self.palette()
        parameters = {f"x{n}": self.tensor() for n in range(choices.randint(2, 3))}
        if self.chance(1 / 2):
            bound = choices.choice(self.sizes)
            kinds = [d for d in INTEGERS if bound + 2 <= np.iinfo(d).max]
            parameters["at"] = Tensor(choices.choice(kinds), self.shape(1), bound=bound)
        outputs = {f"y{n}": self.tensor(is_written=True) for n in range(choices.randint(1, 2))}
        in_place = choices.choice(["x0", ""]) if self.chance(1 / 4) else ""
        if in_place:
            parameters["x0"] = dataclasses.replace(parameters["x0"], is_written=True)
        self.helper = self.helper_text() if self.chance(1 / 3) else ""
        self.procedure = ""
        if not self.is_large and self.chance(1 / 6):
            self.procedure = self.procedure_text(outputs["y0"])
        self.results = ", ".join([*outputs, *([in_place] if in_place else [])])
        scope = Scope(parameters | outputs, {}, {})
        lines = [self.declaration(name, tensor) for name, tensor in outputs.items()]
        while self.budget > 0:
            lines.append(self.top(scope))
        lines += [
            self.filled(scope, name) for name in outputs if f"{name}[" not in "\n".join(lines)
        ]
        lines.append(f"return {self.results}")
        text = f"def k({', '.join(parameters)}):\n{indent(chr(10).join(lines))}\n"
        helpers = {"h(": self.helper, "g(": self.procedure}
        used = [f"{helper}\n\n" for name, helper in helpers.items() if helper and name in text]
        return Program(seed, "".join(used) + text, parameters, self.is_wild, self.is_smooth)

    # Statements.

    def top(self, scope: Scope) -> str:
        """Returns a statement outside of all loops."""
        kind = self.choices.random()
        if kind < 0.15:
            return self.bind(scope)
        if kind < 0.2:
            name = self.fresh("t")
            tensor = Tensor(self.choices.choice(self.dtypes), self.shape(1), is_written=True)
            scope.tensors[name] = tensor
            return self.declaration(name, tensor, "allocate")
        if kind < 0.5:
            return self.reduction(scope)
        if kind < 0.6:
            return self.scan(scope)
        return self.loop(scope, 2)

    def bind(self, scope: Scope) -> str:
        name = self.fresh("s")
        dtype = self.choices.choice([d for d in self.dtypes if d != "bool"])
        value = self.value(scope, dtype, 2)
        scope.scalars[name] = dtype
        return f"{name} = {value}"

    def head(self, scope: Scope) -> tuple[str, int, int, str]:
        """Returns a loop's variable, the least and greatest value of it, and its range."""
        var = self.fresh("i")
        inner = [size for size in self.sizes if size < 100] if scope.loops else self.sizes
        extent = self.choices.choice(inner or [3])
        form = self.choices.random()
        known = [name for name, (low, high) in scope.loops.items() if low >= 0 and high < extent]
        counts = [n for n, t in scope.tensors.items() if t.dtype in INTEGERS and not t.bound]
        if form < 0.12 and known:
            outer = self.choices.choice(known)
            first = self.chance(0.5)
            text = f"range({outer} + 1)" if first else f"range({outer}, {extent})"
            return var, 0, extent - 1, text
        if form < 0.2:
            return var, 0, extent - 1, f"range({extent - 1}, -1, -1)"
        if form < 0.3:
            return var, 1, extent - 1, f"range(1, {extent})"
        if form < 0.35:
            return var, 0, extent - 1, f"range(0, {extent}, 2)"
        if form < 0.45 and counts and scope.loops and extent < 100:
            count = self.element(scope, self.choices.choice(counts))
            return var, 0, extent - 1, f"range(min({count}, {extent}))"
        kind = self.choices.choice(["range"] * 6 + ["serial", "reduce"])
        return var, 0, extent - 1, f"{kind}({extent})"

    def loop(self, scope: Scope, depth: int) -> str:
        self.budget -= 1
        if self.chance(0.1) and not self.is_large:
            return self.grid(scope, depth)
        var, low, high, text = self.head(scope)
        inner = scope.inside(var, low, high, ("break", "continue"))
        outliving = ""
        if _surely_runs(text) and self.chance(0.2):
            outliving = self.bind(inner)
        body = self.body(inner, depth - 1)
        if outliving:
            body = f"{outliving}\n{body}"
            name = outliving.split()[0]
            scope.scalars[name] = inner.scalars[name]
        # Where an index is data, these promise what may not hold.
        is_plain = text.startswith("range(") and "," not in text and "at[" not in body + text
        if is_plain and not outliving and "int32(" not in body and self.chance(0.3):
            text = text.replace("range", self.choices.choice(["parallel", "vectorize"]))
        return f"for {var} in {text}:\n{indent(body)}"

    def grid(self, scope: Scope, depth: int) -> str:
        """Returns nested loops; a `break` out of them would leave all."""
        inner, var = scope, self.fresh("i")
        names = [f"{var}[0]", f"{var}[-1]"] if self.chance(0.3) else [self.fresh("i"), var]
        sizes = [size for size in self.sizes if size < 10] or [3]
        extents = [self.choices.choice(sizes) for _ in "ab"]
        for name, extent in zip(names, extents, strict=True):
            inner = inner.inside(name, 0, extent - 1, ("continue",))
        target = ", ".join(names) if var in names else var
        head = f"for {target} in grid(({extents[0]}, {extents[1]})):"
        return f"{head}\n{indent(self.body(inner, depth - 1))}"

    def body(self, scope: Scope, depth: int) -> str:
        lines = [self.statement(scope, depth)]
        while self.budget > 0 and self.chance(0.5):
            lines.append(self.statement(scope, depth))
        return "\n".join(lines)

    def statement(self, scope: Scope, depth: int) -> str:
        self.budget -= 1
        kind = self.choices.random()
        scalars = [*scope.scalars]
        if self.budget > 0 and depth > 0:
            if kind < 0.12:
                return self.loop(scope, depth)
            if kind < 0.24:
                return self.reduction(scope)
            if kind < 0.3 and not self.is_large:
                return self.counted(scope, depth)
        if kind < 0.33 and self.procedure:
            return self.call_of_procedure(scope)
        if kind < 0.45 and self.budget > 0:
            return self.conditional(scope, depth)
        if kind < 0.5 and scope.jumps:
            jump = self.choices.choice([*scope.jumps, *scope.jumps, f"return {self.results}"])
            jump = jump.rstrip()
            return f"if {self.condition(scope, 1)}:\n{indent(jump)}"
        if kind < 0.58:
            return self.bind(scope)
        if kind < 0.68 and scalars:
            name = self.choices.choice(scalars)
            return self.update(name, scope, scope.scalars[name])
        if kind < 0.71 and len(scalars) > 1 and len({*scope.scalars.values()}) == 1:
            one, other = self.choices.sample(scalars, 2)
            return f"{one}, {other} = {other}, {one}"
        return self.store(scope)

    def conditional(self, scope: Scope, depth: int) -> str:
        text = f"if {self.condition(scope, 1)}:\n{indent(self.body(scope.branch(), depth - 1))}"
        if self.chance(0.2):
            body = self.body(scope.branch(), depth - 1)
            text += f"\nelif {self.condition(scope, 1)}:\n{indent(body)}"
        if self.chance(0.5):
            text += f"\nelse:\n{indent(self.body(scope.branch(), depth - 1))}"
        return text

    def counted(self, scope: Scope, depth: int) -> str:
        """Returns a `while` whose iterations can be counted."""
        var, most = self.fresh("w"), self.choices.randint(1, 5)
        test = f"{var} < {most}"
        if self.chance(0.6):
            test += f" and {self.condition(scope, 1)}"
        inner = scope.inside(var, 0, most - 1, ("break",))
        body = self.body(inner, depth - 1)
        return f"{var} = 0\nwhile {test}:\n{indent(body)}\n    {var} += 1"

    def target(self, scope: Scope) -> tuple[str, str]:
        """Returns an element that may be written, and its dtype."""
        written = [name for name, tensor in scope.tensors.items() if tensor.is_written]
        name = self.choices.choice(written)
        return self.element(scope, name), scope.tensors[name].dtype

    def store(self, scope: Scope) -> str:
        target, dtype = self.target(scope)
        if self.chance(0.3):
            return self.update(target, scope, dtype)
        return f"{target} = {self.value(scope, dtype, 3)}"

    def update(self, target: str, scope: Scope, dtype: str, depth: int = 2) -> str:
        """Returns what a reduction does with each element."""
        value = self.value(scope, dtype, depth)
        if dtype == "bool":
            return f"{target} = {target} {self.choices.choice(['and', 'or', '^'])} {value}"
        signs = ["+", "+", "-"]
        if dtype in INTEGERS:
            signs += ["*", "^", "&", "|"]
        form = self.choices.random()
        if form < 0.4:
            return f"{target} {self.choices.choice(signs)}= {value}"
        if form < 0.7:
            return f"{target} = {self.choices.choice(['min', 'max'])}({target}, {value})"
        if form < 0.9:
            sign = self.choices.choice(["<", ">", "<=", ">="])
            name = self.fresh("v")
            return f"{name} = {value}\nif {name} {sign} {target}:\n    {target} = {name}"
        return f"{target} = {value}"

    def reduction(self, scope: Scope) -> str:
        """Returns loops that reduce into a scalar, and its store: sums, extremes, searches."""
        self.budget -= 2
        name, dtype = self.fresh("s"), self.choice_of_number()
        first = self.leaf(scope, dtype)
        var, low, high, text = self.head(scope)
        rows = [n for n, t in scope.tensors.items() if t.dtype == dtype and t.shape[0] > 4000]
        is_whole = self.is_large and bool(rows) and not scope.loops and self.chance(0.6)
        if is_whole:
            row = self.choices.choice(rows)
            length = scope.tensors[row].shape[0]
            low, high, text = 0, length - 1, f"range({length})"
        inner = scope.inside(var, low, high, ("break", "continue"))
        inner.scalars[name] = dtype
        lines = [f"{name} = {first}"]
        where = self.fresh("p") if self.chance(0.3) else ""
        if where:
            value, sign = self.fresh("v"), self.choices.choice(["<", ">", "<=", ">="])
            lines.append(f"{where} = int32({self.choices.choice(['0', '-1'])})")
            body = f"{value} = {self.value(inner, dtype, 1)}\nif {value} {sign} {name}:\n"
            body += f"    {name} = {value}\n    {where} = int32({var})"
        else:
            body = self.update(name, inner, dtype, depth=self.choices.randint(0, 2))
            if is_whole and dtype != "bool":
                at = ", ".join([var, "0"][: len(scope.tensors[row].shape)])
                function = self.choices.choice(["max", "min"])
                body = f"{name} = {function}({name}, {row}[{at}])"
            if self.chance(0.2):
                body = f"if {self.condition(inner, 1)}:\n{indent(body)}"
            if self.chance(0.1):
                jump = self.choices.choice(inner.jumps)
                body = f"if {self.condition(inner, 1)}:\n{indent(jump)}\n{body}"
        if self.chance(0.25) and self.sizes[1] < 100 and not self.is_large:
            second = self.fresh("i")
            body = f"for {second} in range({self.sizes[1]}):\n{indent(body)}"
        lines.append(f"for {var} in {text}:\n{indent(body)}")
        scope.scalars[name] = dtype
        if where:
            scope.scalars[where] = "int32"
        target, wanted = self.target(scope)
        if wanted == dtype:
            lines.append(f"{target} = {name}")
        else:
            value = f"{name} > {self.leaf(scope, dtype)}" if wanted == "bool" else name
            lines.append(f"{target} = {value if wanted == 'bool' else f'{wanted}({value})'}")
        return "\n".join(lines)

    def choice_of_number(self) -> str:
        return self.choices.choice([dtype for dtype in self.dtypes if dtype != "bool"])

    def scan(self, scope: Scope) -> str:
        """Returns a loop that needs what the iteration before stored."""
        self.budget -= 1
        rows = [n for n, t in scope.tensors.items() if t.is_written and len(t.shape) == 1]
        rows = [name for name in rows if scope.tensors[name].dtype != "bool"]
        if not rows:
            return self.loop(scope, 2)
        name = self.choices.choice(rows)
        tensor, var = scope.tensors[name], self.fresh("i")
        inner = scope.inside(var, 1, tensor.shape[0] - 1, ("break", "continue"))
        before, value = f"{name}[{var} - 1]", self.value(inner, tensor.dtype, 1)
        update = self.choices.choice(
            [f"{before} + {value}", f"max({before}, {value})", f"min({before}, {value})", value]
        )
        return f"for {var} in range(1, {tensor.shape[0]}):\n    {name}[{var}] = {update}"

    def filled(self, scope: Scope, name: str) -> str:
        """Returns loops that store each element of a tensor."""
        tensor, inner, lines = scope.tensors[name], scope, []
        for extent in tensor.shape:
            var = self.fresh("i")
            inner = inner.inside(var, 0, extent - 1, ())
            lines.append(f"for {var} in range({extent}):")
        indices = ", ".join([*inner.loops][-len(tensor.shape) :])
        lines.append(f"{name}[{indices}] = {self.value(inner, tensor.dtype, 3)}")
        return "\n".join("    " * depth + line for depth, line in enumerate(lines))

    # Helpers.

    def helper_text(self) -> str:
        """Returns a function of two numbers that returns one, early under a condition."""
        dtype = next(d for d in self.dtypes if d != "bool")
        self.dtypes = [dtype, *(d for d in self.dtypes if d != dtype)]
        others, self.dtypes = self.dtypes, [dtype]
        scope = Scope({}, {"p": dtype, "q": dtype}, {})
        lines = [
            f"if {self.condition(scope, 1)}:\n    return {self.value(scope, dtype, 1)}",
            self.update("q", scope, dtype, 1),
            f"return {self.value(scope, dtype, 2)}",
        ]
        self.dtypes = others
        return f"def h(p, q):\n{indent(chr(10).join(lines))}"

    def procedure_text(self, tensor: Tensor) -> str:
        """Returns a function of a tensor and a number that changes elements."""
        scope = Scope({"t": dataclasses.replace(tensor, is_written=True)}, {"v": tensor.dtype}, {})
        helper, dtypes, self.helper = self.helper, self.dtypes, ""
        self.dtypes = [tensor.dtype] if tensor.dtype != "bool" else [*dtypes]
        self.budget, budget, results = 2, self.budget, self.__dict__.get("results")
        self.results, self.anywhere = "", "t"
        body = self.loop(scope, 1)
        self.anywhere = "x0"
        self.helper, self.dtypes, self.budget, self.results = helper, dtypes, budget, results
        self.procedure_tensor = tensor
        return f"def g(t, v):\n{indent(body)}"

    def call_of_procedure(self, scope: Scope) -> str:
        return f"g(y0, {self.value(scope, self.procedure_tensor.dtype, 1)})"


def _surely_runs(text: str) -> bool:
    """Returns whether the text of a range has constant bounds and iterations between them."""
    bounds = re.fullmatch(r"range\(([-0-9, ]+)\)", text)
    return bool(bounds and range(*map(int, bounds[1].split(","))))


def indent(text: str) -> str:
    """Returns a body."""
    return textwrap.indent(text, "    ")
