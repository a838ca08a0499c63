"""Calls in programs that run on several devices.

XLA cannot look into a kernel, so in a program that it divides over devices by itself it would give
each of them the whole arrays: an all-gather that nobody asked for. An op with a rule
(``Custom(sharding=)``) is lowered to a call of `_TARGET` instead, which XLA asks back about when it
knows how the arrays are divided: it is replaced by the op's own call on a device's part, lowered
for the shapes of that part. So a kernel is told the arrays that it gets, and anything that the rule
allows stays where it is. An op without rule has its inputs looked at in the same way, so that it
can be said that they are gathered.
"""

from __future__ import annotations

import dataclasses
import hashlib
import itertools
import threading
import warnings
import weakref
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import jax

from msops import _context
from msops import _jax_seam as seam
from msops._backend import Request
from msops._call import Call
from msops._sharding_rule import Dimensions, Gathered
from msops._tiling import Part, Tiling, find_gathered, plan
from msops.errors import (
    ArgumentValueError,
    BackendError,
    InferenceValueError,
    KernelError,
    explain,
)

if TYPE_CHECKING:
    from msops._toolchain import Library

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
      held: what programs on parts use.
    """

    operator: Any
    call: Call | None
    dimensions: Dimensions
    platform: str
    wide: bool
    devices: Any
    held: list[Any] = dataclasses.field(default_factory=list, compare=False)

    def divide(self, found: Sequence[Tiling], inputs: int) -> Part:
        """Returns what XLA replaces the call by, given the tilings it found."""
        planned = plan(self.dimensions, found)
        if self.call is None:
            # Nothing stops a look; what it sees divided is what the op will gather.
            gathered = find_gathered(dataclasses.replace(self.dimensions, outputs=()), found)
        else:
            gathered = find_gathered(self.dimensions, found)
        announce(self.operator, gathered)
        shapes = [
            tiling.part(self.dimensions.shape(names))
            for tiling, names in zip(planned.tilings[inputs:], self.dimensions.outputs, strict=True)
        ]

        def function(*arrays: Any) -> Sequence[Any]:
            return arrays if self.call is None else self._run(self.call, arrays, shapes)

        return Part(planned, function, self.devices, self.platform, self.wide, self.held.append)

    def _run(self, call: Call, arrays: Sequence[Any], shapes: Sequence[tuple[int, ...]]) -> Any:
        """Calls the op on a device's part; `shapes` are the shapes of its outputs."""
        levels = len(call.mapped)
        mapped = zip(shapes[0], (has for _, has in call.mapped), strict=False)
        batch = shapes[0][levels : levels + len(call.batch)]
        part = dataclasses.replace(call, batch=batch, mapped=tuple(mapped))
        try:
            said = [struct.shape for struct in self.operator.outputs(part, arrays).structs]
        except ArgumentValueError:  # its rule again, which holds of the whole arrays
            said = []
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
            )
        return self.operator.bind(part, arrays)


def _listed(shapes: Sequence[tuple[int, ...]]) -> str:
    return ", ".join(map(str, shapes))


_calls: weakref.WeakValueDictionary[str, DividedCall] = weakref.WeakValueDictionary()
_lock = threading.Lock()
_is_registered = False


def is_divisible(operator: Any, request: Request, ctx: Any) -> bool:
    """Tells whether a call of a program that XLA partitions is to be divided by the op's rule.

    Args:
      operator: the op.
      request: the call as the backend gets it.
      ctx: JAX's lowering context.
    """
    definition = operator.definition
    return (
        definition.options.sharding is not None
        and not seam.is_exported(ctx)
        and definition.backend.division(definition.kernel, request) == "parts"
    )


def lower_in_parts(
    operator: Any, call: Call, request: Request, ctx: Any, operands: Sequence[Any]
) -> Sequence[Any]:
    """Lowers a call to one that XLA divides.

    Args:
      operator: the op.
      call: structure of the call.
      request: the call as the backend gets it, for one element of mapped axes.
      ctx: JAX's lowering context.
      operands: the operands' values in the program.
    """
    backend, kernel = operator.definition.backend, operator.definition.kernel
    library = backend.library(kernel, request)
    results = operator.outputs(call, ctx.avals_in).structs
    dimensions = operator.dimensions(call, ctx.avals_in, results)
    return _lower(operator, call, dimensions, library, results, request, ctx, operands)


def look_at_inputs(
    operator: Any, request: Request, ctx: Any, operands: Sequence[Any]
) -> Sequence[Any]:
    """Returns the operands; of an op that XLA gives them whole, it is told if they were divided.

    Args:
      operator: the op.
      request: the call as the backend gets it.
      ctx: JAX's lowering context.
      operands: the operands' values in the program.
    """
    definition = operator.definition
    if (
        _context.implicit_gather() == "allow"
        or definition.backend.division(definition.kernel, request) == "operations"
    ):
        return operands
    if seam.is_exported(ctx):
        announce(operator, [], "what is exported for several devices will gather what is divided")
        return operands
    shapes = [struct.shape for struct in request.inputs]
    names = tuple(
        tuple(f"{index}_{axis}" for axis in range(len(shape))) for index, shape in enumerate(shapes)
    )
    if not any(names):
        return operands
    sizes = zip(itertools.chain(*names), itertools.chain(*shapes), strict=True)
    dimensions = Dimensions(names, names, tuple(sizes))
    return _lower(operator, None, dimensions, None, request.inputs, request, ctx, operands)


def _lower(
    operator: Any,
    call: Call | None,
    dimensions: Dimensions,
    library: Library | None,
    results: Sequence[jax.ShapeDtypeStruct],
    request: Request,
    ctx: Any,
    operands: Sequence[Any],
) -> Sequence[Any]:
    wide, devices = seam.x64_enabled(), seam.devices_of(ctx)
    divided = DividedCall(operator, call, dimensions, request.platform, wide, devices)
    key, divided = _name(divided, request, library)
    if call is not None and library is None:
        # Its parts use what only this process has.
        seam.hold_host_function(ctx, divided.divide)
    _register()
    has_effect = call is not None and request.options.stateful
    return seam.divided_call(ctx, operands, _TARGET, key, dimensions, results, has_effect, divided)


def _register() -> None:
    global _is_registered
    with _lock:
        if not _is_registered:
            seam.register_partitioner(_TARGET, _divide)
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


def _name(
    divided: DividedCall, request: Request, library: Library | None
) -> tuple[str, DividedCall]:
    """Returns what a program names a call by, and the call of that name: `divided` or an equal one.

    The name has all that becomes part of the program, so that JAX's cache on disk tells programs
    apart, and no more, so that the next process finds them.
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
        *(call and (call, call.tensors, call.batch, call.mapped), library and library.hash),
        *(request.op_type, request.attributes, request.prim_attrs),
        *(request.options.reentrant, request.options.inplace),
    ]
    text = repr(contents)
    digest = hashlib.sha256(text.encode()).hexdigest()[:16]
    with _lock:
        for number in itertools.count():
            key = f"{divided.operator.definition.name}-{digest}-{number}"
            known = _calls.setdefault(key, divided)
            if known == divided:
                return key, known
    raise AssertionError


_announced: weakref.WeakSet[Any] = weakref.WeakSet()


def announce(operator: Any, gathered: Sequence[Gathered], problem: str = "") -> None:
    """Tells of inputs that are gathered, as ``set_context(implicit_gather=)`` says.

    Raises:
      BackendError: it says "raise".
    """
    policy = _context.implicit_gather()
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
    if operator not in _announced:
        _announced.add(operator)
        warnings.warn(message, stacklevel=2)  # XLA compiles in threads of its own
