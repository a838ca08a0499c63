"""Inputs of the linker: archives, shared libraries and scripts, wherever it found them.

Only the linker knows which file ``-lfoo`` is: that depends on ``-L``, ``LIBRARY_PATH``, its own
folders, and scripts that name further libraries. So it is asked to report what it opened.
"""

from __future__ import annotations

import logging
import os
import re
import subprocess
from collections.abc import Callable, Iterable
from pathlib import Path

from msops._base.logging import warn_once
from msops._toolchain import compilers
from msops._toolchain.options import named_folders
from msops.errors import BuildError

# Of an archive, as in <ar.h>: each member has a header of 60 bytes, which ends with its size and
# two characters. A thin archive holds the content of these alone: the symbols and the long names.
_THIN, _HEADER_BYTES, _HEADER_END = b"!<thin>\n", 60, b"`\n"
_KEPT_IN_THIN = (b"/", b"//", b"/SYM64/")

_REPORT = "--dependency-file"
_UNKNOWN_REPORT = re.compile(rf"(?:unrecognized|unknown)[^\n]*{_REPORT}", re.IGNORECASE)
# GNU ld before 2.35 has no such option. What is known of a linker holds for this process.
_without_report: set[tuple[str | None, ...]] = set()

_log = logging.getLogger("msops.toolchain")


def link(
    command: tuple[str, ...],
    outputs: tuple[str, ...],
    report: Path,
    folder: Path,
    temporary: Path,
    echo: Callable[[str], None] | None,
) -> subprocess.CompletedProcess[str]:
    """Runs a command that links, and has its linker report what it read, if it can.

    Args:
      command: all but the outputs.
      outputs: words that follow it.
      report: the file to write, for `read_report`.
      folder, temporary, echo: as for `compilers.run_quietly`.

    Raises:
      BuildError, OSError: as `compilers.run_quietly`.
    """
    whole = (*command, *outputs)
    # Options and the environment choose the linker too: -fuse-ld, -B, COMPILER_PATH.
    linker = (
        command[0],
        *(word for word in command if word.startswith("-")),
        *map(os.environ.get, ("PATH", *compilers.SEARCH_VARIABLES)),
    )
    if linker not in _without_report:
        words = ("-Xlinker", f"{_REPORT}={report}")
        done = compilers.run_quietly((*whole, *words), folder, temporary, echo)
        if done.returncode == 0 or not _UNKNOWN_REPORT.search(done.stdout):
            return done
        _without_report.add(linker)
    return compilers.run_quietly(whole, folder, temporary, echo)


def read_report(report: Path, folder: Path, compiler: str) -> list[str]:
    """Returns the absolute paths of the files that the linker read, but those beside its report.

    Warns if there is no report.

    Args:
      report: what it wrote: a make rule with a path on each line after the first. In the folder of
        the report lie objects that the same build made.
      folder: where the linker ran, and relative paths start.
      compiler: the program that ran it.
    """
    if not report.is_file():
        warn_once(
            _log,
            f"the linker of {compiler} does not report which files it reads, so msops does not "
            "notice when a library that a kernel is linked with by name changes. Use GNU ld 2.35 "
            "or newer, gold, lld or mold, name libraries as files (Build(libraries=)), or run "
            "'msops cache clear' after such a change.",
        )
        return []
    rule = os.fsdecode(report.read_bytes()).partition("\n\n")[0].split("\n")[1:]
    paths = [os.path.join(folder, _read_path(line, folder)) for line in rule if line.strip()]
    made = f"{report.parent}/"
    return [
        path for path in dict.fromkeys(paths) if not path.startswith(made) and os.path.isfile(path)
    ]


def _read_path(line: str, folder: Path) -> str:
    """Returns the path in a line of a report; GNU ld escapes nothing, lld does as make needs it."""
    path = line.removesuffix(" \\").removeprefix("  ")
    if os.path.exists(folder / path):
        return path
    return re.sub(r"\\([ #])", r"\1", path).replace("$$", "$")


def with_members(paths: Iterable[str], who: str) -> tuple[str, ...]:
    """Returns paths of files, and those of the members of each that is a thin archive.

    A thin archive names its members and has their sizes, so it is the same after one has changed.

    Raises:
      BuildError: a thin archive is damaged.
    """
    found: dict[str, None] = {}
    waiting = list(paths)
    while waiting:
        path = waiting.pop()
        if path not in found:
            found[path] = None
            # The linker needs no member of which nothing is used.
            waiting += filter(os.path.isfile, _members_of_thin(path, who))
    return tuple(found)


def _members_of_thin(path: str, who: str) -> list[str]:
    """Returns the paths that a thin archive names; none for any other file."""
    with open(path, "rb") as file:
        if file.read(len(_THIN)) != _THIN:
            return []
        data = file.read()
    names, table, start = [], b"", 0
    try:
        while header := data[start : start + _HEADER_BYTES]:
            name, size_bytes = header[:16].rstrip(), int(header[48:58])
            start += _HEADER_BYTES
            if header[58:] != _HEADER_END:
                raise ValueError("a header has no end")
            if name not in _KEPT_IN_THIN:
                names.append(name)
                continue
            if name == b"//":
                table = data[start : start + size_bytes]
            start += size_bytes + size_bytes % 2
        # In a name /12:34 is 12 where the table has the path, and 34 a position in that file.
        members = [
            table[int(name[1:].split(b":")[0]) :].partition(b"/\n")[0]
            if name.startswith(b"/")
            else name.removesuffix(b"/")
            for name in names
        ]
    except ValueError as error:
        raise BuildError.explained(
            who,
            f"expected a thin archive, as ar makes it; got {path}, which is damaged: {error}",
            "Make the archive again.",
        ) from error
    return [os.path.join(os.path.dirname(path), os.fsdecode(member)) for member in members]


def search_folders(words: tuple[str, ...], folder: Path) -> tuple[str, ...]:
    """Returns the absolute folders that words and ``LIBRARY_PATH`` add to the linker's search."""
    variable = os.environ.get("LIBRARY_PATH", "").split(":")
    return (
        *named_folders(words, ("-L",), folder),
        *(os.fspath(folder / path) for path in variable if path),
    )


def named_files(words: tuple[str, ...], folder: Path) -> tuple[str, ...]:
    """Returns the files that words of a command name and nobody reports, such as ``@file``."""
    named = (folder / part for word in words for part in re.split("[=,@]", word) if part)
    return tuple(os.fspath(path) for path in named if path.is_file())
