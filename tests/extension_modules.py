"""The extension modules that tests share, each built once per test session and cache."""

from __future__ import annotations

import functools
import types
import warnings
from pathlib import Path

from msops.ops import CustomOpBuilder

SOURCES = Path(__file__).parent / "extensions"


@functools.cache
def extension(name: str, backend: str = "CPU") -> types.ModuleType:
    """Returns the module of ``extensions/<name>.cpp``."""
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "msops: there is no Ascend device")
        # The optimiser takes half of the time, and nothing here depends on how fast they are.
        source = str(SOURCES / f"{name}.cpp")
        return CustomOpBuilder(f"tests_{name}", source, backend, cflags="-O0").load()


@functools.cache
def graph_extension(name: str, folder: Path = SOURCES, doc: bool = False) -> types.ModuleType:
    """Returns the module of ``<name>.cpp`` with the operators of ``<name>.yaml``."""
    return CustomOpBuilder(
        f"tests_{name}",
        folder / f"{name}.cpp",
        cflags="-O0",
        op_def=folder / f"{name}.yaml",
        op_doc=folder / f"{name}_doc.yaml" if doc else None,
    ).load()
