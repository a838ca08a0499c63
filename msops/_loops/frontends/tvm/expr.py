"""Symbolic scalars over expressions of the loop IR: classes, numbers and casts.

Operators are defined above this module, in arithmetic.py.
"""

from __future__ import annotations

import numbers
from typing import Any, TypeAlias

import numpy as np

from msops._loops.frontends.tvm.dtypes import as_dtype
from msops._loops.frontends.tvm.tracing import fresh_key, type_error, value_error
from msops._loops.ir import scalars
from msops._loops.ir.nodes import (
    INDEX_DTYPE,
    Cast,
    Const,
    Expr,
    FunctionCall,
    Load,
    Unary,
    UnaryOp,
    Var,
)
from msops._loops.ir.operators import is_float
from msops._loops.ir.text import expr_text

Sources: TypeAlias = frozenset[Any]
"""The tensors an expression reads. A node names a buffer by key only; this keeps the tensor."""

NOTHING: Sources = frozenset()


class ScalarExpr:
    """A scalar expression.

    Attributes:
      node: the expression in the loop IR; buffers and variables in it are named by key.
      sources: the tensors it reads.
      dtype: its dtype.
    """

    __slots__ = ("node", "sources")

    # Whole numpy arrays must not take an expression apart elementwise.
    __array_ufunc__ = None

    def __init__(self, node: Expr, sources: Sources = NOTHING):
        self.node = node
        self.sources = sources

    @property
    def dtype(self) -> str:
        """The dtype, as text."""
        return self.node.dtype

    def astype(self, dtype: Any) -> ScalarExpr:
        """Returns the expression converted to another dtype."""
        return cast(self, dtype)

    def __bool__(self) -> bool:
        raise value_error(
            "tvm expression",
            "its truth is not known while the kernel is being built",
            "Combine conditions by tvm.all(...), tvm.any(...) or tvm.if_then_else(...) instead of "
            "Python's if, and, or, not; in the IR builder use ib.if_scope(...).",
        )

    def __hash__(self) -> int:
        return id(self)

    def __repr__(self) -> str:
        return f"{type(self).__name__}({expr_text(self.node, outermost=True)}, {self.dtype})"

    def __neg__(self) -> ScalarExpr:
        number = self.astype("int32") if self.dtype == "bool" else self
        if isinstance(number, ConstExpr):
            return const(-number.value, number.dtype)
        return ScalarExpr(Unary("neg", number.node, number.dtype), self.sources)

    def __pos__(self) -> ScalarExpr:
        return self

    def __invert__(self) -> ScalarExpr:
        if is_float(self.dtype):
            raise value_error(
                "~",
                f"expected a bool or an integer; got {self.dtype}",
                'Cast it first: x.astype("int32").',
            )
        op: UnaryOp = "not" if self.dtype == "bool" else "invert"
        return ScalarExpr(Unary(op, self.node, self.dtype), self.sources)

    def __abs__(self) -> ScalarExpr:
        return ScalarExpr(FunctionCall("abs", (self.node,), self.dtype), self.sources)


class ConstExpr(ScalarExpr):
    """A number; unlike other expressions it is known while the kernel is being built."""

    __slots__ = ()
    node: Const

    @property
    def value(self) -> Any:
        """The number."""
        return self.node.value

    def __bool__(self) -> bool:
        return bool(self.value)

    def __int__(self) -> int:
        return int(self.value)

    def __float__(self) -> float:
        return float(self.value)


class IntImm(ConstExpr):
    """A signed integer."""

    __slots__ = ()

    def __index__(self) -> int:
        return int(self.value)


class UIntImm(IntImm):
    """An unsigned integer or a bool."""

    __slots__ = ()


class FloatImm(ConstExpr):
    """A floating point number."""

    __slots__ = ()


class FreeVar(ScalarExpr):
    """A variable.

    Attributes:
      name: the author's name for it.
    """

    __slots__ = ("name",)

    def __init__(self, name: str, dtype: str = INDEX_DTYPE):
        # No buffer has this key, so a variable that nothing binds is found when lowering.
        super().__init__(Load(fresh_key(name), (), dtype))
        self.name = name


