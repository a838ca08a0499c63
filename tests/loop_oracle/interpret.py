"""Runs a kernel on numpy arrays, one element at a time: the oracle of every printer.

A kernel becomes one Python function, written as a syntax tree: a text could nest no more than 200
parentheses. The rules of meaning are in `_loops/README.md`; those of single operations are
executable in ir/scalars.py. Memory is flat Python lists, one per buffer; buffers and loop variables
are the function's own variables.
"""

from __future__ import annotations

import ast
import math
import random
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from msops._base.dtypes import as_dtype
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
from msops._loops.ir.operators import is_float
from msops._loops.ir.ranges import dtype_range
from msops._loops.ir.text import point
from msops.errors import ArgumentValueError, KernelError

_OPERATORS: dict[str, type[ast.operator]] = {
    "add": ast.Add,
    "sub": ast.Sub,
    "mul": ast.Mult,
    "div": ast.Div,
}
_OF_INTEGERS = ("add", "sub", "mul")
_COMPARISONS: dict[str, type[ast.cmpop]] = {
    "eq": ast.Eq,
    "ne": ast.NotEq,
    "lt": ast.Lt,
    "le": ast.LtE,
    "gt": ast.Gt,
    "ge": ast.GtE,
}


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
    memory = {
        buffer.name: _values(np.asarray(array), buffer.dtype)
        for buffer, array in zip(kernel.parameters, inputs, strict=True)
    }
    memory |= {buffer.name: _zeros(buffer) for buffer in kernel.buffers}
    with np.errstate(all="ignore"):
        run = _Writer(kernel, check_bounds, shuffle).function()
        run(*memory.values())
    return [_array(memory[buffer.name], buffer) for buffer in kernel.outputs]


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


