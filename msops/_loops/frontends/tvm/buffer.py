"""Buffers: memory that the statements of an extern read and write."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from msops._loops.frontends.tvm.arithmetic import as_index, union_of
from msops._loops.frontends.tvm.dtypes import as_dtype
from msops._loops.frontends.tvm.expr import NOTHING, ScalarExpr, Sources, as_expr, const
from msops._loops.frontends.tvm.tensor import Shape, as_shape, unravelled
from msops._loops.frontends.tvm.tracing import author_location, fresh_key, value_error
from msops._loops.ir.nodes import Load, Stmt, Store
from msops._loops.ir.operators import INTEGERS, is_float


@dataclass(frozen=True)
class Statement:
    """Statements of the loop IR, as the builder and externs hand them on.

    Attributes:
      body: the statements; buffers and variables in them are named by key.
      sources: the tensors they read.
    """

    body: tuple[Stmt, ...] = ()
    sources: Sources = NOTHING


class DeclaredBuffer:
    """A buffer: an input or output of an extern, or one the builder allocated.

    Attributes:
      name: the author's name for it.
      shape: its shape.
      dtype: its dtype.
      key: its name in nodes.
    """

    __slots__ = ("dtype", "key", "name", "shape")

    def __init__(self, name: str, shape: Shape, dtype: str):
        self.name = name
        self.shape = shape
        self.dtype = dtype
        self.key = fresh_key(name)

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.name}: {self.dtype}{list(map(int, self.shape))})"

    def vload(self, begin: Any, dtype: Any = None) -> ScalarExpr:
        """Returns the element at a list of indices, converted if `dtype` is given."""
        value = self.load(begin)
        return value if dtype is None else value.astype(dtype)

    def vstore(self, begin: Any, value: Any) -> Statement:
        """Returns a statement that writes an element."""
        return self.store(begin, value)

    def load(self, index: Any) -> ScalarExpr:
        """Returns an element.

        Args:
          index: one index per dimension, or a single one that counts elements in row-major order.
        """
        indices = self._indices(index)
        nodes = tuple(expr.node for expr in indices)
        load = Load(self.key, nodes, self.dtype, location=author_location())
        return ScalarExpr(load, union_of(indices))

    def store(self, index: Any, value: Any) -> Statement:
        """Returns a statement that writes an element; see `load`.

        Raises:
          ArgumentValueError: the value has another dtype.
        """
        indices = self._indices(index)
        stored = self._stored(value)
        store = Store(
            self.key,
            tuple(expr.node for expr in indices),
            stored.node,
            location=author_location(),
        )
        return Statement((store,), union_of((*indices, stored)))

    def _stored(self, value: Any) -> ScalarExpr:
        expr = as_expr(value)
        if expr.dtype == self.dtype:
            return expr
        # A bare Python number has no width of its own.
        same_kind = (expr.dtype in INTEGERS and self.dtype in INTEGERS) or (
            is_float(expr.dtype) and is_float(self.dtype)
        )
        if same_kind and isinstance(value, (int, float)):
            return const(value, self.dtype)
        raise value_error(
            f"buffer {self.name!r}",
            f"data type does not match content type: {expr.dtype} vs {self.dtype}",
            f'Cast the value: x.astype("{self.dtype}"), or tvm.const(0, "{self.dtype}").',
        )

    def _indices(self, index: Any) -> tuple[ScalarExpr, ...]:
        name = f"index of buffer {self.name!r}"
        if not isinstance(index, (list, tuple)):
            return unravelled(as_index(name, index), self.shape)
        if len(index) == 1 and len(self.shape) != 1:
            return unravelled(as_index(name, index[0]), self.shape)
        if len(index) != len(self.shape):
            raise value_error(
                f"buffer {self.name!r}",
                f"expected {len(self.shape)} indices, or one; got {len(index)}",
                f"Its shape is {tuple(map(int, self.shape))}: give an index per dimension, or one "
                "that counts all elements in row-major order.",
            )
        return tuple(as_index(name, each) for each in index)


def decl_buffer(
    shape: Any, dtype: Any = None, name: str = "buffer", *_layout: Any, **_options: Any
) -> DeclaredBuffer:
    """Returns a buffer to pass to `extern` as one of `in_buffers` or `out_buffers`.

    Args:
      shape: its shape.
      dtype: its dtype; None is float32.
      name: its name in the loop IR.
      *_layout: TVM's further arguments on layout and scope, which mean nothing here.
      **_options: the same by name.
    """
    extents = as_shape("tvm.decl_buffer", shape)
    return DeclaredBuffer(name, extents, as_dtype("float32" if dtype is None else dtype))
