"""What a kernel reads and writes when it runs: each access with its iteration, in order.

A plain evaluator of its own, so that what the analyses say of accesses can be compared with it.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
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
class Memory:
    """A buffer, or a local in one iteration: the elements that have a value."""

    shape: tuple[int, ...]
    dtype: str
    values: dict[tuple[int, ...], Any] = field(default_factory=dict)


Iteration = tuple[tuple[str, int], ...]
Note = Callable[[Memory, Iteration, tuple[int, ...], "tuple[int, ...] | None"], None]
"""Gets an access: its memory, its iteration, the indices, and the element that these mean."""


def trace(kernel: Kernel, inputs: Sequence[np.ndarray]) -> list[Event]:
    """Returns the accesses of a run of a kernel."""
    events: list[Event] = []
    orders = iter_orders(kernel.body)
    # Kept alive, so that no other memory gets the identity of one.
    alive: list[Memory] = []

    def note_of(node: Load | Store, stmt: Stmt) -> Note:
        is_load = isinstance(node, Load)

        def note(
            memory: Memory,
            iteration: Iteration,
            indices: tuple[int, ...],
            element: tuple[int, ...] | None,
        ) -> None:
            alive.append(memory)
            is_unwritten = is_load and element not in memory.values
            order = orders[id(stmt)]
            events.append(Event(order, node, iteration, id(memory), indices, element, is_unwritten))

        return note

    run(kernel, inputs, note_of)
    return events


def run(
    kernel: Kernel,
    inputs: Sequence[np.ndarray],
    note_of: Callable[[Load | Store, Stmt], Note | None],
    is_counted: Callable[[For], bool] = lambda loop: True,
) -> None:
    """Runs a kernel, and notes accesses.

    Args:
      kernel: what is run.
      inputs: one array for each parameter.
      note_of: returns what notes the accesses of a load or store in a statement, None for nothing.
      is_counted: whether iterations name those of a loop. All accesses in one iteration get the
        same object.
    """
    memories = {buffer.name: Memory(buffer.shape, buffer.dtype) for buffer in kernel.buffers}
    for buffer, array in zip(kernel.parameters, inputs, strict=True):
        memories[buffer.name] = Memory(buffer.shape, buffer.dtype, _values_of(array, buffer.dtype))
    writer = _Writer(note_of, is_counted)
    run_kernel = writer.function(kernel.body, memories)
    with np.errstate(all="ignore"):
        run_kernel()


def _values_of(array: np.ndarray, dtype: str) -> dict[tuple[int, ...], Any]:
    """Returns the elements as values of scalars.py; of equal bits one is made."""
    bits = np.ascontiguousarray(array).view(f"u{array.itemsize}").ravel()
    _, first, which = np.unique(bits, return_index=True, return_inverse=True)
    made = [scalars_of(value, dtype) for value in array.ravel()[first]]
    values = [made[i] for i in which.ravel().tolist()]
    return dict(zip(np.ndindex(array.shape), values, strict=True))


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


class _Writer:
    """Writes a kernel as a Python function, as a run evaluates most nodes many times.

    Expressions become expressions whose names are those of `names`; what is deep becomes functions
    before its statement, as Python reads 200 parentheses at most.
    """

    DEEP = 60

    def __init__(
        self,
        note_of: Callable[[Load | Store, Stmt], Note | None],
        is_counted: Callable[[For], bool],
    ):
        self.note_of = note_of
        self.is_counted = is_counted
        self.names: dict[str, Any] = {"Memory": Memory}
        self.lines: list[str] = []
        self.python: dict[tuple[str, str], str] = {}

    def function(self, body: tuple[Stmt, ...], memories: dict[str, Memory]) -> Callable[[], None]:
        for name, memory in memories.items():
            self.names[self.name("memory", name)] = memory
        self.body(body, "  ", "()")
        text = "\n".join(["def run():", *self.lines, "  return"])
        exec(compile(text, "<kernel>", "exec"), self.names)
        return self.names["run"]

    def name(self, kind: str, of: str) -> str:
        """Returns the name in Python of a variable or memory of the kernel."""
        return self.python.setdefault((kind, of), f"{kind}{len(self.python)}")

    def bind(self, kind: str, value: Any) -> str:
        """Returns a new name for a value that expressions use."""
        name = f"{kind}_{len(self.names)}"
        self.names[name] = value
        return name

    def body(self, body: tuple[Stmt, ...], margin: str, iteration: str) -> None:
        self.lines.append(f"{margin}pass")
        for stmt in body:
            self.statement(stmt, margin, iteration)

    def statement(self, stmt: Stmt, margin: str, iteration: str) -> None:
        value = lambda expr: self.value(expr, stmt, margin, iteration)[0]  # noqa: E731
        match stmt:
            case Store():
                stored = self.access(stmt, stmt, margin, iteration, value(stmt.value))[0]
                self.lines.append(f"{margin}{stored}")
            case For():
                variable = self.name("variable", stmt.var)
                begin, end = value(stmt.begin), value(stmt.end)
                self.lines.append(f"{margin}for {variable} in range({begin}, {end}):")
                inside = iteration
                if self.is_counted(stmt):
                    inside = f"iteration{len(margin)}"
                    element = f"(({stmt.var!r}, {variable}),)"
                    self.lines.append(f"{margin}  {inside} = {iteration} + {element}")
                self.body(stmt.body, margin + "  ", inside)
            case If():
                self.lines.append(f"{margin}if {value(stmt.condition)}:")
                self.body(stmt.then, margin + "  ", iteration)
                self.lines.append(f"{margin}else:")
                self.body(stmt.otherwise, margin + "  ", iteration)
            case Local(buffer=buffer):
                memory = self.name("memory", buffer.name)
                self.lines.append(f"{margin}{memory} = Memory({buffer.shape!r}, {buffer.dtype!r})")
                self.body(stmt.body, margin, iteration)
            case _:
                raise TypeError(stmt)

    def access(
        self, node: Load | Store, stmt: Stmt, margin: str, iteration: str, stored: str | None = None
    ) -> tuple[str, int]:
        """Returns the call of what records an access and does it: a load gives what it finds."""
        indices = [self.value(index, stmt, margin, iteration) for index in node.indices]
        note = self.note_of(node, stmt)
        function = self.bind("access", _load(note) if stored is None else _store(note))
        words = [self.name("memory", node.buffer), iteration]
        # Indices come before the value, as they are computed.
        tuple_of = "".join(f"{index}, " for index, _ in indices)
        words += [f"({tuple_of})", *([stored] if stored is not None else [])]
        depth = 2 + max((deep for _, deep in indices), default=0)
        return self.shallow(f"{function}({', '.join(words)})", depth, margin)

    def value(self, expr: Expr, stmt: Stmt, margin: str, iteration: str) -> tuple[str, int]:
        """Returns an expression, and how many parentheses are around its innermost one."""
        match expr:
            case Const(value=value, dtype=dtype):
                return self.bind("constant", scalars.constant(value, dtype)), 0
            case Var(name=name):
                return self.name("variable", name), 0
            case Load():
                return self.access(expr, stmt, margin, iteration)
            case Within(operand=operand):
                return self.value(operand, stmt, margin, iteration)
            case Unary(op=op, operand=operand):
                function, args = scalars.unary(op, operand.dtype), (operand,)
            case Binary(op="land" | "lor" as op, left=left, right=right):
                function, args = {"land": "and", "lor": "or"}[op], (left, right)
            case Binary(op=op, left=left, right=right):
                function, args = scalars.binary(op, left.dtype), (left, right)
            case FunctionCall(function=name, args=args):
                function = scalars.call(name, args[0].dtype)
            case Cast(operand=operand, dtype=dtype):
                function, args = scalars.cast(operand.dtype, dtype), (operand,)
            case Select():
                function, args = "if", (expr.then, expr.condition, expr.otherwise)
            case _:
                raise TypeError(expr)
        parts = [self.value(arg, stmt, margin, iteration) for arg in args]
        words = [text for text, _ in parts]
        match function:
            case "if":
                text = "({} if {} else {})".format(*words)
            case "and" | "or":
                text = f"({words[0]} {function} {words[1]})"
            case _:
                text = f"{self.bind('function', function)}({', '.join(words)})"
        return self.shallow(text, 1 + max(deep for _, deep in parts), margin)

    def shallow(self, text: str, depth: int, margin: str) -> tuple[str, int]:
        """Returns an expression that is not deep, and its depth."""
        if depth < self.DEEP:
            return text, depth
        name = f"deep{len(self.lines)}"
        self.lines.append(f"{margin}{name} = lambda: {text}")
        return f"{name}()", 1


def _load(note: Note | None) -> Callable[[Memory, Iteration, tuple[int, ...]], Any]:
    """Returns what loads an element, which is that of the nearest indices inside."""

    def load(memory: Memory, iteration: Iteration, indices: tuple[int, ...]) -> Any:
        values = memory.values
        # What has a value lies inside.
        if indices in values:
            if note:
                note(memory, iteration, indices, indices)
            return values[indices]
        shape = memory.shape
        element = tuple([min(max(i, 0), n - 1) for i, n in zip(indices, shape, strict=True)])
        if note:
            note(memory, iteration, indices, element)
        return values[element] if element in values else scalars.zero(memory.dtype)

    return load


def _store(note: Note | None) -> Callable[[Memory, Iteration, tuple[int, ...], Any], None]:
    """Returns what stores to an element, if the indices mean one."""

    def store(memory: Memory, iteration: Iteration, indices: tuple[int, ...], value: Any) -> None:
        values = memory.values
        is_inside = indices in values or all(
            0 <= i < n for i, n in zip(indices, memory.shape, strict=True)
        )
        if note:
            note(memory, iteration, indices, indices if is_inside else None)
        if is_inside:
            values[indices] = value

    return store
