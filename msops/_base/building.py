"""Options of building a kernel, and sources given as text."""

from __future__ import annotations

import dataclasses
import os
import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Never, TypeAlias

from msops._base.missing_names import near_names
from msops.errors import ArgumentTypeError, ArgumentValueError

AnyPath: TypeAlias = str | os.PathLike[str]

_STANDARD = re.compile(r"(?:c|gnu)(?:\+\+)?\w+")
_SUFFIXES = {"c": ".c", "c++": ".cc", "cuda": ".cu"}


@dataclasses.dataclass(frozen=True, init=False)
class Build:
    """How the source of a kernel is compiled and linked, beyond what msops does by itself.

    Corresponds to the arguments of ``torch.utils.cpp_extension.load_inline``. All of it is part of
    the key of the build cache, with the content of sources, headers and libraries. Relative paths
    start at the working directory, those inside of flags at the folder of the source.

    Args:
      sources: further C, C++ or CUDA sources of the same library: a path or a sequence of paths.
      include_dirs: folders searched for headers, after the source's own folder and that of msops.
      defines: macros: ``{"NAME": value}``, where None defines the name alone; or a sequence of
        ``"NAME"`` and ``"NAME=value"``.
      flags: words for the compiler. They come last, so they override those of msops.
      link_flags: words for the compiler when it links.
      libraries: libraries to link with: names ("openblas" for ``libopenblas.so`` or ``.a``), or
        paths of ``.so`` and ``.a`` files. The dynamic linker finds a shared library again where it
        was found here.
      library_dirs: folders searched for libraries given by name.
      std: the standard of the language, such as "c++20"; msops's own is "c++17". It concerns the
        sources in that language.

    Raises:
      ArgumentTypeError: an argument has a wrong type.
      ArgumentValueError: `std` is no standard, a macro has no name, or a text has a null character.

    Example:
      >>> import msops
      >>> msops.Build(libraries="openblas", library_dirs="/opt/blas/lib", defines={"BLOCK": 64})
      Build(defines=('BLOCK=64',), libraries=('openblas',), library_dirs=('/opt/blas/lib',))
    """

    sources: tuple[Path, ...]
    include_dirs: tuple[Path, ...]
    defines: tuple[str, ...]
    flags: tuple[str, ...]
    link_flags: tuple[str, ...]
    libraries: tuple[str | Path, ...]
    library_dirs: tuple[Path, ...]
    std: str | None

    def __init__(
        self,
        *,
        sources: AnyPath | Sequence[AnyPath] = (),
        include_dirs: AnyPath | Sequence[AnyPath] = (),
        defines: Mapping[str, object] | Sequence[str] = (),
        flags: str | Sequence[str] = (),
        link_flags: str | Sequence[str] = (),
        libraries: AnyPath | Sequence[AnyPath] = (),
        library_dirs: AnyPath | Sequence[AnyPath] = (),
        std: str | None = None,
        **unknown: Never,
    ):
        if unknown:
            raise _unknown_option(next(iter(unknown)))
        if std is not None and not (isinstance(std, str) and _STANDARD.fullmatch(std)):
            raise ArgumentValueError.explained(
                "Build",
                f"expected std such as 'c++20' or 'c17'; got {std!r}",
                "Name a standard as the compiler's option -std= does.",
            )
        read = {
            "sources": _paths("sources", sources),
            "include_dirs": _paths("include_dirs", include_dirs),
            "defines": _defines(defines),
            "flags": _texts("flags", flags),
            "link_flags": _texts("link_flags", link_flags),
            "libraries": tuple(map(_library, _items("libraries", libraries))),
            "library_dirs": _paths("library_dirs", library_dirs),
            "std": std,
        }
        for name, value in read.items():
            object.__setattr__(self, name, value)

    def __repr__(self) -> str:
        given = []
        for field in dataclasses.fields(self):
            value = getattr(self, field.name)
            if isinstance(value, tuple):
                value = tuple(str(item) if isinstance(item, Path) else item for item in value)
            if value:
                given.append(f"{field.name}={value!r}")
        return f"Build({', '.join(given)})"


@dataclasses.dataclass(frozen=True)
class SourceText:
    """A source given as text; see `source`.

    Attributes:
      text: the translation unit.
      name: the function in it that is the kernel.
      suffix: of the file that it is compiled as.
    """

    text: str
    name: str
    suffix: str = ".cc"

    @property
    def file_name(self) -> str:
        """The base name of the file that it is compiled as."""
        return f"{self.name}{self.suffix}"

    def __repr__(self) -> str:
        return f"source(..., {self.name!r})"


