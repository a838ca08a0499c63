"""The protocol of entry functions: what a kernel is called with, and what it must leave behind.

``entry(input, ..., output, ..., attribute, ..., kernel_name=name)``: a tensor is a dict, a dynamic
input a list of dicts, an optional input that is absent None. The kernel returns nothing; it ends by
``build``, whose tensor list names all inputs in the order of the op info and then all results.

Source: MindSpore 2.0.0, ``tbe_compiler/tbe_adapter.py`` and ``tbe_helper.py``.
"""

from __future__ import annotations

import dataclasses
import inspect
import math
import re
import types
from collections.abc import Callable, Sequence
from typing import Any

from msops._ascend.tbe.kernel_files import as_kernel
from msops._ascend.tbe.program import Program
from msops._ascend.tbe.session import Session, running
from msops._base.kernel_errors import describe_exception
from msops._loops.frontends.tvm.tensor import PlaceholderOp, Tensor
from msops.errors import BuildError, MsopsError


@dataclasses.dataclass(frozen=True)
class EntryPort:
    """One input or output of a call, as the kernel receives it.

    Attributes:
      name: its name in the op info.
      kind: "required", "dynamic" or "optional".
      shape: its shape in its format.
      dtype: its dtype.
      format: its format.
      own_shape: the shape it has for the caller.
    """

    name: str
    kind: str
    shape: tuple[int, ...]
    dtype: str
    format: str
    own_shape: tuple[int, ...]

    def described(self) -> dict[str, Any]:
        """Returns the dict that the kernel gets."""
        shape = list(self.shape) or [1]
        return {
            "shape": shape,
            "ori_shape": list(self.own_shape) or [1],
            "format": _named_format(self.format, len(self.shape)),
            "ori_format": "NCDHW" if len(self.own_shape) == 5 else "NCHW",
            "sub_format": 0,
            # Ascend keeps a bool in a byte.
            "dtype": "int8" if self.dtype == "bool" else self.dtype,
            "addr_type": 0,
            "valid_shape": [],
            "slice_offset": [],
            "L1_workspace_size": -1,
            "L1_fusion_type": -1,
            "L1_addr_offset": 0,
            "L1_addr_flag": -1,
            "split_index": 0,
            "range": [[extent, extent] for extent in shape],
            "name": self.name,
            "param_type": self.kind,
        }


Slot = EntryPort | tuple[EntryPort, ...] | None
"""One argument: a tensor, a list of tensors, or none."""


def _named_format(format: str, rank: int) -> str:
    """Returns the format as kernels know it; what has none counts as NCHW."""
    # MindSpore 2.0.0 writes "ND" unless a tensor has four dimensions; its kernels that compare the
    # format (BatchNormFold2 for gamma, (C,)) are written for "NCHW", as earlier versions wrote.
    if format in ("", "DefaultFormat"):
        return "NCHW" if rank <= 4 else "ND"
    return format


def run_entry(
    function: Callable[..., Any],
    inputs: Sequence[Slot],
    outputs: Sequence[Slot],
    attributes: Sequence[tuple[str, Any]],
    who: str,
) -> Program:
    """Runs a kernel function and returns what it described.

    Args:
      function: the entry function.
      inputs: one per input of the op info.
      outputs: one per output of the op info.
      attributes: name and value of each; None for one that has no value.
      who: how messages name the op.

    Raises:
      BuildError: the function fails, builds nothing, or builds something else than the op is.
    """
    assert isinstance(function, types.FunctionType)
    tensors = [_described(slot) for slot in (*inputs, *outputs)]
    args, kwargs = _arguments(function, tensors, attributes, who)
    with running(function.__name__, who) as session:
        try:
            as_kernel(function)(*args, **kwargs)
        except MsopsError:
            raise
        except (Exception, SystemExit) as error:
            raise BuildError.explained(
                who,
                f"its kernel raised {describe_exception(error)}",
                "The kernel refuses these shapes, dtypes, formats or attributes, or is wrong.",
                _places(error),
            ) from error
    return _program(function.__name__, session, _flat(inputs), _flat(outputs), who)


def _described(slot: Slot) -> Any:
    if isinstance(slot, tuple):
        return [port.described() for port in slot]
    return None if slot is None else slot.described()


def _flat(slots: Sequence[Slot]) -> list[EntryPort]:
    groups = (slot if isinstance(slot, tuple) else (slot,) for slot in slots)
    return [port for group in groups for port in group if port is not None]


def _arguments(
    function: types.FunctionType,
    tensors: list[Any],
    attributes: Sequence[tuple[str, Any]],
    who: str,
) -> tuple[list[Any], dict[str, Any]]:
    kernel_name = re.sub(r"\W", "_", function.__name__)
    signature = inspect.signature(function)
    args = [*tensors, *_values(attributes, signature, len(tensors), who)]
    has_name = "kernel_name" in signature.parameters or any(
        p.kind is p.VAR_KEYWORD for p in signature.parameters.values()
    )
    kwargs = {"kernel_name": kernel_name} if has_name else {}
    args = args if has_name else [*args, kernel_name]
    try:
        signature.bind(*args, **kwargs)
    except TypeError as error:
        raise BuildError.explained(
            who,
            f"its kernel {function.__name__}{signature} cannot take what the op info lists "
            f"({error})",
            "An entry function has one parameter per input, then one per output, then one per "
            "attribute, then kernel_name.",
        ) from None
    return args, kwargs


