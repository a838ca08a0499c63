"""`akg.differentiate`: the gradient of tensors, as tensors.

Each operation between the inputs and the output is lowered to a kernel of its own and reversed by
the compiler's reverse mode; what several operations contribute to a tensor is added:

    adjoint(x) = sum over operations f that read x of  adjoint(f(x)) * df/dx

Source: AKG r2.2, ``akg.autodiff.differentiate``, after TVM's ``autodiff``.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextvars import ContextVar
from typing import Any

from msops._loops import pipeline
from msops._loops.frontends.tvm.compute import compute, nest
from msops._loops.frontends.tvm.expr import IterVar
from msops._loops.frontends.tvm.intrin import all_of
from msops._loops.frontends.tvm.lower import identifier, lower
from msops._loops.frontends.tvm.script import kernel_stage
from msops._loops.frontends.tvm.tensor import Operation, PlaceholderOp, Tensor, as_tensors
from msops._loops.frontends.tvm.topi import NAMES as TOPI
from msops._loops.frontends.tvm.tracing import age, build_error, wrong_value
from msops._loops.ir.nodes import Const, Kernel, Stmt, Store
from msops._loops.ir.operators import is_float
from msops._loops.ir.walk import loads_in

Override = Mapping[Tensor, tuple[Sequence[Tensor], Callable[..., Sequence[Tensor]]]]


class DifferentiationResult(Sequence[Tensor]):
    """The gradients with respect to the inputs, in their order.

    Attributes:
      result: the same as a list.
      adjoints: of each tensor between the inputs and the output, its gradient.
    """

    def __init__(self, result: list[Tensor], adjoints: dict[Tensor, Tensor]):
        self.result = result
        self.adjoints = adjoints

    def __getitem__(self, index: Any) -> Any:
        return self.result[index]

    def __len__(self) -> int:
        return len(self.result)


def differentiate(
    output: Tensor,
    inputs: Sequence[Tensor] | None = None,
    head: Tensor | None = None,
    ad_attrs: Any = None,
    new_pld_array: Any = None,
    override: Override | None = None,
    fdiff: Any = None,
) -> DifferentiationResult:
    """Returns the gradients of a tensor.

    Args:
      output: the tensor.
      inputs: the tensors to differentiate for; what makes them is not looked at. None: all that
        the output is made from, whose gradients are in `adjoints`.
      head: cotangents of the output, of shape ``prefix + output.shape``; the gradients are then of
        shape ``prefix + input.shape``. None: the identity, so that they are Jacobians.
      ad_attrs: given to the functions of `override`.
      new_pld_array: given to the functions of `override`.
      override: by tensor, the tensors that its own derivative is for and the function that returns
        their gradients, ``f(tensor, dependencies, head, ad_attrs, new_pld_array)``.
      fdiff: only None.

    Raises:
      ArgumentValueError: the shapes of `head` and `output` do not fit, `fdiff` is given, or an
        input is nothing that the output is made from.
    """
    if fdiff is not None:
        raise wrong_value(
            "'fdiff' is not supported", "Pass override= with a function for each tensor."
        )
    head = _identity(output) if head is None else head
    rank = head.ndim - output.ndim
    if rank < 0 or head.shape[rank:] != output.shape:
        raise wrong_value(
            f"expected a head of shape (..., {', '.join(map(str, output.shape))}); got "
            f"{tuple(map(int, head.shape))}",
            "Its last dimensions are those of the output.",
        )
    wanted = list(inputs or ())
    override = override or {}
    adjoints = {output: TOPI["cast"](head, output.dtype)}
    for op in _operations(output, wanted, override):
        made = [op.output(index) for index in range(op.num_outputs)]
        for tensor in made:
            if tensor in override and tensor in adjoints:
                dependencies, function = override[tensor]
                found = function(
                    tensor, list(dependencies), adjoints[tensor], ad_attrs, new_pld_array
                )
                _add(adjoints, zip(dependencies, as_tensors("override", found), strict=True))
        known = [tensor for tensor in made if tensor in adjoints and tensor not in override]
        if known:
            _add(adjoints, _gradients(op, known, adjoints, head.shape[:rank]))
    for tensor in wanted:
        if tensor not in adjoints:
            raise wrong_value(
                f"the output is not made from {tensor}, by operations on floats",
                "Differentiate for tensors that it depends on.",
            )
    return DifferentiationResult([adjoints[tensor] for tensor in wanted], adjoints)


def _identity(output: Tensor) -> Tensor:
    rank = output.ndim

    def element(*indices: Any) -> Any:
        same = [one.equal(other) for one, other in zip(indices[:rank], indices[rank:], strict=True)]
        return all_of(*same).astype(output.dtype) if same else 1.0

    found: Tensor = compute((*output.shape, *output.shape), element, "identity")
    return found


def _operations(
    output: Tensor, inputs: Sequence[Tensor], override: Override
) -> Iterator[Operation]:
    """Yields what lies between the inputs and the output, the latest operation first."""
    found: dict[str, Operation] = {}
    waiting = [output]
    while waiting:
        tensor = waiting.pop()
        key = tensor.op.keys[0]
        if tensor in inputs or key in found or isinstance(tensor.op, PlaceholderOp):
            continue
        found[key] = tensor.op
        waiting += override[tensor][0] if tensor in override else tensor.op.input_tensors
    yield from sorted(found.values(), key=lambda op: -age(op.keys[0]))


def _add(adjoints: dict[Tensor, Tensor], found: Any) -> None:
    for tensor, adjoint in found:
        if adjoint is not None:
            old = adjoints.get(tensor)
            adjoints[tensor] = adjoint if old is None else TOPI["add"](old, adjoint)


def _gradients(
    op: Operation, made: Sequence[Tensor], adjoints: Mapping[Tensor, Tensor], prefix: Any
) -> Iterator[tuple[Tensor, Tensor]]:
    """Yields the inputs of an operation with what it contributes to their adjoints."""
    inputs = [tensor for tensor in op.input_tensors if is_float(tensor.dtype)]
    outputs = [tensor for tensor in made if is_float(tensor.dtype)]
    if not inputs or not outputs:
        return
    forward = lower(outputs, op.input_tensors, f"{op.name}_grad", op.location)
    reverse = _from_zero(pipeline.adjoint(pipeline.analyse(forward).kernel))
    given = [*op.input_tensors, *(adjoints[tensor] for tensor in outputs)]
    reverse, given = _without_unused(reverse, given)
    if prefix:
        count, heads = math.prod(prefix), {adjoints[tensor] for tensor in outputs}
        flags = tuple(tensor in heads for tensor in given)
        reverse = pipeline.run(reverse, pipeline.passes_to_batch((count,), (flags,)))
        given = [
            TOPI["reshape"](tensor, (count, *tensor.shape[len(prefix) :])) if is_head else tensor
            for tensor, is_head in zip(given, flags, strict=True)
        ]
    results = kernel_stage(reverse, tuple(given), identifier(f"{op.name}_grad"))
    for tensor, gradient in zip(inputs, results, strict=True):
        if prefix:
            gradient = TOPI["reshape"](gradient, (*prefix, *tensor.shape))
        yield tensor, gradient


def _from_zero(kernel: Kernel) -> Kernel:
    """Returns a kernel that writes the zeros its results start from."""
    starts: list[Stmt] = []
    for buffer in kernel.outputs:
        axes = [IterVar("i", 0, extent) for extent in buffer.shape]
        zero = Store(buffer.name, tuple(axis.node for axis in axes), Const(0.0, buffer.dtype))
        starts += nest(axes, (zero,), None)
    return dataclasses.replace(kernel, body=(*starts, *kernel.body))


def _without_unused(kernel: Kernel, given: Sequence[Tensor]) -> tuple[Kernel, list[Tensor]]:
    """Returns a kernel without the parameters that it does not read.

    A linear operation needs no value of its inputs, so these may be placeholders of the author's.
    """
    read = {load.buffer for load in loads_in(kernel.body)}
    pairs = [
        (buffer, tensor)
        for buffer, tensor in zip(kernel.parameters, given, strict=True)
        if buffer.name in read or buffer.name in kernel.results
    ]
    parameters = tuple(buffer for buffer, _ in pairs)
    return dataclasses.replace(kernel, parameters=parameters), [tensor for _, tensor in pairs]


_variables: ContextVar[dict[str, list[Any]] | None] = ContextVar("variables", default=None)


def register_variables(name: str, input_var: Any, output_var: Any) -> None:
    """Keeps tensors under a name, for `get_variables`."""
    _variables.set({**(_variables.get() or {}), name: [output_var, input_var]})


def get_variables(name: str) -> list[Any]:
    """Returns the output and the inputs that were registered last under a name."""
    known = _variables.get() or {}
    if name not in known:
        raise build_error(
            "akg.get_variables",
            f"nothing is registered as {name!r}",
            f"Registered are {', '.join(known) or 'none'}.",
        )
    return known[name]
