"""From the source or library that a user names to a library that is safe to open."""

from __future__ import annotations

import contextlib
import os
import re
from dataclasses import dataclass, replace
from pathlib import Path

from msops._base.building import Build, SourceText
from msops._toolchain.allow_list import check_allowed
from msops._toolchain.builder import build_recorded
from msops._toolchain.compilers import CHOICE_VARIABLES, SEARCH_VARIABLES
from msops._toolchain.dependencies import Dependency, check_dependencies, find_dependencies
from msops._toolchain.elf import ElfInfo, parse_elf
from msops._toolchain.languages import CUDA, CXX, LANGUAGES, C
from msops._toolchain.manifest import Listing, Result, header_names, list_folders
from msops._toolchain.options import NO_OPTIONS
from msops._toolchain.private_copy import copy_library
from msops._toolchain.stamps import Stamp, take_stamp
from msops._toolchain.store import STORE_VARIABLES, Built, open_store, retried
from msops._toolchain.symbols import uses_old_strings
from msops._toolchain.texts import kept, store_source
from msops.errors import ArgumentValueError

OTHER_ABI = ".other-string-abi"
"""Suffix of a library's hash if opened with a std::string ABI that its imports do not show."""

_LIBRARY_NAME = re.compile(r".+\.so(\.\d+)*")
ENVIRONMENT = (*SEARCH_VARIABLES, *CHOICE_VARIABLES, *STORE_VARIABLES)
# Headers that come with the system or the compiler are compared once per process, not per call.
_SYSTEM_FOLDERS = ("/usr/", "/opt/", "/lib/")


@dataclass(frozen=True)
class Library:
    """A library ready to be opened.

    Attributes:
      hash: SHA-256 of its content, in hexadecimal; what programs refer to it by.
      name: base name of the source or library the user named.
      path: the file to open, whose content never changes.
      origin: absolute path of the file the user named; None if msops wrote the source.
      old_string_abi: it was built with ``_GLIBCXX_USE_CXX11_ABI=0``.
      functions: the names of the functions it exports.
      has_device_code: it carries GPU code, or is linked with a GPU runtime.
      has_constructors: opening it runs code of its author's.
      dependencies: the libraries that it needs, and where they lie.
      unique: variables of which a process has one, whichever library defines it first.
    """

    hash: str
    name: str
    path: Path
    origin: Path | None
    old_string_abi: bool
    functions: frozenset[str]
    has_device_code: bool
    has_constructors: bool = False
    unique: frozenset[str] = frozenset()
    dependencies: tuple[Dependency, ...] = ()


@dataclass(frozen=True)
class _Memo:
    """A library, with what it was resolved from."""

    library: Library
    stamps: tuple[Stamp, ...]
    listing: Listing
    header_names: frozenset[str]


# The compiler of a later one links objects of those before it.
_LINKERS = (None, C, CXX, CUDA)
_memos: dict[tuple[object, ...], _Memo] = {}
_indexed: dict[str, Stamp] = {}


@retried
def resolve(
    source: str | os.PathLike[str] | SourceText,
    who: str,
    *,
    include_dirs: tuple[Path, ...] = (),
    options: Build = NO_OPTIONS,
    cxx11_abi: bool | None = None,
    is_named: bool = True,
) -> Library:
    """Returns the library of a source or library file, built or copied if needed.

    Cheap when nothing changed since the last call: some stat calls.

    Args:
      source: a .c, .cc, .cpp, .cxx or .cu source, or a .so library; a relative path starts at the
        working directory. Or a source given as text.
      who: the op that messages name.
      include_dirs: where sources find msops's headers.
      options: what the caller adds to the build of a source.
      cxx11_abi: which std::string the library was built with; None asks the library.
      is_named: a user named the files, so the allow-list concerns them; False for sources that come
        with msops. It does not concern a text.

    Raises:
      ArgumentTypeError: a file lies outside ``MS_CUSTOM_AOT_WHITE_LIST``.
      ArgumentValueError: the suffix is none of the above, options are given for a library, or a
        text has a character that UTF-8 cannot write.
      BuildError: it is missing, does not compile, is no library for this machine, or needs another
        library that the process has in another build.
    """
    if is_named:
        sources = tuple(check_allowed(other, who) for other in options.sources)
        options = replace(options, sources=sources) if sources != options.sources else options
    if isinstance(source, SourceText):
        path = store_source(source.text, source.file_name, who)
        with kept(path, who):
            return _resolve(path, who, include_dirs, options, cxx11_abi, has_origin=False)
    path = Path(source).absolute()
    if is_named:
        path = check_allowed(path, who)
    return _resolve(path, who, include_dirs, options, cxx11_abi, has_origin=is_named)


