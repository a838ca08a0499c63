"""Hypothesis: random expressions of the loop IR, legal and well-behaved where they stand.

Two rules keep executors comparable. Whatever is compared, rounded to a whole number or used as an
index is exact: made of numbers that every order of evaluation computes alike (integers, and floats
that are copies of inputs, which are multiples of 1/4). Whatever is stored into a float grows by
little: a value that the kernel computed enters with a factor of 1/4 or through a function of slope
at most 1, and products are of inputs.
"""

from __future__ import annotations

from dataclasses import dataclass

from hypothesis import strategies as st
from loop_ir import (
    FLOATS,
    INTEGERS,
    Binary,
    Buffer,
    Cast,
    Const,
    Expr,
    FunctionCall,
    Load,
    Select,
    Unary,
    Var,
)

INPUT_LIMIT = 4
"""The largest magnitude of a float input."""

LIPSCHITZ = ("tanh", "sin", "cos", "atan", "sigmoid", "erf", "asinh")
ROUNDINGS = ("floor", "ceil", "trunc", "round", "nearbyint", "sign", "abs")


@dataclass(frozen=True)
class Memory:
    """A buffer in scope.

    Attributes:
      buffer: its declaration.
      is_written: the kernel may store to it.
      is_exact: holds only exact numbers; so do all integers.
    """

    buffer: Buffer
    is_written: bool = False
    is_exact: bool = True


@dataclass(frozen=True)
class Range:
    """A loop variable in scope, and the least and greatest value it may have."""

    var: str
    low: int
    high: int


@dataclass(frozen=True)
class Scope:
    """What an expression may use.

    Attributes:
      memory: the buffers.
      ranges: the loop variables, outermost first.
      indirect: accesses may have indices that are read from int32 inputs, out of range too.
      smooth: only functions that are differentiable everywhere; conditions do not read floats.
      tame: what the kernel computed enters floats only through a bounded function.
      hidden: names of buffers that may not be read.
    """

    memory: tuple[Memory, ...]
    ranges: tuple[Range, ...] = ()
    indirect: bool = True
    smooth: bool = False
    tame: bool = False
    hidden: frozenset[str] = frozenset()

    def of(self, dtype: str) -> list[Memory]:
        """Returns the buffers of a dtype that may be read."""
        return [
            m for m in self.memory if m.buffer.dtype == dtype and m.buffer.name not in self.hidden
        ]


def int32(value: int) -> Const:
    """Returns a constant index."""
    return Const(value, "int32")


def plus(expr: Expr, offset: int) -> Expr:
    """Returns the sum of an int32 and a number, as an author would write it."""
    if offset == 0:
        return expr
    sign, size = ("add", offset) if offset > 0 else ("sub", -offset)
    return Binary(sign, expr, int32(size), "int32")  # type: ignore[arg-type]


# Indices.


@st.composite
def affine_indices(draw: st.DrawFn, scope: Scope, extent: int) -> Expr:
    """Draws a quasi-affine index that stays in range, half of the time a plain variable."""
    plain = [Var(r.var) for r in reversed(scope.ranges) if r.low >= 0 and r.high < extent]
    if plain and draw(st.booleans()):
        return draw(st.sampled_from(plain))
    return draw(st.sampled_from(_indices_in_range(scope, extent)))