class _Writer:
    """Writes the function of a kernel, whose arguments are the lists of its buffers."""

    def __init__(self, kernel: Kernel, check_bounds: bool, shuffle: random.Random | None):
        self._kernel = kernel
        self._buffers = {b.name: b for b in (*kernel.parameters, *kernel.buffers)}
        self._check_bounds = check_bounds
        self._shuffle = shuffle
        self._variables: dict[str, str] = {}
        self._values: dict[str, Any] = {}

    def function(self) -> Callable[..., None]:
        """Returns the function."""
        arguments = ", ".join(self._variable(name) for name in tuple(self._buffers))
        module = ast.parse(f"def run({arguments}): pass")
        (run,) = module.body
        assert isinstance(run, ast.FunctionDef)
        run.body = self._body(self._kernel.body)
        for node in ast.walk(module):
            node.lineno = node.end_lineno = 1  # type: ignore[attr-defined]
            node.col_offset = node.end_col_offset = 0  # type: ignore[attr-defined]
        exec(compile(module, f"<kernel '{self._kernel.name}'>", "exec"), self._values)
        return self._values["run"]  # type: ignore[no-any-return]

    def _variable(self, name: str) -> str:
        """Returns the Python name of a buffer or loop variable, whose own may be any text."""
        return self._variables.setdefault(name, f"v{len(self._variables)}")

    def _given(self, value: Any) -> ast.expr:
        """Returns a name for a value of this process."""
        name = f"g{len(self._values)}"
        self._values[name] = value
        return _name(name)

    def _applied(self, function: Callable[..., Any], *args: ast.expr) -> ast.expr:
        return ast.Call(self._given(function), list(args), [])

    # Statements.

    def _body(self, body: tuple[Stmt, ...]) -> list[ast.stmt]:
        return [written for stmt in body for written in self._statement(stmt)] or [ast.Pass()]

    def _statement(self, stmt: Stmt) -> list[ast.stmt]:
        match stmt:
            case Store():
                return [self._store(stmt)]
            case For():
                return [self._for(stmt)]
            case If():
                then, otherwise = self._body(stmt.then), self._body(stmt.otherwise)
                return [ast.If(self._value(stmt.condition), then, otherwise)]
            case Local():
                return self._local(stmt)

    def _store(self, store: Store) -> ast.stmt:
        buffer, value = self._buffers[store.buffer], self._value(store.value)
        if self._check_bounds:
            return self._assignment(buffer, self._checked_offset(store), value)
        names = [f"i{axis}" for axis in range(len(buffer.shape))]
        indices = [
            ast.NamedExpr(_target(name), self._value(index))
            for name, index in zip(names, store.indices, strict=True)
        ]
        stored = self._assignment(buffer, _offset(list(map(_name, names)), buffer), value)
        for index, extent in zip(indices, buffer.shape, strict=True):
            stored = ast.If(_is_inside(index, extent), [stored], [])
        return stored

    def _assignment(self, buffer: Buffer, offset: ast.expr, value: ast.expr) -> ast.stmt:
        memory = _name(self._variable(buffer.name))
        return ast.Assign([ast.Subscript(memory, offset, ast.Store())], value)

    def _for(self, loop: For) -> ast.stmt:
        iterations = self._applied(range, self._value(loop.begin), self._value(loop.end))
        if self._shuffle is not None and loop.kind != "serial":
            sample = self._shuffle.sample
            iterations = self._applied(lambda all_: sample(all_, len(all_)), iterations)
        var = _target(self._variable(loop.var))
        return ast.For(var, iterations, self._body(loop.body), [])

    def _local(self, local: Local) -> list[ast.stmt]:
        buffer = local.buffer
        self._buffers[buffer.name] = buffer
        memory = _target(self._variable(buffer.name))
        zeros = self._applied(_zeros(buffer).copy)
        return [ast.Assign([memory], zeros), *self._body(local.body)]

    # Elements.

    def _load(self, load: Load) -> ast.expr:
        buffer = self._buffers[load.buffer]
        if self._check_bounds:
            offset = self._checked_offset(load)
        elif 0 in buffer.shape:
            # An empty array has no nearest element.
            return self._given(scalars.zero(load.dtype))
        else:
            indices = zip(load.indices, buffer.shape, strict=True)
            offset = _offset([self._nearest(i, extent) for i, extent in indices], buffer)
        return ast.Subscript(_name(self._variable(buffer.name)), offset, ast.Load())

    def _nearest(self, index: Expr, extent: int) -> ast.expr:
        found = ast.NamedExpr(_target("i"), self._value(index))
        nearest = self._applied(lambda i: 0 if i < 0 else extent - 1, _name("i"))
        return ast.IfExp(_is_inside(found, extent), _name("i"), nearest)

    def _checked_offset(self, access: Load | Store) -> ast.expr:
        buffer = self._buffers[access.buffer]
        # Of their own, since loads among the indices have theirs.
        names = [self._variable(f"index {id(access)} {axis}") for axis in range(len(buffer.shape))]
        inside: ast.expr = ast.Constant(True)
        for name, index, extent in zip(names, access.indices, buffer.shape, strict=True):
            found = ast.NamedExpr(_target(name), self._value(index))
            # Not `and`: all indices are for the message.
            inside = ast.BinOp(inside, ast.BitAnd(), _is_inside(found, extent))

        def refuse(*indices: int) -> int:
            raise self._out_of_range(buffer, indices, access.location)

        found_all = list(map(_name, names))
        return ast.IfExp(inside, _offset(found_all, buffer), self._applied(refuse, *found_all))

    def _out_of_range(
        self, buffer: Buffer, indices: tuple[int, ...], location: Location | None
    ) -> KernelError:
        return KernelError.explained(
            f"kernel '{self._kernel.name}'",
            f"index {list(indices)} of {buffer.name!r} is out of range for its shape "
            f"{list(buffer.shape)}",
            "Guard the access with a condition, or correct the index.",
            point(location),
        )

    # Expressions.

    def _value(self, expr: Expr) -> ast.expr:
        match expr:
            case Const(value=value, dtype=dtype):
                return self._given(scalars.constant(value, dtype))
            case Var(name=name):
                return _name(self._variable(name))
            case Load():
                return self._load(expr)
            case Unary(op=op, operand=operand):
                return self._applied(scalars.unary(op, operand.dtype), self._value(operand))
            case Binary(op="land" | "lor" as op, left=left, right=right):
                both = [self._value(left), self._value(right)]
                return ast.BoolOp(ast.And() if op == "land" else ast.Or(), both)
            case Binary():
                return self._binary(expr)
            case FunctionCall(function=function, args=args):
                called = scalars.call(function, args[0].dtype)
                return self._applied(called, *map(self._value, args))
            case Cast(operand=operand, dtype=dtype):
                return self._applied(scalars.cast(operand.dtype, dtype), self._value(operand))
            case Within():
                return self._within(expr)
            case Select(condition=condition, then=then, otherwise=otherwise):
                return ast.IfExp(*map(self._value, (condition, then, otherwise)))

    def _binary(self, expr: Binary) -> ast.expr:
        """Writes Python's own operator where it does what the table of scalars says: calls of that
        table would take most of the time."""
        op, dtype = expr.op, expr.left.dtype
        left, right = self._value(expr.left), self._value(expr.right)
        if op in _COMPARISONS and not is_float(dtype):
            return ast.Compare(left, [_COMPARISONS[op]()], [right])
        if op in _OPERATORS and dtype in ("float32", "float64"):
            return ast.BinOp(left, _OPERATORS[op](), right)
        if op in _OF_INTEGERS and not is_float(dtype) and dtype != "bool":
            return self._wrapped(ast.BinOp(left, _OPERATORS[op](), right), dtype)
        return self._applied(scalars.binary(op, dtype), left, right)

    def _wrapped(self, exact: ast.expr, dtype: str) -> ast.expr:
        low, high = map(ast.Constant, dtype_range(dtype))
        is_in_range = ast.Compare(
            low, [ast.LtE(), ast.LtE()], [ast.NamedExpr(_target("w"), exact), high]
        )
        wrapped = self._applied(scalars.cast("int64", dtype), _name("w"))
        return ast.IfExp(is_in_range, _name("w"), wrapped)

    def _within(self, expr: Within) -> ast.expr:
        def value(found: int) -> int:
            assert expr.low <= found <= expr.high, f"{found} is not within {expr.low}, {expr.high}"
            return found

        return self._applied(value, self._value(expr.operand))


def _name(name: str) -> ast.expr:
    return ast.Name(name, ast.Load())


def _target(name: str) -> ast.Name:
    return ast.Name(name, ast.Store())


def _is_inside(index: ast.expr, extent: int) -> ast.expr:
    return ast.Compare(ast.Constant(0), [ast.LtE(), ast.Lt()], [index, ast.Constant(extent)])


def _offset(indices: list[ast.expr], buffer: Buffer) -> ast.expr:
    """Returns where an element lies in the list of its buffer."""
    offset: ast.expr = indices[0] if indices else ast.Constant(0)
    for index, extent in zip(indices[1:], buffer.shape[1:], strict=True):
        rows = ast.BinOp(offset, ast.Mult(), ast.Constant(extent))
        offset = ast.BinOp(rows, ast.Add(), index)
    return offset
