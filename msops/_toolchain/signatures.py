"""Whether the functions that a source defines have the signatures by which they are called.

A C symbol has no types, so only the compiler can tell. It reads the source once more, behind a
declaration of the right type. Of a library that was given there is nothing to read.
"""

from __future__ import annotations

import contextlib
import itertools
import os
import re
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import NamedTuple

from msops._base.building import Build, SourceText
from msops._toolchain import compilers, nvcc_paths
from msops._toolchain.builder import BuildPlan, make_plan
from msops._toolchain.compile_errors import first_error
from msops._toolchain.inputs import read_input
from msops._toolchain.languages import LANGUAGES, C
from msops._toolchain.libraries import Library
from msops._toolchain.manifest import Result, find_result, key_of, record_result
from msops._toolchain.store import ObjectStore, open_store, retried
from msops._toolchain.texts import kept, store_source
from msops.errors import BuildError

_HEADER = "msops_kernel_signature.h"
# A function may also promise that it does not throw, which a declaration before it must say. gcc,
# clang and nvcc have these words where it does not.
_LACKS_PROMISE = "exception spec"
# MindSpore's tutorial defines its own int64_t, which is unsigned.
_EXTENTS = ("long", "unsigned long", "long long", "unsigned long long")
_NEEDED = "#ifdef __cplusplus\n#include <vector>\nclass AotExtra;\nenum TypeId : int;\n#endif\n"
_SHAPE = "std::vector<int64_t>"


class _Function(NamedTuple):
    """A function by what stands before its name and behind it, the signature to write first."""

    what: str
    results: tuple[str, ...]
    parameters: tuple[str, ...]
    advice: str


_RETURNS_CODE = "It returns 0 unless it fails."
_KERNEL = _Function(
    "a kernel",
    ("int",),
    (
        "int nparam, void **params, int *ndims, int64_t **shapes, const char **dtypes,\n"
        "    void *stream, void *extra",
    ),
    _RETURNS_CODE,
)
_COMPANIONS = {
    "Init": _Function(
        "an Init function",
        ("int",),
        tuple(
            f"int *ndims, int64_t **shapes, const char **dtypes, {extra} *extra"
            for extra in ("AotExtra", "void")
        ),
        _RETURNS_CODE,
    ),
    "InferShape": _Function(
        "an InferShape function",
        (_SHAPE, f"std::vector<{_SHAPE}>"),
        tuple(f"int *ndims, int64_t **shapes, {extra} *extra" for extra in ("AotExtra", "void")),
        f"For a tuple of outputs it returns std::vector<{_SHAPE}>.",
    ),
    "InferType": _Function(
        "an InferType function",
        ("TypeId", "std::vector<TypeId>"),
        tuple(
            f"{types} input_types, {extra} *extra"
            for types in ("std::vector<TypeId>", "const std::vector<TypeId> &")
            for extra in ("AotExtra", "void")
        ),
        "For a tuple of outputs it returns std::vector<TypeId>.",
    ),
}

_checked: set[tuple[str, str]] = set()


@retried
def require_signature(
    library: Library,
    symbol: str,
    source: Path | SourceText,
    include_dirs: tuple[Path, ...],
    options: Build,
    who: str,
) -> None:
    """Raises if a source defines a kernel or its companions with other signatures than these have.

    Args:
      library: what was built of the source. Equal code is checked once.
      symbol: the kernel, a function that it exports.
      source, include_dirs, options: as the library was built; nothing is checked of a `.so` file.
      who: the op that messages name.

    Raises:
      BuildError: it does.
    """
    if (library.hash, symbol) in _checked:
        return
    if isinstance(source, SourceText):
        path = store_source(source.text, source.file_name, who)
        with kept(path, who):
            _check_once(library, symbol, path, include_dirs, options, who)
    elif source.suffix in LANGUAGES:
        _check_once(library, symbol, source, include_dirs, options, who)
    _checked.add((library.hash, symbol))


def _check_once(
    library: Library,
    symbol: str,
    path: Path,
    include_dirs: tuple[Path, ...],
    options: Build,
    who: str,
) -> None:
    """Checks the sources of a library, unless the cache records that it was done."""
    store = open_store(who)
    key = key_of(("signature", library.hash, symbol))
    if find_result(store, key) is not None:
        return
    functions = {symbol: _KERNEL} | {
        symbol + suffix: companion
        for suffix, companion in _COMPANIONS.items()
        if symbol + suffix in library.functions
    }
    for unit, names in _units_with(functions, (path, *options.sources), who).items():
        plan = make_plan(unit, options, include_dirs, who, suffix=".o")
        _check(store, plan, {name: functions[name] for name in names})
    record_result(store, key, Result(library.hash, (), ()))


