"""The parameters of an op: the inputs and attributes of its kernel, by their names."""

from __future__ import annotations

import inspect
from collections.abc import Mapping, Sequence
from typing import Any

from msops._op_info import (
    REQUIRED,
    OpInfo,
    Port,
    call_attribute_names,
    call_attributes,
    declare_attributes,
    decode_text,
    is_attribute,
)
from msops.errors import ArgumentTypeError, ArgumentValueError, OpInfoTypeError

Parameter = inspect.Parameter


def read_attributes(
    name: str, signature: inspect.Signature | None, attrs: Any, takes_positional: bool, who: str
) -> OpInfo | None:
    """Returns the attributes of an op without op info; None if there are none.

    Args:
      name: of the op.
      signature: the kernel's own, if it has one.
      attrs: as `Custom` takes it.
      takes_positional: whether positional parameters with a default are attributes, as in loop
        kernels; keyword-only parameters always are.
      who: the op, for messages.

    Raises:
      ArgumentTypeError, ArgumentValueError: `attrs` is no dict of attributes of the kernel.
      OpInfoTypeError: a value in it is neither a default nor a type.
    """
    if attrs is not None and not isinstance(attrs, Mapping):
        raise ArgumentTypeError.explained(
            who,
            f"expected a dict for attrs; got {type(attrs).__name__}",
            'Pass the defaults by name: attrs={"alpha": 0.5}.',
        )
    parameters = () if signature is None else tuple(signature.parameters.values())
    given = dict(attrs or {})
    _check_names(given, signature, who)
    _check_defaults(given, parameters, who)
    values: dict[str, Any] = {}
    for parameter in parameters:
        is_own = parameter.kind is Parameter.KEYWORD_ONLY or (
            takes_positional and parameter.default not in (Parameter.empty, None)
        )
        default = REQUIRED if parameter.default is Parameter.empty else parameter.default
        if parameter.name in given:
            values[parameter.name] = given.pop(parameter.name)
        elif is_own and (default is REQUIRED or is_attribute(default)):
            values[parameter.name] = default
    values |= given
    if not values:
        return None
    positional = [p for p in parameters if p.kind in _POSITIONAL]
    by_name = not values.keys() <= {p.name for p in positional} or any(
        p.kind is Parameter.VAR_POSITIONAL for p in parameters
    )
    inputs = [
        Port(p.name, "required" if p.default is Parameter.empty else "optional")
        for p in positional
        if p.name not in values
    ]
    return declare_attributes(name, values, () if by_name else inputs, by_name, who)


_POSITIONAL = (Parameter.POSITIONAL_ONLY, Parameter.POSITIONAL_OR_KEYWORD)


def positional_names(signature: inspect.Signature | None) -> tuple[str, ...] | None:
    """Returns the names of the parameters that can be given by position; None if not all have one.

    The parameters of ``*args`` have none, nor has a kernel without a signature.
    """
    if signature is None:
        return None
    parameters = signature.parameters.values()
    if any(p.kind is Parameter.VAR_POSITIONAL for p in parameters):
        return None
    return tuple(p.name for p in parameters if p.kind in _POSITIONAL)


def _check_names(given: Mapping[str, Any], signature: inspect.Signature | None, who: str) -> None:
    for name in given:
        if not isinstance(name, str) or not name.isidentifier():
            raise ArgumentValueError.explained(
                who,
                f"expected identifiers as names in attrs; got {name!r}",
                'Use the name the kernel asks for, e.g. "axis".',
            )
    if signature is None:
        return
    kinds = {parameter.kind for parameter in signature.parameters.values()}
    unknown = [name for name in given if name not in signature.parameters]
    if unknown and Parameter.VAR_POSITIONAL not in kinds:
        raise ArgumentValueError.explained(
            who,
            f"attrs has {unknown[0]!r}, and the kernel has the parameters {signature}",
            "Name the attributes as the kernel's parameters.",
        )


