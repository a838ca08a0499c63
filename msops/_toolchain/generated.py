"""C that msops itself wrote, built for the processor of this machine."""

from __future__ import annotations

import os

from msops._base import processor
from msops._base.building import Build
from msops._toolchain.builder import build_recorded
from msops._toolchain.compilers import find_compiler
from msops._toolchain.elf import parse_elf
from msops._toolchain.languages import C
from msops._toolchain.libraries import ENVIRONMENT, Library
from msops._toolchain.store import retried
from msops._toolchain.texts import kept, store_source

FLAGS = (
    "-march=native",
    # A product and a sum are rounded one by one, as in the other back ends.
    "-ffp-contract=off",
    # Nothing reads errno or the floating point flags, and minding them keeps loops scalar. Neither
    # changes a result, and neither reaches the linker as -ffast-math would.
    "-fno-math-errno",
    "-fno-trapping-math",
    # gcc's vectoriser makes a power of 1/2 a square root, which -inf has none of.
    "-fno-builtin-pow",
    "-fno-builtin-powf",
    "-fopenmp-simd",
    # The assembler reads while the compiler writes.
    "-pipe",
    # Of a library all that is linked is what it calls.
    "-nostartfiles",
    "-nodefaultlibs",
    "-lm",
    "-lc",
    "-lgcc",
)

_GCC_FLAGS = (
    # A jump past a comparison whose outcome is known splits a chain of choices into paths: a vector
    # of max(min(x, 6), 0) takes three times the instructions, and some chains stay scalar.
    "-fno-thread-jumps",
    # The next four run before gcc's vectoriser or beside it, and leave it loops that it cannot
    # take; `to_c` does for itself what they are for. Without them calls of 76 kernels that nobody
    # tuned take 0.91 of the time in the geometric mean, five of them 0.15 to 0.4; gcc takes 0.87.
    # It drops what a pragma said of an inner loop.
    "-fno-loop-unroll-and-jam",
    # It cuts a sum in two under a loop that its length depends on.
    "-fno-split-loops",
    # It hands elements from one iteration to the next.
    "-fno-tree-partial-pre",
    # It packs the few scalars of a recurrence into a vector, whose parts then wait for each other.
    "-fno-tree-slp-vectorize",
    # It follows single bits through all loops, for a tenth of gcc's time and no quicker code.
    "-fno-tree-bit-ccp",
)
"""What gcc alone knows: other compilers refuse a flag that they do not know."""

_GATHERING_FLAGS = (
    # A gcc older than the processor does without gathers. One that knows it has vectors of half the
    # width, for the sake of programs with few vectors: loops then take 1.1 times as long.
    "-mtune=generic",
    "-mtune-ctrl=use_gather",
    "-mprefer-vector-width=512",
)
"""What gcc also gets for a processor with quick gathers.

Sums over sparse rows take 0.6 to 0.75 of the time, tables that data index 0.2 to 0.8.
"""

_memos: dict[tuple[object, ...], Library] = {}


def gcc_flags() -> tuple[str, ...]:
    """Returns the flags that gcc gets beside those of every compiler, for this processor."""
    return (*_GCC_FLAGS, *_GATHERING_FLAGS) if processor.has_quick_gathers() else _GCC_FLAGS


@retried
def build_generated(text: str, name: str, who: str) -> Library:
    """Returns the library built from generated C for the processor of this machine.

    Args:
      text: the translation unit.
      name: base name of the source, without suffix; an identifier.
      who: the op that messages name.

    Raises:
      BuildError: there is no compiler, it failed, or the cache cannot be written.
    """
    memo_key = (text, name, *map(os.environ.get, ENVIRONMENT))
    known = _memos.get(memo_key)
    if known is not None and known.path.exists():
        return known
    source = store_source(text, f"{name}.c", who)
    with kept(source, who):
        is_gcc = find_compiler(C, FLAGS, source, who).is_gcc
        flags = (*FLAGS, *gcc_flags()) if is_gcc else FLAGS
        built, content, _, _ = build_recorded(source, Build(flags=flags), (), who)
    functions = parse_elf(content, built.path, who).functions
    library = Library(built.hash, built.name, built.path, None, False, functions, False)
    _memos[memo_key] = library
    return library
