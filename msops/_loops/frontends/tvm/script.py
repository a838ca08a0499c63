"""`tvm.hybrid.script`: a stage written in the loop language."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from msops._loops.frontends.hybrid import read_hybrid
from msops._loops.frontends.references import read_with_own_names
from msops._loops.frontends.source import unwrap
from msops._loops.frontends.spec import Spec
from msops._loops.frontends.tvm.compute import nest
from msops._loops.frontends.tvm.expr import ConstExpr, IterVar
from msops._loops.frontends.tvm.tensor import Operation, Tensor, as_shape
from msops._loops.frontends.tvm.tracing import author_location, current_op, fresh_key, type_error
from msops._loops.ir.nodes import Buffer, Kernel, Load, Local, Location, Stmt, Store
from msops._loops.ir.walk import statements


@dataclass(frozen=True, eq=False, kw_only=True)
class ScriptOp(Operation):
    """Tensors by a kernel in the loop language.

    Attributes:
      kernel: the kernel; each of its results is made once, and it has a parameter per input.
    """

    kernel: Kernel

    @property
    def aliases(self) -> dict[str, str]:
        """The key of the tensor behind each name of the kernel."""
        given = zip(self.kernel.parameters, self.inputs, strict=True)
        made = dict(zip(dict.fromkeys(self.kernel.results), self.keys, strict=True))
        return {buffer.name: tensor.key for buffer, tensor in given} | made

    def lowered(self) -> tuple[Stmt, ...]:
        """Returns the body of the kernel; its own copies of inputs and temporaries around it."""
        written = {stmt.buffer for stmt in statements(self.kernel.body) if isinstance(stmt, Store)}
        body = self.kernel.body
        for buffer, tensor in zip(self.kernel.parameters, self.inputs, strict=True):
            if buffer.name in written or buffer.name in self.kernel.results:
                body = (*_copied(tensor, buffer, self.location), *body)
        for buffer in (*self.kernel.parameters, *self.kernel.buffers):
            is_own = buffer in self.kernel.buffers or buffer.name in written
            if is_own and buffer.name not in self.kernel.results:
                body = (Local(buffer, body, location=self.location),)
        return body


def _copied(tensor: Tensor, target: Buffer, location: Location | None) -> tuple[Stmt, ...]:
    axes = [IterVar("i", 0, extent) for extent in target.shape]
    indices = tuple(axis.node for axis in axes)
    value = Load(tensor.key, indices, target.dtype)
    return nest(axes, (Store(target.name, indices, value),), location)


def script(
    pyfunc: Callable[..., Any] | None = None, capture: Mapping[str, Any] | None = None
) -> Callable[..., Any]:
    """Returns a function of tensors, then numbers, that a function in the loop language describes.

    Args:
      pyfunc: the function; None when the decorator is written with arguments.
      capture: constants and helpers that it sees besides those around it, ``locals()`` say.
    """
    if pyfunc is None:
        return functools.partial(script, capture=capture)

    @functools.wraps(pyfunc)
    def stage(*args: Any) -> Any:
        tensors = tuple(arg for arg in args if isinstance(arg, Tensor))
        if args[: len(tensors)] != tensors:
            raise type_error(
                f"tvm.hybrid.script {pyfunc.__name__!r}",
                "expected all tensors before all numbers",
                "Order the parameters so.",
            )
        names = list(inspect.signature(pyfunc).parameters)
        numbers = dict(zip(names[len(tensors) :], map(_node, args[len(tensors) :]), strict=False))
        specs = [Spec(tuple(map(int, tensor.shape)), tensor.dtype) for tensor in tensors]
        who = f"{current_op()}: tvm.hybrid.script {pyfunc.__name__!r}"
        function = unwrap(pyfunc, who)
        hybrid = read_hybrid(
            function, read_with_own_names(function, who), "akg", who, capture or {}
        )
        outputs = kernel_stage(hybrid.specialise(specs, numbers, who), tensors)
        return outputs[0] if len(outputs) == 1 else outputs

    return stage


def _node(value: Any) -> Any:
    """Returns a number with its dtype, if TVM gave it one."""
    return value.node if isinstance(value, ConstExpr) else value


def kernel_stage(
    kernel: Kernel, tensors: tuple[Tensor, ...], name: str | None = None
) -> tuple[Tensor, ...]:
    """Returns the results of a kernel as tensors.

    Args:
      kernel: any kernel.
      tensors: what its parameters are.
      name: its name in the loop IR; None is that of the kernel.
    """
    names = tuple(dict.fromkeys(kernel.results))
    buffers = [kernel.buffer(name) for name in names]
    op = ScriptOp(
        name or kernel.name,
        tuple(as_shape("tvm.hybrid.script", buffer.shape) for buffer in buffers),
        tuple(buffer.dtype for buffer in buffers),
        tuple(map(fresh_key, names)),
        location=author_location(),
        kernel=kernel,
        inputs=tensors,
    )
    return tuple(op.output(names.index(name)) for name in kernel.results)
