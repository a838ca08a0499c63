"""The files that scripts import graph operators from, beside the library in build_dir.

MindSpore generates Python that calls its library. Here a file loads the module as its builder does,
from the sources or from the cache of builds, so it needs both builder and sources.
"""

from __future__ import annotations

import os
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from msops._extension.graph.modules import read_definitions
from msops._extension.graph.source import write_source
from msops._extension.options import BuilderOptions

_FUNCTIONS = '''"""Graph operators of the extension module {name}; written by msops."""

from msops.ops import CustomOpBuilder

_module = CustomOpBuilder(
{arguments}
).load()
{rows}
'''

_PRIMITIVES = '''"""Graph operators of the extension module {name}; written by msops."""

{rows}
'''


def write_files(folder: Path, options: BuilderOptions) -> None:
    """Writes the folder ``<name>_auto_generate``.

    Args:
      folder: build_dir, which exists.
      options: those of the builder.

    Raises:
      BuildError: a file of op_def is malformed.
      OSError: the folder cannot be written.
    """
    definitions = read_definitions(options.op_def, options.who)
    functions = [one.function for one in definitions if one.function]
    arguments = "\n".join(f"    {key}={value!r}," for key, value in _arguments(options).items())
    texts = {
        "gen_custom_ops_def.cc": write_source([one.name for one in definitions]),
        "gen_ops_def.py": _FUNCTIONS.format(
            name=options.name,
            arguments=arguments,
            rows="\n".join(f"{name} = _module.{name}" for name in functions),
        ),
        "gen_ops_prim.py": _PRIMITIVES.format(
            name=options.name,
            rows="\n".join(f"from .gen_ops_def import {name} as {name}_op" for name in functions),
        ),
    }
    inner = folder / f"{options.name}_auto_generate"
    inner.mkdir(exist_ok=True)
    with tempfile.TemporaryDirectory(dir=folder) as scratch:
        for name, text in texts.items():
            path = Path(scratch, name)
            path.write_text(text)
            os.replace(path, inner / name)


def _arguments(options: BuilderOptions) -> dict[str, Any]:
    """Returns the arguments of a builder like that of `options`, from wherever it is made."""

    def absolute(paths: Sequence[str]) -> list[str]:
        return [str(Path(path).absolute()) for path in paths]

    return {
        "name": options.name,
        "sources": absolute(options.sources),
        "backend": options.backend,
        "include_paths": absolute(options.include_paths),
        "cflags": " ".join(options.cflags) or None,
        "ldflags": " ".join(options.ldflags) or None,
        "debug_mode": options.debug_mode,
        **{f"enable_{library.lower()}": True for library in options.libraries},
        "op_def": absolute(options.op_def),
        "op_doc": absolute(options.op_doc),
    }
