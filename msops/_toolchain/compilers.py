"""Which compiler builds a source, who that compiler is, and the command line it gets."""

from __future__ import annotations

import itertools
import os
import re
import shlex
import shutil
import subprocess
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path

from msops._base import config
from msops._base.processor import processor_description
from msops._toolchain.commands import run_command
from msops._toolchain.cuda import device_architectures
from msops._toolchain.languages import CUDA, LANGUAGES, SourceLanguage
from msops.errors import BuildError

OLDEST_GCC = 11
_HEADER_VARIABLES = ("CPATH", "C_INCLUDE_PATH", "CPLUS_INCLUDE_PATH")
# Everything in the environment that changes what a compiler makes of the same command line.
SEARCH_VARIABLES = (
    *_HEADER_VARIABLES,
    "LIBRARY_PATH",
    "LD_RUN_PATH",
    "COMPILER_PATH",
    "GCC_EXEC_PREFIX",
    "SOURCE_DATE_EPOCH",
    "NVCC_PREPEND_FLAGS",
    "NVCC_APPEND_FLAGS",
    "NVCC_CCBIN",
)
CHOICE_VARIABLES = ("PATH", "CC", "CXX", "CUDA_HOME", "MSOPS_CUDA_ARCH")


@dataclass(frozen=True)
class Compiler:
    """A compiler on this machine.

    Attributes:
      command: the words that start it.
      version_text: all that its ``--version`` says.
      host_text: for nvcc, what that of its host compiler says.
    """

    command: tuple[str, ...]
    version_text: str
    host_text: str = ""

    @property
    def identity(self) -> str:
        """All that tells it from other compilers."""
        return self.version_text + self.host_text

    @property
    def is_gcc(self) -> bool:
        """Whether it is GNU's."""
        return "Free Software Foundation" in self.version_text

    @property
    def gcc_version(self) -> str:
        """The version of GNU's compiler; empty for others."""
        version = re.search(r"\)\s+(\d+\.\d\S*)", self.version_text)
        return version[1] if self.is_gcc and version else ""

    @property
    def gcc_release(self) -> int | None:
        """The major version of GNU's compiler; None for others."""
        return int(self.gcc_version.partition(".")[0]) if self.gcc_version else None


_versions: dict[tuple[object, ...], str] = {}


def find_compiler(
    language: SourceLanguage, flags: tuple[str, ...], source: Path, who: str
) -> Compiler:
    """Returns the compiler for a source of `language`.

    Raises:
      BuildError: there is none, it does not run, it is a gcc older than 11, or the variable that
        names it is malformed.
    """
    command = _chosen_command(language)
    program = shutil.which(command[0])
    if program is None:
        raise BuildError.explained(
            who,
            f"building {source} needs the {language.title} compiler {command[0]}, which is "
            "not installed or not on PATH",
            language.remedy,
        )
    command = (program, *command[1:])
    compiler = Compiler(command, _version_text(command, who))
    _check_gcc_is_new_enough(compiler, source, language, who)
    if language is CUDA:
        return replace(compiler, host_text=_host_compiler_version(flags, who))
    return compiler


def has_compiler(suffix: str) -> bool:
    """Returns whether there is a compiler for sources of some suffix.

    Raises:
      BuildError: the variable that names it is malformed.
    """
    return shutil.which(_chosen_command(LANGUAGES[suffix])[0]) is not None


def command_line(
    compiler: Compiler,
    language: SourceLanguage,
    source_name: str,
    flags: tuple[str, ...],
    include_dirs: tuple[str, ...],
    suffix: str,
) -> tuple[str, ...]:
    """Returns the command that makes a ".so" or ".o" of a source, run in the source's folder.

    The caller's flags come last: there they override ours, and libraries they name are linked.
    """
    return (
        *compiler.command,
        *language.standard_flags,
        *(language.gcc_flags if compiler.is_gcc else ()),
        *(_architecture_flags() if language is CUDA else ()),
        *(language.link_flags if suffix == ".so" else ("-c",)),
        "-I.",
        *(f"-I{folder}" for folder in include_dirs),
        source_name,
        *flags,
    )


def folders_of_environment(folder: Path) -> tuple[str, ...]:
    """Returns the absolute folders that variables add to the search for headers.

    Args:
      folder: where the compiler runs, and relative paths start.
    """
    texts = (os.environ.get(name, "") for name in _HEADER_VARIABLES)
    return tuple(os.fspath(folder / part) for text in texts for part in text.split(":") if part)