def _units_with(names: Iterable[str], sources: tuple[Path, ...], who: str) -> dict[Path, list[str]]:
    """Returns the names that stand in each source; in all of them those that are in none."""
    texts = {source: read_input(source, who)[0] for source in sources}
    units: dict[Path, list[str]] = {}
    for name in names:
        word = re.compile(rb"\b%s\b" % name.encode())
        for source in [source for source in sources if word.search(texts[source])] or sources:
            units.setdefault(source, []).append(name)
    return units


def _check(store: ObjectStore, plan: BuildPlan, functions: dict[str, _Function]) -> None:
    """Raises if one source defines a function with another signature."""
    likely = "".join(next(_declarations(name, each)) for name, each in functions.items())
    output = _output_behind(store, plan, likely)
    if not any(_disagrees(output, name) for name in functions):
        return
    for name, function in functions.items():
        _check_alone(store, plan, name, function)


def _check_alone(store: ObjectStore, plan: BuildPlan, name: str, function: _Function) -> None:
    """Raises if no way to declare a function agrees with a source."""
    outputs = []
    for declaration in _declarations(name, function):
        outputs.append(_output_behind(store, plan, declaration))
        if _LACKS_PROMISE in outputs[-1]:
            promise = declaration.replace(");", ") noexcept;", 1)
            outputs.append(_output_behind(store, plan, promise))
        if not _disagrees(outputs[-1], name):
            return
    error = BuildError.explained(
        store.who,
        f"the function {name} in {plan.source.path} does not have the signature of {function.what}",
        f"Write it as\n  {_signature(plan, name, function)}\n{function.advice}",
        _shown(outputs[0], plan),
    )
    error.output = outputs[0]
    raise error


def _declarations(name: str, function: _Function) -> Iterator[str]:
    """Yields the ways to declare a function, the likeliest first. C knows no vectors."""
    ways = itertools.product(function.results, function.parameters, _EXTENTS)
    declared = (f"{result} {name}({words});".replace("int64_t", e) for result, words, e in ways)
    for each in dict.fromkeys(declared):
        plain = "" if "std::" in each else each.replace("AotExtra", "void")
        yield f'#ifdef __cplusplus\nextern "C" {each}\n#else\n{plain}\n#endif\n'


def _signature(plan: BuildPlan, name: str, function: _Function) -> str:
    is_c = LANGUAGES[Path(plan.source.path).suffix] is C
    written = f"{function.results[0]} {name}({function.parameters[0]})".replace("\n", "\n  ")
    return written.replace("AotExtra", "void") if is_c else f'extern "C" {written}'


def _output_behind(store: ObjectStore, plan: BuildPlan, declaration: str) -> str:
    """Returns what the compiler says of a source behind a declaration; it makes nothing."""
    with store.scratch() as scratch, contextlib.ExitStack() as stack:
        folder, command = scratch, plan.command
        output: tuple[str, ...] = ("-fsyntax-only",)
        if plan.uses_nvcc:
            folder = stack.enter_context(nvcc_paths.plain_folder(scratch, store.who))
            command, _ = nvcc_paths.put_links(_device_command(plan), plan.folder, folder)
            output = ("-o", "/dev/null")
        header = folder / _HEADER
        header.write_text(_NEEDED + declaration)
        words = ("-w", "-include", os.fspath(header), *output)
        return compilers.run_quietly((*command, *words), plan.folder, folder).stdout


def _device_command(plan: BuildPlan) -> tuple[str, ...]:
    """Returns the command that has nvcc read the source once, for its first architecture."""
    architectures = [word for word in plan.command if word.startswith("-gencode=")]
    words = (word for word in plan.command if word not in architectures[1:])
    return tuple("-ptx" if word == "-c" else word for word in words)


def _shown(output: str, plan: BuildPlan) -> list[str]:
    """Returns the first error, without lines on the header that only the compiler has seen."""
    lines = first_error(output, Path(plan.source.path).name)
    lines = [line for line in lines if not line.startswith("In file included from")]
    return [] if any(_HEADER in line for line in lines) else lines


def _disagrees(output: str, name: str) -> bool:
    """Returns whether a compiler's messages are about the declaration of a function.

    Among them is a note of gcc alone, as -w hides the error that some functions of a namespace are.
    """
    return re.search(rf"(?:error: |{_HEADER}).*\b{name}\b", output) is not None
