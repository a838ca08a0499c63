"""Libraries of AICPU kernels: found by name, or built from sources.

An op names its library by the attribute ``cust_aicpu``: "name" means ``libname.so``.
"""

from __future__ import annotations

import dataclasses
from pathlib import Path

from msops._base import config
from msops._base.building import Build, SourceText
from msops._base.paths import bundled_kernels, get_include
from msops._toolchain import LANGUAGES, Library, read_path, require_file, resolve
from msops.errors import ArgumentValueError, BuildError

ATTRIBUTE = "cust_aicpu"
"""The attribute that names the library, as MindSpore has it."""

INPUT_NAMES = "msops_input_names"
"""The attribute that names a call's inputs, as msops_aicpu.h has it."""

BUNDLED = "mindspore_aicpu_kernels"
"""The library whose sources come with msops."""

SEEDS = {"Dropout2D": "seed"}
"""The bundled kernels that draw random numbers, each with the attribute that seeds it."""

_INSTALL_EIGEN = (
    "Install Eigen: pip install 'msops[aicpu]', or pip install cmeel-eigen; or name the folder "
    "that holds Eigen/Core by MSOPS_EIGEN."
)


def build_library(
    sources: tuple[Path, ...] | SourceText, who: str, options: Build | None = None
) -> Library:
    """Returns the library that C++ sources of kernels make, built unless the cache has it.

    Args:
      sources: .cc, .cpp or .cxx files, or a text; headers are looked for beside them, then among
        msops's, then in the folders above, where MindSpore's kernels expect theirs, then in those
        of `options`.
      who: the op that messages name.
      options: what the user adds to the build.

    Raises:
      BuildError: they do not compile; if for want of Eigen, the message says how to get it.
    """
    return _build(sources, who, options or Build())


def find_library(name: str, folder: Path | None, who: str) -> Library:
    """Returns the library that ``cust_aicpu`` names.

    Args:
      name: "name" for ``libname.so`` in the folders of ``MSOPS_AICPU_PATH``, then in `folder`; a
        file's name or path otherwise.
      folder: where the op's function is; None if nobody knows.
      who: the op that messages name.

    Raises:
      ArgumentValueError: `name` is a source, or can be no path.
      BuildError: there is no such library, or it cannot be used.
    """
    if name.endswith(tuple(LANGUAGES)):
        raise ArgumentValueError.explained(
            who,
            f"expected the name or the path of a library as {ATTRIBUTE}; got the source {name!r}",
            "Give C++ sources as func, Custom('kernel.cc', ...), or name the library built "
            "from them.",
        )
    if "/" in name or "\0" in name:
        path = read_path(name, who)
        require_file(path, who)
        return resolve(path, who)
    file_name = name if name.endswith(".so") else f"lib{name}.so"
    folders = [*config.aicpu_path(), *([folder] if folder else [])]
    for candidate in (each / file_name for each in folders):
        if candidate.is_file():
            return resolve(candidate, who)
    if name == BUNDLED:
        return _build(tuple(bundled_kernels()), who, Build(), is_named=False)
    raise BuildError.explained(
        who,
        f"there is no library {file_name}, which {ATTRIBUTE}={name!r} names",
        "Put the library into one of these folders, add its own to MSOPS_AICPU_PATH, or give "
        f"the path of the file as {ATTRIBUTE}.",
        [f"looked in {each}" for each in folders] or ["MSOPS_AICPU_PATH names no folder"],
    )


def _build(
    sources: tuple[Path, ...] | SourceText, who: str, options: Build, is_named: bool = True
) -> Library:
    headers = Path(get_include()) / "aicpu"
    eigen = find_eigen(who)
    flags = (
        # Assertions of Eigen throw: they would terminate the process.
        "-include",
        "eigen_assert.h",
        *_named_folder("msops", headers),
        *(() if eigen is None else ("-isystem", str(eigen), *_named_folder("eigen", eigen))),
        *options.flags,
    )
    options = dataclasses.replace(options, flags=flags)
    try:
        if isinstance(sources, SourceText):
            return resolve(sources, who, include_dirs=(headers,), options=options)
        first, *others = sources
        return resolve(
            first,
            who,
            include_dirs=(headers, *list(first.absolute().parents)[1:3]),
            options=dataclasses.replace(options, sources=(*others, *options.sources)),
            is_named=is_named,
        )
    except BuildError as error:
        if eigen is None and "Eigen" in error.output:
            raise _without_eigen(sources, error, who) from error
        raise


def _named_folder(name: str, folder: Path) -> tuple[str, ...]:
    """Returns the flags that keep a folder of this machine out of ``__FILE__``."""
    return (f"-fmacro-prefix-map={folder}={name}",)


def _without_eigen(
    sources: tuple[Path, ...] | SourceText, error: BuildError, who: str
) -> BuildError:
    files = (sources,) if isinstance(sources, SourceText) else sources
    names = ", ".join(source.name for source in files)
    lines = [line for line in error.output.splitlines() if "Eigen" in line]
    failed = BuildError.explained(
        who, f"{names} needs Eigen, which is not installed", _INSTALL_EIGEN, lines[:3]
    )
    failed.output = error.output
    return failed


def find_eigen(who: str) -> Path | None:
    """Returns the folder that holds ``Eigen/Core``, or None."""
    named = config.eigen()
    if named is not None:
        for folder in (named, named / "eigen3", named / "include" / "eigen3"):
            if (folder / "Eigen" / "Core").is_file():
                return folder
        raise BuildError.explained(
            who, f"there is no Eigen/Core in MSOPS_EIGEN, {named}", _INSTALL_EIGEN
        )
    packaged = _packaged_eigen()
    return packaged if packaged is not None and (packaged / "Eigen" / "Core").is_file() else None


_packaged: list[Path] = []


def _packaged_eigen() -> Path | None:
    """Returns where the package cmeel-eigen has its headers, looked for until it is installed."""
    # Here, as `import msops` must be quick.
    import importlib.metadata

    if not _packaged:
        try:
            package = importlib.metadata.distribution("cmeel-eigen")
        except importlib.metadata.PackageNotFoundError:
            return None
        _packaged.append(Path(str(package.locate_file("cmeel.prefix/include/eigen3"))))
    return _packaged[0]
