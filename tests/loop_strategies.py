"""Hypothesis: random legal kernels of the loop IR, with inputs to run them on.

    @given(kernels())
    def test_printer(case):
        expected = interpret(case.kernel, case.inputs)
        assert_agree(case.kernel, case.inputs, expected, printed(case.kernel)(*case.inputs))

Accesses with affine indices are in range, by construction or by a guard that isl can see through;
those through an index table may be out of range. How values are kept comparable is explained in
loop_expressions.py.
"""

from __future__ import annotations

import dataclasses
from typing import NamedTuple

import numpy as np
from hypothesis import strategies as st
from loop_expressions import (
    INPUT_LIMIT,
    Memory,
    Range,
    Scope,
    conditions,
    exact_values,
    in_range,
    indices,
    int32,
    loads,
    plus,
    values,
)
from loop_ir import (
    FLOATS,
    Binary,
    Buffer,
    Const,
    Expr,
    For,
    If,
    Kernel,
    Load,
    Local,
    Stmt,
    Store,
    Var,
    as_dtype,
    statements,
    verify,
)

DTYPES = ("float32", "int32", "float16", "bfloat16", "bool", "int8", "uint8", "int16", "uint32")
"""The dtypes of a JAX without x64."""
WIDE_DTYPES = (*DTYPES, "float64", "int64", "uint64")

SIZES = (2, 3, 1, 4, 5, 6)
MAX_DEPTH = 3
MAX_STORES = 6


class Case(NamedTuple):
    """A kernel and what to run it on."""

    kernel: Kernel
    inputs: list[np.ndarray]


@st.composite
def kernels(
    draw: st.DrawFn,
    dtypes: tuple[str, ...] = DTYPES,
    indirect: bool = True,
    smooth: bool = False,
) -> Case:
    """Draws a legal kernel and its inputs.

    Args:
      dtypes: of parameters, outputs, temporaries and locals; simplest first.
      indirect: indices may be read from an int32 input.
      smooth: the outputs are differentiable functions of the float inputs: neither conditions nor
        integers depend on them, and there is no `min`, `abs` or the like.
    """
    writer = _Writer(draw, dtypes, smooth)
    parameters = [writer.declare("p") for _ in range(draw(st.integers(1, 2)))]
    in_place = draw(st.integers(0, 3)) == 3
    is_exact = not in_place or parameters[0].dtype not in FLOATS
    memory = [Memory(parameters[0], in_place, is_exact), *map(Memory, parameters[1:])]
    if indirect and draw(st.booleans()):
        table = Buffer("table", (draw(st.sampled_from(SIZES)),), "int32")
        parameters.append(table)
        memory.append(Memory(table))
    outputs = [writer.written("out") for _ in range(draw(st.integers(1, 2)))]
    temporaries = [writer.written("temp") for _ in range(draw(st.integers(0, 1)))]
    scope = Scope((*memory, *outputs, *temporaries), indirect=indirect, smooth=smooth)
    body = writer.body(scope, top=True)
    results = [m.buffer.name for m in outputs]
    results += [m.buffer.name for m in memory if m.is_written]
    if not {stmt.buffer for stmt in statements(body) if isinstance(stmt, Store)} & {*results}:
        results += [m.buffer.name for m in temporaries]
    buffers = tuple(m.buffer for m in (*outputs, *temporaries))
    kernel = Kernel("random", tuple(parameters), tuple(results), buffers, body)
    verify(kernel)
    return Case(kernel, inputs_of(kernel, draw(st.integers(0, 99))))


def inputs_of(kernel: Kernel, seed: int) -> list[np.ndarray]:
    """Returns inputs for a kernel: floats are multiples of 1/4, integers small.

    Values of an int32 input reach a little past the sizes of the buffers, on both sides.
    """
    generator = np.random.default_rng(seed)
    return [_input(buffer, generator) for buffer in kernel.parameters]


def _input(buffer: Buffer, generator: np.random.Generator) -> np.ndarray:
    dtype = as_dtype(buffer.dtype).dtype
    if buffer.dtype in FLOATS:
        quarters = generator.integers(-4 * INPUT_LIMIT, 4 * INPUT_LIMIT + 1, buffer.shape)
        return (quarters / 4).astype(dtype)
    if buffer.dtype == "bool":
        return generator.integers(0, 2, buffer.shape).astype(dtype)
    low = 0 if buffer.dtype.startswith("uint") else -2
    return generator.integers(low, max(SIZES) + 2, buffer.shape).astype(dtype)


