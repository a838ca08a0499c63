"""C++ that msops itself wrote, built for the processor of this machine."""

from __future__ import annotations

import os

from msops._base.building import Build
from msops._toolchain.builder import build_recorded
from msops._toolchain.compilers import find_compiler
from msops._toolchain.elf import parse_elf
from msops._toolchain.languages import CXX
from msops._toolchain.libraries import ENVIRONMENT, Library
from msops._toolchain.store import retried
from msops._toolchain.texts import kept, store_source

FLAGS = (
    "-march=native",
    # C++ for its choices between vectors. Nothing throws.
    "-fno-exceptions",
    # Vectors of other types move what arrays hold.
    "-fno-strict-aliasing",
    # A product and a sum are rounded one by one, as in the other back ends.
    "-ffp-contract=off",
    # Nothing reads errno or the floating point flags, and minding them keeps loops scalar. Neither
    # changes a result, and neither reaches the linker as -ffast-math would. n_body takes 11 times
    # as long without the first, mandelbrot 1.24 without the second.
    "-fno-math-errno",
    "-fno-trapping-math",
    # Vectors are printed as such. Those that a compiler makes of loops are no quicker, additions
    # have an order of their own in them, and gcc 11 and 12 load and store some elements wrongly.
    "-fno-tree-vectorize",
    # The assembler reads while the compiler writes.
    "-pipe",
    # It gets what it calls, and not the C library: a process has that, of each function the oldest
    # version (see `to_c/printing/library.py`). Reading it takes the linker 5 ms.
    "-nostartfiles",
    "-nodefaultlibs",
    "-lgcc",
)

GCC_FLAGS = (
    # A jump past a comparison whose outcome is known splits a chain of choices into paths: a vector
    # of max(min(x, 6), 0) takes three times the instructions, and some chains stay scalar. max_pool
    # and mandelbrot take 4 times as long without it, a median filter 1.4.
    "-fno-thread-jumps",
    # No loop is long enough for its vectors. Had it none at all, gcc would hand elements from one
    # iteration to the next: edit_distance takes 1.2.
    "-ftree-loop-vectorize",
    "--param=min-vect-loop-bound=30000000",
    # The next four run before gcc's vectoriser or beside it, and leave it loops that it cannot
    # take; `to_c` does for itself what they are for.
    # It drops what a pragma said of an inner loop: a layer norm takes 5 times as long without it.
    "-fno-loop-unroll-and-jam",
    # It cuts a sum in two under a loop that its length depends on: a sparse product takes 1.2.
    "-fno-split-loops",
    # It hands elements from one iteration to the next: the gradient of deriche takes 4 to 10 times
    # as long without it, those of a median filter and thomas 1.3 and 1.25, of seidel 0.7.
    "-fno-tree-partial-pre",
    # It packs the few scalars of a recurrence into a vector, whose parts then wait for each other:
    # nussinov takes 2.6, harris 1.1.
    "-fno-tree-slp-vectorize",
    # It follows single bits through all loops, for 1.03 of gcc's time and no quicker code.
    "-fno-tree-bit-ccp",
    # It orders instructions anew, as processors do by themselves. gcc takes 0.97 without it, 42
    # kernels 0.99 in the mean, and gauss_seidel 1.06.
    "-fno-schedule-insns2",
)
"""What gcc alone knows: other compilers refuse a flag that they do not know.

Times are those of a kernel without the flag by its time with all, gcc 12.2, AVX-512, one thread.
Those of -fno-thread-jumps, -fno-loop-unroll-and-jam, -fno-split-loops and -fno-tree-partial-pre are
older than the vectors that msops prints. Over 455 kernels, those that it changes take 0.98, 1.00,
1.00 and 1.00 without each of them, and -fno-tree-slp-vectorize changes none.
"""

_memos: dict[tuple[object, ...], Library] = {}


@retried
def build_generated(text: str, name: str, who: str, libraries: tuple[str, ...] = ()) -> Library:
    """Returns the library built from generated C++ for the processor of this machine.

    Args:
      text: the translation unit.
      name: base name of the source, without suffix; an identifier.
      who: the op that messages name.
      libraries: the names of those that it calls, beside the C library.

    Raises:
      BuildError: there is no compiler, it failed, or the cache cannot be written.
    """
    memo_key = (text, name, libraries, *map(os.environ.get, ENVIRONMENT))
    known = _memos.get(memo_key)
    if known is not None and known.path.exists():
        return known
    source = store_source(text, f"{name}.cc", who)
    with kept(source, who):
        is_gcc = find_compiler(CXX, FLAGS, source, who).is_gcc
        flags = (*FLAGS, *GCC_FLAGS) if is_gcc else FLAGS
        built, content, _, _ = build_recorded(
            source, Build(flags=flags, libraries=libraries), (), who
        )
    functions = parse_elf(content, built.path, who).functions
    library = Library(built.hash, built.name, built.path, None, False, functions, False)
    _memos[memo_key] = library
    return library
