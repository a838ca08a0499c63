"""Tensors, and the operations that make them."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

from msops._loops.frontends.tvm.arithmetic import as_index, binary, union_of
from msops._loops.frontends.tvm.dtypes import as_dtype
from msops._loops.frontends.tvm.expr import ScalarExpr, as_expr
from msops._loops.frontends.tvm.tracing import (
    age,
    author_location,
    fresh_key,
    type_error,
    value_error,
    wrong_type,
)
from msops._loops.ir.nodes import INDEX_DTYPE, Load, Location, Stmt


class Extent(int):
    """An element of a shape: an int that can also be used like TVM's constant."""

    @property
    def value(self) -> int:
        """The number as a plain int."""
        return int(self)

    @property
    def dtype(self) -> str:
        """The dtype of indices."""
        return INDEX_DTYPE

    def astype(self, dtype: Any) -> ScalarExpr:
        """Returns the number as an expression of a dtype."""
        return as_expr(int(self)).astype(dtype)


Shape: TypeAlias = tuple[Extent, ...]


def as_shape(name: str, shape: Any) -> Shape:
    """Returns a shape of known numbers.

    Args:
      name: the call it was given to, for messages.
      shape: a sequence of ints and constant expressions, or one of them.
    """
    extents = shape if isinstance(shape, Sequence) else (shape,)
    try:
        known = tuple(Extent(extent.__index__()) for extent in extents)
    except (AttributeError, TypeError):
        raise type_error(
            name,
            f"expected a shape of ints; got {shape!r}",
            "Shapes are known when the kernel is compiled: use x.shape, ints and attributes.",
        ) from None
    if any(extent < 0 for extent in known):
        raise value_error(
            name,
            f"expected a shape without negative extents; got {tuple(map(int, known))}",
            "Compute the missing extent from the others.",
        )
    return known


def unravelled(position: ScalarExpr, shape: Shape) -> tuple[ScalarExpr, ...]:
    """Returns the indices of the element at a position in row-major order.

    The first one is not reduced by its extent, so a position past the end stays out of range.
    """
    indices = []
    for axis, extent in enumerate(shape):
        stride = math.prod(shape[axis + 1 :])
        part = position if stride == 1 else binary("floordiv", position, stride)
        indices.append(part if axis == 0 else binary("mod", part, int(extent)))
    return tuple(indices)


@dataclass(frozen=True, eq=False)
class Operation:
    """An operation that makes tensors.

    Attributes:
      name: the author's name for it.
      shapes: shape of each output.
      dtypes: dtype of each output.
      keys: the name of each output's buffer in nodes.
      tag: TVM's mark for schedules; kept, not used.
      attrs: TVM's attributes; kept, not used.
      location: where it was made.
      inputs: the tensors it was given.
    """

    name: str
    shapes: tuple[Shape, ...]
    dtypes: tuple[str, ...]
    keys: tuple[str, ...]
    tag: str = ""
    attrs: Mapping[str, Any] = dataclasses.field(default_factory=dict)
    location: Location | None = None
    inputs: tuple[Tensor, ...] = ()

    @property
    def num_outputs(self) -> int:
        """How many tensors it makes."""
        return len(self.shapes)

    @property
    def input_tensors(self) -> tuple[Tensor, ...]:
        """The tensors it reads."""
        return by_age(set(self.inputs))

    @property
    def aliases(self) -> Mapping[str, str]:
        """Further names of its tensors in `lowered`, each with the tensor's key."""
        return {}

    def output(self, index: int) -> Tensor:
        """Returns one of the tensors it makes."""
        return Tensor(self, index)

    def lowered(self) -> tuple[Stmt, ...]:
        """Returns the statements that fill its outputs, which are zero before."""
        return ()


class PlaceholderOp(Operation):
    """An input of the kernel."""


