"""Paths that nvcc can handle, for those it cannot.

nvcc passes names through a shell without quoting them, splits them at commas, and lists
intermediates as ``key=value``. A path with anything but plain characters gets a link with a plain
name, and what nvcc says about the link is said about the path.
"""

from __future__ import annotations

import contextlib
import os
import re
from collections.abc import Iterator
from pathlib import Path

from msops._base.temporary import temporary_folder
from msops._toolchain.languages import suffixes_of
from msops.errors import BuildError

_PLAIN = re.compile(r"(?!-)[\w./+ -]+", re.ASCII)


@contextlib.contextmanager
def plain_folder(scratch: Path, who: str) -> Iterator[Path]:
    """Yields `scratch` if nvcc can handle its path, else a temporary folder elsewhere.

    Raises:
      BuildError: nor can it handle that, or there is no place for one.
    """
    if _PLAIN.fullmatch(os.fspath(scratch)):
        yield scratch
        return
    with temporary_folder(who) as folder:
        if not _PLAIN.fullmatch(os.fspath(folder)):
            raise BuildError.explained(
                who,
                f"expected a path of plain characters, as nvcc needs it; got {str(folder)!r}",
                "Set MSOPS_CACHE_DIR or TMPDIR to a folder whose path has letters and digits only.",
            )
        yield folder


def put_links(
    command: tuple[str, ...], source_folder: Path, folder: Path
) -> tuple[tuple[str, ...], dict[str, str]]:
    """Puts links in place of the source and of header folders that nvcc cannot handle.

    Args:
      command: a command line, run in `source_folder`.
      source_folder: where relative paths in it start.
      folder: where links are made.

    Returns:
      The command line, and the target of each of its links.
    """
    words, links = list(command), {}
    for position, word in enumerate(command):
        option, path = ("-I", word[2:]) if word.startswith("-I") else ("", word)
        is_source = not option and path.endswith(suffixes_of("CUDA"))
        if _PLAIN.fullmatch(path) or not (option or is_source):
            continue
        link = os.fspath(folder / f"link{position}{Path(path).suffix if is_source else ''}")
        links[link] = os.fspath(source_folder / path)
        os.symlink(links[link], link)
        words[position] = option + link
    return tuple(words), links


def behind_links(path: str, links: dict[str, str]) -> str:
    """Returns `path` with the link it goes through, if any, replaced by its target."""
    for link, original in links.items():
        if path == link or path.startswith(f"{link}/"):
            return original + path[len(link) :]
    return path