class IterVar(ScalarExpr):
    """The variable of a loop.

    Attributes:
      name: the author's name for it.
      extent: number of its values; None for a loop of the IR builder.
      begin: the first of them.
      tag: the thread tag of `tvm.thread_axis`.
    """

    __slots__ = ("begin", "extent", "name", "tag")

    def __init__(self, name: str, begin: int = 0, extent: int | None = None, tag: str = ""):
        super().__init__(Var(fresh_key(name)))
        self.name = name
        self.begin = begin
        self.extent = extent
        self.tag = tag

    @property
    def key(self) -> str:
        """The variable's name in nodes."""
        assert isinstance(self.node, Var)
        return self.node.name

    @property
    def var(self) -> IterVar:
        """The variable itself, which TVM keeps apart from its range."""
        return self

    @property
    def dom(self) -> IterVar:
        """The range, which TVM keeps apart from the variable."""
        return self

    @property
    def min(self) -> int:
        """The first value, as a TVM range names it."""
        return self.begin


def const(value: Any, dtype: Any = None) -> ConstExpr:
    """Returns a number as an expression.

    Args:
      value: a Python or numpy number, or a `ConstExpr`.
      dtype: its dtype; None: of a numpy number its own, of a Python number bool, int32 (int64 where
        that is too small) or float32.
    """
    if isinstance(value, ConstExpr):
        dtype, value = dtype or value.dtype, value.value
    if not isinstance(value, (numbers.Number, np.bool_)) or isinstance(value, complex):
        raise type_error(
            "tvm.const",
            f"expected a number; got {type(value).__name__}",
            "Pass a Python number; use expressions and tensors as they are.",
        )
    name = _literal_dtype(value) if dtype is None else as_dtype(dtype)
    number = fold_cast(value, name)
    node = Const(number, name)
    if is_float(name):
        return FloatImm(node)
    return UIntImm(node) if name == "bool" or name.startswith("uint") else IntImm(node)


def _literal_dtype(value: Any) -> str:
    # What numpy makes of Python's numbers, such as np.sqrt(2.0), counts as one of them.
    if isinstance(value, np.generic) and not isinstance(value, (np.float64, np.int64, np.bool_)):
        return as_dtype(value.dtype)
    if isinstance(value, (bool, np.bool_)):
        return "bool"
    if isinstance(value, numbers.Integral):
        return "int32" if -(2**31) <= int(value) < 2**31 else "int64"
    return "float32"


def fold_cast(value: Any, dtype: str) -> bool | int | float:
    """Returns a number as a `Const` of a dtype holds it, converted as `Cast` converts."""
    if is_float(dtype):
        return float(value)
    source = "int64" if isinstance(value, numbers.Integral) else "float64"
    number: bool | int = scalars.cast(source, dtype)(value)
    return number


def as_expr(value: Any, like: ScalarExpr | None = None) -> ScalarExpr:
    """Returns an operand as an expression.

    Args:
      value: an expression or a number.
      like: the other operand; a Python float beside a float takes its dtype.
    """
    if isinstance(value, ScalarExpr):
        return value
    scalar = getattr(value, "as_scalar", None)
    if scalar is not None:
        return scalar()
    if isinstance(value, float) and like is not None and is_float(like.dtype):
        return const(value, like.dtype)
    if isinstance(value, (numbers.Number, np.bool_)):
        return const(value)
    raise type_error(
        "tvm expression",
        f"expected a number or an expression; got {type(value).__name__}",
        "Index tensors to read an element, x(i, j) or x[i, j]; write whole-tensor operations by "
        "topi.",
    )


def cast(value: Any, dtype: Any) -> ScalarExpr:
    """Returns an expression converted to a dtype; itself if it has that dtype."""
    expr, name = as_expr(value), as_dtype(dtype)
    if expr.dtype == name:
        return expr
    if isinstance(expr, ConstExpr):
        return const(expr.value, name)
    return ScalarExpr(Cast(expr.node, name), expr.sources)
