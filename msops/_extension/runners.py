"""Runs of a `PyboostRunner`: at once on memory, or as a call in the program that is being traced.

In a program a runner is named by an id that is the same in every process that runs the same script:
hash of the module, name of the op, and how many of that name were traced before. The
object behind the id belongs to the traced program, and goes when that and what was compiled of it
are gone.
"""

from __future__ import annotations

import collections
import dataclasses
import functools
import itertools
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import jax
import jax.numpy as jnp
import numpy as np

from msops import _jax_seam as seam
from msops._base.dtypes import as_dtype
from msops._calls.handlers import native_module
from msops._calls.lowering import lower_call
from msops._calls.process_objects import refuse_export, require_everywhere
from msops._extension.calls import Module, current_frame
from msops._extension.handles import Handle, layout, type_id_of
from msops._op.process_call import Bound, ProcessCall
from msops.errors import ArgumentValueError, BackendError, GradientTypeError, KernelError

if TYPE_CHECKING:
    from msops._sharding.partitioning import Callee

_NO_OUTPUT = -1


@dataclasses.dataclass(frozen=True)
class TracedRunner:
    """A runner in a program.

    Attributes:
      id: how the program names it.
      op: the name the runner was given.
      module: whose it is.
      owner: keeps the C++ object.
    """

    id: str
    op: str
    module: Module
    owner: Any = dataclasses.field(compare=False, repr=False)

    def __repr__(self) -> str:
        return self.id


@dataclasses.dataclass(frozen=True)
class Signature:
    """The arrays of a run.

    Attributes:
      input_count: how many operands the kernel gets as inputs; the others are updated outputs.
      updates: for each operand the output that is its new value, or -1.
      outputs: shape and dtype name of each output.
    """

    input_count: int
    updates: tuple[int, ...]
    outputs: tuple[tuple[tuple[int, ...], str], ...]


def run(
    op: str,
    owner: Any,
    inputs: tuple[Handle, ...],
    outputs: tuple[Handle, ...],
    strided: tuple[bool, ...],
) -> None:
    """Serves ``PyboostRunner::Run``.

    Args:
      op: the name the runner was given.
      owner: the runner, owned by this object.
      inputs: what the kernel reads.
      outputs: what it writes; one that is an input too is updated.
      strided: for each input, whether the kernel wants its memory as it lies.

    Raises:
      KernelError: the kernel threw an exception.
    """
    module = current_frame().module
    handles = (*inputs, *outputs)
    on_device = module.backend == "GPU"
    if on_device or any(handle.is_traced or _is_divided(handle) for handle in handles):
        _run_in_program(op, module, owner, inputs, outputs)
    else:
        _run_now(op, owner, inputs, outputs, strided)


def _is_divided(handle: Handle) -> bool:
    """Returns whether its array lies on several devices: one program then runs on all of them."""
    content = handle.content
    return isinstance(content, seam.ARRAY_TYPE) and len(content.devices()) > 1


def _run_now(
    op: str,
    owner: Any,
    inputs: tuple[Handle, ...],
    outputs: tuple[Handle, ...],
    strided: tuple[bool, ...],
) -> None:
    """Launches the kernel on the memory of the arrays."""
    like = _placed_input(op, inputs)
    described, memory = [], []
    for handle, wants_strides in zip(inputs, strided, strict=True):
        if wants_strides and handle.strided is not None and handle not in outputs:
            described.append(layout(handle))
            memory.append(handle.strided)
            continue
        described.append((type_id_of(handle.dtype), handle.shape, None, 0))
        memory.append(handle.writable() if handle in outputs else handle.readable())
    for handle in outputs:
        described.append((type_id_of(handle.dtype), handle.shape, None, 0))
        memory.append(handle.overwrite() if handle.is_empty else handle.writable())
        handle.like = like
    addresses = [array.ctypes.data for array in memory]
    try:
        native_module().launch_runner(owner, described, len(inputs), addresses)
    except RuntimeError as error:
        raise KernelError.explained(
            f"Runner '{op}'", "its kernel failed", "See the kernel's source.", [str(error)]
        ) from error
    seam.check_special_values(memory[len(inputs) :], f"Runner '{op}'")


