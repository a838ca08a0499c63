"""Random expressions of the language of loop kernels, as Python source; see loop_programs.py."""

from __future__ import annotations

import dataclasses
import random
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

INTEGERS = ("int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64")
FLOATS = ("float32", "float64", "float16", "bfloat16")


@dataclass(frozen=True)
class Tensor:
    """A tensor of a program.

    Attributes:
      bound: of index tensors, what their values are below; else 0.
    """

    dtype: str
    shape: tuple[int, ...]
    is_written: bool = False
    bound: int = 0


@dataclass(frozen=True)
class Scope:
    """What is bound where a statement stands, and what jumps may leave it."""

    tensors: dict[str, Tensor]
    scalars: dict[str, str]
    loops: dict[str, tuple[int, int]]
    jumps: tuple[str, ...] = ()

    def inside(self, var: str, low: int, high: int, jumps: tuple[str, ...]) -> Scope:
        """Returns the scope in a loop whose variable is from `low` to `high`."""
        loops = {**self.loops, var: (low, max(low, high))}
        return dataclasses.replace(self, loops=loops, scalars=dict(self.scalars), jumps=jumps)

    def branch(self) -> Scope:
        """Returns the scope in a branch: what it binds is unbound after it."""
        return dataclasses.replace(self, scalars=dict(self.scalars))


