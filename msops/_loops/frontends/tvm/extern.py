"""`tvm.extern`: tensors by statements over buffers."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from msops._loops.frontends.tvm.buffer import DeclaredBuffer, Statement
from msops._loops.frontends.tvm.dtypes import as_dtype
from msops._loops.frontends.tvm.tensor import Operation, Shape, Tensor, as_shape, as_tensors, by_age
from msops._loops.frontends.tvm.tracing import (
    author_location,
    build_error,
    fresh_key,
    type_error,
    wrong_value,
)
from msops._loops.ir.nodes import Stmt


@dataclass(frozen=True, eq=False, kw_only=True)
class ExternOp(Operation):
    """Tensors by statements.

    Attributes:
      statement: what it runs.
      handles: what it calls the inputs, then the outputs.
    """

    statement: Statement
    handles: tuple[str, ...]

    @property
    def input_tensors(self) -> tuple[Tensor, ...]:
        """The tensors it may read."""
        return by_age({*self.inputs, *self.statement.sources})

    @property
    def aliases(self) -> dict[str, str]:
        """The key of the tensor behind each handle."""
        keys = (*(tensor.key for tensor in self.inputs), *self.keys)
        return dict(zip(self.handles, keys, strict=True))

    def lowered(self) -> tuple[Stmt, ...]:
        """Returns the statements."""
        return self.statement.body


def extern(
    shape: Any,
    inputs: Any,
    fcompute: Callable[..., Any],
    name: str = "extern",
    dtype: Any = None,
    in_buffers: Any = None,
    out_buffers: Any = None,
    tag: str = "",
    attrs: Any = None,
) -> Any:
    """Returns a tensor made by statements; a list of tensors if several shapes are given.

    Args:
      shape: shape of the result, or a sequence of shapes.
      inputs: the tensors it reads.
      fcompute: ``fcompute(ins, outs)`` gets a buffer per input and per result and returns what an
        IR builder's ``get()`` returned.
      name: its name in the loop IR.
      dtype: dtype of all results, or of each; None: the one dtype of all inputs.
      in_buffers: buffers (`decl_buffer`) to pass for the inputs.
      out_buffers: buffers to pass for the results.
      tag: kept, not used.
      attrs: kept, not used.
    """
    shapes, is_single = _shapes(shape)
    tensors = as_tensors("inputs of tvm.extern", inputs) if inputs else ()
    dtypes = _dtypes(dtype, tensors, len(shapes))
    ins = _buffers("input", in_buffers, [(x.name, x.shape, x.dtype) for x in tensors])
    outs = _buffers(
        "output", out_buffers, [(name, *pair) for pair in zip(shapes, dtypes, strict=True)]
    )
    statement = _statement(fcompute(ins, outs), name)
    keys = tuple(fresh_key(out.name) for out in outs)
    op = ExternOp(
        name,
        shapes,
        dtypes,
        keys,
        tag=tag,
        attrs=dict(attrs or {}),
        location=author_location(),
        inputs=tensors,
        statement=statement,
        handles=tuple(buffer.key for buffer in (*ins, *outs)),
    )
    return op.output(0) if is_single else [op.output(index) for index in range(len(shapes))]


def _shapes(shape: Any) -> tuple[tuple[Shape, ...], bool]:
    several = isinstance(shape, (tuple, list)) and any(
        isinstance(part, (tuple, list)) for part in shape
    )
    shapes = tuple(shape) if several else (shape,)
    # TVM hands back one tensor, not a list, also for a list of one shape.
    return tuple(as_shape("tvm.extern", part) for part in shapes), len(shapes) == 1


def _dtypes(dtype: Any, inputs: Sequence[Tensor], count: int) -> tuple[str, ...]:
    if isinstance(dtype, (tuple, list)):
        if len(dtype) != count:
            raise wrong_value(
                f"expected {count} dtypes, one per shape; got {len(dtype)}",
                "Pass one dtype for all results, or one for each.",
            )
        return tuple(map(as_dtype, dtype))
    if dtype is None:
        found = {tensor.dtype for tensor in inputs}
        if len(found) != 1:
            raise wrong_value(
                "cannot infer the dtype of the result: the inputs have "
                + (", ".join(sorted(found)) or "none"),
                'Pass it: dtype="float32".',
            )
        dtype = found.pop()
    return (as_dtype(dtype),) * count


def _buffers(
    role: str, given: Any, wanted: Sequence[tuple[str, Shape, str]]
) -> list[DeclaredBuffer]:
    if given is None:
        return [DeclaredBuffer(*row) for row in wanted]
    buffers = list(given) if isinstance(given, (list, tuple)) else [given]
    if len(buffers) != len(wanted):
        raise build_error(
            "tvm.extern",
            f"number of {role}s and of their buffers differ: {len(wanted)} vs {len(buffers)}",
            f"Pass one buffer per {role}, or none at all.",
        )
    for buffer, (_, shape, dtype) in zip(buffers, wanted, strict=True):
        if (buffer.shape, buffer.dtype) != (shape, dtype):
            raise wrong_value(
                f"{buffer} does not describe its {role}, {dtype}{list(map(int, shape))}",
                "Declare it with the shape and the dtype of the tensor.",
            )
    return buffers


def _statement(result: Any, name: str) -> Statement:
    if isinstance(result, Statement):
        return result
    raise type_error(
        f"tvm.extern {name!r}",
        f"expected the statements of an IR builder; got {type(result).__name__}",
        "Return ib.get() from the function.",
    )
