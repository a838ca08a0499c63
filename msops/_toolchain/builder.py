"""One cached build: from a source to a library in the store, compiled only if nothing like it is.

A look-up costs the source's hash, a stat of every header and one read of the library. Compilers run
in the source's folder on its base name, so ``__FILE__``, and with it the library and its content
hash, are the same wherever the folder lies.
"""

from __future__ import annotations

import contextlib
import itertools
import os
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from msops._base.building import Build
from msops._base.logging import log_build
from msops._toolchain import compilers, nvcc_paths
from msops._toolchain.commands import map_in_threads
from msops._toolchain.compile_errors import compile_error
from msops._toolchain.elf import parse_elf
from msops._toolchain.inputs import read_input
from msops._toolchain.languages import CUDA, LANGUAGES, SourceLanguage
from msops._toolchain.linker import link, named_files, read_report, search_folders, with_members
from msops._toolchain.manifest import (
    Result,
    add_object,
    found_or_made,
    header_names,
    key_of,
    list_folders,
    parse_depfile,
)
from msops._toolchain.options import (
    NO_OPTIONS,
    compiler_words,
    library_files,
    library_folders,
    linker_words,
    named_folders,
)
from msops._toolchain.stamps import Stamp, take_stamp
from msops._toolchain.store import Built, ObjectStore, open_store, retried
from msops.errors import ArgumentValueError, BuildError

_ATTEMPTS = 3
_HEADER_OPTIONS = ("-I", "-iquote", "-isystem", "-idirafter")
# No later than the time of a file that changes from now on; it stands still for some milliseconds.
_CLOCK_REALTIME_COARSE = 5
_stamps: dict[str, Stamp] = {}


@dataclass(frozen=True)
class BuildReport:
    """Who gets reports of a build while it runs.

    Attributes:
      begin: gets what is about to be done, if anything is.
      echo: gets each command and each line it prints; None for nobody.
    """

    begin: Callable[[str], None]
    echo: Callable[[str], None] | None = None


@dataclass(frozen=True)
class BuildPlan:
    """A build before it runs.

    Attributes:
      source: the source as it was read.
      command: all of the command line but the outputs.
      folders: where quoted and angled headers are searched first.
      key: hash of everything that determines the result and is known before compiling.
      uses_nvcc: the compiler is nvcc.
      uses_gcc: it is gcc, whose assembler can say what it read.
      named_files: files that the words of the command name, which no depfile lists.
      units: further sources, each with the command that compiles it.
      link_words: what follows all objects in the command.
      suffix: of what is made: ".so", or ".o" for an object that is linked later.
    """

    source: Stamp
    command: tuple[str, ...]
    folders: tuple[str, ...]
    key: str
    uses_nvcc: bool
    uses_gcc: bool
    named_files: tuple[str, ...]
    units: tuple[tuple[Stamp, tuple[str, ...]], ...] = ()
    link_words: tuple[str, ...] = ()
    suffix: str = ".so"

    @property
    def folder(self) -> Path:
        """The source's folder, in which the command runs."""
        return Path(self.source.path).parent

    @property
    def library_name(self) -> str:
        """The base name of the library or object."""
        return f"{Path(self.source.path).stem}{self.suffix}"


def build(
    source: Path, *, options: Build = NO_OPTIONS, include_dirs: tuple[Path, ...] = (), who: str
) -> Built:
    """Returns the library built from one source file, compiling it unless the cache has it.

    Args:
      source: a .c, .cc, .cpp, .cxx or .cu file.
      options: what the caller adds; relative paths in flags start at the source's folder.
      include_dirs: searched for headers after the source's folder, and before those of `options`.
      who: the op that messages name.

    Raises:
      ArgumentValueError: the suffix is none of the above.
      BuildError: there is no compiler, it failed (its whole output is the error's ``output``), the
        library is for another machine, or the cache cannot be written.
    """
    return build_recorded(source, options, include_dirs, who)[0]


@retried
def build_recorded(
    source: Path, options: Build, include_dirs: tuple[Path, ...], who: str
) -> tuple[Built, bytes, Stamp, Result]:
    """Does what `build` does; returns also the library's content and what the build read."""
    store = open_store(who)
    plan = make_plan(source, options, include_dirs, who)
    result, data = found_or_made(store, plan.key, plan.library_name, lambda: _compile(store, plan))
    path = store.object_path(result.library, plan.library_name)
    return Built(path, result.library, source.name), data, plan.source, result


@retried
def build_object(
    source: Path,
    options: Build,
    include_dirs: tuple[Path, ...],
    who: str,
    report: BuildReport,
) -> tuple[Path, str]:
    """Returns the path and content hash of one source's object, compiled unless the cache has it.

    Args:
      source, options, include_dirs, who: as for `build`.
      report: gets what is compiled.

    Raises:
      ArgumentValueError, BuildError: as `build`.
    """
    store = open_store(who)
    plan = make_plan(source, options, include_dirs, who, suffix=".o")

    def make() -> tuple[Result, bytes]:
        report.begin(f"compiling {source.name}")
        return _compile(store, plan, report.echo)

    digest = found_or_made(store, plan.key, plan.library_name, make)[0].library
    return store.object_path(digest, plan.library_name), digest


