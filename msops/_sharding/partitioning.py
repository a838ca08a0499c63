"""Calls in programs that run on several devices.

XLA cannot look into a kernel, so in a program that it divides over devices by itself it would give
each of them the whole arrays: an all-gather that nobody asked for. An op with a rule
(``Custom(sharding=)``) is lowered to a call of `_TARGET` instead, which XLA asks back about when it
knows how the arrays are divided: it is replaced by the op's own call on a device's part, lowered
for the shapes of that part. So a kernel sees the shapes of the arrays that it gets, and anything
that the rule allows stays where it is. The inputs of what has no rule are looked at in the same
way, to report that they are gathered.
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
from msops.errors import ArgumentValueError, BackendError, InferenceValueError, KernelError, explain

_TARGET = "msops_divided"


@dataclasses.dataclass(frozen=True)
class Callee:
    """An op or runner that gets whole arrays, for the report of the arrays that are gathered.

    Attributes:
      who: the op or runner.
      reason: why it gets whole arrays, to end a sentence.
      remedy: what the caller may write instead, to begin one.
      owner: it is reported once while this lives.
    """

    who: str
    reason: str
    remedy: str
    owner: object = dataclasses.field(repr=False)

    @staticmethod
    def of(operator: BoundOp) -> Callee:
        """Returns what reports say of an op."""
        rule = operator.definition.options.sharding
        return Callee(
            operator.who,
            "it has no sharding rule" if rule is None else f"its rule is {rule}",
            'Say what may be divided, sharding="i j -> i j" or batch_dims=1; or call it',
            operator,
        )


@dataclasses.dataclass(frozen=True)
class Look:
    """A call that returns its arrays, and sees how XLA has divided them; equal ones are one.

    Attributes:
      callee: what gets the arrays next, whole.
      dimensions: of the arrays; outputs are as inputs.
      platform: JAX's name of the devices' platform.
      wide: whether 64-bit types are enabled.
      devices: those of the program, by `_jax_seam.devices_of`.
      site: file and line of the user's call.
    """

    callee: Callee
    dimensions: Dimensions
    platform: str
    wide: bool
    devices: jax.sharding.Mesh | jax.sharding.AbstractMesh
    site: tuple[str, int] | None = dataclasses.field(default=None, compare=False)

    def divide(self, found: Sequence[Tiling], inputs: int) -> Part:
        """Reports what the callee will gather, given the tilings XLA found."""
        # Nothing stops a look; what it sees divided is what the callee will gather.
        whole = dataclasses.replace(self.dimensions, outputs=())
        announce(self.callee, find_gathered(whole, found[:inputs]), self.site)
        planned = plan(self.dimensions, found)
        return Part(planned, _unchanged, self.devices, self.platform, self.wide, _hold_nothing)


def _unchanged(*arrays: Any) -> Sequence[Any]:
    return arrays


def _hold_nothing(value: Any) -> None:
    """A look calls nothing of this process."""


@dataclasses.dataclass(frozen=True)
class DividedCall:
    """A call that XLA divides; equal ones are one in a program.

    Attributes:
      operator: the op.
      call: structure of the call.
      dimensions: of the call's arrays.
      platform: JAX's name of the devices' platform.
      wide: whether 64-bit types are enabled.
      devices: those of the program, by `_jax_seam.devices_of`.
      partitions: over how many of them XLA divides the call.
      site: file and line of the user's call.
      held: what programs on parts use, by `id`.
    """

    operator: BoundOp
    call: Call
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
        announce(Callee.of(self.operator), find_gathered(self.dimensions, found), self.site)
        shapes = [
            tiling.part(self.dimensions.shape(names))
            for tiling, names in zip(planned.tilings[inputs:], self.dimensions.outputs, strict=True)
        ]

        def function(*arrays: Any) -> Sequence[Any]:
            if self.operator.has_effect and copies > 1:
                raise refuse_copies(self.operator.who, copies)
            return self._run(arrays, shapes)

        return Part(planned, function, self.devices, self.platform, self.wide, self.hold)

    def hold(self, value: Any) -> None:
        """Keeps what a part uses: the same for each program that the call is compiled in."""
        self.held[id(value)] = value

    def _run(self, arrays: Sequence[Any], shapes: Sequence[tuple[int, ...]]) -> Sequence[Any]:
        """Calls the op on a device's part; `shapes` are the shapes of its outputs."""
        call = self.call
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
            raise InferenceValueError.explained(
                self.operator.who,
                f"its rule {self.operator.definition.options.sharding} expected outputs of "
                f"shape {_listed(shapes)} for parts of shape {parts} of the inputs; out_shape "
                "says otherwise",
                "Make out_shape a function of the inputs' shapes, or name alike only what may "
                "be divided.",
            ) from cause
        return self.operator.bind(part, arrays)


