"""Checks of the arguments of `CustomOpBuilder`."""

from __future__ import annotations

import dataclasses
import keyword
import os
import shlex
from collections.abc import Sequence
from typing import Any

from msops._base.building import Build
from msops.errors import ArgumentTypeError, ArgumentValueError

BACKENDS = ("CPU", "GPU", "Ascend")

_WHO = "CustomOpBuilder"


@dataclasses.dataclass(frozen=True)
class BuilderOptions:
    """The arguments of a builder; see the class for their meaning."""

    name: str
    sources: tuple[str, ...]
    backend: str
    include_paths: tuple[str, ...]
    cflags: tuple[str, ...]
    ldflags: tuple[str, ...]
    build_dir: str | None
    libraries: tuple[str, ...]
    debug_mode: bool
    verbose: bool
    build: Build
    op_def: tuple[str, ...]
    op_doc: tuple[str, ...]

    @property
    def who(self) -> str:
        """The builder's name in messages."""
        return f"{_WHO} '{self.name}'"


def read_options(
    name: Any,
    sources: Any,
    backend: Any,
    include_paths: Any,
    cflags: Any,
    ldflags: Any,
    rest: dict[str, Any],
) -> BuilderOptions:
    """Returns the arguments, checked.

    Raises:
      ArgumentTypeError: an argument is of a wrong type.
      ArgumentValueError: one has a value that cannot be served.
    """
    _check_name(name)
    _check_backend(backend)
    rest = dict(rest)
    libraries = _libraries(backend, rest)
    options = BuilderOptions(
        name=name,
        sources=_paths("sources", sources),
        backend=backend or ("Ascend" if libraries else "CPU"),
        include_paths=_paths("include_paths", () if include_paths is None else include_paths),
        cflags=_optional("cflags", cflags),
        ldflags=_optional("ldflags", ldflags),
        build_dir=_optional_path("build_dir", rest.pop("build_dir", None)),
        libraries=libraries,
        debug_mode=_flag("debug_mode", rest.pop("debug_mode", False)),
        verbose=_flag("verbose", rest.pop("verbose", False)),
        build=_build(rest.pop("build", None)),
        op_def=_yaml_paths("op_def", rest.pop("op_def", None)),
        op_doc=_yaml_paths("op_doc", rest.pop("op_doc", None)),
    )
    if not options.sources:
        raise ArgumentValueError.explained(
            options.who, "expected sources; got none", "Name a .cpp file."
        )
    for name, flags in (("cflags", options.cflags), ("ldflags", options.ldflags)):
        words(name, flags, options.who)
    if rest:
        raise ArgumentTypeError.explained(
            options.who,
            f"expected none of the argument(s) {', '.join(sorted(rest))}",
            "It takes include_paths, cflags, ldflags, build_dir, debug_mode, verbose, build, "
            "op_def, op_doc, enable_atb and enable_asdsip.",
        )
    return options


def words(name: str, flags: Sequence[str], who: str) -> tuple[str, ...]:
    """Returns the words of flags, of which one text may hold several.

    Raises:
      ArgumentValueError: a text is no part of a command line, as a quote in it has no end.
    """
    found: list[str] = []
    for flag in flags:
        try:
            found += shlex.split(flag)
        except ValueError as error:
            raise ArgumentValueError.explained(
                who,
                f"expected {name} as on a command line; got {flag!r} ({error})",
                "Close every quote; where a quote or a backslash is meant, write \\' or \\\\.",
            ) from error
    return tuple(found)


def _check_name(name: Any) -> None:
    if not isinstance(name, str):
        raise ArgumentTypeError.explained(
            _WHO, f"expected name str; got {type(name).__name__}", "Pass 'my_ops', say."
        )
    if not name.isidentifier() or not name.isascii() or keyword.iskeyword(name):
        raise ArgumentValueError.explained(
            _WHO,
            f"expected a name that is an identifier; got {name!r}",
            "It becomes a name in C++: use letters, digits and underscores.",
        )


def _check_backend(backend: Any) -> None:
    if backend is not None and not isinstance(backend, str):
        raise ArgumentTypeError.explained(
            _WHO, f"expected backend str or None; got {type(backend).__name__}", "Pass 'CPU'."
        )
    if backend is not None and backend not in BACKENDS:
        raise ArgumentValueError.explained(
            _WHO,
            f"expected backend 'CPU', 'GPU' or 'Ascend'; got {backend!r}",
            "For 'backend', only these are allowed; None means 'CPU'.",
        )


def _libraries(backend: str | None, rest: dict[str, Any]) -> tuple[str, ...]:
    """Takes the libraries of Ascend that are asked for out of `rest`: "ATB", "ASDSIP"."""
    found = []
    for name in ("enable_atb", "enable_asdsip"):
        if not _flag(name, rest.pop(name, False)):
            continue
        if backend not in (None, "Ascend"):
            raise ArgumentValueError.explained(
                _WHO,
                f"expected backend 'Ascend' or None with {name}=True; got {backend!r}",
                "Leave it out: operators of Ascend's libraries run on JAX's device.",
            )
        found.append(name.removeprefix("enable_").upper())
    return tuple(found)


def _paths(name: str, value: Any) -> tuple[str, ...]:
    values = value if isinstance(value, (list, tuple)) else (value,)
    if all(isinstance(item, (str, os.PathLike)) for item in values):
        paths = tuple(os.fspath(item) for item in values)
        for path in paths:
            _refuse_null(name, path)
        return paths
    raise ArgumentTypeError.explained(
        _WHO,
        f"expected {name} as a path (str or pathlib.Path), or a list or tuple of them; "
        f"got {value!r}",
        "Name files and folders.",
    )


def _yaml_paths(name: str, value: Any) -> tuple[str, ...]:
    return () if value is None else _paths(name, value)


def _optional_path(name: str, value: Any) -> str | None:
    return None if value is None else _paths(name, (value,))[0]


def _build(value: Any) -> Build:
    if value is None or isinstance(value, Build):
        return value or Build()
    raise ArgumentTypeError.explained(
        _WHO,
        f"expected build msops.Build or None; got {type(value).__name__}",
        "Pass msops.Build(libraries=['openblas']), say.",
    )


def _refuse_null(name: str, value: str) -> None:
    """Refuses the character that no path and no command line holds."""
    if "\0" in value:
        raise ArgumentValueError.explained(
            _WHO, f"expected {name} without null characters; got {value!r}", "Take '\\0' out."
        )


def _optional(name: str, value: Any) -> tuple[str, ...]:
    if value is None:
        return ()
    if isinstance(value, str):
        _refuse_null(name, value)
        return (value,)
    raise ArgumentTypeError.explained(
        _WHO, f"expected {name} str or None; got {type(value).__name__}", "Pass one str."
    )


def _flag(name: str, value: Any) -> bool:
    if isinstance(value, bool):
        return value
    raise ArgumentTypeError.explained(
        _WHO, f"expected {name} bool; got {type(value).__name__}", "Pass True or False."
    )