def make_plan(
    source: Path, options: Build, include_dirs: tuple[Path, ...], who: str, suffix: str = ".so"
) -> BuildPlan:
    """Returns how `source` would be built; runs nothing but ``--version``."""
    units = tuple(
        make_plan(unit, options, include_dirs, who, suffix=".o")
        for unit in dict.fromkeys(options.sources if suffix == ".so" else ())
    )
    source = source.absolute()
    language = _language_of(source, who)
    stamp = read_input(source, who)[1]
    flags = compiler_words(options, language)
    link_words = linker_words(options, language) if suffix == ".so" else ()
    compiler = compilers.find_compiler(language, flags, source, who)
    headers = tuple(
        os.fspath(folder.absolute()) for folder in (*include_dirs, *options.include_dirs)
    )
    # A name that starts with a dash or an at sign would be read as an option.
    name = source.name if source.name[0] not in "-@" else f"./{source.name}"
    command = compilers.command_line(compiler, language, name, flags, headers, suffix)
    identity = (
        os.fspath(source),
        stamp.sha256,
        (*command, *link_words),
        compiler.identity,
        compilers.processor_identity((*compiler.command, *flags)),
        [os.environ.get(variable) for variable in compilers.SEARCH_VARIABLES],
        *(unit.key for unit in units),
    )
    words = (*compiler.command[1:], *compilers.words_of_environment(language), *flags, *link_words)
    folders = (
        os.fspath(source.parent),
        *headers,
        *named_folders(words, _HEADER_OPTIONS, source.parent),
        *compilers.folders_of_environment(source.parent),
        *(search_folders(words, source.parent) if suffix == ".so" else ()),
        *(map(os.fspath, library_folders(options)) if link_words else ()),
    )
    folders = tuple(dict.fromkeys((*folders, *(name for unit in units for name in unit.folders))))
    return BuildPlan(
        source=stamp,
        command=command,
        folders=folders,
        key=key_of(identity),
        uses_nvcc=language is CUDA,
        uses_gcc=compiler.is_gcc,
        named_files=(*named_files(words, source.parent), *map(os.fspath, library_files(options))),
        units=tuple((unit.source, unit.command) for unit in units),
        link_words=link_words,
        suffix=suffix,
    )


def _language_of(source: Path, who: str) -> SourceLanguage:
    """Returns the language that a source is written in, by its name."""
    if "\n" in source.name:
        raise ArgumentValueError.explained(
            who,
            f"expected a source whose name is one line; got {source.name!r}",
            "Rename the file: compilers write names into lists of one per line.",
        )
    language = LANGUAGES.get(source.suffix)
    if language is None:
        raise ArgumentValueError.explained(
            who,
            f"expected a source ending in {', '.join(LANGUAGES)} or a library ending "
            f"in .so; got {source.name}",
            "Rename the file after the language it is written in.",
        )
    return language


def _compile(
    store: ObjectStore,
    plan: BuildPlan,
    echo: Callable[[str], None] | None = None,
) -> tuple[Result, bytes]:
    """Compiles, and records the result under what was read, which must not move meanwhile."""
    known = {stamp.path: stamp for stamp in (plan.source, *(unit for unit, _ in plan.units))}
    for _ in range(_ATTEMPTS):
        # What was edited just before would be compiled twice; nobody edits what generated C reads.
        if store.root not in plan.folder.parents:
            _wait_for_tick()
        started_ns = time.clock_gettime_ns(_CLOCK_REALTIME_COARSE)
        with log_build(store.who, plan.library_name, plan.command):
            data, paths = _run_compiler(store, plan, echo)
        stamps = take_stamps((*paths, *plan.named_files), store.who)
        stamps.pop(plan.source.path, None)
        at_rest = all(
            known.get(path) == stamp or stamp.ctime_ns < started_ns
            for path, stamp in stamps.items()
        )
        if at_rest and plan.source.refreshed():
            inputs = tuple(stamps.values())
            listing = list_folders(plan.folders, header_names(inputs))
            return add_object(store, plan.key, plan.library_name, data, inputs, listing)
        known.update(stamps)
    raise BuildError.explained(
        store.who,
        f"{plan.source.path}, or a header it includes, changed while it was being compiled",
        "Build it again when nothing writes to these files.",
    )


def take_stamps(paths: tuple[str, ...], who: str) -> dict[str, Stamp]:
    """Returns the stamps of the files that a compiler or linker read, by their paths.

    Raises:
      BuildError: one of them cannot be read.
    """
    try:
        return {path: _stamp(path) for path in with_members(paths, who)}
    except (OSError, ValueError) as error:
        raise BuildError.explained(
            who,
            "the compiler reports that it read a file that cannot be read",
            "Build it again if something deletes that file meanwhile, else name another compiler "
            "with CC or CXX.",
            [str(error)],
        ) from error


