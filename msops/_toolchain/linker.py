"""What the linker reads: archives, shared libraries and scripts, wherever it found them.

Only the linker knows which file ``-lfoo`` is: that depends on ``-L``, ``LIBRARY_PATH``, its own
folders, and scripts that name further libraries. So it is asked to report what it opened.
"""

from __future__ import annotations

import os
import re
from pathlib import Path

from msops._toolchain.options import named_folders
from msops.errors import BuildError, explain


def report_words(report: Path) -> tuple[str, ...]:
    """Returns the words of a compiler's command that make its linker write what it read."""
    return ("-Xlinker", f"--dependency-file={report}")


def read_report(report: Path, folder: Path, who: str) -> list[str]:
    """Returns the absolute paths of the files that the linker read, but those beside its report.

    Args:
      report: what it wrote: a make rule with a path on each line after the first. In the folder of
        the report lie objects that the same build made.
      folder: where the linker ran, and relative paths start.
      who: the op that messages name.

    Raises:
      BuildError: it wrote no report.
    """
    try:
        text = os.fsdecode(report.read_bytes())
    except FileNotFoundError as error:
        raise BuildError(
            explain(
                who,
                "the linker did not write which files it read",
                "Use a linker that has the option --dependency-file: GNU ld 2.35 or newer, gold, "
                "lld or mold.",
            )
        ) from error
    rule = text.partition("\n\n")[0].split("\n")[1:]
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
