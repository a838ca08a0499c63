"""Reads op info, as dicts or JSON texts, into `OpInfo` values and rejects what is malformed."""

from __future__ import annotations

import difflib
import json
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, get_args

from msops._op_info.attributes import (
    TYPES,
    call_attribute_names,
    read_fixed,
    read_text,
    type_of_fixed,
)
from msops._op_info.fields import choice_of, entries_of, text_of
from msops._op_info.model import Attribute, Kind, OpInfo, Port, Target
from msops._op_info.rows import as_row, kinds_of_rows, read_rows
from msops.errors import OpInfoTypeError, OpInfoValueError

_KEYS = (
    *("op_name", "inputs", "outputs", "attr", "dtype_format"),
    *("target", "processor", "imply_type"),
)
_TARGETS: tuple[Target, ...] = get_args(Target)
_KINDS: tuple[Kind, ...] = get_args(Kind)

# What a target follows from when it is not set, in the order tried. MindSpore leaves AiCPU out and
# asks for an explicit target, which its AiCPURegOp cannot express; it runs on Ascend alone.
_TARGET_OF_PROCESSOR: dict[Any, Target] = {"AiCore": "Ascend", "CUDA": "GPU", "CPU": "CPU"}
_TARGET_OF_IMPLY_TYPE: dict[Any, Target] = {
    "TBE": "Ascend",
    "AiCPU": "Ascend",
    "GPU": "GPU",
    "CPU": "CPU",
}


def read_reg_info(
    reg_info: Any, func_type: str | None, who: str, imply_type: str = ""
) -> dict[str, OpInfo]:
    """Returns the op info of one op, by target.

    Corresponds to ``Custom._register_info``, except that nothing is registered: MindSpore keeps the
    first info of a function and target for the whole process and silently ignores any other.

    Args:
      reg_info: a dict, its JSON text, or a (nested) list or tuple of them.
      func_type: such as ``"aot"``, for messages.
      who: the op, for messages, e.g. ``"Custom 'add'"``.
      imply_type: what an info with neither a target nor what implies one has for its imply_type.

    Raises:
      OpInfoTypeError: something has a type that op info cannot have.
      OpInfoValueError: a text or count is wrong, two infos for a target differ, or the attributes
        differ between targets.

    Source: MindSpore 2.7.2, ``mindspore.ops.operations.custom_ops.Custom._register_info``.
    """
    infos: dict[str, OpInfo] = {}
    try:
        read = [read_op_info(item, func_type, who, imply_type) for item in _flatten(reg_info, who)]
    except RecursionError:
        raise OpInfoValueError.explained(
            who,
            "expected op info as a dict, its JSON text, or a list of them; got lists or dicts "
            "that hold themselves, or are nested too deep",
            "Pass what CustomRegOp(...).get_op_info() returns.",
        ) from None
    for info in read:
        if infos.setdefault(info.target, info) != info:
            raise OpInfoValueError.explained(
                who,
                f"expected one op info for target {info.target!r}; got two that differ",
                "Keep one of them, or give them different targets with .target(...).",
            )
    _check_same_attributes(infos, who)
    return infos


def _flatten(reg_info: Any, who: str) -> Iterator[Mapping[str, Any]]:
    """Yields the dicts in `reg_info`, JSON texts decoded."""
    if isinstance(reg_info, str):
        reg_info = _decode_json(reg_info, who)
    if isinstance(reg_info, Mapping):
        yield reg_info
    elif isinstance(reg_info, (list, tuple)):
        for item in reg_info:
            if item is None:
                raise _not_op_info(item, who)
            yield from _flatten(item, who)
    else:
        raise _not_op_info(reg_info, who)


def _decode_json(text: str, who: str) -> Any:
    try:
        decoded = json.loads(text)
    except ValueError as error:
        raise OpInfoValueError.explained(
            who,
            f"expected op info as JSON text; got text that is not JSON ({error})",
            "Pass the dict of CustomRegOp(...).get_op_info(), or json.dumps of it.",
        ) from None
    if not isinstance(decoded, (dict, list)):
        raise _not_op_info(decoded, who)
    return decoded


def _not_op_info(item: Any, who: str) -> OpInfoTypeError:
    return OpInfoTypeError.explained(
        who,
        "expected op info as a dict, its JSON text, or a list of them; "
        f"got {item!r} ({type(item).__name__})",
        "Pass what CustomRegOp(...).get_op_info() returns.",
    )


def read_op_info(
    item: Mapping[str, Any], func_type: str | None, who: str, imply_type: str
) -> OpInfo:
    """Returns the `OpInfo` that one dict describes; arguments and errors as `read_reg_info`."""
    _check_keys(item, who)
    inputs = entries_of(item, "inputs", who)
    outputs = entries_of(item, "outputs", who)
    rows = read_rows(item, inputs, outputs, who)
    kinds = kinds_of_rows(rows, len(inputs) + len(outputs))
    is_tbe = item.get("imply_type") == "TBE" or imply_type == "TBE"
    info = OpInfo(
        op_name=text_of(item, "op_name", "Custom", "the op info", who),
        target=_read_target(item, func_type, who, imply_type),
        inputs=_read_ports(inputs, kinds[: len(inputs)], "input", "x", who),
        outputs=_read_ports(outputs, kinds[len(inputs) :], "output", "y", who),
        attributes=tuple(_read_attribute(a, is_tbe, who) for a in entries_of(item, "attr", who)),
        rows=tuple(as_row(row, len(inputs)) for row in rows),
    )
    _check_ambiguities(info, who)
    return info