def _listed(shapes: Sequence[tuple[int, ...]]) -> str:
    return ", ".join(map(str, shapes))


_calls: Ids[DividedCall] = Ids()
_looks: Ids[Look] = Ids()
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
    has_effect = bool(request.options.stateful)
    return divided_call(lowering, operands, _TARGET, key, dimensions, results, has_effect, divided)


def gets_whole_arrays(operator: BoundOp, request: Request) -> bool:
    """Returns whether each device of a program runs the op on all of its inputs."""
    definition = operator.definition
    return definition.backend.division(definition.kernel, request) != "operations"


def look_at_inputs(
    callee: Callee, text: str, lowering: seam.Lowering, operands: Sequence[Any]
) -> Sequence[Any]:
    """Returns the operands; reports it if the callee gets them whole and they were divided.

    Args:
      callee: what gets the operands.
      text: names the callee in a program: equal ones have equal texts in every process.
      lowering: the equation.
      operands: the operands' values in the program.
    """
    if context.implicit_gather() == "allow":
        return operands
    if lowering.is_exported:
        problem = "what is exported for several devices will gather what is divided"
        announce(callee, [], seam.call_site(lowering), problem)
        return operands
    inputs = [jax.ShapeDtypeStruct(aval.shape, aval.dtype) for aval in lowering.inputs]
    names = tuple(
        tuple(f"{index}_{axis}" for axis in range(len(struct.shape)))
        for index, struct in enumerate(inputs)
    )
    if not any(names):
        return operands
    sizes = itertools.chain(*(struct.shape for struct in inputs))
    dimensions = Dimensions(names, names, tuple(zip(itertools.chain(*names), sizes, strict=True)))
    _register()
    look = Look(
        callee,
        dimensions,
        lowering.platform,
        seam.x64_enabled(),
        seam.devices_of(lowering),
        seam.call_site(lowering),
    )
    # A program of the cache is not looked at again: what may gather in one that does not raise.
    contents = (text, dimensions.sizes, look.platform, look.wide, context.implicit_gather())
    key, known = _looks.identify(callee.who, repr(contents), look)
    return divided_call(lowering, operands, _TARGET, key, dimensions, inputs, False, known)


def _divided_call(
    operator: BoundOp, call: Call, dimensions: Dimensions, lowering: seam.Lowering
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
    divided = _calls.get(key) or _looks.get(key)
    if divided is None:
        raise KernelError.explained(
            key,
            "the program was lowered in another process, which knows how to divide this call",
            "Compile it where it was lowered, or export it (jax.export).",
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
        *(call, call.tensors, call.batch, call.mapped, kernel),
        *(request.op_type, request.attributes, request.prim_attrs),
        *(request.options.reentrant, request.options.inplace, request.options.writable),
        # A program of the cache is not looked at again: what may gather in one that does not raise.
        context.implicit_gather(),
    ]
    return _calls.identify(divided.operator.definition.name, repr(contents), divided, once)


_announced: weakref.WeakKeyDictionary[Any, set[str]] = weakref.WeakKeyDictionary()


def announce(
    callee: Callee,
    gathered: Sequence[Gathered],
    site: tuple[str, int] | None,
    problem: str = "",
) -> None:
    """Reports inputs that are gathered, as ``set_context(implicit_gather=)`` says.

    Args:
      callee: what gets them.
      gathered: what is gathered.
      site: file and line of the user's call, for the warning.
      problem: what is wrong if it is not that something is gathered.

    Raises:
      BackendError: it says "raise".
    """
    policy = context.implicit_gather()
    if not (gathered or problem) or policy == "allow":
        return
    message = explain(
        callee.who,
        problem or f"each device gets the whole of an input that is divided, as {callee.reason}",
        f"{callee.remedy} inside jax.shard_map; or accept it by "
        "msops.set_context(implicit_gather='allow').",
        list(map(str, gathered)),
    )
    if policy == "raise":
        raise BackendError(message)
    with _lock:  # XLA compiles in threads of its own
        known = _announced.setdefault(callee.owner, set())
        if callee.who in known:
            return
        known.add(callee.who)
    if site is None:
        warnings.warn(message, stacklevel=2)
    else:
        # XLA compiles long after the call, so the stack has no frame of the user's.
        warnings.warn_explicit(message, UserWarning, *site)