class _Writer:
    """Draws statements, with names that no other buffer or variable of the kernel has."""

    def __init__(self, draw: st.DrawFn, dtypes: tuple[str, ...], smooth: bool):
        self._draw = draw
        self._smooth = smooth
        # Few of them, so that buffers meet in expressions, and loops fit several.
        self._dtypes = [draw(st.sampled_from(dtypes)) for _ in range(draw(st.integers(1, 2)))]
        sizes = st.sampled_from(SIZES)
        self._sizes = [draw(sizes) for _ in range(draw(st.integers(1, 3)))]
        self._names = 0
        self._stores_left = MAX_STORES
        self._branches_left = 3

    def _name(self, stem: str) -> str:
        self._names += 1
        return f"{stem}{self._names}"

    def _chance(self, one_in: int) -> bool:
        return self._draw(st.integers(1, one_in)) == one_in

    # Buffers.

    def declare(self, stem: str, max_rank: int = 3) -> Buffer:
        """Draws a buffer."""
        rank = self._draw(st.integers(1 if stem == "p" else 0, max_rank))
        shape = tuple(self._draw(st.sampled_from(self._sizes)) for _ in range(rank))
        return Buffer(self._name(stem), shape, self._draw(st.sampled_from(self._dtypes)))

    def written(self, stem: str, max_rank: int = 2) -> Memory:
        """Draws a buffer that the kernel writes."""
        buffer = self.declare(stem, max_rank)
        # Exact floats are made by comparisons and roundings.
        is_exact = buffer.dtype not in FLOATS or (self._chance(4) and not self._smooth)
        return Memory(buffer, is_written=True, is_exact=is_exact)

    # Statements.

    def body(self, scope: Scope, top: bool = False) -> tuple[Stmt, ...]:
        """Draws statements, at least one."""
        found = [*self._statements(scope, top)]
        while self._stores_left > 0 and self._draw(st.booleans()):
            found += self._statements(scope, top)
        return tuple(found)

    def _statements(self, scope: Scope, top: bool) -> tuple[Stmt, ...]:
        kinds = ["loop"] if top else ["store", "store"]
        if not top and self._stores_left > 1:
            kinds += ["loop", "loop", "reduce"] * (len(scope.ranges) < MAX_DEPTH)
            kinds += ["if", "local"] * min(self._branches_left, 2)
        kind = self._draw(st.sampled_from(kinds))
        if kind == "store":
            return (self._store(scope),)
        if kind == "loop":
            return (self._loop(scope),)
        if kind == "reduce":
            return self._reduction(scope)
        self._branches_left -= 1
        return (self._if(scope) if kind == "if" else self._local(scope),)

    def _loop(self, scope: Scope) -> For:
        inner, head = self._head(scope)
        return dataclasses.replace(head, body=self.body(inner))

    def _head(self, scope: Scope) -> tuple[Scope, For]:
        """Draws a loop with nothing in it, and the scope inside."""
        var = self._name("i")
        begin, end, low, high = self._bounds(scope)
        hint = self._draw(st.sampled_from(("serial", "unroll"))) if self._chance(6) else ""
        # Where the loop never runs, any index inside is in range.
        inner = (*scope.ranges, Range(var, low, max(low, high)))
        return dataclasses.replace(scope, ranges=inner), For(var, begin, end, (), hint=hint)

    def _bounds(self, scope: Scope) -> tuple[Expr, Expr, int, int]:
        """Draws the bounds of a loop, and the least and greatest value of its variable."""
        sizes = sorted({n for m in scope.memory for n in m.buffer.shape}) or [1]
        size = self._draw(st.sampled_from(sizes))
        tables = [m for m in scope.of("int32") if not m.is_written and m.buffer.name == "table"]
        kinds = ["whole"] * 3 + ["part"]
        kinds += ["from", "until"] * bool(scope.ranges) + ["data"] * bool(tables)
        kind = self._draw(st.sampled_from(kinds))
        if kind == "from":
            outer = self._draw(st.sampled_from(scope.ranges))
            shift = self._draw(st.integers(0, 1))
            return plus(Var(outer.var), shift), int32(size), outer.low + shift, size - 1
        if kind == "until":
            outer = self._draw(st.sampled_from(scope.ranges))
            shift = self._draw(st.integers(0, 1))
            return int32(0), plus(Var(outer.var), shift), 0, outer.high + shift - 1
        if kind == "data":
            index = self._draw(
                indices(dataclasses.replace(scope, indirect=False), tables[0].buffer)
            )
            end = Binary("min", Load("table", index, "int32"), int32(size), "int32")
            return int32(0), end, 0, size - 1
        begin = self._draw(st.integers(0, 1)) if kind == "part" else 0
        return int32(begin), int32(size), begin, size - 1

    def _reduction(self, scope: Scope) -> tuple[Stmt, ...]:
        """Draws a value for an element, and loops that reduce into it."""
        first = self._store(scope)
        target = next(m for m in scope.memory if m.buffer.name == first.buffer)
        inner, heads = scope, []
        for _ in range(self._draw(st.integers(1, MAX_DEPTH - len(scope.ranges)))):
            inner, head = self._head(inner)
            heads.append(head)
        self._stores_left -= 1
        update = self._update(inner, target, first.indices)
        body: tuple[Stmt, ...] = (Store(first.buffer, first.indices, update),)
        for head in reversed(heads):
            body = (dataclasses.replace(head, body=body),)
        return (first, *body)

    def _if(self, scope: Scope) -> If:
        if scope.ranges and self._chance(3):
            return self._guarded_store(scope)
        otherwise = self.body(scope) if self._chance(3) else ()
        return If(self._draw(conditions(scope)), self.body(scope), otherwise)

    def _guarded_store(self, scope: Scope) -> If:
        """Draws a store whose index would be out of range, under the condition that it is not."""
        store = self._store(scope)
        shape = next(m.buffer.shape for m in scope.memory if m.buffer.name == store.buffer)
        if not shape:
            return If(self._draw(conditions(scope)), (store,))
        axis = self._draw(st.integers(0, len(shape) - 1))
        var = self._draw(st.sampled_from(scope.ranges)).var
        index = plus(Var(var), self._draw(st.integers(-2, 2)))
        chosen = (*store.indices[:axis], index, *store.indices[axis + 1 :])
        return If(in_range(index, shape[axis]), (dataclasses.replace(store, indices=chosen),))

    def _local(self, scope: Scope) -> Local:
        """Draws a buffer of a body's own, which is written first and read at the end."""
        memory = self.written("local", max_rank=1)
        targets = [m for m in scope.memory if m.is_written]
        inside = dataclasses.replace(scope, memory=(*scope.memory, memory))
        last = dataclasses.replace(inside, hidden=frozenset(m.buffer.name for m in targets))
        first = self._store(inside, [memory])
        middle = self.body(inside) if self._stores_left > 1 and self._chance(2) else ()
        return Local(memory.buffer, (first, *middle, self._store(last, targets)))

    def _store(self, scope: Scope, targets: list[Memory] | None = None) -> Store:
        self._stores_left -= 1
        written = [m for m in reversed(scope.memory) if m.is_written]
        target = self._draw(st.sampled_from(targets or written))
        chosen = self._draw(indices(scope, target.buffer))
        if self._chance(2):
            return Store(target.buffer.name, chosen, self._update(scope, target, chosen))
        make = exact_values if target.is_exact else values
        return Store(target.buffer.name, chosen, self._draw(make(scope, target.buffer.dtype)))

    def _update(self, scope: Scope, target: Memory, chosen: tuple[Expr, ...]) -> Expr:
        """Draws what reduces into an element."""
        buffer = target.buffer
        dtype = buffer.dtype
        op = self._draw(st.sampled_from(_reductions(target, self._smooth)))
        # Seldom what it reduces into is read by what is reduced, so that it is no reduction.
        hidden = frozenset() if self._chance(6) else frozenset({buffer.name})
        others = dataclasses.replace(scope, tame=True, hidden=scope.hidden | hidden)
        if op == "mul" and dtype in FLOATS:
            value = self._factor(others, dtype)
        else:
            value = self._draw((exact_values if target.is_exact else values)(others, dtype))
        old = Load(buffer.name, chosen, dtype)
        return Binary(op, old, value, dtype)  # type: ignore[arg-type]

    def _factor(self, scope: Scope, dtype: str) -> Expr:
        """Draws a float between 1/2 and 1."""
        readable = [m for m in scope.of(dtype) if not m.is_written]
        if not readable:
            return Const(0.75, dtype)
        load = self._draw(loads(scope, self._draw(st.sampled_from(readable))))
        small = Binary("mul", load, Const(0.25 / INPUT_LIMIT, dtype), dtype)
        return Binary("add", Const(0.75, dtype), small, dtype)


def _reductions(target: Memory, smooth: bool) -> tuple[str, ...]:
    dtype = target.buffer.dtype
    if dtype == "bool":
        return ("lor", "xor", "or", "and", "land")
    if dtype not in FLOATS:
        return ("add", "sub", "max", "or", "xor", "min", "mul", "and")
    if target.is_exact:
        return ("max", "min")
    return ("add", "sub", "mul") if smooth else ("add", "sub", "mul", "min", "max")