class Expressions:
    """Writes expressions, of names that are in a scope.

    Attributes:
      choices: where all choices come from.
      is_smooth: only of float64, and differentiable but where operands are equal.
      sizes: the extents of tensors.
      dtypes: of tensors and scalars.
      helper: a function `h` of two numbers of the first dtype, or none.
      anywhere: a tensor that each statement sees.
    """

    sizes: tuple[int, int]
    dtypes: list[str]

    def __init__(self, choices: random.Random, is_smooth: bool):
        self.choices = choices
        self.is_smooth = is_smooth
        self.count = 0
        self.helper = ""
        self.anywhere = "x0"

    # Draws.

    def chance(self, probability: float) -> bool:
        return self.choices.random() < probability

    def fresh(self, letter: str) -> str:
        self.count += 1
        return f"{letter}{self.count}"

    def palette(self) -> list[str]:
        kinds = self.choices.choice([FLOATS, FLOATS, INTEGERS, INTEGERS + FLOATS])
        found = self.choices.sample(kinds, self.choices.randint(1, 2))
        return [*found, *(["bool"] if self.chance(1 / 4) else [])]

    def shape(self, rank: int) -> tuple[int, ...]:
        if rank == 1:
            return (self.sizes[0 if self.chance(0.7) else 1],)
        return self.sizes if self.chance(0.7) else self.sizes[::-1]

    def tensor(self, is_written: bool = False) -> Tensor:
        dtype = self.choices.choice(self.dtypes)
        return Tensor(dtype, self.shape(1 if self.chance(0.6) else 2), is_written)

    def declaration(self, name: str, tensor: Tensor, function: str = "output_tensor") -> str:
        return f'{name} = {function}({tensor.shape!r}, "{tensor.dtype}")'

    # Indices.

    def index(self, scope: Scope, extent: int) -> str:
        """Returns an index in range of an extent, mostly a loop's own variable."""
        fitting = [v for v, (low, high) in scope.loops.items() if low >= 0 and high < extent]
        if fitting and self.chance(0.65):
            return self.choices.choice(fitting[-2:])
        others = list(self.other_indices(scope, extent))
        return self.choices.choice(others)

    def other_indices(self, scope: Scope, extent: int) -> Iterator[str]:
        yield str(self.choices.randrange(extent))
        yield "-1"
        for var, (low, high) in scope.loops.items():
            offset = self.choices.randint(1, 3)
            yield f"({var} + {offset}) % {extent}"
            yield f"(2 * {var}) % {extent}"
            if low >= 0 and high < extent:
                yield f"{extent - 1} - {var}"
                yield f"max({var} - {offset}, 0)"
                yield f"min({var} + {offset}, {extent - 1})"
        for name, tensor in scope.tensors.items():
            if not scope.loops or tensor.is_written:
                continue
            if 0 < tensor.bound <= extent:
                yield from [f"{name}[{self.affine(scope, tensor.shape[0])}]"] * 4
            elif tensor.dtype in INTEGERS and extent <= 100 and len(tensor.shape) == 1:
                yield f"int32({name}[{self.affine(scope, tensor.shape[0])}] % {extent})"

    def affine(self, scope: Scope, extent: int) -> str:
        fitting = [v for v, (low, high) in scope.loops.items() if low >= 0 and high < extent]
        return self.choices.choice(fitting) if fitting else str(self.choices.randrange(extent))

    def element(self, scope: Scope, name: str) -> str:
        extents = scope.tensors[name].shape
        return f"{name}[{', '.join(self.index(scope, extent) for extent in extents)}]"

    # Values.

    def constant(self, dtype: str) -> str:
        if dtype == "bool":
            return f"({self.anywhere}.shape[0] {self.choices.choice('><')} 2)"
        if dtype in FLOATS:
            plain = ["0.0", "1.0", "-0.5", "3.0", "0.1", "-2.0"]
            special = [] if self.is_smooth else ["-0.0", "INF", "NAN", "-INF", "1e4"]
            return self.choices.choice([*plain, *special])
        info = np.iinfo(dtype)
        few = [0, 1, 2, 3, 5, 7, 100, info.max, info.max - 1, info.min]
        if info.min:
            few += [-1, -3, -2]
        return str(self.choices.choice(few))

    def leaf(self, scope: Scope, dtype: str) -> str:
        tensors = [n for n, each in scope.tensors.items() if each.dtype == dtype and not each.bound]
        scalars = [name for name, kind in scope.scalars.items() if kind == dtype]
        kind = self.choices.random()
        if scalars and kind < 0.35:
            return self.choices.choice(scalars[-3:])
        if tensors and kind < 0.85:
            return self.element(scope, self.choices.choice(tensors))
        if scope.loops and kind < 0.95 and dtype != "bool":
            return f"{dtype}({self.choices.choice([*scope.loops])})"
        constant = self.constant(dtype)
        return constant if dtype == "bool" else f"{dtype}({constant})"

    def value(self, scope: Scope, dtype: str, depth: int) -> str:
        """Returns an expression of a dtype."""
        if depth <= 0 or self.chance(0.15):
            return self.leaf(scope, dtype)
        if dtype == "bool":
            return f"({self.condition(scope, depth - 1)})"
        if self.chance(0.12):
            one, other = self.value(scope, dtype, depth - 1), self.leaf(scope, dtype)
            return f"({one} if {self.condition(scope, 1)} else {other})"
        if self.helper and dtype == self.dtypes[0] and self.chance(0.12):
            other = f"{self.choices.choice(['', 'q='])}{self.leaf(scope, dtype)}"
            return f"h({self.value(scope, dtype, depth - 1)}, {other})"
        if self.chance(0.1) and not self.is_smooth:
            return self.cast(scope, dtype, depth)
        if self.is_smooth and dtype in FLOATS:
            return self.smooth(scope, dtype, depth)
        return (self.float_ if dtype in FLOATS else self.integer)(scope, dtype, depth)

    def cast(self, scope: Scope, dtype: str, depth: int) -> str:
        others = [kind for kind in (*self.dtypes, "int32", "int64") if kind != dtype]
        return f"{dtype}({self.value(scope, self.choices.choice(others), depth - 1)})"

    def pair(self, scope: Scope, dtype: str, depth: int) -> tuple[str, str]:
        """Returns two operands, of which one may be a number."""
        one = self.value(scope, dtype, depth - 1)
        if self.chance(0.25):
            other = self.constant(dtype)
            # Python's number takes the dtype of the other; numpy knows no such rule of bfloat16's.
            other = f"{dtype}({other})" if dtype == "bfloat16" else other
            return (one, other) if self.chance(0.7) else (other, one)
        return one, self.value(scope, dtype, depth - 1)

    def integer(self, scope: Scope, dtype: str, depth: int) -> str:
        form = self.choices.random()
        if form < 0.14:
            one = self.value(scope, dtype, depth - 1)
            return self.choices.choice([f"abs({one})", f"sign({one})", f"(-{one})", f"(~{one})"])
        if form < 0.2:
            return f"popcount({self.value(scope, dtype, depth - 1)})"
        if form < 0.26:
            return f"{self.value(scope, dtype, depth - 1)} ** {self.choices.randint(0, 4)}"
        one, other = self.pair(scope, dtype, depth)
        if form < 0.5:
            function = self.choices.choice(["min", "max", "ceil_div", "power"])
            if function == "power":
                return (
                    f"power({self.value(scope, dtype, depth - 1)}, {self.exponent(scope, dtype)})"
                )
            return f"{function}({one}, {other})"
        if form < 0.6:
            one = self.value(scope, dtype, depth - 1)
            distance = self.choices.choice([str(self.choices.randint(0, 70)), other])
            distance = f"{dtype}({distance})"
            return f"({one} {self.choices.choice(['<<', '>>'])} {distance})"
        operators = ["+", "-", "*", "+", "-", "*", "//", "%", "&", "|", "^"]
        return f"({one} {self.choices.choice(operators)} {other})"

    def exponent(self, scope: Scope, dtype: str) -> str:
        """Returns an exponent; a negative one that is constant is refused."""
        tensors = [n for n, each in scope.tensors.items() if each.dtype == dtype]
        if not tensors or self.chance(0.4):
            return f"{dtype}({self.choices.randint(0, 9)})"
        return self.element(scope, self.choices.choice(tensors))

    def float_(self, scope: Scope, dtype: str, depth: int) -> str:
        form = self.choices.random()
        if form < 0.22:
            rounding = ("floor", "ceil", "trunc", "round", "sign", "abs", "abs")
            smooth = ("sqrt", "exp", "log", "tanh", "sqrt", "rsqrt", "sigmoid")
            one = self.value(scope, dtype, depth - 1)
            function = self.choices.choice(rounding if self.chance(0.6) else smooth)
            return f"{function}({one})" if self.chance(0.85) else f"(-{one})"
        if form < 0.27:
            power = self.choices.choice(["2.0", "3.0", "0.5", "-1.0", "0.0", "1.0"])
            return f"{self.value(scope, dtype, depth - 1)} ** {dtype}({power})"
        one, other = self.pair(scope, dtype, depth)
        if form < 0.42:
            return f"{self.choices.choice(['min', 'max'])}({one}, {other})"
        operators = ["+", "-", "*", "+", "-", "*", "/", "/", "//", "%"]
        return f"({one} {self.choices.choice(operators)} {other})"

    def smooth(self, scope: Scope, dtype: str, depth: int) -> str:
        one, other = (self.value(scope, dtype, depth - 1) for _ in "ab")
        return self.choices.choice(
            [
                f"({one} + {other})",
                f"({one} - {other})",
                f"({one} * {other})",
                f"({one} / (1.0 + {other} * {other}))",
                f"min({one}, {other})",
                f"max({one}, {other})",
                f"abs({one})",
                f"tanh({one})",
                f"sin({one})",
                f"exp(tanh({one}))",
                f"sqrt(1.0 + {one} * {one})",
                f"(-{one})",
            ]
        )

    # Conditions.

    def condition(self, scope: Scope, depth: int) -> str:
        if depth > 0 and self.chance(0.3):
            one, other = (self.condition(scope, depth - 1) for _ in "ab")
            return self.choices.choice([f"({one} and {other})", f"({one} or {other})"])
        if self.chance(0.1):
            return f"not ({self.condition(scope, depth - 1)})"
        sign = self.choices.choice(["<", "<=", ">", ">=", "==", "!="])
        loops = [*scope.loops]
        if loops and self.chance(0.35):
            one = self.choices.choice(loops)
            other = self.choices.choice([*loops, str(self.choices.randint(0, 4))])
            return self.choices.choice([f"{one} {sign} {other}", f"({one} + {other}) % 2 == 0"])
        bools = [n for n, tensor in scope.tensors.items() if tensor.dtype == "bool"]
        if bools and self.chance(0.3):
            return self.element(scope, self.choices.choice(bools))
        dtype = self.choices.choice([d for d in self.dtypes if d != "bool"])
        one, other = self.pair(scope, dtype, min(depth, 1) + 1)
        if dtype in FLOATS and not self.is_smooth and self.chance(0.15):
            return f"{self.choices.choice(['isnan', 'isinf', 'isfinite'])}({one})"
        if self.is_smooth:  # at equal values there is no slope
            sign = self.choices.choice(["<", ">"])
        return f"{one} {sign} {other}"