def _values(
    attributes: Sequence[tuple[str, Any]], signature: inspect.Signature, skipped: int, who: str
) -> list[Any]:
    """Returns the values of attributes: the kernel's own default for one without, before others."""
    last = max((i for i, (_, value) in enumerate(attributes, 1) if value is not None), default=0)
    parameters = list(signature.parameters.values())[skipped:]
    values = []
    for position, (name, value) in enumerate(attributes[:last]):
        default = (
            parameters[position].default if position < len(parameters) else inspect.Parameter.empty
        )
        if value is None and default is inspect.Parameter.empty:
            raise BuildError.explained(
                who,
                f"attribute {name!r} has no value, and its kernel no default for it",
                "Pass it to the call, or give it a default with .attr(..., default_value=...).",
            )
        values.append(default if value is None else _listed(value))
    return values


def _listed(value: Any) -> Any:
    return [_listed(item) for item in value] if isinstance(value, tuple) else value


def _places(error: BaseException) -> list[str]:
    """Returns where in the author's code an error was raised."""
    trace = error.__traceback__
    frames = []
    while trace is not None:
        code = trace.tb_frame.f_code
        if not trace.tb_frame.f_globals.get("__name__", "").startswith("msops."):
            frames.append(f"{code.co_filename}:{trace.tb_lineno} in {code.co_name}")
        trace = trace.tb_next
    return frames[-1:]


def _program(
    name: str, session: Session, inputs: Sequence[EntryPort], outputs: Sequence[EntryPort], who: str
) -> Program:
    """Returns what the kernel built, checked against the op."""
    if len(session.built) != 1:
        raise BuildError.explained(
            who,
            f"expected its kernel to call build once; it did so {len(session.built)} times",
            "End it by te.lang.cce.cce_build_code(sch, config) or tbe.dsl.build(sch, config).",
        )
    (tensors,) = session.built
    if len(tensors) != len(inputs) + len(outputs):
        raise BuildError.explained(
            who,
            f"expected a tensor_list of {len(inputs)} input(s) and {len(outputs)} result(s); "
            f"its kernel gave {len(tensors)} tensors",
            "List the placeholders of all inputs in the order of the op info, then the "
            "results in the order of the outputs.",
        )
    placed = [_placed(x, p, who) for x, p in zip(tensors, inputs, strict=False)]
    results = [
        _checked_result(x, port, session, who)
        for x, port in zip(tensors[len(inputs) :], outputs, strict=True)
    ]
    program = Program(name, tuple(placed), tuple(results), who)
    program.operations  # noqa: B018 - raises here, while the message can name the location
    return program


def _placed(x: Tensor, port: EntryPort, who: str) -> Tensor:
    """Returns the placeholder of an input, which must hold that input's elements."""
    wanted = "int8" if port.dtype == "bool" else port.dtype
    if not isinstance(x.op, PlaceholderOp):
        raise _disagrees(who, port, "a placeholder for it in tensor_list", f"{x.op.name}(...)")
    if x.dtype != wanted and not (port.dtype == "bool" and x.dtype == "bool"):
        raise _disagrees(who, port, f"a placeholder of {wanted}", x.dtype)
    _check_size(x, port, who)
    return x


def _checked_result(x: Tensor, port: EntryPort, session: Session, who: str) -> Tensor:
    """Returns a result, which must be one that becomes the output."""
    if not _converts(x.dtype, port.dtype, session.first_dtype):
        raise _disagrees(who, port, f"a result of {port.dtype}", x.dtype)
    _check_size(x, port, who)
    return x


_FLOATS = ("float16", "float32", "bfloat16")
_BYTES = ("int8", "uint8", "bool")


def _converts(have: str, wanted: str, first: str | None) -> bool:
    """Returns whether TBE makes a result of one dtype an output of another.

    It does so among floats, from the int32 of `floor` and its like to floats, between bools and
    bytes, and from what it cast by itself back to the dtype of the kernel's first operand.
    """
    return (
        have == wanted
        or (wanted in _FLOATS and have in (*_FLOATS, "int32"))
        or (wanted == "bool" and have in _BYTES)
        or (have == "bool" and wanted in _BYTES)
        or (wanted == first and have in ("float16", "float32") and wanted in (*_BYTES, "int32"))
    )


def holds(count: int, port: EntryPort) -> str | None:
    """Returns what a tensor of so many elements is: the port "laid out", "as it is", or None."""
    if count == math.prod(port.shape):
        return "laid out"
    # On Ascend a tensor of one dimension stands in order at the start of its blocks.
    if len(port.own_shape) <= 1 and count == math.prod(port.own_shape):
        return "as it is"
    return None


def _check_size(x: Tensor, port: EntryPort, who: str) -> None:
    if holds(math.prod(map(int, x.shape)), port) is None:
        shape = f"{list(port.shape)}" + (
            f" in {port.format}" if port.shape != port.own_shape else ""
        )
        raise _disagrees(
            who,
            port,
            f"a tensor of {math.prod(port.shape)} elements, {shape}",
            f"{list(map(int, x.shape))}",
        )


def _disagrees(who: str, port: EntryPort, expected: str, got: str) -> BuildError:
    return BuildError.explained(
        who,
        f"expected for {port.name!r} {expected}; its kernel has {got}",
        "Make placeholders from the shapes and dtypes the kernel is given; order tensor_list "
        "as the op info does; correct out_shape and out_dtype.",
    )
