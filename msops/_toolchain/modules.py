"""Extension modules: several sources compiled at a time, then linked to one library.

Objects lie in the store under their content, as libraries do, so sources of equal names in
different folders do not meet, and after a change only what changed is compiled again.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from msops._base.building import Build
from msops._base.logging import log_build
from msops._toolchain import compilers, nvcc_paths
from msops._toolchain.allow_list import check_allowed
from msops._toolchain.builder import BuildReport, build_object, take_stamps
from msops._toolchain.commands import map_in_threads
from msops._toolchain.compile_errors import link_error
from msops._toolchain.elf import parse_elf
from msops._toolchain.languages import CUDA, CXX, LANGUAGES
from msops._toolchain.linker import link, named_files, read_report, search_folders
from msops._toolchain.manifest import (
    Result,
    add_object,
    found_or_made,
    header_names,
    key_of,
    list_folders,
)
from msops._toolchain.store import Built, ObjectStore, open_store, retried


@dataclass(frozen=True)
class ModuleSources:
    """The sources and options of an extension module.

    Attributes:
      name: the module's name, an identifier.
      sources: .cc, .cpp, .cxx and .cu files.
      flags: for the C++ compiler; they come last.
      cuda_flags: for nvcc.
      link_flags: for the linker.
      include_dirs: searched for headers after the folder of a source.
      uses_cuda: whether nvcc links it.
    """

    name: str
    sources: tuple[Path, ...]
    flags: tuple[str, ...]
    cuda_flags: tuple[str, ...]
    link_flags: tuple[str, ...]
    include_dirs: tuple[Path, ...]
    uses_cuda: bool


@retried
def build_module(module: ModuleSources, who: str, report: BuildReport) -> Built:
    """Returns the library of a module, built unless the cache has it.

    Args:
      module: what it is built from.
      who: what messages call it.
      report: gets what is compiled and linked.

    Raises:
      ArgumentValueError: a source has none of the suffixes.
      BuildError: there is no compiler, it failed, or the cache cannot be written.
    """
    store = open_store(who)
    objects = _compile_all(module, who, report)
    language = CUDA if module.uses_cuda else CXX
    compiler = compilers.find_compiler(language, module.link_flags, module.sources[0], who)
    flags = language.link_flags if module.uses_cuda else (*language.link_flags, "-fPIC")
    command = (*compiler.command, *flags, *(str(path) for path, _ in objects), *module.link_flags)
    identity = (
        "module",
        module.name,
        [digest for _, digest in objects],
        (*compiler.command, *flags, *module.link_flags),
        compiler.identity,
        os.fspath(module.sources[0].parent),
        [os.environ.get(variable) for variable in compilers.SEARCH_VARIABLES],
    )
    key, name = key_of(identity), f"{module.name}.so"

    def make() -> tuple[Result, bytes]:
        report.begin(f"linking {name}")
        words = (*compiler.command[1:], *module.link_flags)
        return _run_linker(store, command, module, words, key, report.echo)

    digest = found_or_made(store, key, name, make)[0].library
    return Built(store.object_path(digest, name), digest, name)


def check_source(path: Path, who: str) -> Path:
    """Returns the file to read for a source that a user named or that `store_source` wrote.

    Raises:
      ArgumentTypeError: a user named it, and it lies outside ``MS_CUSTOM_AOT_WHITE_LIST``.
    """
    written = open_store(who).root / "generated"
    if path.resolve().is_relative_to(written.resolve()):
        return path.resolve()
    return check_allowed(path, who)


def _compile_all(module: ModuleSources, who: str, report: BuildReport) -> list[tuple[Path, str]]:
    """Returns the objects of all sources; the first error, in their order, is raised."""

    def compile_one(source: Path) -> tuple[Path, str]:
        is_cuda = LANGUAGES.get(source.suffix) is CUDA
        flags = module.cuda_flags if is_cuda else module.flags
        return build_object(source, Build(flags=flags), module.include_dirs, who, report)

    if len(module.sources) == 1:
        return [compile_one(module.sources[0])]
    return map_in_threads(compile_one, module.sources)


def _run_linker(
    store: ObjectStore,
    command: tuple[str, ...],
    module: ModuleSources,
    words: tuple[str, ...],
    key: str,
    echo: Callable[[str], None] | None,
) -> tuple[Result, bytes]:
    """Links, and records the result."""
    name = f"{module.name}.so"
    folder = module.sources[0].parent
    with store.scratch() as scratch, nvcc_paths.plain_folder(scratch, store.who) as plain:
        output, report = scratch / name, plain / "link.d"
        outputs = ("-o", os.fspath(output))
        whole = (*command, *outputs)
        with log_build(store.who, name, whole):
            done = link(command, outputs, report, folder, scratch, echo)
            if not all(os.path.exists(word) for word in command if word.endswith(".o")):
                raise store.vanished()
            if done.returncode != 0 or not output.is_file():
                raise link_error(store.who, name, whole, folder, done.stdout)
        data = output.read_bytes()
        parse_elf(data, name, store.who)
        # Objects are in the key.
        read = [path for path in read_report(report, folder, command[0]) if path not in command]
    stamps = tuple(take_stamps((*read, *named_files(words, folder)), store.who).values())
    listing = list_folders(search_folders(words, folder), header_names(stamps))
    return add_object(store, key, name, data, stamps, listing)
