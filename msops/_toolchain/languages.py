"""The languages of kernel sources, a row each: compiler, flags, and how to get the compiler.

Flags are those of users' sources: optimised, and IEEE arithmetic kept (no -ffast-math, no -march).
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class SourceLanguage:
    """A language of kernel sources.

    Attributes:
      title: its name in messages.
      program: its compiler, unless `variable` names another.
      variable: the environment variable that does; for CUDA, of the toolkit's folder.
      standard_flags: what every compiler of the language gets.
      gcc_flags: what only gcc knows. `_OWN_NAMES_GCC` goes with `link_flags`. Without
        -fno-gnu-unique, two libraries with an inline static of the same name share one variable
        (STB_GNU_UNIQUE). The last lets it use 512 MiB before it collects garbage, which a module
        with pybind11 or a kernel with Eigen needs anyway.
      link_flags: what makes a shared library. -Bsymbolic binds a library's uses of its own global
        functions and variables to them. Without it the dynamic linker looks for each name in the
        program and its libraries first, and libc and libm define names such as error, index, time,
        gamma, y1 and environ.
      remedy: how to get the compiler.
    """

    title: str
    program: str
    variable: str
    standard_flags: tuple[str, ...]
    gcc_flags: tuple[str, ...]
    link_flags: tuple[str, ...]
    remedy: str


# Lets gcc inline and call directly what -Bsymbolic binds, as clang does without being asked.
_OWN_NAMES_GCC = "-fno-semantic-interposition"
# A function that ends without the value that it declares is only a warning by default. At -O3 its
# code runs on into what lies behind it, and what an int kernel returns decides whether it failed.
_NO_LOST_RETURN = "-Werror=return-type"
_LINK = ("-shared", "-Wl,-Bsymbolic")

C = SourceLanguage(
    "C",
    "gcc",
    "CC",
    ("-O3", "-fPIC", _NO_LOST_RETURN),
    (_OWN_NAMES_GCC,),
    _LINK,
    "Install it (Debian, Ubuntu: apt-get install gcc; Fedora: dnf install gcc; conda: conda "
    "install gcc), or name another C compiler with CC.",
)
CXX = SourceLanguage(
    "C++",
    "g++",
    "CXX",
    ("-O3", "-std=c++17", "-fPIC", "-fvisibility-inlines-hidden", _NO_LOST_RETURN),
    (_OWN_NAMES_GCC, "-fno-gnu-unique", "--param=ggc-min-heapsize=524288"),
    _LINK,
    "Install it (Debian, Ubuntu: apt-get install g++; Fedora: dnf install gcc-c++; conda: conda "
    "install gxx), or name another C++ compiler with CXX.",
)
CUDA = SourceLanguage(
    "CUDA",
    "nvcc",
    "CUDA_HOME",
    (
        "-O3",
        "-std=c++17",
        "-Xcompiler",
        f"-fPIC,-fvisibility-inlines-hidden,{_NO_LOST_RETURN},{_OWN_NAMES_GCC},-fno-gnu-unique",
    ),
    (),
    ("-shared", "-Xlinker", "-Bsymbolic"),
    "Install the CUDA toolkit, and put its bin folder on PATH or set CUDA_HOME to the toolkit.",
)
LANGUAGES = {".c": C, ".cc": CXX, ".cpp": CXX, ".cxx": CXX, ".cu": CUDA}


def suffixes_of(title: str) -> tuple[str, ...]:
    """Returns the suffixes of the sources of one language."""
    return tuple(suffix for suffix, row in LANGUAGES.items() if row.title == title)
