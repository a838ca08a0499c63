"""tbe: kernels in the DSL of Ascend's Tensor Boost Engine, traced to JAX operations.

Corresponds to ``mindspore.ops.Custom(func_type="tbe")``, 2.0.0, which compiles them for an Ascend.
The entry function is run once per shapes, dtypes, formats and attributes; what it describes becomes
operations of XLA, on any device, with conversions to and from the formats of the op info's row.
"""

from __future__ import annotations

import dataclasses
import functools
import math
import types
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import jax
import jax.numpy as jnp

from msops._base.dtypes import as_dtype
from msops._op.arrays import require_numbers
from msops._op.backend import Backend, TracedBackend
from msops._op.definition import Renewable
from msops._op.identity import ByIdentity, ByValue, RunPerShape
from msops._op.request import Options, Request
from msops._op.traced import Function, Traced
from msops._op_info import OpInfo, Row, group_outputs, matching_rows
from msops._op_info import Port as OpInfoPort
from msops._primitive.batching import over_batch
from msops.errors import ArgumentTypeError

if TYPE_CHECKING:
    from msops._ascend.tbe.entry import EntryPort, Slot
    from msops._ascend.tbe.program import Program

_DEFAULT = ("", "DefaultFormat")


@dataclasses.dataclass(frozen=True)
class TbeKernel(Renewable):
    """An entry function, with the op info that its module holds for it.

    Attributes:
      function: the function.
      reg_info: op info, as `Custom` takes it, or None.
    """

    function: ByValue
    reg_info: Any = dataclasses.field(compare=False)

    def is_current(self) -> bool:
        """Returns whether its programs are those of an equal kernel made now."""
        return self.function.is_current()

    def read_again(self) -> TbeKernel:
        """Returns the kernel as it is if its function runs now."""
        return dataclasses.replace(self, function=self.function.read_again())


class TbeBackend(TracedBackend[TbeKernel, TbeKernel]):
    """Runs wherever XLA does; guarded by the "Ascend" rows everywhere."""

    func_type = "tbe"
    guard = "Ascend"
    imply_type = "TBE"
    requires_op_info = True
    compiles_per_shape = True

    def read(self, func: Any, options: Options, who: str) -> TbeKernel:
        """Accepts an entry function, or the file and the name of one."""
        # Here, as `import msops` loads neither TBE's modules nor TVM's.
        from msops._ascend.tbe.kernel_files import carried_op_info, load_kernel

        function = load_kernel(func, who) if isinstance(func, str) else func
        if not isinstance(function, types.FunctionType):
            raise ArgumentTypeError.explained(
                who,
                f"expected a function for func_type 'tbe'; got {type(func).__name__}",
                "Pass the entry function, or 'file.py:entry'.",
            )
        return TbeKernel(RunPerShape(function), carried_op_info(function))

    def trace(self, kernel: TbeKernel, request: Request) -> Traced:
        """Returns the kernel as JAX code."""
        return Traced(_function(kernel, request))

    def explain(self, kernel: TbeKernel, request: Request) -> str:
        """Returns the row that matched, and what the kernel described."""
        case = _case(kernel, request)
        formats = ", ".join(f"{port.name} {port.format or 'any'}" for port in case.ports)
        return "\n".join(
            [
                f"{request.who}: the kernel's description runs as operations of XLA.",
                f"Formats of the row that matched: {formats}.",
                _specialised(kernel, case).text,
            ]
        )

    def stages(self, kernel: TbeKernel, request: Request) -> Mapping[str, Callable[[], str]]:
        """Returns what the kernel described, as text."""
        return {"dsl": lambda: _specialised(kernel, _case(kernel, request)).text}


def make_backend(func_type: str) -> Backend[Any, Any]:
    """Returns the backend, for the table of func_types."""
    return TbeBackend()


@dataclasses.dataclass(frozen=True)
class TbeCase:
    """The arguments of one run of a kernel.

    Attributes:
      inputs: per input of the op info.
      outputs: per output.
      attributes: name and value of each; None for one that has no value.
      attributes_text: the same as text, which is compared: 0.0 == -0.0 in Python.
      who: the op, for messages.
    """

    inputs: tuple[Slot, ...]
    outputs: tuple[Slot, ...]
    attributes: tuple[tuple[str, Any], ...] = dataclasses.field(compare=False)
    attributes_text: str
    who: str = dataclasses.field(compare=False)

    @property
    def ports(self) -> tuple[EntryPort, ...]:
        """The inputs and outputs that are there."""
        return (*_flat(self.inputs), *_flat(self.outputs))


def _flat(slots: Sequence[Slot]) -> tuple[EntryPort, ...]:
    groups = (slot if isinstance(slot, tuple) else (slot,) for slot in slots)
    return tuple(port for group in groups for port in group if port is not None)


