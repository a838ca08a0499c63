"""The languages of kernel sources, a row each: compiler, flags, and how to get the compiler.

Flags are those of users' sources: optimised, and IEEE arithmetic kept (no -ffast-math, no -march).
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Language:
    """A language of kernel sources.

    Attributes:
      title: its name in messages.
      program: its compiler, unless `variable` names another.
      variable: the environment variable that does; for CUDA, of the toolkit's folder.
      standard_flags: what every compiler of the language gets.
      gcc_flags: what only gcc knows. Without the first, two libraries with an inline static of the
        same name share one variable (STB_GNU_UNIQUE). The second lets it use 512 MiB before it
        collects garbage, which a module with pybind11 or a kernel with Eigen needs anyway.
      remedy: how to get the compiler.
    """

    title: str
    program: str
    variable: str
    standard_flags: tuple[str, ...]
    gcc_flags: tuple[str, ...]
    remedy: str


C = Language(
    "C",
    "gcc",
    "CC",
    ("-O3", "-shared", "-fPIC"),
    (),
    "Install it (Debian, Ubuntu: apt-get install gcc; Fedora: dnf install gcc; conda: conda "
    "install gcc), or name another C compiler with CC.",
)
CXX = Language(
    "C++",
    "g++",
    "CXX",
    ("-O3", "-std=c++17", "-shared", "-fPIC", "-fvisibility-inlines-hidden"),
    ("-fno-gnu-unique", "--param=ggc-min-heapsize=524288"),
    "Install it (Debian, Ubuntu: apt-get install g++; Fedora: dnf install gcc-c++; conda: conda "
    "install gxx), or name another C++ compiler with CXX.",
)
CUDA = Language(
    "CUDA",
    "nvcc",
    "CUDA_HOME",
    (
        "-O3",
        "-std=c++17",
        "-shared",
        "-Xcompiler",
        "-fPIC,-fvisibility-inlines-hidden,-fno-gnu-unique",
    ),
    (),
    "Install the CUDA toolkit, and put its bin folder on PATH or set CUDA_HOME to the toolkit.",
)
LANGUAGES = {".c": C, ".cc": CXX, ".cpp": CXX, ".cxx": CXX, ".cu": CUDA}


def suffixes_of(title: str) -> tuple[str, ...]:
    """Returns the suffixes of the sources of one language."""
    return tuple(suffix for suffix, row in LANGUAGES.items() if row.title == title)
