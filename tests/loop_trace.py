"""What a kernel reads and writes when it runs: each access with its iteration, in order.

A plain evaluator of its own, so that what the analyses say of accesses can be compared with it.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

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
    Within,
    scalars,
)


class Event(NamedTuple):
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


def trace(
    kernel: Kernel, inputs: Sequence[np.ndarray], buffers: Collection[str] | None = None
) -> list[Event]:
    """Returns the accesses of a run of a kernel: all, or those to buffers of these names."""
    tracer = _Tracer(iter_orders(kernel.body), buffers)
    for buffer, array in zip(kernel.parameters, inputs, strict=True):
        values = {
            place: scalars_of(array[place], buffer.dtype) for place in np.ndindex(array.shape)
        }
        tracer.memories[buffer.name] = _Memory(buffer.shape, buffer.dtype, values)
    for buffer in kernel.buffers:
        tracer.memories[buffer.name] = _Memory(buffer.shape, buffer.dtype)
    run = tracer.body(kernel.body)
    with np.errstate(all="ignore"):
        run()
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


class _Tracer:
    """Makes a Python function of each node once, as a run evaluates most of them many times."""

    def __init__(self, orders: dict[int, int], buffers: Collection[str] | None):
        self.orders = orders
        self.buffers = buffers
        self.memories: dict[str, _Memory] = {}
        self.variables: dict[str, int] = {}
        self.iteration: tuple[tuple[str, int], ...] = ()
        self.events: list[Event] = []
        # Kept alive, so that no other memory gets the identity of one.
        self.locals: list[_Memory] = []

    def body(self, body: tuple[Stmt, ...]) -> Callable[[], None]:
        steps = [self.statement(stmt, self.orders[id(stmt)]) for stmt in body]

        def run() -> None:
            for step in steps:
                step()

        return run

    def statement(self, stmt: Stmt, order: int) -> Callable[[], object]:
        match stmt:
            case Store():
                return self.access(stmt, order, self.value(stmt.value, order))
            case For():
                return self.loop(stmt, order)
            case If():
                condition = self.value(stmt.condition, order)
                then, otherwise = self.body(stmt.then), self.body(stmt.otherwise)
                return lambda: then() if condition() else otherwise()
            case Local():
                return self.local(stmt)
        raise TypeError(stmt)

    def loop(self, loop: For, order: int) -> Callable[[], None]:
        begin, end = self.value(loop.begin, order), self.value(loop.end, order)
        body = self.body(loop.body)

        def run() -> None:
            around = self.iteration
            for value in range(begin(), end()):
                self.variables[loop.var] = value
                self.iteration = (*around, (loop.var, value))
                body()
            self.iteration = around

        return run

    def local(self, local: Local) -> Callable[[], None]:
        buffer, body = local.buffer, self.body(local.body)

        def run() -> None:
            memory = self.memories[buffer.name] = _Memory(buffer.shape, buffer.dtype)
            self.locals.append(memory)
            body()

        return run

    def access(
        self, node: Load | Store, order: int, stored: Callable[[], Any] | None = None
    ) -> Callable[[], Any]:
        """Returns what records an access and does it: a load gives what it finds."""
        index_of = [self.value(index, order) for index in node.indices]
        memories, events, name = self.memories, self.events, node.buffer
        is_noted = self.buffers is None or name in self.buffers

        def run() -> Any:
            indices = tuple([index() for index in index_of])
            value = stored and stored()
            memory = memories[name]
            values = memory.values
            element: tuple[int, ...] | None = indices
            # What has a value lies inside.
            if indices not in values:
                for i, extent in zip(indices, memory.shape, strict=True):
                    if not 0 <= i < extent:
                        nearest = zip(indices, memory.shape, strict=True)
                        element = (
                            None if stored else tuple(min(max(i, 0), n - 1) for i, n in nearest)
                        )
                        break
            is_unwritten = not stored and element not in values
            if is_noted:
                event = Event(
                    order, node, self.iteration, id(memory), indices, element, is_unwritten
                )
                events.append(event)
            if not stored:
                return scalars.zero(memory.dtype) if is_unwritten else values[element]
            if element is not None:
                values[element] = value
            return None

        return run

    def value(self, expr: Expr, order: int) -> Callable[[], Any]:
        match expr:
            case Const(value=value, dtype=dtype):
                constant = scalars.constant(value, dtype)
                return lambda: constant
            case Var(name=name):
                variables = self.variables
                return lambda: variables[name]
            case Load():
                return self.access(expr, order)
            case Unary(op=op, operand=operand):
                return _applied(scalars.unary(op, operand.dtype), self.value(operand, order))
            case Binary(op=op, left=left, right=right):
                first, second = self.value(left, order), self.value(right, order)
                if op in ("land", "lor"):
                    return lambda: found if (found := first()) == (op == "lor") else second()
                return _applied(scalars.binary(op, left.dtype), first, second)
            case FunctionCall(function=name, args=args):
                called = scalars.call(name, args[0].dtype)
                return _applied(called, *(self.value(arg, order) for arg in args))
            case Cast(operand=operand, dtype=dtype):
                return _applied(scalars.cast(operand.dtype, dtype), self.value(operand, order))
            case Within(operand=operand):
                return self.value(operand, order)
            case Select():
                condition = self.value(expr.condition, order)
                then, otherwise = self.value(expr.then, order), self.value(expr.otherwise, order)
                return lambda: then() if condition() else otherwise()
        raise TypeError(expr)


def _applied(function: Callable[..., Any], *args: Callable[[], Any]) -> Callable[[], Any]:
    if len(args) == 1:
        (only,) = args
        return lambda: function(only())
    left, right = args
    return lambda: function(left(), right())
