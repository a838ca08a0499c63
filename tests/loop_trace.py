"""What a kernel reads and writes when it runs: each access with its iteration, in order.

A plain evaluator of its own, so that what the analyses say of accesses can be compared with it.
"""

from __future__ import annotations

import functools
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from loop_ir import (
    Binary,
    Cast,
    Const,
    Expr,
    For,
    FunctionCall,
    If,
    Kernel,
    Load,
    Local,
    Select,
    Stmt,
    Store,
    Unary,
    Var,
    scalars,
)

# The functions of operations, each made once: every evaluation asks for them.
_unary, _binary, _call, _cast = map(
    functools.cache, (scalars.unary, scalars.binary, scalars.call, scalars.cast)
)


@dataclass(frozen=True)
class Event:
    """One access.

    Attributes:
      order: the number of the statement in the text.
      node: the load or store.
      iteration: the loop variables with their values, outermost first.
      memory: one number per buffer, and per iteration for a local.
      indices: as they were computed.
      element: the one accessed; None for a store that is dropped.
      is_unwritten: a load of an element that nothing has written.
    """

    order: int
    node: Load | Store
    iteration: tuple[tuple[str, int], ...]
    memory: int
    indices: tuple[int, ...]
    element: tuple[int, ...] | None
    is_unwritten: bool

    @property
    def is_write(self) -> bool:
        """Whether it is the write of a store."""
        return isinstance(self.node, Store)


@dataclass
class _Memory:
    shape: tuple[int, ...]
    dtype: str
    values: dict[tuple[int, ...], Any] = field(default_factory=dict)


def trace(kernel: Kernel, inputs: Sequence[np.ndarray]) -> list[Event]:
    """Returns the accesses of a run of a kernel."""
    tracer = _Tracer({}, {}, [])
    for buffer, array in zip(kernel.parameters, inputs, strict=True):
        values = {
            place: scalars_of(array[place], buffer.dtype) for place in np.ndindex(array.shape)
        }
        tracer.memories[buffer.name] = _Memory(buffer.shape, buffer.dtype, values)
    for buffer in kernel.buffers:
        tracer.memories[buffer.name] = _Memory(buffer.shape, buffer.dtype)
    with np.errstate(all="ignore"):
        tracer.body(kernel.body, iter_orders(kernel.body))
    return tracer.events


def scalars_of(value: Any, dtype: str) -> Any:
    """Returns an element of an array as a value of scalars.py."""
    return scalars.constant(float(value) if "float" in dtype else int(value), dtype)


def iter_orders(body: tuple[Stmt, ...]) -> dict[int, int]:
    """Returns the number of each statement in the text, by its identity."""
    orders: dict[int, int] = {}

    def visit(stmts: tuple[Stmt, ...]) -> None:
        for stmt in stmts:
            orders[id(stmt)] = len(orders)
            match stmt:
                case For() | Local():
                    visit(stmt.body)
                case If():
                    visit(stmt.then)
                    visit(stmt.otherwise)

    visit(body)
    return orders


@dataclass
class _Tracer:
    memories: dict[str, _Memory]
    variables: dict[str, int]
    events: list[Event]
    alive: list[_Memory] = field(default_factory=list)

    def body(self, body: tuple[Stmt, ...], orders: dict[int, int]) -> None:
        for stmt in body:
            order = orders[id(stmt)]
            match stmt:
                case Store():
                    indices = tuple(self.value(index, order) for index in stmt.indices)
                    value = self.value(stmt.value, order)
                    self.touch(stmt, indices, order, value)
                case For():
                    begin, end = self.value(stmt.begin, order), self.value(stmt.end, order)
                    for value in range(begin, end):
                        self.variables[stmt.var] = value
                        self.body(stmt.body, orders)
                        del self.variables[stmt.var]
                case If():
                    chosen = stmt.then if self.value(stmt.condition, order) else stmt.otherwise
                    self.body(chosen, orders)
                case Local(buffer=buffer):
                    self.memories[buffer.name] = _Memory(buffer.shape, buffer.dtype)
                    self.body(stmt.body, orders)

    def touch(self, node: Load | Store, indices: tuple[int, ...], order: int, value: Any) -> Any:
        """Records an access and does it; returns what a load finds."""
        memory = self.memories[node.buffer]
        nearest = tuple(min(max(i, 0), n - 1) for i, n in zip(indices, memory.shape, strict=True))
        is_store = isinstance(node, Store)
        element = None if is_store and nearest != indices else nearest
        self.events.append(
            Event(
                order,
                node,
                tuple(self.variables.items()),
                id(memory),
                indices,
                element,
                not is_store and nearest not in memory.values,
            )
        )
        # Kept alive, so that no other memory gets its identity.
        self.alive.append(memory)
        if not is_store:
            found = memory.values.get(nearest)
            return scalars.zero(memory.dtype) if found is None else found
        if element is not None:
            memory.values[element] = value
        return None

    def value(self, expr: Expr, order: int) -> Any:
        match expr:
            case Const(value=value, dtype=dtype):
                return scalars.constant(value, dtype)
            case Var(name=name):
                return self.variables[name]
            case Load(indices=indices):
                return self.touch(expr, tuple(self.value(i, order) for i in indices), order, None)
            case Unary(op=op, operand=operand):
                return _unary(op, operand.dtype)(self.value(operand, order))
            case Binary(op=("land" | "lor") as op, left=left, right=right):
                first = self.value(left, order)
                return first if first == (op == "lor") else self.value(right, order)
            case Binary(op=op, left=left, right=right):
                function = _binary(op, left.dtype)
                return function(self.value(left, order), self.value(right, order))
            case FunctionCall(function=name, args=args):
                function = _call(name, args[0].dtype)
                return function(*(self.value(arg, order) for arg in args))
            case Cast(operand=operand, dtype=dtype):
                return _cast(operand.dtype, dtype)(self.value(operand, order))
            case Select(condition=condition, then=then, otherwise=otherwise):
                return self.value(then if self.value(condition, order) else otherwise, order)
        raise TypeError(expr)
