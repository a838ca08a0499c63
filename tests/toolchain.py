"""The toolchain from the outside, for its tests: what it is made of, and sources to build."""

from __future__ import annotations

import ctypes
import stat
from pathlib import Path

import pytest

from msops._base import config, temporary
from msops._base.building import SourceText
from msops._toolchain import (
    BuildReport,
    Library,
    ModuleSources,
    build,
    build_generated,
    build_module,
    builder,
    compilers,
    cuda,
    find_measurement,
    open_copy,
    record_measurement,
    resolve,
    store_source,
)
from msops._toolchain.manifest import find_object, parse_depfile
from msops._toolchain.store import Built, open_store
from msops._tools import doctor
from msops.errors import BuildError

__all__ = [
    "WHO",
    "BuildReport",
    "ModuleSources",
    "SourceText",
    "build",
    "build_generated",
    "build_module",
    "builder",
    "call",
    "compilers",
    "config",
    "cuda",
    "doctor",
    "find_measurement",
    "find_object",
    "message_of",
    "open_copy",
    "open_store",
    "parse_depfile",
    "record_measurement",
    "resolve",
    "returns",
    "script",
    "store_source",
    "temporary",
    "write",
]

WHO = "Custom 'op'"


def write(path: Path, text: str) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
    return path


def returns(value: object) -> str:
    """Returns C++ of a function ``f`` that returns a value."""
    return f'extern "C" int f(void) {{ return {value}; }}\n'


def call(library: Built | Library, symbol: str = "f") -> int:
    function = getattr(ctypes.CDLL(str(library.path), mode=ctypes.RTLD_LOCAL), symbol)
    result: int = function()
    return result


def script(path: Path, body: str) -> Path:
    write(path, f"#!/bin/sh\n{body}\n")
    path.chmod(path.stat().st_mode | stat.S_IXUSR)
    return path


def message_of(source: Path, **options: object) -> str:
    """Returns the message of the error that building a source ends in."""
    with pytest.raises(BuildError) as caught:
        build(source, who=WHO, **options)
    return str(caught.value)