def _placed_input(op: str, inputs: tuple[Handle, ...]) -> Any:
    """Returns the input on whose device the outputs are to be, None if there is none.

    Raises:
      BackendError: an input is not in the memory of a CPU device.
    """
    found = None
    for handle in inputs:
        if not isinstance(handle.content, seam.ARRAY_TYPE):
            continue
        device: Any = next(iter(handle.content.devices()))
        if device.platform != "cpu":
            raise BackendError.explained(
                f"Runner '{op}'",
                f"an input is on {device}, and the kernel works on the memory of a CPU device",
                "Put the input on one: jax.device_put(x, jax.devices('cpu')[0]).",
            )
        if found is None or handle.content.committed:
            found = handle.content
    return found


_counts: dict[tuple[str, str], itertools.count[int]] = collections.defaultdict(itertools.count)


def _run_in_program(
    op: str, module: Module, owner: Any, inputs: tuple[Handle, ...], outputs: tuple[Handle, ...]
) -> None:
    """Binds the call, and gives the outputs the traced results."""
    if not outputs:
        raise ArgumentValueError.explained(
            f"Runner '{op}'",
            "it has no outputs, and so no effect in a program that is being traced",
            "List the tensors that the kernel writes to as outputs of Run, also those that "
            "are its inputs.",
        )
    runner = TracedRunner(
        f"{module.hash[:16]}/{op}/{next(_counts[module.hash, op])}", op, module, owner
    )
    native_module().register_runner(runner.id, owner)
    extra = [h for h in outputs if not h.is_empty and h not in inputs]
    operands = [*inputs, *extra]
    signature = Signature(
        len(inputs),
        tuple(outputs.index(h) if h in outputs else _NO_OUTPUT for h in operands),
        tuple((h.shape, as_dtype(h.dtype).name) for h in outputs),
    )
    arrays = [handle.array for handle in operands]
    # Here, as eager runs need none of it.
    from msops._sharding.explicit_mesh import call_with_whole_results

    bind = functools.partial(_primitive().bind, runner=runner, signature=signature)
    results = call_with_whole_results(_callee(runner), bind, len(outputs), arrays)
    for handle, result in zip(outputs, results, strict=True):
        handle.array = result


def _callee(runner: TracedRunner) -> Callee:
    from msops._sharding.partitioning import Callee

    return Callee(_who(runner), "a PyboostRunner has no sharding rule", "Call it", runner.module)


@functools.cache
def _primitive() -> Any:
    """Returns the primitive of all runs."""
    return seam.new_primitive(
        "extension_runner",
        abstract_eval=_abstract_eval,
        lower=_lower,
        batch=_batch,
        jvp=_jvp,
        transpose=_transpose,
        impl=_impl,
        runs_on_host=False,
        has_effect=False,
    )


def _structs(signature: Signature) -> list[jax.ShapeDtypeStruct]:
    return [jax.ShapeDtypeStruct(shape, as_dtype(name).dtype) for shape, name in signature.outputs]


def _abstract_eval(
    *avals: Any, runner: TracedRunner, signature: Signature
) -> tuple[list[Any], set[Any]]:
    who = f"Runner '{runner.op}'"
    return [seam.shaped_array(struct, avals, who) for struct in _structs(signature)], set()


def _impl(*arrays: Any, runner: TracedRunner, signature: Signature) -> Sequence[Any]:
    def bind(*flat: Any) -> Sequence[Any]:
        seam.refuse_special_values(_who(runner))
        results: Sequence[Any] = _primitive().bind(*flat, runner=runner, signature=signature)
        return results

    # Under jax.disable_jit the call would run as Python and bind the primitive again.
    with jax.disable_jit(False):
        results: Sequence[Any] = jax.jit(bind)(*arrays)
        return results


def _batch(
    args: Sequence[Any], dims: Sequence[Any], *, runner: TracedRunner, signature: Signature
) -> tuple[Sequence[Any], Sequence[int]]:
    """Runs the kernel once per element: its object knows the shapes it was traced with."""
    mapped = [
        None if dim is None else jnp.moveaxis(arg, dim, 0)
        for arg, dim in zip(args, dims, strict=True)
    ]

    def one(elements: Sequence[Any]) -> Sequence[Any]:
        flat = [arg if own is None else own for arg, own in zip(args, elements, strict=True)]
        return _primitive().bind(*flat, runner=runner, signature=signature)

    with seam.naming_special_values(_who(runner)):
        results = jax.lax.map(one, mapped)
    return results, [0] * len(results)