def source(text: str, name: str, language: str = "c++") -> SourceText:
    """Returns a kernel's source given as text, for `Custom`, in a notebook or a script.

    Corresponds to ``torch.utils.cpp_extension.load_inline``. It is compiled on first use, as a file
    is, and kept in the build cache.

    Args:
      text: the source.
      name: the function in it that is the kernel; for func_type "aicpu" any identifier, as op info
        names the kernel.
      language: "c", "c++" or "cuda".

    Raises:
      ArgumentTypeError: `text` or `name` is no str.
      ArgumentValueError: `name` is no identifier, or `language` none of the three.

    Example:
      >>> import jax.numpy as jnp, msops
      >>> negate = msops.Custom(msops.source('''
      ... #include <cstdint>
      ... extern "C" int Negate(int nparam, void **params, int *ndims, int64_t **shapes,
      ...                       const char **dtypes, void *stream, void *extra) {
      ...   auto *x = static_cast<const float *>(params[0]);
      ...   auto *y = static_cast<float *>(params[1]);
      ...   for (int64_t i = 0; i < shapes[0][0]; ++i) y[i] = -x[i];
      ...   return 0;
      ... }''', "Negate"), lambda x: x, lambda x: x)
      >>> print(negate(jnp.arange(3.0)))
      [-0. -1. -2.]
    """
    for what, value in (("text", text), ("name", name)):
        if not isinstance(value, str):
            raise ArgumentTypeError.explained(
                "msops.source",
                f"expected {what} str; got {type(value).__name__}",
                "Pass the source itself and the name of its function; a file is named by its "
                "path alone: Custom('file.cc:Name', ...).",
            )
    if not (name.isascii() and name.isidentifier()):
        raise ArgumentValueError.explained(
            "msops.source",
            f"expected the name of a C function; got {name!r}",
            'Name a function of the text that is exported with extern "C".',
        )
    if language not in _SUFFIXES:
        raise ArgumentValueError.explained(
            "msops.source",
            f"expected language to be one of {', '.join(map(repr, _SUFFIXES))}; got {language!r}",
            "Name the language of the text.",
        )
    return SourceText(text, name, _SUFFIXES[language])


def _unknown_option(name: str) -> ArgumentTypeError:
    options = [field.name for field in dataclasses.fields(Build)]
    near = near_names(name, options)
    remedy = f"Did you mean {near[0]}=?" if near else f"It has {', '.join(options)}."
    return ArgumentTypeError.explained("Build", f"it has no option {name!r}", remedy)


def _items(name: str, value: Any) -> tuple[str | os.PathLike[str], ...]:
    """Returns the items of an argument that is one text or path, or a sequence of them."""
    items = (value,) if isinstance(value, (str, os.PathLike)) else value
    if not isinstance(items, (list, tuple)):
        raise _wrong(name, value)
    for item in items:
        if not isinstance(item, (str, os.PathLike)) or not isinstance(os.fspath(item), str):
            raise _wrong(name, value)
        if "\0" in os.fspath(item) or not os.fspath(item):
            raise ArgumentValueError.explained(
                "Build",
                f"expected {name} without null characters and empty texts; got {value!r}",
                "Take them out.",
            )
    return tuple(items)


def _paths(name: str, value: Any) -> tuple[Path, ...]:
    return tuple(map(_absolute, _items(name, value)))


def _absolute(path: AnyPath) -> Path:
    try:
        return Path(path).expanduser().absolute()
    except RuntimeError as error:
        raise ArgumentValueError.explained(
            "Build",
            f"expected a path; got {os.fspath(path)!r}, whose home folder is not known",
            "Write the path from / on.",
        ) from error


def _texts(name: str, value: Any) -> tuple[str, ...]:
    items = _items(name, value)
    if isinstance(value, str) and " " in value.strip():
        raise ArgumentValueError.explained(
            "Build",
            f"expected {name} as a sequence with one word each; got {value!r}",
            f"Pass {name}={value.split()!r}.",
        )
    return tuple(str(item) for item in items)


def _library(item: AnyPath) -> str | Path:
    """Returns the path of a library, or its name."""
    is_name = isinstance(item, str) and "/" not in item and not item.endswith((".so", ".a"))
    return str(item) if is_name else _absolute(item)


def _defines(value: Any) -> tuple[str, ...]:
    if isinstance(value, Mapping):
        value = [_define(name, content) for name, content in value.items()]
    defines = tuple(str(item) for item in _items("defines", value))
    for define in defines:
        if not define.partition("=")[0].partition("(")[0].isidentifier():
            raise ArgumentValueError.explained(
                "Build",
                f"expected defines such as 'NAME' or 'NAME=value'; got {define!r}",
                "Begin it with the name of the macro.",
            )
    return defines


def _define(name: object, value: object) -> str:
    if value is None:
        return str(name)
    return f"{name}={int(value) if isinstance(value, bool) else value}"


def _wrong(name: str, value: Any) -> ArgumentTypeError:
    return ArgumentTypeError.explained(
        "Build",
        f"expected {name} as a text, a path, or a list or tuple of them; got {value!r}",
        f"Pass {name}=['...'].",
    )
