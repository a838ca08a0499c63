"""Calls in programs that run on several devices.

XLA cannot look into a kernel, so in a program that it divides over devices by itself it would give
each of them the whole arrays: an all-gather that nobody asked for. An op with a rule
(``Custom(sharding=)``) is lowered to a call of `_TARGET` instead, which XLA asks back about when it
knows how the arrays are divided: it is replaced by the op's own call on a device's part, lowered
for the shapes of that part. So a kernel sees the shapes of the arrays that it gets, and anything
that the rule allows stays where it is. An op without rule has its inputs looked at in the same way,
so that it can be said that they are gathered.
"""

from __future__ import annotations

import dataclasses
import itertools
import threading
import warnings
import weakref
from collections.abc import Sequence
from typing import Any

import jax

from msops import _jax_seam as seam
from msops._calls.lowering import refuse_copies
from msops._calls.process_objects import Ids
from msops._face import context
from msops._jax_seam.division import Dimensions, Tiling
from msops._jax_seam.partitioning import Part, divided_call, register_partitioner
from msops._op.call import Call
from msops._op.protocols import BoundOp
from msops._op.request import Request
from msops._sharding.tiling import Gathered, find_gathered, plan
from msops.errors import (
    ArgumentValueError,
    BackendError,
    InferenceValueError,
    KernelError,
    explain,
)

_TARGET = "msops_divided"


@dataclasses.dataclass(frozen=True)
class DividedCall:
    """A call that XLA divides; equal ones are one in a program.

    Attributes:
      operator: the op.
      call: structure of the call; None of a call that only looks at how its inputs are divided.
      dimensions: of the call's arrays.
      platform: JAX's name of the devices' platform.
      wide: whether 64-bit types are enabled.
      devices: those of the program, by `_jax_seam.devices_of`.
      partitions: over how many of them XLA divides the call.
      site: file and line of the user's call.
      held: what programs on parts use, by `id`.
    """

    operator: BoundOp
    call: Call | None
    dimensions: Dimensions
    platform: str
    wide: bool
    devices: jax.sharding.Mesh | jax.sharding.AbstractMesh
    partitions: int
    site: tuple[str, int] | None = dataclasses.field(default=None, compare=False)
    held: dict[int, Any] = dataclasses.field(default_factory=dict, compare=False)

    def divide(self, found: Sequence[Tiling], inputs: int) -> Part:
        """Returns what XLA replaces the call by, given the tilings it found."""
        planned = plan(self.dimensions, found)
        copies = self.partitions // planned.parts
        if self.call is None:
            # Nothing stops a look; what it sees divided is what the op will gather.
            whole = dataclasses.replace(self.dimensions, outputs=())
            announce(self.operator, find_gathered(whole, found[:inputs]), self.site)
        else:
            announce(self.operator, find_gathered(self.dimensions, found), self.site)
        shapes = [
            tiling.part(self.dimensions.shape(names))
            for tiling, names in zip(planned.tilings[inputs:], self.dimensions.outputs, strict=True)
        ]

        def function(*arrays: Any) -> Sequence[Any]:
            if self.call is None:
                return arrays
            if self.operator.has_effect and copies > 1:
                raise refuse_copies(self.operator.who, copies)
            return self._run(self.call, arrays, shapes)

        return Part(planned, function, self.devices, self.platform, self.wide, self.hold)

    def hold(self, value: Any) -> None:
        """Keeps what a part uses: the same for each program that the call is compiled in."""
        self.held[id(value)] = value

    def _run(
        self, call: Call, arrays: Sequence[Any], shapes: Sequence[tuple[int, ...]]
    ) -> Sequence[Any]:
        """Calls the op on a device's part; `shapes` are the shapes of its outputs."""
        levels = len(call.mapped)
        mapped = zip(shapes[0], (has for _, has in call.mapped), strict=False)
        batch = shapes[0][levels : levels + len(call.batch)]
        part = dataclasses.replace(call, batch=batch, mapped=tuple(mapped))
        try:
            said = [struct.shape for struct in self.operator.outputs(part, arrays).structs]
            cause = None
        except ArgumentValueError as error:  # its rule again, which holds of the whole arrays
            said, cause = [], error
        if said != list(shapes):
            parts = _listed([array.shape for array in arrays])
            raise InferenceValueError(
                explain(
                    self.operator.who,
                    f"its rule {self.operator.definition.options.sharding} expected outputs of "
                    f"shape {_listed(shapes)} for parts of shape {parts} of the inputs; out_shape "
                    "says otherwise",
                    "Make out_shape a function of the inputs' shapes, or name alike only what may "
                    "be divided.",
                )
            ) from cause
        return self.operator.bind(part, arrays)