def _check_keys(item: Mapping[str, Any], who: str) -> None:
    """Rejects what seems to be misspelt: it would guard nothing. MindSpore has many other keys."""
    for key in item:
        near = difflib.get_close_matches(str(key), _KEYS, n=1, cutoff=0.8)
        if near and key not in _KEYS:
            raise OpInfoValueError.explained(
                who,
                f"expected the op info to have {near[0]!r}; got {key!r}",
                "Pass what CustomRegOp(...).get_op_info() returns, or correct the key.",
            )


def _read_target(
    item: Mapping[str, Any], func_type: str | None, who: str, imply_type: str
) -> Target:
    named = text_of(item, "target", "UnKnown", "the op info", who)
    remedy = "Set it with .target('CPU') of CustomRegOp, and one op info for each target."
    # "UnKnown" is what CustomRegOp writes until .target is called.
    if named != "UnKnown":
        return choice_of(named, _TARGETS, "the target of the op info", remedy, who)
    for table, key in (
        (_TARGET_OF_PROCESSOR, item.get("processor")),
        (_TARGET_OF_IMPLY_TYPE, item.get("imply_type")),
        (_TARGET_OF_IMPLY_TYPE, imply_type),
    ):
        if isinstance(key, str) and key in table:
            return table[key]
    raise OpInfoValueError.explained(
        who,
        f"expected the op info to name its target, one of {', '.join(_TARGETS)}; "
        f"got none, and func_type {func_type!r} implies none",
        remedy,
    )


def _read_ports(
    entries: Sequence[Mapping[str, Any]],
    kinds: Sequence[Kind | None],
    what: str,
    prefix: str,
    who: str,
) -> tuple[Port, ...]:
    """Returns the ports in the order listed, which alone counts; "index" is not read."""
    ports = []
    for position, (entry, kind_of_rows) in enumerate(zip(entries, kinds, strict=True)):
        name = text_of(entry, "name", f"{prefix}{position}", f"{what} {position}", who)
        text = text_of(entry, "paramType", "required", f"{what} {name!r}", who)
        remedy = f"Correct it in .{what}({position}, {name!r}, ...)."
        kind = choice_of(text, _KINDS, f"the param_type of {what} {name!r}", remedy, who)
        ports.append(Port(name, kind_of_rows or kind))
    return tuple(ports)


def _read_attribute(entry: Mapping[str, Any], is_tbe: bool, who: str) -> Attribute:
    name = text_of(entry, "name", "", "an attribute", who)
    if not name:
        raise OpInfoValueError.explained(
            who, "expected every attribute to have a name; got one without", _ATTR_REMEDY
        )
    owner = f"attribute {name!r}"
    param_type = text_of(entry, "paramType", "required", owner, who)
    choice_of(param_type, ("required", "optional"), f"the param_type of {owner}", _ATTR_REMEDY, who)
    # For TBE "value" lists what the kernel supports, mostly "all"; the call gives the value.
    value = None if is_tbe else entry.get("value")
    type_name = text_of(entry, "type", "", owner, who)
    type_name = type_of_fixed(type_name, value) or type_name
    choice_of(type_name, tuple(TYPES), f"the value_type of {owner}", _ATTR_REMEDY, who)
    default = entry.get("defaultValue")
    if default is not None:
        default = text_of(entry, "defaultValue", "", owner, who)
        read_text(name, type_name, default, "default_value", who)
    if value is not None:
        value = read_fixed(name, type_name, value, who)
    return Attribute(name, param_type == "required", type_name, default, value)


_ATTR_REMEDY = "Write .attr(name, 'required' or 'optional', value_type, default_value)."


def _check_ambiguities(info: OpInfo, who: str) -> None:
    """Rejects what could not be distinguished later: equal attribute names, two output lists."""
    names = [attribute.name for attribute in info.attributes]
    if len(set(names)) != len(names):
        raise OpInfoValueError.explained(
            who,
            f"expected attributes of different names; got {', '.join(names)}",
            "Rename one with .attr(...) of CustomRegOp.",
        )
    dynamic = [port.name for port in info.outputs if port.kind == "dynamic"]
    if len(dynamic) > 1:
        raise OpInfoValueError.explained(
            who,
            f"expected at most one dynamic output; got {', '.join(dynamic)}",
            "Make the number of outputs of all but one fixed, with param_type 'required'.",
        )


def _check_same_attributes(infos: Mapping[str, OpInfo], who: str) -> None:
    """Checks that one call fits all targets: the same attributes, the same ones given by a call."""
    found = {}
    for target, info in infos.items():
        names = ", ".join(attribute.name for attribute in info.attributes)
        found[target] = names, ", ".join(call_attribute_names(info))
    if len(set(found.values())) > 1:
        raise OpInfoValueError.explained(
            who,
            "expected the same attributes, and the same ones given by a call, on every target; "
            "got attributes that differ",
            "List them in one order, and fix a value on every target or on none.",
            [f"{target}: ({names}), given ({given})" for target, (names, given) in found.items()],
        )
