"""Whether the function that a source defines has the signature by which it is called.

A C symbol has no types, so only the compiler can tell. It reads the source once more, behind a
declaration of the right type. Of a library that was given there is nothing to read.
"""

from __future__ import annotations

import contextlib
import itertools
import os
import re
from pathlib import Path

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

_SIGNATURE = (
    "int {}(int nparam, void **params, int *ndims, int64_t **shapes, const char **dtypes,\n"
    "    void *stream, void *extra)"
)
_HEADER = "msops_kernel_signature.h"
# A function may also promise that it does not throw, which a declaration before it must say.
_PROMISES = ("", " noexcept")
# MindSpore's tutorial defines its own int64_t, which is unsigned.
_EXTENTS = ("long", "unsigned long", "long long", "unsigned long long")

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
    """Raises if a source defines `symbol` with another signature than that of a kernel.

    Args:
      library: what was built of the source. Equal code is checked once.
      symbol: a function that it exports.
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
    for unit in _units_with(symbol, (path, *options.sources), who):
        _check(store, make_plan(unit, options, include_dirs, who, suffix=".o"), symbol)
    record_result(store, key, Result(library.hash, (), ()))


def _units_with(symbol: str, sources: tuple[Path, ...], who: str) -> list[Path]:
    """Returns the sources in which a name stands; all of them if it is in none."""
    word = re.compile(rb"\b%s\b" % symbol.encode())
    found = [source for source in sources if word.search(read_input(source, who)[0])]
    return found or list(sources)


def _check(store: ObjectStore, plan: BuildPlan, symbol: str) -> None:
    """Raises if one source defines the symbol with another signature."""
    outputs = []
    for extent, promise in itertools.product(_EXTENTS, _PROMISES):
        outputs.append(_output_behind(store, plan, _declaration(symbol, extent, promise)))
        if not _disagrees(outputs[-1], symbol):
            return
    error = BuildError.explained(
        store.who,
        f"the function {symbol} in {plan.source.path} does not have the signature of a kernel",
        f"Write it as\n  {_signature(plan, symbol)}\nIt returns 0 unless it fails.",
        _shown(outputs[0], plan),
    )
    error.output = outputs[0]
    raise error


def _declaration(symbol: str, extent: str, promise: str) -> str:
    declared = _SIGNATURE.format(symbol).replace("int64_t", extent)
    return f'#ifdef __cplusplus\nextern "C" {declared}{promise};\n#else\n{declared};\n#endif\n'


def _signature(plan: BuildPlan, symbol: str) -> str:
    is_c = LANGUAGES[Path(plan.source.path).suffix] is C
    return ("" if is_c else 'extern "C" ') + _SIGNATURE.format(symbol).replace("\n", "\n  ")


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
        header.write_text(declaration)
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


def _disagrees(output: str, symbol: str) -> bool:
    """Returns whether a compiler's messages are about the declaration.

    gcc and clang name the header in them; nvcc quotes the function.
    """
    return _HEADER in output or re.search(rf'error: .*"(?:\w+::)*{symbol}"', output) is not None