def _jvp(
    primals: Sequence[Any], tangents: Sequence[Any], *, runner: TracedRunner, signature: Signature
) -> tuple[Sequence[Any], Sequence[Any]]:
    if not all(map(seam.is_zero, tangents)):
        raise GradientTypeError.explained(
            _who(runner),
            "it is being differentiated, and a PyboostRunner has no gradient",
            _graph_remedy(runner.op)
            or "Call it in Forward of a mindspore::pynative::autograd::Function that has a "
            "Backward, and for second derivatives call that Function in Backward, too; or put "
            "jax.lax.stop_gradient around its inputs.",
        )
    results = _primitive().bind(*primals, runner=runner, signature=signature)
    return results, [seam.zero_tangent(jax.typeof(result)) for result in results]


def _graph_remedy(op: str) -> str:
    """Returns what to do about the gradient of a graph operator, "" for other runners."""
    if not op.startswith("Custom_"):
        return ""
    return (
        f'Register its bprop: @bprop_getters.register("{op}"), from '
        "msops.ops._grad_experimental.grad_base; or put jax.lax.stop_gradient around its inputs."
    )


def _transpose(
    args: Sequence[Any],
    linear: Sequence[int],
    cotangents: Sequence[Any],
    *,
    runner: TracedRunner,
    signature: Signature,
) -> Sequence[Any]:
    raise GradientTypeError.explained(
        _who(runner),
        "jax.linear_transpose is applied to it, and a PyboostRunner has no transpose",
        "Use jax.vjp, with a mindspore::pynative::autograd::Function that has a Backward; or "
        "give the transpose by jax.custom_derivatives.linear_call.",
    )


@dataclasses.dataclass(frozen=True)
class RunnerCall(ProcessCall):
    """One run in a program.

    Attributes:
      op: the name the runner was given.
      aliases: pairs of an operand and the output that is its new value.
      runner: the runner.
      signature: the arrays of the run.
      type_ids: MindSpore's TypeId numbers of operands and outputs.
    """

    target = "msops_runner"

    op: str
    aliases: tuple[tuple[int, int], ...]
    runner: TracedRunner
    signature: Signature
    type_ids: tuple[int, ...]

    def bind(self, lowering: seam.Lowering, who: str) -> Bound:
        """Checks that the program may refer to the runner, which had its id when it was traced."""
        refuse_export(lowering, "a PyboostRunner", who)
        require_everywhere(lowering, self.runner.id, "runners", who)
        attributes = {
            "runner": self.runner.id,
            "input_count": np.int64(self.signature.input_count),
            "updates": np.array(self.signature.updates, np.int64),
            "type_ids": np.array(self.type_ids, np.int64),
        }
        return Bound(attributes, self.runner.id, self.runner)


def _lower(
    lowering: seam.Lowering, *arguments: Any, runner: TracedRunner, signature: Signature
) -> Sequence[Any]:
    _check_platform(lowering.platform, runner)
    operands: Sequence[Any] = arguments
    if lowering.is_partitioned and not lowering.is_exported:
        from msops._sharding.partitioning import look_at_inputs

        operands = look_at_inputs(_callee(runner), runner.id, lowering, operands)
    updates = signature.updates
    written = sorted(set(updates) - {_NO_OUTPUT})
    arrays = (*lowering.inputs, *lowering.outputs)
    call = RunnerCall(
        op=runner.op,
        aliases=tuple((updates.index(output), output) for output in written),
        runner=runner,
        signature=signature,
        type_ids=tuple(type_id_of(array.dtype) for array in arrays),
    )
    return lower_call(call, False, _who(runner), lowering, operands)


def _who(runner: TracedRunner) -> str:
    return f"Runner '{runner.op}' of extension module '{runner.module.name}'"


def _check_platform(platform: str, runner: TracedRunner) -> None:
    backend = runner.module.backend
    if (platform == "cpu") == (backend != "GPU"):
        return
    where = "CPU" if platform == "cpu" else platform
    raise BackendError.explained(
        _who(runner),
        f"it was built for backend {backend!r}, and the program is lowered for {where}",
        "Build the module for the platform with CustomOpBuilder(backend=...), or put the "
        "arrays on a device of the other: jax.device_put(x, jax.devices('cpu')[0]).",
    )