def _case(kernel: TbeKernel, request: Request) -> TbeCase:
    """Returns what a call asks a kernel to be run for."""
    (info,) = (info for info in request.infos if info.target == "Ascend")
    element = request.call.element
    inputs = _grouped(request.call.group(element(struct) for struct in request.inputs))
    structs = [element(struct) for struct in request.outputs.structs]
    row = _row(info, inputs, structs, request)
    outputs = group_outputs(info, structs, request.who)
    values = dict(request.attributes)
    attributes = tuple((one.name, values.get(one.name)) for one in info.attributes)
    return TbeCase(
        _slots(info.inputs, row.inputs, inputs, request.who),
        _slots(info.outputs, row.outputs, outputs, request.who),
        attributes,
        repr(attributes),
        request.who,
    )


def _grouped(values: Sequence[Any]) -> list[Any]:
    return [tuple(value) if isinstance(value, list) else value for value in values]


def _row(info: OpInfo, inputs: Sequence[Any], outputs: Sequence[Any], request: Request) -> Row:
    """Returns the row that a call takes: of those that match, one with the fewest conversions.

    So does MindSpore's selection where all data are in the default format.
    """
    given = [tuple(map(_dtype, x)) if isinstance(x, tuple) else _dtype(x) for x in inputs]
    rows = matching_rows(info, given, [_dtype(x) for x in outputs], request.who)
    return max(
        rows, key=lambda row: sum(layout in _DEFAULT for _, layout in (*row.inputs, *row.outputs))
    )


def _dtype(struct: Any) -> str:
    return as_dtype(struct.dtype).name


def _slots(
    ports: Sequence[OpInfoPort],
    pairs: Sequence[tuple[str, str]],
    values: Sequence[Any],
    who: str,
) -> tuple[Slot, ...]:
    """Returns what the kernel gets for each port; None where an optional one is absent."""
    ports = ports or [OpInfoPort(f"x{index}") for index in range(len(values))]
    pairs = pairs or [("", "")] * len(ports)
    slots: list[Slot] = []
    for index, (port, (_, layout)) in enumerate(zip(ports, pairs, strict=True)):
        value = values[index] if index < len(values) else None
        if isinstance(value, tuple):
            parts = [_port(port, layout, one, f"_{n}", who) for n, one in enumerate(value)]
            slots.append(tuple(parts))
        else:
            slots.append(None if value is None else _port(port, layout, value, "", who))
    return tuple(slots)


def _port(port: OpInfoPort, layout: str, struct: Any, suffix: str, who: str) -> EntryPort:
    from msops._ascend.tbe.entry import EntryPort
    from msops._ascend.tbe.formats import format_shape

    dtype, shape = _dtype(struct), tuple(struct.shape)
    require_numbers(
        shape,
        repr(port.name),
        who,
        "A kernel is run for the shapes of a call: export jax.vmap of the op, whose axis may be "
        "symbolic",
    )
    laid_out = format_shape(shape, layout, dtype)
    return EntryPort(port.name + suffix, port.kind, laid_out, dtype, layout, shape)


def _specialised(kernel: TbeKernel, case: TbeCase) -> Program:
    """Returns what the kernel described for a case."""
    return _own_program(ByIdentity(kernel), case)


@functools.lru_cache(maxsize=256)
def _own_program(kernel: ByIdentity[TbeKernel], case: TbeCase) -> Program:
    """Returns the program that a kernel keeps for a case, even if its globals change."""
    return _shared_program(kernel.value.read_again(), case)


@functools.lru_cache(maxsize=256)
def _shared_program(kernel: TbeKernel, case: TbeCase) -> Program:
    from msops._ascend.tbe.entry import run_entry

    function = kernel.function.function
    attributes = case.attributes
    return run_entry(function, case.inputs, case.outputs, attributes, case.who)


def _function(kernel: TbeKernel, request: Request) -> Function:
    """Returns a call as JAX code, over the axes that vmap added."""
    case = _case(kernel, request)
    program = _specialised(kernel, case)

    def one(*flat: Any) -> list[jax.Array]:
        arrays = [
            _enter(array, port, x)
            for array, port, x in zip(flat, _flat(case.inputs), program.inputs, strict=True)
        ]
        results = program(*arrays)
        return [
            _leave(result, port) for result, port in zip(results, _flat(case.outputs), strict=True)
        ]

    return over_batch(one, request.call.batch)


def _enter(array: Any, port: EntryPort, placeholder: Any) -> jax.Array:
    """Returns an input in the format, shape and dtype of its placeholder."""
    from msops._ascend.tbe.entry import holds
    from msops._ascend.tbe.formats import to_format

    shape = tuple(map(int, placeholder.shape))
    array = jnp.asarray(array)
    if holds(math.prod(shape), port) == "laid out":
        array = to_format(array, port.format)
    return array.reshape(shape).astype(placeholder.dtype)


def _leave(result: jax.Array, port: EntryPort) -> jax.Array:
    """Returns a result as the output that the op says it has."""
    from msops._ascend.tbe.casting import convert
    from msops._ascend.tbe.entry import holds
    from msops._ascend.tbe.formats import from_format

    result = convert(result, port.dtype)
    if holds(result.size, port) == "laid out":
        return from_format(result.reshape(port.shape), port.format, port.own_shape)
    return result.reshape(port.own_shape)
