"""Signature and docstring of an op, for `help` and `inspect`."""

from __future__ import annotations

import dataclasses
import inspect
from collections.abc import Callable, Sequence
from typing import Any

from msops._op.request import Options
from msops._op_info import OpInfo


class OfInstance:
    """A name that objects have of their own, beside that of their class.

    Args:
      read: returns it of an object.
      of_class: that of the class; without one the class lacks the name.
    """

    _ABSENT: Any = object()

    def __init__(self, read: Callable[[Any], Any], of_class: Any = _ABSENT):
        self._read = read
        self._of_class = of_class

    def __get__(self, instance: Any, owner: type) -> Any:
        if instance is not None:
            return self._read(instance)
        if self._of_class is self._ABSENT:
            raise AttributeError
        return self._of_class


def help_text(
    name: str,
    func_type: str,
    signature: inspect.Signature | None,
    docstring: str | None,
    infos: Sequence[OpInfo],
    options: Options,
) -> str:
    """Returns the docstring of an op."""
    # Here, as `import msops` must be quick.
    from msops._op_info import format_rows

    parts = [f"{name}{signature or '(*inputs)'}"]
    if docstring:
        parts.append(inspect.cleandoc(docstring))
    rows = [f"  {info.target}: {row}" for info in infos for row in format_rows(info)]
    if rows:
        parts.append("\n".join(["Dtypes:", *rows]))
    changed = [
        f"{field.name}={_shown(getattr(options, field.name))}"
        for field in dataclasses.fields(options)
        if getattr(options, field.name) != field.default
    ]
    parts.append(f"Options: {', '.join([f'func_type={func_type!r}', *changed])}")
    return "\n\n".join(parts)


def _shown(value: Any) -> str:
    function = getattr(value, "function", None)
    return repr(value) if function is None else getattr(function, "__name__", repr(function))
