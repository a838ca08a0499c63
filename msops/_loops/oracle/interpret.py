"""Runs a kernel on numpy arrays, one element at a time: the oracle of every printer.

Each node is compiled once to a Python closure. The rules of meaning are in `_loops/README.md`;
those of single operations are executable in ir/scalars.py. Memory is flat Python lists, one per
buffer, in a frame that closures share with the loop variables.
"""

from __future__ import annotations

import math
import random
from collections.abc import Callable, Sequence
from typing import Any, TypeAlias

import numpy as np

from msops._base.dtypes import as_dtype
from msops._loops.diagnostics import point
from msops._loops.ir import scalars
from msops._loops.ir.nodes import (
    Binary,
    Buffer,
    Cast,
    Const,
    Expr,
    For,
    FunctionCall,
    If,
    Kernel,
    Load,
    Local,
    Location,
    Select,
    Stmt,
    Store,
    Unary,
    Var,
    Within,
)
from msops.errors import ArgumentValueError, KernelError

Evaluate: TypeAlias = Callable[[], Any]
Run: TypeAlias = Callable[[], None]


def interpret(
    kernel: Kernel,
    inputs: Sequence[np.ndarray],
    check_bounds: bool = False,
    shuffle: random.Random | None = None,
) -> list[np.ndarray]:
    """Returns what a kernel computes; the inputs stay as they are.

    Args:
      kernel: a legal kernel (see verify.py).
      inputs: an array per parameter, of its shape and dtype.
      check_bounds: raise for an index out of range, instead of clamping a load and dropping a
        store.
      shuffle: runs the iterations of loops of kind parallel and reduction in an order it draws,
        which shows whether they are.

    Returns:
      A new array per result.

    Raises:
      ArgumentValueError: the inputs do not fit the parameters.
      KernelError: an index is out of range, under `check_bounds`.
    """
    _check_inputs(kernel, inputs)
    machine = _Machine(kernel, check_bounds, shuffle)
    for buffer, array in zip(kernel.parameters, inputs, strict=True):
        machine.frame[buffer.name] = _values(np.asarray(array), buffer.dtype)
    for buffer in kernel.buffers:
        machine.frame[buffer.name] = _zeros(buffer)
    run = machine.body(kernel.body)
    with np.errstate(all="ignore"):
        run()
    return [_array(machine.frame[buffer.name], buffer) for buffer in kernel.outputs]


def _check_inputs(kernel: Kernel, inputs: Sequence[np.ndarray]) -> None:
    wanted = [(buffer.shape, buffer.dtype) for buffer in kernel.parameters]
    got = [(np.shape(array), np.asarray(array).dtype.name) for array in inputs]
    if wanted != got:
        raise ArgumentValueError.explained(
            f"kernel '{kernel.name}'",
            f"expected inputs of shapes and dtypes {wanted}; got {got}",
            "Pass one array per parameter, of its shape and dtype.",
        )


def _values(array: np.ndarray, dtype: str) -> list[Any]:
    flat = array.ravel()
    arithmetic = scalars.arithmetic_dtype(dtype)
    return list(flat.astype(arithmetic)) if arithmetic.kind == "f" else flat.tolist()


def _zeros(buffer: Buffer) -> list[Any]:
    return [scalars.zero(buffer.dtype)] * math.prod(buffer.shape)


def _array(values: list[Any], buffer: Buffer) -> np.ndarray:
    dtype = as_dtype(buffer.dtype).dtype
    return (
        np.array(values, scalars.arithmetic_dtype(buffer.dtype)).astype(dtype).reshape(buffer.shape)
    )