class Tensor:
    """A tensor: whole-tensor arithmetic by operators, elements by ``x(i, j)`` or ``x[i, j]``.

    Attributes:
      op: what makes it.
      value_index: which output of that it is.
    """

    __slots__ = ("op", "value_index")

    __array_ufunc__ = None

    def __init__(self, op: Operation, value_index: int = 0):
        self.op = op
        self.value_index = value_index

    @property
    def shape(self) -> Shape:
        """The shape."""
        return self.op.shapes[self.value_index]

    @property
    def dtype(self) -> str:
        """The dtype, as text."""
        return self.op.dtypes[self.value_index]

    @property
    def key(self) -> str:
        """The name of its buffer in nodes."""
        return self.op.keys[self.value_index]

    @property
    def name(self) -> str:
        """The author's name for it."""
        suffix = f"_v{self.value_index}" if self.op.num_outputs > 1 else ""
        return self.op.name + suffix

    @property
    def ndim(self) -> int:
        """The number of dimensions."""
        return len(self.shape)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Tensor) and self.key == other.key

    def __hash__(self) -> int:
        return hash(self.key)

    def __repr__(self) -> str:
        return f"Tensor(shape={list(map(int, self.shape))}, op.name={self.op.name})"

    def __len__(self) -> int:
        return self.shape[0]

    # Iterating would go on by `x[0]`, `x[1]`, ... without an end.
    __iter__ = None

    def __call__(self, *indices: Any) -> ScalarExpr:
        if len(indices) != self.ndim:
            raise value_error(
                f"tensor {self.op.name!r}",
                f"need to provide {self.ndim} indices; got {len(indices)}",
                f"Its shape is {tuple(map(int, self.shape))}: give one index per dimension.",
            )
        exprs = [as_index(f"index of tensor {self.op.name!r}", index) for index in indices]
        load = Load(
            self.key,
            tuple(expr.node for expr in exprs),
            self.dtype,
            location=author_location(),
        )
        return ScalarExpr(load, union_of(exprs) | {self})

    def __getitem__(self, indices: Any) -> ScalarExpr | TensorSlice:
        return TensorSlice(self, ())[indices]

    def as_scalar(self) -> ScalarExpr:
        """Returns the only element of a tensor without dimensions."""
        return self()


class TensorSlice:
    """A tensor with its first indices given, ``x[i]``.

    Attributes:
      tensor: the tensor.
      indices: the indices given so far.
    """

    __slots__ = ("indices", "tensor")

    def __init__(self, tensor: Tensor, indices: tuple[Any, ...]):
        self.tensor = tensor
        self.indices = indices

    @property
    def dtype(self) -> str:
        """The dtype of the tensor."""
        return self.tensor.dtype

    def __getitem__(self, indices: Any) -> ScalarExpr | TensorSlice:
        more = tuple(indices) if isinstance(indices, (tuple, list)) else (indices,)
        given = self.indices + more
        if len(given) < self.tensor.ndim:
            return TensorSlice(self.tensor, given)
        return self.tensor(*given)

    def as_scalar(self) -> ScalarExpr:
        """Raises: an element has one index per dimension."""
        return self.tensor(*self.indices)


def by_age(tensors: Iterable[Tensor]) -> tuple[Tensor, ...]:
    """Returns tensors in the order in which they were made."""
    return tuple(sorted(tensors, key=lambda tensor: age(tensor.key)))


def placeholder(
    shape: Any, dtype: Any = None, name: str = "placeholder", attrs: Any = None
) -> Tensor:
    """Returns a tensor that is an input of the kernel.

    Args:
      shape: its shape, ints.
      dtype: its dtype; None is float32.
      name: its name in the loop IR.
      attrs: kept as ``tensor.op.attrs``.
    """
    op = PlaceholderOp(
        name,
        (as_shape("tvm.placeholder", shape),),
        (as_dtype("float32" if dtype is None else dtype),),
        (fresh_key(name),),
        attrs=dict(attrs or {}),
        location=author_location(),
    )
    return op.output(0)


def as_tensor(value: Any) -> Tensor:
    """Returns an argument that must be a tensor."""
    if isinstance(value, Tensor):
        return value
    raise wrong_type(
        f"expected a tensor; got {type(value).__name__}",
        "Pass an input of the kernel, or what tvm.compute or topi returned.",
    )


def as_tensors(name: str, value: Any) -> tuple[Tensor, ...]:
    """Returns one tensor, or a sequence of them, as a tuple.

    Args:
      name: what gave it, for messages.
      value: what it gave.
    """
    tensors = tuple(value) if isinstance(value, (tuple, list)) else (value,)
    if not tensors or not all(isinstance(tensor, Tensor) for tensor in tensors):
        kinds = ", ".join(type(tensor).__name__ for tensor in tensors) or "nothing"
        raise type_error(
            name,
            f"expected a tensor or several; got {kinds}",
            "Return what tvm.compute, tvm.extern or topi returned.",
        )
    return tensors


def bind_operators(
    operators: Mapping[str, Callable[[Any, Any], Any]],
    negative: Callable[[Any], Any],
    cast: Callable[[Any, Any], Any],
) -> None:
    """Gives tensors whole-tensor arithmetic, which is defined above this module, in topi.

    Args:
      operators: by the name of Python's method.
      negative: the unary minus.
      cast: the method `astype`.
    """
    for name, operator in operators.items():
        setattr(Tensor, f"__{name}__", _method(operator))
        setattr(Tensor, f"__r{name}__", _method(operator, swapped=True))
    setattr(Tensor, "__neg__", lambda x: negative(x))  # noqa: B010
    setattr(Tensor, "astype", _method(cast))  # noqa: B010


def _method(operator: Callable[[Any, Any], Any], swapped: bool = False) -> Callable[..., Any]:
    return lambda x, y: operator(y, x) if swapped else operator(x, y)
