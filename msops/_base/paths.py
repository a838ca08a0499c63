"""Where the files that come with msops are."""

from __future__ import annotations

import functools
from pathlib import Path

from msops.errors import BuildError


def bundled_kernels() -> list[Path]:
    """Returns the sources of the AICPU kernels that come with msops."""
    package = Path(__file__).resolve().parents[1]
    for folder in (package / "aicpu", package.parent / "xla_kernels" / "aicpu"):
        sources = sorted(folder.glob("*.cc"))
        if sources:
            return sources
    raise BuildError.explained(
        "msops",
        f"there are no sources of AICPU kernels next to {package}",
        "Install the package again: pip install --force-reinstall msops.",
    )


@functools.cache
def get_include() -> str:
    """Returns the folder of the headers for kernel authors, as numpy's and pybind11's do.

    It holds ``custom_aot_extra.h`` and ``msops_parallel_for.h``, and is on the include path of
    every source msops builds; pass it to your own compiler with ``-I``.

    Returns:
      An absolute path.

    Raises:
      BuildError: the headers are not where the package should have them.

    Example:
      >>> import msops, pathlib
      >>> (pathlib.Path(msops.get_include()) / "custom_aot_extra.h").is_file()
      True
    """
    package = Path(__file__).resolve().parents[1]
    # Installed packages carry the headers; a checkout has them beside the package.
    for folder in (package / "include", package.parent / "xla_kernels" / "include"):
        if (folder / "custom_aot_extra.h").is_file():
            return str(folder)
    raise BuildError.explained(
        "msops.get_include",
        f"there is no custom_aot_extra.h next to {package}",
        "Install the package again: pip install --force-reinstall msops.",
    )
