"""Hypothesis: random nests of idioms that authors write and array operations are not made for.

Conditions inside reductions, extremes with their positions, histograms, work in place, locals that
collect, several results that read one another, in mixed and narrow types. All numbers are exact:
floats are multiples of 1/4 and stay small, so that executors must agree to the last bit.
"""

from __future__ import annotations

from collections.abc import Sequence

from hypothesis import assume
from hypothesis import strategies as st
from loop_ir import FLOATS, check_bounds, parse_kernel, verify
from loop_strategies import Case, inputs_of

VALUES = ("float32", "int32", "int8", "uint8", "float64", "int64", "uint16", "float16", "uint64")
TABLES = ("int32", "uint8", "int8", "int64", "uint32", "uint64")


@st.composite
def idioms(draw: st.DrawFn, values: Sequence[str] = VALUES) -> Case:
    """Draws a legal kernel and its inputs."""
    kernel = parse_kernel(_Writer(draw, values).kernel())
    verify(kernel)
    assume(not check_bounds(kernel).findings)
    return Case(kernel, inputs_of(kernel, draw(st.integers(0, 99))))


class _Writer:
    """Writes the text of a kernel.

    Parameters are a, b and w, and the table of indices; results c, q (of the type of w), s, the
    position p, the flags f, and z, or a in place.
    """

    def __init__(self, draw: st.DrawFn, values: Sequence[str]):
        self._draw = draw
        self._value_dtype = draw(st.sampled_from(values))
        self._other_dtype = draw(st.sampled_from(values))
        self._table_dtype = draw(st.sampled_from(TABLES))
        self._size = self._number(2, 6)
        # What is worked on in place, or what is written instead.
        self._own = self._one("a", "z")
        self._names = 0
        self._stores = 0

    def _number(self, low: int, high: int) -> int:
        return self._draw(st.integers(low, high))

    def _one(self, *options: str) -> str:
        return self._draw(st.sampled_from(options))

    def _fresh(self, stem: str) -> str:
        self._names += 1
        return f"{stem}{self._names}"

    def kernel(self) -> str:
        n, v, w = self._size, self._value_dtype, self._other_dtype
        body = " ".join(self._loop((), 3) for _ in range(self._number(1, 3)))
        results = ["c", "q", "s", "p", "f", self._own]
        return f"""kernel idioms(a: {v}[{n + 2}], b: {v}[{n}, {n}], w: {w}[{n}],
                                 table: {self._table_dtype}[{n}]) -> ({", ".join(results)}) {{
          buffer z: {v}[{n + 2}]
          buffer c: {v}[{n}]
          buffer q: {w}[{n}]
          buffer s: {v}[]
          buffer p: int32[]
          buffer f: bool[{n}]
          {body}
        }}"""

    def _loop(self, outer: tuple[str, ...], depth: int) -> str:
        var = self._fresh("i")
        n = self._size
        ranges = [f"0 .. {n}"] * 3 + [f"1 .. {n}", f"0 .. {n - 1}"]
        if outer:
            ranges += [f"{outer[-1]} .. {n}", f"0 .. ({outer[-1]} + 1)"]
            ranges += [f"0 .. min(int32(table[{outer[-1]}]), {n})"]
        loops = (*outer, var)
        parts = " ".join(self._statement(loops, depth - 1) for _ in range(self._number(1, 3)))
        return f"serial {var} in {self._one(*ranges)} {{ {parts} }}"

    def _statement(self, loops: tuple[str, ...], depth: int) -> str:
        kinds = [self._store, self._extreme, self._histogram, self._conditional, self._flag]
        if depth > 0 and self._stores < 6:
            kinds += [self._inner, self._inner, self._collected]
        kind = kinds[self._number(0, len(kinds) - 1)]
        return kind(loops, depth)

    def _inner(self, loops: tuple[str, ...], depth: int) -> str:
        return self._loop(loops, depth)

    # Idioms.

    def _store(self, loops: tuple[str, ...], depth: int) -> str:
        self._stores += 1
        name = self._one("c", "q", "s", self._own, "c")
        target = self._element(name, loops)
        dtype = self._dtype(name)
        value = self._value(loops, dtype)
        if self._number(0, 3) == 0:
            return f"{target} = {value}"
        return f"{target} = {self._updated(target, value, dtype)}"

    def _extreme(self, loops: tuple[str, ...], depth: int) -> str:
        self._stores += 1
        value = self._read(self._one("a", "b"), loops)
        guard = f"({self._condition(loops)}) && " if self._number(0, 2) == 0 else ""
        sign = self._one(">", ">=", "<", "<=")
        position = f"p[] = {loops[-1]}" if self._number(0, 2) else ""
        return f"if ({guard}({value} {sign} s[])) {{ s[] = {value} {position} }}"

    def _histogram(self, loops: tuple[str, ...], depth: int) -> str:
        self._stores += 1
        name = self._one("c", "q")
        index = f"table[{self._one(*loops)}]"
        index = self._one(index, index, f"({index} % 3:{self._table_dtype})", f"int32({index}) - 1")
        target, dtype = f"{name}[{index}]", self._dtype(name)
        return f"{target} = {self._updated(target, self._value(loops, dtype), dtype)}"

    def _conditional(self, loops: tuple[str, ...], depth: int) -> str:
        then = self._statement(loops, 0)
        condition = self._condition(loops)
        if self._number(0, 2):
            return f"if ({condition}) {{ {then} }}"
        return f"if ({condition}) {{ {then} }} else {{ {self._statement(loops, 0)} }}"

    def _flag(self, loops: tuple[str, ...], depth: int) -> str:
        self._stores += 1
        target = self._element("f", loops)
        op = self._one("&&", "||", "^")
        return f"{target} = {target} {op} ({self._condition(loops)})"

    def _collected(self, loops: tuple[str, ...], depth: int) -> str:
        """A local that a loop reduces into."""
        self._stores += 2
        name, var, n = self._fresh("l"), self._fresh("i"), self._size
        dtype = self._value_dtype
        inner = (*loops, var)
        update = f"{name}[] = {self._updated(f'{name}[]', self._value(inner, dtype), dtype)}"
        if self._number(0, 1):
            update = f"if ({self._condition(inner)}) {{ {update} }}"
        target = self._element("c", loops)
        return f"""local {name}: {dtype}[] {{
          {name}[] = {self._value(loops, dtype)}
          serial {var} in 0 .. {n} {{ {update} }}
          {target} = {self._updated(target, f"{name}[]", dtype)}
        }}"""

    # Expressions.

    def _dtype(self, name: str) -> str:
        return {"q": self._other_dtype, "w": self._other_dtype, "f": "bool"}.get(
            name, self._value_dtype
        )

    def _updated(self, old: str, value: str, dtype: str) -> str:
        # Sums of float16 would soon be rounded.
        ops = ["min", "max"] if dtype == "float16" else ["+", "+", "-", "min", "max"]
        op = self._one(*ops, *(() if dtype in FLOATS else ("*", "|", "^")))
        return f"{op}({old}, {value})" if op in ("min", "max") else f"({old} {op} {value})"

    def _constant(self, number: int, dtype: str) -> str:
        if dtype in FLOATS:
            return f"{float(number)}:{dtype}"
        return f"{abs(number)}:{dtype}" if dtype != "int32" else f"{abs(number)}"

    def _value(self, loops: tuple[str, ...], dtype: str) -> str:
        kind = self._number(0, 5)
        if kind == 0:
            var = self._one(*loops)
            return var if dtype == "int32" else f"{dtype}({var})"
        name = self._one("a", "b", "w", "c", "q")
        read = self._read(name, loops)
        converted = read
        if self._dtype(name) != dtype:
            converted = self._limited(f"{dtype}({read})", dtype)
        if kind == 1:
            return f"(({self._condition(loops)}) ? {converted} : {self._constant(1, dtype)})"
        if kind == 2:
            return self._constant(self._number(-3, 3), dtype)
        return converted

    def _read(self, name: str, loops: tuple[str, ...]) -> str:
        """Returns a small number: what the kernel computed is limited."""
        element, dtype = self._element(name, loops), self._dtype(name)
        return element if name in ("b", "w") else self._limited(element, dtype)

    def _limited(self, value: str, dtype: str) -> str:
        if dtype not in FLOATS:
            return value
        low, high = (self._constant(limit, dtype) for limit in (-8, 8))
        return f"max(min({value}, {high}), {low})"

    def _condition(self, loops: tuple[str, ...]) -> str:
        var, other, number = self._one(*loops), self._one(*loops), self._number(0, self._size)
        dtype = self._value_dtype
        return self._one(
            f"{var} < {number}",
            f"({var} % 2) == 0",
            f"{var} >= {other}",
            f"{var} != {other}",
            f"{self._read('b', loops)} > {self._constant(1, dtype)}",
            f"({var} > 0) && ({self._read('a', loops)} <= {self._read('b', loops)})",
            f"({self._read('w', loops)} < {self._constant(2, self._other_dtype)}) || ({var} == 1)",
            f"f[{var}]",
        )

    def _element(self, name: str, loops: tuple[str, ...]) -> str:
        ranks = {"s": 0, "p": 0, "b": 2}
        indices = (self._index(name, loops) for _ in range(ranks.get(name, 1)))
        return f"{name}[{', '.join(indices)}]"

    def _index(self, name: str, loops: tuple[str, ...]) -> str:
        var = self._one(*loops)
        kinds = [var, var, var, f"{self._size - 1} - {var}", f"{var} // 2", str(self._number(0, 1))]
        if name in ("a", "z"):
            kinds += [f"{var} + 1", f"{var} + 2"]
        if self._number(0, 5) == 5:
            kinds = [f"table[{var}]"]
        return self._one(*kinds)