def _listed(shapes: Sequence[tuple[int, ...]]) -> str:
    return ", ".join(map(str, shapes))


_calls: Ids[DividedCall] = Ids()
_lock = threading.Lock()
_is_registered = False


def is_divisible(operator: BoundOp, request: Request, lowering: seam.Lowering) -> bool:
    """Returns whether a call of a program that XLA partitions is to be divided by the op's rule.

    Args:
      operator: the op.
      request: the call as the backend gets it.
      lowering: the equation.
    """
    definition = operator.definition
    return (
        definition.options.sharding is not None
        and definition.inference.has_outputs
        and not lowering.is_exported
        and definition.backend.division(definition.kernel, request) == "parts"
    )


def lower_in_parts(
    operator: BoundOp,
    call: Call,
    request: Request,
    lowering: seam.Lowering,
    operands: Sequence[Any],
) -> Sequence[Any]:
    """Lowers a call to one that XLA divides.

    Args:
      operator: the op.
      call: structure of the call.
      request: the call as the backend gets it, for one element of mapped axes.
      lowering: the equation.
      operands: the operands' values in the program.
    """
    backend, kernel = operator.definition.backend, operator.definition.kernel
    inputs = lowering.inputs
    results = operator.outputs(call, inputs).structs
    dimensions = operator.dimensions(call, inputs, results)
    assert dimensions is not None, "what has no rule is not divisible"
    divided = _divided_call(operator, call, dimensions, lowering)
    # What parts call is bound here, where all processes come: XLA asks for parts only those that do
    # not have the program on disk.
    whole = None if backend.compiles_per_shape else backend.call(kernel, request)
    if whole is None:
        text, held = next((text() for text in backend.stages(kernel, request).values()), ""), None
    else:
        bound = whole.bind(lowering, request.who)
        text, held = bound.identity, bound.keeps
    is_own = whole is None or held is not None
    key, divided = _identify(divided, request, text, once=is_own)
    if is_own:
        divided.hold(held)
        seam.hold_host_function(lowering, divided.divide)
    has_effect = request.options.stateful
    return divided_call(lowering, operands, _TARGET, key, dimensions, results, has_effect, divided)


def look_at_inputs(
    operator: BoundOp, request: Request, lowering: seam.Lowering, operands: Sequence[Any]
) -> Sequence[Any]:
    """Returns the operands; reports it where an op gets them whole and they were divided.

    Args:
      operator: the op.
      request: the call as the backend gets it.
      lowering: the equation.
      operands: the operands' values in the program.
    """
    definition = operator.definition
    if (
        context.implicit_gather() == "allow"
        or definition.backend.division(definition.kernel, request) == "operations"
    ):
        return operands
    if lowering.is_exported:
        problem = "what is exported for several devices will gather what is divided"
        announce(operator, [], seam.call_site(lowering), problem)
        return operands
    shapes = [struct.shape for struct in request.inputs]
    names = tuple(
        tuple(f"{index}_{axis}" for axis in range(len(shape))) for index, shape in enumerate(shapes)
    )
    if not any(names):
        return operands
    sizes = zip(itertools.chain(*names), itertools.chain(*shapes), strict=True)
    dimensions = Dimensions(names, names, tuple(sizes))
    key, look = _identify(_divided_call(operator, None, dimensions, lowering), request, "")
    return divided_call(lowering, operands, _TARGET, key, dimensions, request.inputs, False, look)