def _check_defaults(given: Mapping[str, Any], parameters: Sequence[Parameter], who: str) -> None:
    """Raises if None is to be a default that the kernel itself does not have."""
    optional = {parameter.name for parameter in parameters if parameter.default is None}
    for name, value in given.items():
        if value is None and name not in optional:
            raise OpInfoTypeError.explained(
                who,
                f"expected for attribute {name!r} its default or its type in attrs; got None",
                f"Write attrs={{{name!r}: 0.5}}, or attrs={{{name!r}: float}} if a call must give "
                "it.",
            )


def input_names(signature: inspect.Signature | None, infos: Sequence[OpInfo]) -> tuple[str, ...]:
    """Returns the names of the inputs, in order, as far as they are known."""
    attributes = call_attribute_names(infos[0]) if infos else ()
    if signature is not None:
        parameters = signature.parameters.values()
        names = [p.name for p in parameters if p.kind is Parameter.POSITIONAL_OR_KEYWORD]
        # What can only be given by position comes first, and has no name in a call.
        nameless = ["" for p in parameters if p.kind is Parameter.POSITIONAL_ONLY]
        return (*nameless, *(name for name in names if name not in attributes))
    return tuple(port.name for port in infos[0].inputs) if infos else ()


def place_keywords(
    args: Sequence[Any],
    keywords: Mapping[str, Any],
    inputs: Sequence[str],
    attributes: Sequence[str],
    who: str,
) -> tuple[list[Any], dict[str, Any], int | None]:
    """Returns the arguments of a call by position, its attributes by name, and how many are inputs.

    The number is None if no input was given by name: attributes may follow the inputs.

    Raises:
      ArgumentTypeError: a name is unknown or given twice, or an input before it is missing.
    """
    named = {name: value for name, value in keywords.items() if name in attributes}
    tensors = {name: value for name, value in keywords.items() if name not in attributes}
    placed = list(args)
    for position, name in enumerate(inputs):
        if name not in tensors:
            continue
        if position < len(args):
            raise ArgumentTypeError.explained(
                who, f"got {name!r} by position and by name", "Give it once."
            )
        if position > len(placed):
            raise ArgumentTypeError.explained(
                who,
                f"got {name!r} without {inputs[len(placed)]!r}, which comes before it",
                "Give every input up to the last one.",
            )
        placed.append(tensors.pop(name))
    if tensors:
        known = ", ".join(filter(None, (*inputs, *attributes)))
        raise ArgumentTypeError.explained(
            who,
            f"got an unknown keyword argument {next(iter(tensors))!r}",
            f"It has the parameters {known}."
            if known
            else "Its parameters have no names: list inputs and attributes in op info "
            '(reg_info=), or attributes by attrs={"alpha": 0.5}.',
        )
    return placed, named, len(placed) if len(placed) > len(args) else None


def signature_of_call(
    signature: inspect.Signature | None, infos: Sequence[OpInfo]
) -> inspect.Signature | None:
    """Returns how an op is called: the kernel's own signature, or what op info says."""
    if signature is not None or not infos:
        return signature
    info = infos[0]
    named = Parameter.KEYWORD_ONLY if info.by_name else Parameter.POSITIONAL_OR_KEYWORD
    inputs = [
        Parameter(
            port.name,
            Parameter.POSITIONAL_OR_KEYWORD,
            default=None if port.kind == "optional" else Parameter.empty,
        )
        for port in info.inputs
    ] or [Parameter("inputs", Parameter.VAR_POSITIONAL)]
    if not info.inputs:
        named = Parameter.KEYWORD_ONLY
    attributes = [
        Parameter(
            attribute.name,
            named,
            default=decode_text(attribute.type, attribute.default)
            if attribute.default is not None
            else Parameter.empty
            if attribute.required
            else None,
        )
        for attribute in call_attributes(info)
    ]
    try:
        return inspect.Signature([*inputs, *attributes])
    except ValueError:  # names that are no identifiers, or an optional one before a required one
        return None