class _Machine:
    """Compiles nodes to closures over one frame: values of variables, lists of buffers."""

    def __init__(self, kernel: Kernel, check_bounds: bool, shuffle: random.Random | None):
        self.frame: dict[str, Any] = {}
        self._buffers = {b.name: b for b in (*kernel.parameters, *kernel.buffers)}
        self._who = f"kernel '{kernel.name}'"
        self._check_bounds = check_bounds
        self._shuffle = shuffle

    # Statements.

    def body(self, body: tuple[Stmt, ...]) -> Run:
        """Returns what runs statements in order."""
        steps = [self._statement(stmt) for stmt in body]
        if len(steps) == 1:
            return steps[0]

        def run() -> None:
            for step in steps:
                step()

        return run

    def _statement(self, stmt: Stmt) -> Run:
        match stmt:
            case Store():
                return self._store(stmt)
            case For():
                return self._for(stmt)
            case If():
                return self._if(stmt)
            case Local():
                return self._local(stmt)

    def _store(self, store: Store) -> Run:
        frame, name = self.frame, store.buffer
        find = self._offset(store)
        value = self._value(store.value)

        def run() -> None:
            result = value()
            offset = find()
            if offset is not None:
                frame[name][offset] = result

        return run

    def _for(self, loop: For) -> Run:
        frame, var = self.frame, loop.var
        begin, end = self._value(loop.begin), self._value(loop.end)
        body = self.body(loop.body)
        shuffle = self._shuffle if loop.kind != "serial" else None

        def run() -> None:
            iterations: Sequence[int] = range(begin(), end())
            if shuffle is not None:
                iterations = shuffle.sample(iterations, len(iterations))
            for frame[var] in iterations:
                body()

        return run

    def _if(self, stmt: If) -> Run:
        condition = self._value(stmt.condition)
        then, otherwise = self.body(stmt.then), self.body(stmt.otherwise)
        return lambda: then() if condition() else otherwise()

    def _local(self, local: Local) -> Run:
        frame, buffer = self.frame, local.buffer
        self._buffers[buffer.name] = buffer
        body = self.body(local.body)

        def run() -> None:
            frame[buffer.name] = _zeros(buffer)
            body()

        return run

    # Elements.

    def _offset(self, access: Load | Store) -> Callable[[], int | None]:
        """Returns what finds the offset of an element; None where there is nothing to access."""
        buffer = self._buffers[access.buffer]
        evaluate = tuple(self._value(index) for index in access.indices)
        shape = buffer.shape
        strides = tuple(math.prod(shape[axis + 1 :]) for axis in range(len(shape)))
        dimensions = tuple(zip(evaluate, shape, strides, strict=True))
        is_load = isinstance(access, Load)

        def find() -> int | None:
            offset = 0
            for index, extent, stride in dimensions:
                i = index()
                if not 0 <= i < extent:
                    if self._check_bounds:
                        indices = tuple(index() for index in evaluate)
                        raise self._out_of_range(buffer, indices, access.location)
                    if not is_load or extent == 0:
                        return None
                    i = 0 if i < 0 else extent - 1
                offset += i * stride
            return offset

        return find

    def _out_of_range(
        self, buffer: Buffer, indices: tuple[int, ...], location: Location | None
    ) -> KernelError:
        return KernelError.explained(
            self._who,
            f"index {list(indices)} of {buffer.name!r} is out of range for its shape "
            f"{list(buffer.shape)}",
            "Guard the access with a condition, or correct the index.",
            point(location),
        )

    # Expressions.

    def _value(self, expr: Expr) -> Evaluate:
        match expr:
            case Const(value=value, dtype=dtype):
                constant = scalars.constant(value, dtype)
                return lambda: constant
            case Var(name=name):
                frame = self.frame
                return lambda: frame[name]
            case Load():
                return self._load(expr)
            case Unary(op=op, operand=operand):
                return _applied(scalars.unary(op, operand.dtype), self._value(operand))
            case Binary():
                return self._binary(expr)
            case FunctionCall(function=function, args=args):
                called = scalars.call(function, args[0].dtype)
                return _applied(called, *map(self._value, args))
            case Cast(operand=operand, dtype=dtype):
                return _applied(scalars.cast(operand.dtype, dtype), self._value(operand))
            case Within():
                return self._within(expr)
            case Select():
                return self._select(expr)

    def _load(self, load: Load) -> Evaluate:
        frame, name = self.frame, load.buffer
        find = self._offset(load)
        # An empty array has no nearest element.
        missing = scalars.zero(load.dtype)

        def value() -> Any:
            offset = find()
            return missing if offset is None else frame[name][offset]

        return value

    def _binary(self, expr: Binary) -> Evaluate:
        left, right = self._value(expr.left), self._value(expr.right)
        if expr.op == "land":
            return lambda: left() and right()
        if expr.op == "lor":
            return lambda: left() or right()
        return _applied(scalars.binary(expr.op, expr.left.dtype), left, right)

    def _within(self, expr: Within) -> Evaluate:
        operand = self._value(expr.operand)

        def value() -> Any:
            found = operand()
            assert expr.low <= found <= expr.high, f"{found} is not within {expr.low}, {expr.high}"
            return found

        return value

    def _select(self, expr: Select) -> Evaluate:
        condition = self._value(expr.condition)
        then, otherwise = self._value(expr.then), self._value(expr.otherwise)
        return lambda: then() if condition() else otherwise()


def _applied(function: Callable[..., Any], *args: Evaluate) -> Evaluate:
    if len(args) == 1:
        (only,) = args
        return lambda: function(only())
    left, right = args
    return lambda: function(left(), right())