def words_of_environment(language: SourceLanguage) -> tuple[str, ...]:
    """Returns the words that variables add to a command of the language's compiler."""
    if language is not CUDA:
        return ()
    texts = (os.environ.get(name, "") for name in ("NVCC_PREPEND_FLAGS", "NVCC_APPEND_FLAGS"))
    return tuple(word for text in texts for word in text.split())


def processor_identity(flags: tuple[str, ...]) -> str:
    """Returns the CPU a library is built for: its model if a flag says ``native``, its kind if not.

    What ``-march=native`` resolves to is a function of the compiler and of this text.
    """
    kind = os.uname().machine
    if not any("native" in flag for flag in flags):
        return kind
    return f"{kind}\n{processor_description()}"


def run_quietly(
    command: tuple[str, ...],
    folder: Path,
    temporary: Path | None = None,
    echo: Callable[[str], None] | None = None,
) -> subprocess.CompletedProcess[str]:
    """Runs a command in `folder` without a shell; its outputs come back as one text, in English.

    Temporary files go to `temporary`, so that they are swept with it if this process is killed.
    With `echo`, the command and each line it prints go there too, at once. An interruption of
    Python terminates the command.

    Raises:
      BuildError: it ended, but left a process behind that holds its output open.
      OSError: it does not start.
    """
    environment = {
        key: text for key, text in os.environ.items() if key not in ("LC_ALL", "LANGUAGE")
    }
    environment |= {"LC_MESSAGES": "C", "GCC_COLORS": ""}
    if temporary is not None:
        environment["TMPDIR"] = os.fspath(temporary)
    if echo is not None:
        echo(shlex.join(command))
    return run_command(command, folder, environment, echo)


def _chosen_command(language: SourceLanguage) -> tuple[str, ...]:
    """Returns the words of the command that the environment asks for.

    Raises:
      BuildError: they are no words of a shell.
    """
    chosen = os.environ.get(language.variable, "").strip()
    if language is not CUDA:
        try:
            return tuple(shlex.split(chosen)) or (language.program,)
        except ValueError as error:
            raise BuildError.explained(
                language.variable,
                f"expected a command in words of a shell; got {chosen!r}: {error}",
                f"Close its quotes, or unset it to use {language.program}.",
            ) from error
    bundled = os.path.join(chosen, "bin", language.program)
    return (bundled,) if chosen and os.access(bundled, os.X_OK) else (language.program,)


def _version_text(command: tuple[str, ...], who: str) -> str:
    """Returns what ``--version`` says, asked once per process and file."""
    found = os.stat(os.path.realpath(command[0]))
    memo_key = (command, found.st_mtime_ns, found.st_size, found.st_ino)
    if memo_key not in _versions:
        try:
            done = run_quietly((*command, "--version"), Path("/"))
            failure = done.stdout.strip() if done.returncode else None
        except OSError as error:
            failure = str(error)
        if failure is not None:
            raise BuildError.explained(
                who,
                f"the compiler {shlex.join(command)} does not run",
                "Repair it, or name another with CC, CXX or CUDA_HOME.",
                [failure],
            )
        _versions[memo_key] = done.stdout
    return _versions[memo_key]


def _check_gcc_is_new_enough(
    compiler: Compiler, source: Path, language: SourceLanguage, who: str
) -> None:
    """Raises if GNU's compiler is older than the oldest this package is tested with."""
    release = compiler.gcc_release
    if release is None or release >= OLDEST_GCC:
        return
    raise BuildError.explained(
        who,
        f"building {source} needs {language.program} {OLDEST_GCC} or newer; "
        f"{compiler.command[0]} is {compiler.gcc_version}",
        f"Install a newer one, or name it with {language.variable}, for example "
        f"{language.variable}={language.program}-12.",
    )


def _host_compiler_version(flags: tuple[str, ...], who: str) -> str:
    """Returns who compiles the host half of a .cu file, as far as nvcc shows it."""
    chosen = os.environ.get("NVCC_CCBIN") or "g++"
    for flag, following in itertools.pairwise((*flags, "")):
        name, _, value = flag.partition("=")
        if name in ("-ccbin", "--compiler-bindir"):
            chosen = value or following
    if os.path.isdir(chosen):
        chosen = os.path.join(chosen, "g++")
    program = shutil.which(chosen)
    return _version_text((program,), who) if program else chosen


def _architecture_flags() -> tuple[str, ...]:
    """Returns nvcc's architecture flags: the variable's, else the devices', else its default."""
    chosen = config.cuda_arch()
    if chosen:
        return (f"-arch={chosen}",)
    devices = device_architectures()
    if not devices:
        return ()
    if len(devices) == 1:
        return (f"-arch={devices[0]}",)
    return tuple(f"-gencode=arch={name.replace('sm', 'compute')},code={name}" for name in devices)
