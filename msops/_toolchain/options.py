"""The words of a command line that `Build` means, and a check of what it names."""

from __future__ import annotations

import glob
import itertools
import os
import re
from pathlib import Path

from msops._base.building import Build
from msops._toolchain.allow_list import check_allowed
from msops._toolchain.inputs import require_file
from msops._toolchain.languages import CUDA, LANGUAGES, C, SourceLanguage
from msops.errors import ArgumentValueError, BuildError

NO_OPTIONS = Build()

_SHARED = re.compile(r".+\.so(\.\d+)*")
_SYSTEM_LIBRARIES = (
    "/usr/local/lib",
    "/usr/local/lib64",
    f"/usr/lib/{os.uname().machine}-linux-gnu",
    "/usr/lib64",
    "/usr/lib",
)


def check_build(build: Build, who: str) -> None:
    """Raises unless the files and folders that `build` names are there and may be used.

    Raises:
      ArgumentTypeError: a source or library lies outside ``MS_CUSTOM_AOT_WHITE_LIST``.
      ArgumentValueError: a source has the suffix of no language.
      BuildError: a file or a folder is missing.
    """
    for source in build.sources:
        if source.suffix not in LANGUAGES:
            raise ArgumentValueError.explained(
                who,
                f"expected Build(sources=) ending in {', '.join(LANGUAGES)}; got {source}",
                "Name libraries with Build(libraries=), and folders of headers with "
                "Build(include_dirs=).",
            )
    for file in (*build.sources, *library_files(build)):
        check_allowed(file, who)
        require_file(file, who)
    for option in ("include_dirs", "library_dirs"):
        for folder in getattr(build, option):
            if not folder.is_dir():
                raise BuildError.explained(
                    who,
                    f"there is no folder {folder}, which Build({option}=) names",
                    f"Correct the path; relative paths start at {Path.cwd()}.",
                )


def library_files(build: Build) -> tuple[Path, ...]:
    """Returns the libraries that are given as files."""
    return tuple(library for library in build.libraries if isinstance(library, Path))


def library_folders(build: Build) -> tuple[Path, ...]:
    """Returns the folders that libraries come from."""
    files = tuple(file.parent for file in library_files(build) if _SHARED.fullmatch(file.name))
    return tuple(dict.fromkeys((*build.library_dirs, *files)))


def compiler_words(build: Build, language: SourceLanguage) -> tuple[str, ...]:
    """Returns the words for compiling a source of `language`, but the folders of headers."""
    is_for_c = build.std is not None and "++" not in build.std
    fits = build.std is not None and is_for_c == (language is C)
    return (
        *((f"-std={build.std}",) if fits else ()),
        *(f"-D{define}" for define in build.defines),
        *build.flags,
    )


def linker_words(build: Build, language: SourceLanguage) -> tuple[str, ...]:
    """Returns the words for linking with the compiler of `language`; they follow all objects."""
    words = list(build.link_flags)
    if language is CUDA:
        words = [
            word
            for flag in words
            for word in (("-Xlinker", flag[4:]) if flag.startswith("-Wl,") else (flag,))
        ]
    words += [f"-L{folder}" for folder in build.library_dirs]
    for folder in library_folders(build):
        words += ["-Xlinker", "-rpath", "-Xlinker", os.fspath(folder)]
    words += [
        os.fspath(library) if isinstance(library, Path) else f"-l{library}"
        for library in build.libraries
    ]
    return tuple(words)


def named_folders(
    words: tuple[str, ...], options: tuple[str, ...], folder: Path
) -> tuple[str, ...]:
    """Returns the absolute folders that words of a command name with `options`, such as ``-I``."""
    found = []
    for word, following in itertools.pairwise((*words, "")):
        for option in options:
            if word.startswith(option):
                found.append(os.fspath(folder / (word[len(option) :] or following)))
                break
    return tuple(found)


def versions_of(name: str, folders: tuple[str, ...]) -> list[str]:
    """Returns files that may be the library `name`, but are not called what the linker asks for."""
    return [
        os.fspath(path)
        for folder in (*folders, *_SYSTEM_LIBRARIES)
        for path in sorted(Path(folder).glob(f"lib{glob.escape(name)}*.so*"))
        if path.is_file()
    ]