def _indices_in_range(scope: Scope, extent: int) -> list[Expr]:
    """Returns quasi-affine indices, the simplest first."""
    found: list[tuple[int, Expr]] = []

    def add(cost: int, expr: Expr, low: int, high: int) -> None:
        """Adds the expression with every shift that keeps it in range."""
        for shift in range(-low, extent - high):
            found.append((cost + (shift != 0), plus(expr, shift)))

    for range_ in scope.ranges:
        var, low, high = Var(range_.var), range_.low, range_.high
        add(0, var, low, high)
        add(3, Binary("mul", int32(2), var, "int32"), 2 * low, 2 * high)
        add(4, Binary("floordiv", var, int32(2), "int32"), low // 2, high // 2)
        add(4, Binary("mod", var, int32(2), "int32"), 0, 1)
        for top in range(high, extent + low):
            found.append((2, Binary("sub", int32(top), var, "int32")))
        for other in scope.ranges:
            if other.var != range_.var:
                second = Var(other.var)
                total = Binary("add", var, second, "int32")
                add(3, total, low + other.low, high + other.high)
                gap = Binary("sub", var, second, "int32")
                add(3, gap, low - other.high, high - other.low)
    found.extend((5, int32(value)) for value in range(extent))
    return [expr for _, expr in sorted(found, key=lambda item: item[0])]


@st.composite
def indices(draw: st.DrawFn, scope: Scope, buffer: Buffer) -> tuple[Expr, ...]:
    """Draws the indices of an access: affine and in range, or indirect and anywhere."""
    return tuple(draw(_index(scope, extent)) for extent in buffer.shape)


@st.composite
def _index(draw: st.DrawFn, scope: Scope, extent: int) -> Expr:
    tables = [m for m in scope.of("int32") if not m.is_written] if scope.indirect else []
    if tables and draw(st.integers(0, 5)) == 5:
        return draw(_affine_load(scope, draw(st.sampled_from(tables))))
    return draw(affine_indices(scope, extent))


@st.composite
def _affine_load(draw: st.DrawFn, scope: Scope, memory: Memory) -> Load:
    buffer = memory.buffer
    chosen = tuple(draw(affine_indices(scope, n)) for n in buffer.shape)
    return Load(buffer.name, chosen, buffer.dtype)


@st.composite
def loads(draw: st.DrawFn, scope: Scope, memory: Memory) -> Expr:
    """Draws a load, or one that a `Select` guards because it may be out of range."""
    buffer = memory.buffer
    chosen = draw(indices(scope, buffer))
    if not (scope.ranges and chosen and draw(st.integers(0, 4)) == 4):
        return Load(buffer.name, chosen, buffer.dtype)
    axis = draw(st.integers(0, len(chosen) - 1))
    var = draw(st.sampled_from(scope.ranges)).var
    index = plus(Var(var), draw(st.integers(-2, 2)))
    load = Load(buffer.name, (*chosen[:axis], index, *chosen[axis + 1 :]), buffer.dtype)
    return Select(in_range(index, buffer.shape[axis]), load, zero(buffer.dtype), buffer.dtype)


def in_range(index: Expr, extent: int) -> Expr:
    """Returns the condition that an index is in range."""
    low = Binary("ge", index, int32(0), "bool")
    return Binary("land", low, Binary("lt", index, int32(extent), "bool"), "bool")


def zero(dtype: str) -> Const:
    """Returns the constant 0."""
    return Const(False if dtype == "bool" else 0.0 if dtype in FLOATS else 0, dtype)


# Values.


@st.composite
def values(draw: st.DrawFn, scope: Scope, dtype: str, depth: int = 2) -> Expr:
    """Draws what may be stored into a buffer of a dtype that need not be exact."""
    if dtype in FLOATS:
        return draw(_floats(scope, dtype, depth))
    return draw(exact_values(scope, dtype, depth))


@st.composite
def exact_values(draw: st.DrawFn, scope: Scope, dtype: str, depth: int = 2) -> Expr:
    """Draws a value that all executors compute alike to the last bit."""
    if dtype == "bool":
        return draw(conditions(scope, depth))
    if depth == 0 or draw(st.booleans()):
        return draw(_exact_leaf(scope, dtype))
    return draw((_exact_floats if dtype in FLOATS else _integers)(scope, dtype, depth - 1))


@st.composite
def _exact_leaf(draw: st.DrawFn, scope: Scope, dtype: str) -> Expr:
    readable = [m for m in scope.of(dtype) if m.is_exact]
    kinds = ["load"] * 3 * bool(readable) + ["constant"] + ["variable"] * bool(scope.ranges)
    kind = draw(st.sampled_from(kinds))
    if kind == "load":
        return draw(loads(scope, draw(st.sampled_from(readable))))
    if kind == "variable":
        var = Var(draw(st.sampled_from(scope.ranges)).var)
        return var if dtype == "int32" else Cast(var, dtype)
    return draw(_constants(dtype))


@st.composite
def _constants(draw: st.DrawFn, dtype: str) -> Const:
    if dtype in FLOATS:
        return Const(draw(st.integers(-8, 8)) / 4, dtype)
    return Const(draw(st.integers(0 if dtype.startswith("uint") else -5, 9)), dtype)


INTEGER_OPS = (
    "add", "sub", "mul", "min", "max", "floordiv", "mod", "truncdiv", "truncmod", "and", "or",
    "xor", "shl", "shr",
)  # fmt: skip


@st.composite
def _integers(draw: st.DrawFn, scope: Scope, dtype: str, depth: int) -> Expr:
    kind = draw(st.sampled_from(("binary", "select", "unary", "call", "cast", "round")))
    first = draw(exact_values(scope, dtype, depth))
    if kind == "binary":
        op = draw(st.sampled_from(INTEGER_OPS))
        return Binary(op, first, draw(exact_values(scope, dtype, depth)), dtype)
    if kind == "select":
        other = draw(exact_values(scope, dtype, depth))
        return Select(draw(conditions(scope, depth)), first, other, dtype)
    if kind == "unary":
        return Unary(draw(st.sampled_from(("neg", "invert"))), first, dtype)
    if kind == "call":
        return FunctionCall(draw(st.sampled_from(("abs", "sign", "popcount"))), (first,), dtype)
    others = {m.buffer.dtype for m in scope.memory if m.is_exact}
    wanted = FLOATS if kind == "round" and not scope.smooth else INTEGERS
    sources = sorted((others & set(wanted)) - {dtype})
    if not sources:
        return first
    return Cast(draw(exact_values(scope, draw(st.sampled_from(sources)), depth)), dtype)


@st.composite
def _exact_floats(draw: st.DrawFn, scope: Scope, dtype: str, depth: int) -> Expr:
    kind = draw(st.sampled_from(("select", "minmax", "neg", "call", "mod")))
    first = draw(exact_values(scope, dtype, depth))
    if kind == "select":
        other = draw(exact_values(scope, dtype, depth))
        return Select(draw(conditions(scope, depth)), first, other, dtype)
    if kind == "neg" or scope.smooth:
        return Unary("neg", first, dtype)
    if kind == "minmax":
        op = draw(st.sampled_from(("min", "max")))
        return Binary(op, first, draw(exact_values(scope, dtype, depth)), dtype)
    if kind == "mod":
        op = draw(st.sampled_from(("mod", "floordiv")))
        return Binary(op, first, Const(draw(st.sampled_from((2.0, -2.0))), dtype), dtype)
    return FunctionCall(draw(st.sampled_from(ROUNDINGS)), (first,), dtype)


@st.composite
def _floats(draw: st.DrawFn, scope: Scope, dtype: str, depth: int) -> Expr:
    if depth == 0:
        return draw(_float_leaf(scope, dtype))
    kind = draw(
        st.sampled_from(("leaf", "sum", "product", "call", "select", "quotient", "minmax", "cast"))
    )
    if kind == "product":
        first, second = (draw(_bounded(scope, dtype)) for _ in range(2))
        return Binary("mul", first, second, dtype)
    if kind == "leaf":
        return draw(_float_leaf(scope, dtype))
    first = draw(_floats(scope, dtype, depth - 1))
    if kind == "quotient":
        return draw(_quotients(scope, first))
    if kind == "call":
        return draw(_calls(first))
    if kind == "cast":
        return draw(_conversions(scope, first))
    second = draw(_floats(scope, dtype, depth - 1))
    if kind == "sum" or (kind == "minmax" and scope.smooth):
        return Binary(draw(st.sampled_from(("add", "sub"))), first, second, dtype)
    if kind == "minmax":
        return Binary(draw(st.sampled_from(("min", "max"))), first, second, dtype)
    return Select(draw(conditions(scope, depth - 1)), first, second, dtype)


@st.composite
def _float_leaf(draw: st.DrawFn, scope: Scope, dtype: str) -> Expr:
    written = [m for m in scope.of(dtype) if m.is_written]
    if not (written and draw(st.booleans())):
        return draw(_bounded(scope, dtype))
    load = draw(loads(scope, draw(st.sampled_from(written))))
    # Sums of 16-bit floats stay far from their largest number.
    if scope.tame or dtype.endswith("16") or draw(st.integers(0, 3)) == 3:
        return FunctionCall("tanh", (load,), dtype)
    return Binary("mul", Const(0.25, dtype), load, dtype)


@st.composite
def _bounded(draw: st.DrawFn, scope: Scope, dtype: str) -> Expr:
    """Draws a number that is small whatever the kernel computed before."""
    readable = [m for m in scope.of(dtype) if not m.is_written]
    if readable and draw(st.integers(0, 3)) < 3:
        return draw(loads(scope, draw(st.sampled_from(readable))))
    return draw(_constants(dtype))


@st.composite
def _quotients(draw: st.DrawFn, scope: Scope, numerator: Expr) -> Expr:
    dtype = numerator.dtype
    if draw(st.booleans()):
        return Binary("div", numerator, Const(draw(st.sampled_from((2.0, -4.0))), dtype), dtype)
    factor = draw(_bounded(scope, dtype))
    square = Binary("mul", factor, factor, dtype)
    return Binary("div", numerator, Binary("add", Const(1.0, dtype), square, dtype), dtype)


@st.composite
def _calls(draw: st.DrawFn, argument: Expr) -> Expr:
    dtype = argument.dtype
    function = draw(st.sampled_from((*LIPSCHITZ, "exp", "sqrt", "log")))
    if function in LIPSCHITZ:
        return FunctionCall(function, (argument,), dtype)
    bounded = FunctionCall("sin", (argument,), dtype)
    if function == "exp":
        return FunctionCall(function, (bounded,), dtype)
    return FunctionCall(function, (Binary("add", Const(2.0, dtype), bounded, dtype),), dtype)


@st.composite
def _conversions(draw: st.DrawFn, scope: Scope, argument: Expr) -> Expr:
    """Draws a cast of a small number; the argument itself where there is nothing to cast."""
    dtype = argument.dtype
    sources = [m for m in scope.memory if not m.is_written and m.buffer.dtype != dtype]
    if sources and draw(st.booleans()):
        return Cast(draw(loads(scope, draw(st.sampled_from(sources)))), dtype)
    if scope.ranges:
        return Cast(Var(draw(st.sampled_from(scope.ranges)).var), dtype)
    return argument


# Conditions.

COMPARISONS = ("lt", "le", "gt", "ge", "eq", "ne")


@st.composite
def conditions(draw: st.DrawFn, scope: Scope, depth: int = 1) -> Expr:
    """Draws a condition: on loop variables, on data, or both."""
    kinds = ["affine", "data"]
    if depth > 0:
        kinds += ["land", "lor", "not"]
    kind = draw(st.sampled_from(kinds))
    if kind == "not":
        return Unary("not", draw(conditions(scope, depth - 1)), "bool")
    if kind in ("land", "lor"):
        first, second = (draw(conditions(scope, depth - 1)) for _ in range(2))
        return Binary(kind, first, second, "bool")
    if kind == "affine" and scope.ranges:
        return draw(_affine_conditions(scope))
    return draw(_data_conditions(scope))


@st.composite
def _affine_conditions(draw: st.DrawFn, scope: Scope) -> Expr:
    first = Var(draw(st.sampled_from(scope.ranges)).var)
    others = [Var(r.var) for r in scope.ranges if r.var != first.name]
    second: Expr = int32(draw(st.integers(0, 5)))
    if others and draw(st.booleans()):
        second = plus(draw(st.sampled_from(others)), draw(st.integers(-1, 1)))
    return Binary(draw(st.sampled_from(COMPARISONS)), first, second, "bool")


@st.composite
def _data_conditions(draw: st.DrawFn, scope: Scope) -> Expr:
    unwanted = FLOATS if scope.smooth else ()
    dtypes = sorted({m.buffer.dtype for m in scope.memory if m.is_exact} - {*unwanted})
    if not dtypes:
        return Const(draw(st.booleans()), "bool")
    dtype = draw(st.sampled_from(dtypes))
    first = draw(_exact_leaf(scope, dtype)) if dtype != "bool" else draw(_bools(scope))
    if dtype == "bool":
        return first
    second = draw(_exact_leaf(scope, dtype))
    return Binary(draw(st.sampled_from(COMPARISONS)), first, second, "bool")


@st.composite
def _bools(draw: st.DrawFn, scope: Scope) -> Expr:
    readable = scope.of("bool")
    if not readable:
        return Const(draw(st.booleans()), "bool")
    return draw(loads(scope, draw(st.sampled_from(readable))))
