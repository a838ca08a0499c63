"""Reading a file that a user named."""

from __future__ import annotations

import difflib
import os
import stat
from pathlib import Path

from msops._toolchain.stamps import Stamp, read_stamped
from msops.errors import ArgumentValueError, BuildError


def read_path(text: str, who: str) -> Path:
    """Returns the absolute path that a user's text names; ``~`` begins one in a home folder.

    Raises:
      ArgumentValueError: no file can have that path, or nobody knows the home folder.
    """
    if "\0" in text:
        raise ArgumentValueError.explained(
            who,
            f"expected the path of a file; got {text!r}, which has a null character",
            "Name a file that can be.",
        )
    try:
        return Path(text).expanduser().absolute()
    except RuntimeError as error:
        raise ArgumentValueError.explained(
            who,
            f"expected the path of a file; got {text!r}, whose home folder is not known",
            "Write the path from / on, or begin it with ./ if ~ is in the file's name.",
        ) from error


def read_input(path: Path, who: str) -> tuple[bytes, Stamp]:
    """Returns the content and the stamp of a source or a library.

    Raises:
      BuildError: there is no such file, or it cannot be read.
    """
    require_file(path, who)
    try:
        return read_stamped(path)
    except OSError as error:
        raise BuildError.explained(
            who, f"{path} cannot be read ({error.strerror})", "Name a file that can be read."
        ) from error


def require_file(path: Path, who: str) -> None:
    """Raises BuildError unless there is a regular file at `path`; pipes and devices never end."""
    try:
        mode = path.stat().st_mode
    except OSError as error:
        raise BuildError.explained(
            who, f"there is no file {path}", _remedy_for_missing(path)
        ) from error
    if not stat.S_ISREG(mode):
        raise BuildError.explained(
            who, f"{path} is no regular file", "Name a source or a shared library."
        )


def _remedy_for_missing(path: Path) -> str:
    """Returns what to do about a file that is not there, with names that are close to its own."""
    try:
        names = os.listdir(path.parent)
    except OSError:
        return f"There is no folder {path.parent} either; relative paths start at {os.getcwd()}."
    near = difflib.get_close_matches(path.name, names, n=3)
    if near:
        return f"That folder has {', '.join(near)}."
    return f"Check the path; relative paths start at {os.getcwd()}."
