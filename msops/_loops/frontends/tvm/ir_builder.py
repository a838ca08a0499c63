"""`tvm.ir_builder`: statements written by with-blocks."""

from __future__ import annotations

import contextlib
import dataclasses
from collections.abc import Callable, Iterator, Sequence
from typing import Any, TypeAlias

from msops._loops.frontends import far_ranges
from msops._loops.frontends.far_ranges import as_bound
from msops._loops.frontends.tvm.arithmetic import as_condition, as_index
from msops._loops.frontends.tvm.buffer import DeclaredBuffer, Statement
from msops._loops.frontends.tvm.dtypes import as_dtype
from msops._loops.frontends.tvm.expr import IterVar, ScalarExpr, as_expr
from msops._loops.frontends.tvm.intrin import likely, refuse_call
from msops._loops.frontends.tvm.tensor import as_shape
from msops._loops.frontends.tvm.tracing import (
    author_location,
    backend_error,
    build_error,
    fresh_key,
    type_error,
    value_error,
)
from msops._loops.ir.nodes import (
    INDEX_DTYPE,
    Buffer,
    Const,
    Expr,
    For,
    If,
    Local,
    Location,
    LoopHint,
    Stmt,
)
from msops._loops.ir.operators import INTEGERS
from msops._loops.ir.walk import with_value

_HINTS: dict[str, LoopHint] = {
    "serial": "",
    "parallel": "parallel",
    "vectorize": "vectorize",
    "unroll": "unroll",
}

_LOOP_ATTRIBUTES = ("thread_extent", "virtual_thread")

Wrap: TypeAlias = Callable[[Statement], Statement]
"""Puts the rest of a scope inside something: what a TVM attribute or allocation does."""


class BufferVar:
    """A buffer under the builder: ``p[k]`` reads an element, ``p[k] = v`` writes it.

    An index counts elements in row-major order; a list of indices has one per dimension.
    """

    __slots__ = ("_builder", "buffer")

    def __init__(self, builder: IRBuilder, buffer: DeclaredBuffer):
        self._builder = builder
        self.buffer = buffer

    @property
    def dtype(self) -> str:
        """The dtype of its elements."""
        return self.buffer.dtype

    @property
    def shape(self) -> tuple[int, ...]:
        """Its shape."""
        return self.buffer.shape

    def __getitem__(self, index: Any) -> ScalarExpr:
        return self.buffer.load(index)

    def __setitem__(self, index: Any, value: Any) -> None:
        self._builder.emit(self.buffer.store(index, value))