def _divided_call(
    operator: BoundOp, call: Call | None, dimensions: Dimensions, lowering: seam.Lowering
) -> DividedCall:
    _register()
    return DividedCall(
        operator,
        call,
        dimensions,
        lowering.platform,
        seam.x64_enabled(),
        seam.devices_of(lowering),
        seam.partition_count(lowering),
        seam.call_site(lowering),
    )


def _register() -> None:
    global _is_registered
    with _lock:
        if not _is_registered:
            register_partitioner(_TARGET, _divide)
            _is_registered = True


def _divide(key: str, found: Sequence[Tiling], inputs: int) -> Part:
    divided = _calls.get(key)
    if divided is None:
        raise KernelError(
            explain(
                key,
                "the program was lowered in another process, which knows how to divide this call",
                "Compile it where it was lowered, or export it (jax.export).",
            )
        )
    return divided.divide(found, inputs)


def _identify(
    divided: DividedCall, request: Request, kernel: str, once: bool = False
) -> tuple[str, DividedCall]:
    """Returns what a program names a call by, and the call of that name: `divided` or an equal one.

    The name has all that becomes part of the program, so that JAX's cache on disk keeps programs
    apart, and no more, so that the next process finds them. What a program has of this process
    alone no text has in full: such a call's name is never given to another, dead or not.

    Args:
      divided: the call.
      request: the call as the backend gets it.
      kernel: what runs, as text.
      once: whether that is of this process alone.
    """
    dimensions, call = divided.dimensions, divided.call
    contents = [
        *(divided.operator, divided.platform, divided.wide),
        *(
            dimensions.inputs,
            dimensions.outputs,
            dimensions.sizes,
            dimensions.summed and sorted(dimensions.summed),
        ),
        *(call and (call, call.tensors, call.batch, call.mapped), kernel),
        *(request.op_type, request.attributes, request.prim_attrs),
        *(request.options.reentrant, request.options.inplace, request.options.writable),
        # A program of the cache is not looked at again: what may gather in one that does not raise.
        context.implicit_gather(),
    ]
    return _calls.identify(divided.operator.definition.name, repr(contents), divided, once)


_announced: weakref.WeakSet[BoundOp] = weakref.WeakSet()


def announce(
    operator: BoundOp,
    gathered: Sequence[Gathered],
    site: tuple[str, int] | None,
    problem: str = "",
) -> None:
    """Reports inputs that are gathered, as ``set_context(implicit_gather=)`` says.

    Args:
      operator: the op.
      gathered: what is gathered.
      site: file and line of the user's call, for the warning.
      problem: what is wrong if it is not that something is gathered.

    Raises:
      BackendError: it says "raise".
    """
    policy = context.implicit_gather()
    if not (gathered or problem) or policy == "allow":
        return
    rule = operator.definition.options.sharding
    said = "it has no sharding rule" if rule is None else f"its rule is {rule}"
    message = explain(
        operator.who,
        problem or f"each device gets the whole of an input that is divided, as {said}",
        'Say what may be divided, Custom(..., sharding="i j -> i j") or batch_dims=1; or call it '
        "inside jax.shard_map; or accept it by msops.set_context(implicit_gather='allow').",
        list(map(str, gathered)),
    )
    if policy == "raise":
        raise BackendError(message)
    with _lock:  # XLA compiles in threads of its own
        is_known = operator in _announced
        _announced.add(operator)
    if is_known:
        return
    if site is None:
        warnings.warn(message, stacklevel=2)
    else:
        # XLA compiles long after the call, so the stack has no frame of the user's.
        warnings.warn_explicit(message, UserWarning, *site)
