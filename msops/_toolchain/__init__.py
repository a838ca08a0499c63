"""From a kernel's source, or a user's library, to a shared library that is safe to open.

`resolve` is the entrance. `builder.make_plan` makes the key of a build; modules, nvrtc their own.

May import: `_base`.
Modules: allow_list, builder, commands, compile_errors, compilers, contents, cuda, dependencies,
elf, generated, inputs, known_faults, languages, libraries, linker, manifest, measurements, modules,
nvcc_paths, nvrtc, opening, options, permissions, private_copy, signatures, stamps, store, symbols,
texts.
"""

from msops._toolchain.allow_list import check_allowed
from msops._toolchain.builder import BuildReport, build
from msops._toolchain.compilers import has_compiler
from msops._toolchain.dependencies import check_dependencies, find_dependencies
from msops._toolchain.elf import ElfInfo, read_elf
from msops._toolchain.generated import build_generated
from msops._toolchain.inputs import read_path, require_file
from msops._toolchain.languages import LANGUAGES
from msops._toolchain.libraries import OTHER_ABI, Library, find_in_cache, index, resolve
from msops._toolchain.measurements import find_measurement, record_measurement
from msops._toolchain.modules import ModuleSources, build_module, check_source
from msops._toolchain.nvrtc import Cubin, build_cubins, index_cubins
from msops._toolchain.opening import check_opening, open_in_child
from msops._toolchain.options import check_build, compiler_words, linker_words
from msops._toolchain.private_copy import open_copy
from msops._toolchain.signatures import require_signature
from msops._toolchain.store import Built
from msops._toolchain.symbols import (
    BIND_OWN_SYMBOLS,
    is_mangled_from,
    near_names,
    require_symbol,
    taken_names,
    uses_old_strings,
)
from msops._toolchain.texts import store_source

__all__ = [
    "BIND_OWN_SYMBOLS",
    "LANGUAGES",
    "OTHER_ABI",
    "BuildReport",
    "Built",
    "Cubin",
    "ElfInfo",
    "Library",
    "ModuleSources",
    "build",
    "build_cubins",
    "build_generated",
    "build_module",
    "check_allowed",
    "check_build",
    "check_dependencies",
    "check_opening",
    "check_source",
    "compiler_words",
    "find_dependencies",
    "find_in_cache",
    "find_measurement",
    "has_compiler",
    "index",
    "index_cubins",
    "is_mangled_from",
    "linker_words",
    "near_names",
    "open_copy",
    "open_in_child",
    "read_elf",
    "read_path",
    "record_measurement",
    "require_file",
    "require_signature",
    "require_symbol",
    "resolve",
    "store_source",
    "taken_names",
    "uses_old_strings",
]