class IRBuilder:
    """Builds statements; see `create`."""

    def __init__(self) -> None:
        self._scopes: list[list[Statement | Wrap]] = [[]]

    def get(self) -> Statement:
        """Returns the finished statements.

        Raises:
          BuildError (a RuntimeError): a scope is open.
        """
        if len(self._scopes) != 1:
            raise build_error(
                "ir_builder.get",
                f"{len(self._scopes) - 1} scopes are still open",
                "Call get() after the outermost with-block.",
            )
        return _joined(self._scopes[0])

    def emit(self, stmt: Any) -> None:
        """Adds a statement; a function gets the rest of the scope and returns what replaces it."""
        if isinstance(stmt, Statement) or (callable(stmt) and not isinstance(stmt, ScalarExpr)):
            self._scopes[-1].append(stmt)
        elif not isinstance(stmt, ScalarExpr):
            raise type_error(
                "ir_builder.emit",
                f"expected a statement; got {type(stmt).__name__}",
                "Pass what ib.get() or buffer.vstore(...) returned.",
            )

    @contextlib.contextmanager
    def _scope(self) -> Iterator[list[Statement | Wrap]]:
        self._scopes.append([])
        try:
            yield self._scopes[-1]
        finally:
            self._scopes.pop()

    @contextlib.contextmanager
    def for_range(
        self,
        begin: Any,
        end: Any,
        name: str = "i",
        dtype: str = "int32",
        for_type: str = "serial",
    ) -> Iterator[IterVar]:
        """Opens a loop, ``with ib.for_range(0, n) as i:``.

        Args:
          begin: the first value.
          end: past the last value.
          name: of the variable, in the loop IR.
          dtype: an integer dtype; variables are int32 here, the nearest one beyond it.
          for_type: "serial", "parallel", "vectorize" or "unroll"; a request.

        Raises:
          ArgumentValueError: `for_type` is none of these.
        """
        hint = _hint(for_type)
        _check_index_dtype(dtype)
        first, last = (as_index("ir_builder.for_range", bound) for bound in (begin, end))
        location = author_location()
        var = IterVar(name)
        with self._scope() as entries:
            yield var
        inner = _joined(entries)
        self.emit(_range(var, first, last, inner, hint, location))

    @contextlib.contextmanager
    def for_range_n(
        self,
        extents: Sequence[Any],
        prefix_name: str = "i",
        dtype: str = "int32",
        for_type: str = "serial",
    ) -> Iterator[list[IterVar]]:
        """Opens one loop from 0 per extent, the first outermost, and gives the list of variables.

        Args:
          extents: past the last value of each variable.
          prefix_name: the variables are named by it and a number from 1.
          dtype: see `for_range`.
          for_type: see `for_range`; of every loop.
        """
        with contextlib.ExitStack() as loops:
            yield [
                loops.enter_context(
                    self.for_range(0, extent, f"{prefix_name}{number}", dtype, for_type)
                )
                for number, extent in enumerate(extents, 1)
            ]

    @contextlib.contextmanager
    def if_scope(self, cond: Any) -> Iterator[None]:
        """Opens a block that runs where the condition holds."""
        test = as_condition("ir_builder.if_scope", cond)
        location = author_location()
        with self._scope() as entries:
            yield
        then = _joined(entries)
        stmt = If(test.node, then.body, location=location)
        self.emit(Statement((stmt,), test.sources | then.sources))

    @contextlib.contextmanager
    def else_scope(self) -> Iterator[None]:
        """Opens a block that runs where the `if_scope` just before it does not.

        Raises:
          BuildError (a RuntimeError): there is no such `if_scope`.
        """
        above = self._scopes[-1]
        last = above[-1] if above else None
        branch = last.body[0] if isinstance(last, Statement) and len(last.body) == 1 else None
        if not isinstance(last, Statement) or not isinstance(branch, If) or branch.otherwise:
            raise build_error(
                "ir_builder.else_scope",
                "else_scope can only follow an if_scope",
                "Open it directly after the with-block of ib.if_scope(...).",
            )
        with self._scope() as entries:
            yield
        otherwise = _joined(entries)
        stmt = dataclasses.replace(branch, otherwise=otherwise.body)
        above[-1] = Statement((stmt,), last.sources | otherwise.sources)

    @contextlib.contextmanager
    def new_scope(self) -> Iterator[None]:
        """Opens a block that ends the allocations and attributes in it."""
        with self._scope() as entries:
            yield
        self.emit(_joined(entries))

    def scope_attr(self, node: Any, attr_key: str, value: Any) -> None:
        """Marks the rest of the scope; a thread extent runs it once per thread, in any order."""
        if attr_key not in _LOOP_ATTRIBUTES or not isinstance(node, IterVar):
            return
        extent = _bound("ir_builder.scope_attr", value)
        location = author_location()
        zero = as_expr(0)
        self.emit(lambda rest: _loop(node, zero, extent, rest, "parallel", location))

    def allocate(self, dtype: Any, shape: Any, name: str = "buf", scope: Any = None) -> BufferVar:
        """Returns a buffer of the rest of the scope, zero at its start.

        Args:
          dtype: its dtype.
          shape: its shape.
          name: its name in the loop IR.
          scope: TVM's memory scope, which means nothing here.
        """
        buffer = DeclaredBuffer(name, as_shape("ir_builder.allocate", shape), as_dtype(dtype))
        held = Buffer(buffer.key, tuple(map(int, buffer.shape)), buffer.dtype)
        location = author_location()
        self.emit(
            lambda rest: Statement((Local(held, rest.body, location=location),), rest.sources)
        )
        return BufferVar(self, buffer)

    def buffer_ptr(self, buf: DeclaredBuffer | BufferVar) -> BufferVar:
        """Returns a buffer for indexing by ``[]``."""
        return BufferVar(self, _buffer_of("ir_builder.buffer_ptr", buf))

    def pointer(self, content_type: Any, name: str = "ptr") -> BufferVar:
        """Raises: the memory behind a bare pointer has no known size."""
        raise backend_error(
            "ir_builder.pointer",
            f"the pointer {name!r} has no memory of a known size",
            "Use ib.buffer_ptr(ins[0]) for an input or output, ib.allocate(...) for a temporary.",
        )

    def load(self, buf: DeclaredBuffer | BufferVar, index: Any) -> ScalarExpr:
        """Returns an element of a buffer.

        Args:
          buf: the buffer.
          index: a list with an index per dimension, or one that counts in row-major order.
        """
        return _buffer_of("ir_builder.load", buf).load(index)

    def store(self, buf: DeclaredBuffer | BufferVar, index: Any, value: Any) -> None:
        """Writes an element of a buffer; see `load`."""
        self.emit(_buffer_of("ir_builder.store", buf).store(index, value))

    def likely(self, expr: Any) -> ScalarExpr:
        """Returns the condition; that it mostly holds is of no use here."""
        return likely(expr)

    def extern_call(self, *args: Any, op_name: str = "", dtype: str = "float32") -> ScalarExpr:
        """Raises: code outside the kernel cannot be called."""
        return refuse_call("ir_builder.extern_call")(dtype, op_name, *args)


