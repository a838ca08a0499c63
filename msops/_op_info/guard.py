"""The dtype guard: finds the row of an op info that a call matches."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import chain
from typing import TypeVar

from msops._op_info.data_type import constant_name
from msops._op_info.model import DEFAULT_FORMAT, OpInfo, Port, Row
from msops.errors import OpInfoTypeError, OpInfoValueError, explain

# What one port is given: the dtype name of a tensor, or those of a list of tensors.
Given = str | tuple[str, ...]
_Pair = tuple[str, str]
T = TypeVar("T")


def match(info: OpInfo, inputs: Sequence[Given], outputs: Sequence[str], who: str) -> Row:
    """Returns the first row of `info` that a call's inputs and outputs match.

    An empty dtype or format in a row matches any. Every tensor has DefaultFormat; a row for Ascend
    matches whatever its formats, as they are layouts that the conversion of a kernel takes care of.

    Args:
      info: the op info for the target that guards the call.
      inputs: dtype names such as ``"float32"``, one per input; a tuple of them for a list of
        tensors.
      outputs: dtype names, one per output; those of a dynamic output stand side by side.
      who: the op, for messages, e.g. ``"Custom 'add'"``.

    Returns:
      The row; without rows in `info`, the row that the call itself is.

    Raises:
      OpInfoValueError: the number of inputs or outputs is not that of `info`.
      OpInfoTypeError: a list stands where `info` has one tensor, or no row matches.
    """
    return matching_rows(info, inputs, outputs, who)[0]


def matching_rows(
    info: OpInfo, inputs: Sequence[Given], outputs: Sequence[str], who: str
) -> tuple[Row, ...]:
    """Returns all rows that match, one at least; arguments and errors as those of `match`."""
    who = f"{who} on {info.target}"
    _check_inputs(info, inputs, who)
    grouped = group_outputs(info, outputs, who)
    if not info.rows:
        return (Row(_own_pairs(inputs), _own_pairs(grouped)),)
    formats = _formats_of(info)
    found = tuple(row for row in info.rows if _matches(info, row, inputs, grouped, formats))
    if not found:
        raise OpInfoTypeError(_no_row(info, inputs, grouped, who))
    return found


def _check_inputs(info: OpInfo, inputs: Sequence[Given], who: str) -> None:
    """Checks number and kind of the inputs, unless the info leaves them undetermined."""
    if not info.inputs:
        return
    least = _without_optional_tail(info.inputs)
    if not least <= len(inputs) <= len(info.inputs):
        raise OpInfoValueError(_wrong_count("input", info.inputs, least, len(inputs), who))
    for port, given in zip(info.inputs, inputs, strict=False):
        if not isinstance(given, str) and port.kind != "dynamic":
            raise OpInfoTypeError.explained(
                who,
                f"expected input {port.name!r} to be one tensor; "
                f"got a list of {len(given)} of them",
                "Pass one tensor, or register the input with param_type 'dynamic'.",
            )


def group_outputs(info: OpInfo, outputs: Sequence[T], who: str) -> tuple[T | tuple[T, ...], ...]:
    """Returns one value per output with those of the dynamic port, if there is one, in a tuple.

    Raises:
      OpInfoValueError: the number of outputs is not that of `info`.
    """
    if not info.outputs and not info.inputs:
        return tuple(outputs)
    kinds = [port.kind for port in info.outputs]
    if "dynamic" in kinds:
        start = kinds.index("dynamic")
        length = len(outputs) - (len(kinds) - 1)
        if length >= 0:
            stop = start + length
            return (*outputs[:start], tuple(outputs[start:stop]), *outputs[stop:])
    least = _without_optional_tail(info.outputs)
    if "dynamic" in kinds or not least <= len(outputs) <= len(kinds):
        raise OpInfoValueError(_wrong_count("output", info.outputs, least, len(outputs), who))
    return tuple(outputs)


def _without_optional_tail(ports: Sequence[Port]) -> int:
    """Returns the number of ports up to the last that is not optional."""
    return max((i for i, port in enumerate(ports, 1) if port.kind != "optional"), default=0)


def _own_pairs(given: Sequence[Given]) -> tuple[_Pair, ...]:
    """Returns the entries of the row that describes `given`; mixed lists have no one dtype."""
    dtypes = [set(_dtypes(one)) for one in given]
    return tuple((one.pop() if len(one) == 1 else "", DEFAULT_FORMAT) for one in dtypes)


def _dtypes(given: Given) -> tuple[str, ...]:
    return (given,) if isinstance(given, str) else given


def _formats_of(info: OpInfo) -> tuple[str, ...] | None:
    """Returns the formats that match on the target of `info`; None means all."""
    return None if info.target == "Ascend" else ("", DEFAULT_FORMAT)


def _matches(
    info: OpInfo,
    row: Row,
    inputs: Sequence[Given],
    outputs: Sequence[Given],
    formats: tuple[str, ...] | None,
) -> bool:
    # Undetermined inputs have no entries in a row, and absent optional ports no value: both match.
    pairs = chain(
        zip(row.inputs, inputs, strict=False) if info.inputs else (),
        zip(row.outputs, outputs, strict=False),
    )
    return all(
        (formats is None or layout in formats)
        and (not dtype or all(one == dtype for one in _dtypes(given)))
        for (dtype, layout), given in pairs
    )


def format_rows(info: OpInfo) -> tuple[str, ...]:
    """Returns the rows of `info` as text, ``"(float32, float32) -> float32"``.

    ``any`` means a dtype that is not looked at, ``[float32, ...]`` for a list of tensors,
    ``float16:NC1HWC0`` for another format than the default one, ``(...)`` for undetermined inputs.
    """
    lines = []
    for row in info.rows:
        outputs = list(_format_entries(row.outputs, info.outputs))
        inputs = ", ".join(_format_entries(row.inputs, info.inputs)) if info.inputs else "..."
        results = outputs[0] if len(outputs) == 1 else f"({', '.join(outputs)})"
        lines.append(f"({inputs}) -> {results}")
    return tuple(lines)


def _format_entries(entries: Sequence[_Pair], ports: Sequence[Port]) -> Iterator[str]:
    for (dtype, layout), port in zip(entries, ports, strict=True):
        text = dtype or "any"
        if layout not in ("", DEFAULT_FORMAT):
            text += f":{layout}"
        yield {"dynamic": f"[{text}, ...]", "optional": f"optional {text}"}.get(port.kind, text)


def _format_given(given: Sequence[Given]) -> str:
    texts = [one if isinstance(one, str) else f"[{', '.join(one)}]" for one in given]
    return f"({', '.join(texts)})"


def _no_row(info: OpInfo, inputs: Sequence[Given], outputs: Sequence[Given], who: str) -> str:
    """Says which part of the call matches no row, and what to do about that part."""
    ins, outs = _format_given(inputs), _format_given(outputs)
    first = next((d for given in (*inputs, *outputs) for d in _dtypes(given)), "")
    more = ", ..." if len(inputs) + len(outputs) > 1 else ""
    constant = f".dtype_format(DataType.{constant_name(first)}{more})"
    if any(_matches(info, row, inputs, outputs, None) for row in info.rows):
        problem = f"input dtypes {ins} match a row of its op info only in another format"
        remedy = f"{info.target} has DefaultFormat alone: register the row with {constant}."
    elif any(_matches(info, row, inputs, (), None) for row in info.rows):
        problem = f"output dtypes {outs} for input dtypes {ins} match no row of its op info"
        remedy = f"Correct out_dtype, or register the row with {constant}."
    else:
        problem = f"input dtypes {ins} match no row of its op info"
        remedy = f"Cast the inputs, or register the row with {constant}."
    return explain(who, problem, remedy, format_rows(info))


def _wrong_count(what: str, ports: Sequence[Port], least: int, got: int, who: str) -> str:
    names = f" ({', '.join(port.name for port in ports)})" if ports else ""
    most = len(ports)
    if any(port.kind == "dynamic" for port in ports) and what == "output":
        count, plural = f"at least {most - 1}", most - 1 != 1
    else:
        count, plural = (f"{least} to {most}" if least < most else str(most)), most != 1
    return explain(
        who,
        f"expected {count} {what}{'s' if plural else ''}{names}, as its op info lists; got {got}",
        f"Pass as many, or list each {what} in the op info with .{what}(index, name)."
        if what == "input"
        else f"Correct out_shape and out_dtype, or list each {what} in the op info "
        f"with .{what}(index, name).",
    )