def index(folder: str | os.PathLike[str]) -> dict[str, Path]:
    """Returns the libraries in one folder of ``MSOPS_LIBRARY_PATH``, by content hash.

    Args:
      folder: its regular files named ``*.so`` count; one that is not there has none.
    """
    try:
        paths = sorted(Path(folder).glob("*.so"))
    except OSError:
        return {}
    found: dict[str, Path] = {}
    for path in paths:
        # What cannot be read, or goes away, is not there.
        with contextlib.suppress(OSError):
            if path.is_file():
                known = _indexed.get(os.fspath(path))
                stamp = (known and known.refreshed()) or take_stamp(path)
                _indexed[os.fspath(path)] = stamp
                found.setdefault(stamp.sha256, path)
    return found


def find_in_cache(digest: str, who: str) -> Path | None:
    """Returns the library, or the cubin, of a content hash if the cache folder has it.

    Raises:
      BuildError: others may write it.
    """
    store = open_store(who)
    with contextlib.suppress(FileNotFoundError, NotADirectoryError):
        for path in sorted(store.object_path(digest, "any").parent.iterdir()):
            if store.read_verified(path, digest) is not None:
                return path
    return None


def _resolve(
    path: Path,
    who: str,
    include_dirs: tuple[Path, ...],
    options: Build,
    cxx11_abi: bool | None,
    has_origin: bool,
) -> Library:
    """Returns the library of a file, from the last call if nothing changed since."""
    environment = tuple(map(os.environ.get, ENVIRONMENT))
    memo_key = (os.fspath(path), include_dirs, options, cxx11_abi, environment)
    memo = _memos.get(memo_key)
    if memo is not None:
        memo = _refreshed(memo)
    if memo is None:
        memo = _resolve_file(path, who, include_dirs, options, cxx11_abi)
        if not has_origin:
            memo = replace(memo, library=replace(memo.library, origin=None))
    _memos[memo_key] = memo
    # Not only before it is opened: a program that was compiled before may call it.
    check_dependencies(memo.library.dependencies, memo.library.name, who)
    return memo.library


def _resolve_file(
    origin: Path,
    who: str,
    include_dirs: tuple[Path, ...],
    options: Build,
    cxx11_abi: bool | None,
) -> _Memo:
    """Builds a source or copies a library, and says what that depended on."""
    if _LIBRARY_NAME.fullmatch(origin.name):
        if options != NO_OPTIONS:
            raise ArgumentValueError.explained(
                who,
                f"expected a source with {options}; got the library {origin}",
                "Leave build out, or name the source instead of the library.",
            )
        built, info, stamp = copy_library(origin, who)
        return _Memo(_library(built, info, origin, cxx11_abi), (stamp,), (), frozenset())
    first, options = _choose_linker(origin, options)
    built, data, stamp, result = build_recorded(first, options, include_dirs, who)
    built = replace(built, name=origin.name)
    info = parse_elf(data, built.path, who)
    library = _library(built, info, origin, cxx11_abi)
    names = header_names(result.inputs)
    return _Memo(library, (stamp, *_own_headers(result)), result.listing, names)


def _choose_linker(origin: Path, options: Build) -> tuple[Path, Build]:
    """Returns the source whose compiler links, and options that name the others.

    C++ needs its own compiler for that, and CUDA nvcc; of one language the user's first source is.
    """
    sources = tuple(dict.fromkeys((origin, *options.sources)))
    first = max(sources, key=lambda source: _LINKERS.index(LANGUAGES.get(source.suffix)))
    others = tuple(source for source in sources if source != first)
    return first, replace(options, sources=others) if first != origin else options


def _library(built: Built, info: ElfInfo, origin: Path, cxx11_abi: bool | None) -> Library:
    """Puts together what is known of a library."""
    known = uses_old_strings(info.imports)
    old = known if cxx11_abi is None else not cxx11_abi
    is_given = _LIBRARY_NAME.fullmatch(origin.name)
    # Programs find a library by its hash, so one taken for the other ABI needs a hash of its own.
    content = built.hash if old == known else f"{built.hash}{OTHER_ABI}"
    return Library(
        content,
        built.name,
        built.path,
        origin,
        old,
        info.functions,
        info.has_device_code,
        info.has_constructors,
        info.unique,
        find_dependencies(origin if is_given else built.path, info),
    )


def _own_headers(result: Result) -> tuple[Stamp, ...]:
    """Returns the inputs of a build that lie where the user, not the system, keeps headers."""
    own = tuple(f"{folder}/" for folder, _ in result.listing)
    return tuple(
        stamp
        for stamp in result.inputs
        if stamp.path.startswith(own) or not stamp.path.startswith(_SYSTEM_FOLDERS)
    )


def _refreshed(memo: _Memo) -> _Memo | None:
    """Returns the memo with stamps as of now, or None if it no longer holds."""
    stamps = tuple(stamp.refreshed() for stamp in memo.stamps)
    folders = tuple(folder for folder, _ in memo.listing)
    if (
        None in stamps
        or not memo.library.path.exists()
        or list_folders(folders, memo.header_names) != memo.listing
    ):
        return None
    return replace(memo, stamps=tuple(filter(None, stamps)))
