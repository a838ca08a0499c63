"""Errors for a failed compiler or linker; they show its first message."""

from __future__ import annotations

import re
import shlex
from collections.abc import Sequence
from pathlib import Path

from msops._toolchain.options import versions_of
from msops._toolchain.stamps import Stamp
from msops._toolchain.store import ObjectStore
from msops.errors import BuildError

# Of the first error, and of the lines before it that lead from the user's source to a header.
_SHOWN_LINES = 5
_SHOWN_BEFORE = 2
# nvcc puts the line into parentheses: file.cu(12): error: ...
_DIAGNOSTIC = re.compile(r"\S.*?(?::\d+(?::\d+)?|\(\d+\)): (?:fatal |catastrophic )?(\w+)\b.*")
# It may name types of the user's, such as ffi::Error.
_PLACE = re.compile(r"\S.*: (?:[Ii]n|At) .*:")
_OTHER_ERROR = re.compile(
    r"\b(fatal|error)\b|undefined reference|cannot find|multiple definition", re.IGNORECASE
)
_MISSING_HEADER = re.compile(
    r"(?:fatal error: '?(.+?)'?(?:: No such file or directory| file not found)"
    r"|cannot open source file \"(.+?)\")"
)
_MISSING_LIBRARY = re.compile(
    r"(?:cannot find -l|unable to find library -l|library not found(?: for)?:? -?l?)([^\s:]+)"
)

_UNDECLARED = re.compile(
    r"\W(msops|AotExtra|AotKernelData)\W (?:has not been|was not|does not name)"
    r"|(?:undeclared identifier|unknown type name) '(msops|AotExtra|AotKernelData)'"
)
_HEADERS = {"msops": "msops_parallel_for.h"}
"""Of msops, by a name that they declare; the others are MindSpore's."""


def compile_error(
    store: ObjectStore, source: Stamp, command: tuple[str, ...], output: str
) -> BuildError:
    """Returns the error for a failed compilation, with the compiler's first message on it."""
    path = Path(source.path)
    if "No space left on device" in output:
        error = store.unwritable("No space left on device")
        error.output = output
        return error
    problem = f"{Path(command[0]).name} could not build {path}"
    advice = _advice(output, command) or "Correct the source or the flags."
    return failed_command(
        store.who, problem, advice, command, path.parent, output, first_error(output, path.name)
    )


def link_error(
    who: str, name: str, command: tuple[str, ...], folder: Path, output: str
) -> BuildError:
    """Returns the error for objects that cannot be linked to the library `name`."""
    problem = f"{Path(command[0]).name} could not link {name}"
    advice = _advice(output, command) or "Correct the sources or ldflags."
    return failed_command(who, problem, advice, command, folder, output, first_error(output))


def failed_command(
    who: str,
    problem: str,
    advice: str,
    command: Sequence[str],
    folder: Path,
    output: str,
    lines: Sequence[str],
) -> BuildError:
    """Returns the error for a command that failed, with the command and its whole output."""
    error = BuildError.explained(
        who,
        problem,
        f"{advice} The command was, in {folder}:\n  {shlex.join(command)}\n"
        "All that the compiler said is in the attribute 'output' of this error.",
        lines,
    )
    error.output = output
    return error


def first_error(output: str, source_name: str = "") -> list[str]:
    """Returns the first error with its line and caret, and how many errors follow.

    Args:
      output: all that a compiler said.
      source_name: the user's source. An error in a header is shown with the lines before it that
        say how the source comes to it.
    """
    lines = output.splitlines()
    if not lines:
        return ["(the compiler said nothing)"]
    kinds = [_kind(line) for line in lines]
    errors = [index for index, kind in enumerate(kinds) if kind == "error"]
    if not errors:
        return lines[-_SHOWN_LINES:]
    first = errors[0]
    following = (index for index in range(first + 1, len(lines)) if kinds[index])
    end = min(next(following, len(lines)), first + _SHOWN_LINES)
    shown = lines[first:end]
    if source_name and not lines[first].startswith((source_name, f"./{source_name}")):
        before = [line for line in lines[:first] if source_name in line]
        shown = [*before[-_SHOWN_BEFORE:], *shown]
    more = len(errors) - 1
    return [*shown, f"({more} more error{'s' * (more > 1)})"] if more else shown


def _kind(line: str) -> str:
    """Returns "error" or "other" for a line that begins a message, else nothing."""
    diagnostic = _DIAGNOSTIC.match(line)
    if diagnostic is not None:
        return "error" if diagnostic[1] == "error" else "other"
    if line[:1].isspace() or _PLACE.fullmatch(line):
        return ""
    return "error" if _OTHER_ERROR.search(line) else ""


def _advice(output: str, command: tuple[str, ...]) -> str:
    """Returns what to do about a missing header, #include or library; nothing if none is."""
    header = _MISSING_HEADER.search(output)
    if header is not None and (header[1] or header[2]).startswith("xla/ffi/"):
        return (
            "A handler of XLA's FFI is msops.ffi('file.cc:Handler', out=...), which finds JAX's "
            "headers (jax.ffi.include_dir()). The kernel of msops.cpp needs none, but has the "
            "arguments (nparam, params, ndims, shapes, dtypes, stream, extra)."
        )
    if header is not None:
        return (
            f"Install what {header[1] or header[2]} comes with, or name its folder with "
            "Build(include_dirs=...)."
        )
    undeclared = _UNDECLARED.search(output)
    if undeclared is not None:
        name = _HEADERS.get(undeclared[1] or undeclared[2], "custom_aot_extra.h")
        return f'Write #include "{name}", which msops finds.'
    library = _MISSING_LIBRARY.search(output)
    if library is None:
        return ""
    name = library[1]
    folders = tuple(word[2:] for word in command if word.startswith("-L"))
    found = versions_of(name, folders)
    if found:
        return f"Name the library as a file: Build(libraries={found[0]!r})."
    searched = f" Searched were {', '.join(folders)} and the system's folders." if folders else ""
    return (
        f"Install the library {name}, or name its folder with Build(library_dirs=...); there is "
        f"neither lib{name}.so nor lib{name}.a.{searched}"
    )