def create() -> IRBuilder:
    """Returns a new builder."""
    return IRBuilder()


def _joined(entries: Sequence[Statement | Wrap]) -> Statement:
    rest = Statement()
    for entry in reversed(entries):
        if isinstance(entry, Statement):
            rest = Statement(entry.body + rest.body, entry.sources | rest.sources)
        else:
            rest = entry(rest)
    return rest


def _loop(
    var: IterVar,
    begin: ScalarExpr,
    end: ScalarExpr,
    inner: Statement,
    hint: LoopHint,
    location: Location | None,
) -> Statement:
    loop = For(var.key, begin.node, end.node, inner.body, hint=hint, location=location)
    return Statement((loop,), inner.sources | begin.sources | end.sources)


def _range(
    var: IterVar,
    begin: ScalarExpr,
    end: ScalarExpr,
    inner: Statement,
    hint: LoopHint,
    location: Location | None,
) -> Statement:
    """A loop whose bounds may be beyond int32; there the variable is the nearest int32."""
    bounds = [ScalarExpr(as_bound(bound.node), bound.sources) for bound in (begin, end)]
    near = _loop(var, bounds[0], bounds[1], inner, hint, location)
    fits = far_ranges.fits((begin.node, end.node), {})
    if isinstance(fits, Const) and fits.value:
        return near
    if far_ranges.has_element_at(inner.body, var.node):
        return near

    def part(value: Expr, place: str, left: Expr) -> tuple[Stmt, ...]:
        body = with_value(inner.body, var.key, as_bound(value))
        return (For(place, Const(0, INDEX_DTYPE), left, body, hint=hint, location=location),)

    span = begin.node, end.node, 1
    far = far_ranges.far_loop(span, var.name, fresh_key, part, location)
    return Statement((If(fits, near.body, far, location=location),), near.sources)


def _bound(name: str, value: Any) -> ScalarExpr:
    """Returns an integer as a bound of a loop."""
    number = as_index(name, value)
    return ScalarExpr(as_bound(number.node), number.sources)


def _buffer_of(name: str, buf: Any) -> DeclaredBuffer:
    if isinstance(buf, BufferVar):
        return buf.buffer
    if isinstance(buf, DeclaredBuffer):
        return buf
    raise type_error(
        name,
        f"expected a buffer; got {type(buf).__name__}",
        "Use the buffers that tvm.extern passes to its function, or ib.allocate(...).",
    )


def _hint(for_type: str) -> LoopHint:
    if for_type in _HINTS:
        return _HINTS[for_type]
    raise value_error(
        "ir_builder.for_range",
        f"unknown for_type: expected one of {', '.join(_HINTS)}; got {for_type!r}",
        "Leave it out for a loop whose iterations run in order.",
    )


def _check_index_dtype(dtype: Any) -> None:
    if as_dtype(dtype) not in INTEGERS:
        raise value_error(
            "ir_builder.for_range",
            f"expected an integer dtype of the loop variable; got {dtype}",
            'Leave it out: it is "int32".',
        )
