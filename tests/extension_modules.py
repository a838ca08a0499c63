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
def graph_extension(name: str, backend: str = "CPU", doc: bool = False) -> types.ModuleType:
    """Returns the module of ``extensions/<name>.cpp`` with the operators of ``<name>.yaml``."""
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "msops: there is no Ascend device")
        return CustomOpBuilder(
            f"tests_{name}",
            str(SOURCES / f"{name}.cpp"),
            backend,
            cflags="-O0",
            op_def=str(SOURCES / f"{name}.yaml"),
            op_doc=str(SOURCES / f"{name}_doc.yaml") if doc else None,
        ).load()
