"""Reads single fields of op info dicts, with the errors for fields of a wrong type or value."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, TypeVar

from msops.errors import OpInfoTypeError, OpInfoValueError

_T = TypeVar("_T", bound=str)


def entries_of(item: Mapping[str, Any], key: str, who: str) -> tuple[Mapping[str, Any], ...]:
    """Returns the dicts under `key`; a single dict means a list of it, as in MindSpore."""
    value = item.get(key)
    entries = (value,) if isinstance(value, Mapping) else value or ()
    if isinstance(entries, (list, tuple)) and all(isinstance(e, Mapping) for e in entries):
        return tuple(entries)
    raise OpInfoTypeError.explained(
        who,
        f"expected {key!r} of the op info to be a list of dicts; got {value!r}",
        "Build the op info with CustomRegOp.",
    )


def text_of(entry: Mapping[str, Any], key: str, default: str, owner: str, who: str) -> str:
    """Returns the text under `key`, `default` if there is none."""
    value = entry.get(key)
    if value is None:
        return default
    if isinstance(value, str):
        return value
    raise OpInfoTypeError.explained(
        who,
        f"expected {key!r} of {owner} to be a str; got {value!r} ({type(value).__name__})",
        "Pass text; numbers too are written as text, e.g. '1.0'.",
    )


def choice_of(text: str, choices: Sequence[_T], what: str, remedy: str, who: str) -> _T:
    """Returns the one of `choices` that `text` is."""
    for choice in choices:
        if text == choice:
            return choice
    listed = ", ".join(choices)
    raise OpInfoValueError.explained(
        who, f"expected {what} to be one of {listed}; got {text!r}", remedy
    )
