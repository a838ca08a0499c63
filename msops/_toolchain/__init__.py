"""From a kernel's source, or a user's library, to a shared library that is safe to open.

`resolve` is the entrance; each module holds one idea:

    libraries.py     resolve: the dispatch between source and library, and the memo in front of it
    allow_list.py    MS_CUSTOM_AOT_WHITE_LIST
    builder.py       one cached build: key, look-up, lock, compile, record
    languages.py     the languages of sources: compiler, flags, how to get the compiler
    compilers.py     which compiler, who it is, which command line
    nvcc_paths.py    paths that nvcc can handle
    cuda.py          what the CUDA driver says of itself and of the devices present
    generated.py     generated C to libraries
    modules.py       extension modules: several sources, one library
    nvrtc.py         generated CUDA C to cubins, by NVRTC
    manifest.py      what the compiler read, and whether it is still the same
    inputs.py        reading a file that a user named
    stamps.py        what a file held, without reading it again
    store.py         the cache folder: verified objects, locks, scratch folders
    contents.py      what is in the cache folder, and how to empty it
    private_copy.py  a user's library under a name that cannot change, with its $ORIGIN
    elf.py           the ELF reader
    symbols.py       a library's names: missing ones, the std::string ABI they tell, and those that
                     libc takes

Nothing here imports JAX, starts a device or opens a library, but for NVRTC.
"""

from msops._toolchain.allow_list import check_allowed
from msops._toolchain.builder import Report, build
from msops._toolchain.compilers import has_compiler
from msops._toolchain.elf import ElfInfo, read_elf
from msops._toolchain.generated import build_generated
from msops._toolchain.inputs import read_path, require_file
from msops._toolchain.languages import LANGUAGES
from msops._toolchain.libraries import OTHER_ABI, Library, index, resolve
from msops._toolchain.modules import ModuleSources, build_module, store_source
from msops._toolchain.nvrtc import Cubin, build_cubins, index_cubins
from msops._toolchain.private_copy import open_copy
from msops._toolchain.store import Built
from msops._toolchain.symbols import (
    BIND_OWN_SYMBOLS,
    near_names,
    require_symbol,
    taken_names,
    uses_old_strings,
)

__all__ = [
    "BIND_OWN_SYMBOLS",
    "LANGUAGES",
    "OTHER_ABI",
    "Built",
    "Cubin",
    "ElfInfo",
    "Library",
    "ModuleSources",
    "Report",
    "build",
    "build_cubins",
    "build_generated",
    "build_module",
    "check_allowed",
    "has_compiler",
    "index",
    "index_cubins",
    "near_names",
    "open_copy",
    "read_elf",
    "read_path",
    "require_file",
    "require_symbol",
    "resolve",
    "store_source",
    "taken_names",
    "uses_old_strings",
]