def _stamp(path: str) -> Stamp:
    """Returns the stamp of a file as it is now; one that stays the same is read once."""
    known = _stamps.get(path)
    stamp = (known and known.refreshed()) or take_stamp(path)
    _stamps[path] = stamp
    return stamp


def _wait_for_tick() -> None:
    """Waits until files that change from now on get later times than those that changed before."""
    now_ns = time.time_ns()
    while time.clock_gettime_ns(_CLOCK_REALTIME_COARSE) <= now_ns:
        time.sleep(0.0005)


def _run_compiler(
    store: ObjectStore, plan: BuildPlan, echo: Callable[[str], None] | None
) -> tuple[bytes, tuple[str, ...]]:
    """Returns the library's content and the absolute paths of all files the compiler read."""
    with store.scratch() as scratch, contextlib.ExitStack() as stack:
        folder, command = scratch, plan.command
        links: dict[str, str] = {}
        if plan.uses_nvcc:
            folder = stack.enter_context(nvcc_paths.plain_folder(scratch, store.who))
            command, links = nvcc_paths.put_links(plan.command, plan.folder, folder)
            # Intermediates that are kept have names without the process id: without this the
            # library would have another content, and so another hash, each time it is built.
            command = (*command, "--keep", "--keep-dir", os.fspath(folder))
        objects, paths = _compile_units(store, plan, folder)
        library = folder / f"out{plan.suffix}"
        command = (*command, *map(os.fspath, objects), *plan.link_words)
        paths += [
            os.path.join(plan.folder, nvcc_paths.behind_links(path, links))
            for path in _run_step(store, plan, plan.source, command, library, echo)
        ]
        data = library.read_bytes()
    return data, tuple(dict.fromkeys(paths))


def _compile_units(
    store: ObjectStore, plan: BuildPlan, folder: Path
) -> tuple[list[Path], list[str]]:
    """Compiles the further sources, as many at once as there are processors.

    Returns:
      Their object files in `folder`, and the absolute paths of all files that were read.
    """
    objects = [folder / f"{index}.o" for index in range(len(plan.units))]

    def compile_unit(index: int) -> list[str]:
        unit, command = plan.units[index]
        unit_folder = Path(unit.path).parent
        paths = _run_step(store, plan, unit, command, objects[index])
        return [os.path.join(unit_folder, path) for path in paths]

    if not objects:
        return [], []
    return objects, list(itertools.chain(*map_in_threads(compile_unit, range(len(objects)))))


def _run_step(
    store: ObjectStore,
    plan: BuildPlan,
    source: Stamp,
    command: tuple[str, ...],
    output: Path,
    echo: Callable[[str], None] | None = None,
) -> list[str]:
    """Compiles one source in its folder to `output`, and links it if that is a library.

    Returns:
      The files that were read, as compiler, assembler and linker report them.
    """
    folder = Path(source.path).parent
    depfile, assembled = output.with_suffix(".d"), output.with_suffix(".incbin.d")
    linked = output.with_suffix(".link.d") if output.suffix == ".so" else None
    outputs = ["-MD", "-MT", "out", "-MF", os.fspath(depfile), "-o", os.fspath(output)]
    if plan.uses_gcc:
        outputs += ["-Xassembler", "--MD", "-Xassembler", os.fspath(assembled)]
    if linked is not None:
        done = link(command, tuple(outputs), linked, folder, output.parent, echo)
    else:
        done = compilers.run_quietly((*command, *outputs), folder, output.parent, echo)
    if done.returncode != 0 or not output.is_file():
        # A temporary file of the compiler's, in a folder of which a deletion has left a part.
        if f"{output.parent}/" in done.stdout and "No such file or directory" in done.stdout:
            raise store.vanished()
        raise compile_error(store, source, command, done.stdout)
    paths = _read_depfile(depfile, folder)
    if not any(os.path.realpath(folder / path) == os.path.realpath(source.path) for path in paths):
        raise BuildError.explained(
            store.who,
            f"{Path(command[0]).name} built {source.path}, but did not write which headers it read",
            "Name a compiler that has gcc's options -MD and -MF with CC or CXX.",
        )
    # The assembler also read what the compiler wrote, which is gone.
    paths += filter(lambda path: os.path.exists(folder / path), _read_depfile(assembled, folder))
    if linked is not None:
        parse_elf(output.read_bytes(), source.path, store.who)
        paths += read_report(linked, folder, command[0])
    return paths


def _read_depfile(path: Path, folder: Path) -> list[str]:
    """Returns the files that a depfile names; none if it is no such file.

    What is there but is no file, as /dev/null, is left out.
    """
    # Read as bytes: a file's name may hold a carriage return.
    data = path.read_bytes() if path.is_file() else b""
    if b"\0" in data:
        return []
    named = parse_depfile(data.decode("utf-8", "surrogateescape"))
    return [name for name in named if not _is_special(os.path.join(folder, name))]


def _is_special(path: str) -> bool:
    return os.path.exists(path) and not os.path.isfile(path)
