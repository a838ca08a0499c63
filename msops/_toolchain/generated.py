"""C++ that msops itself wrote, built for the processor of this machine."""

from __future__ import annotations

import os
import re

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
    # Nothing reads errno, for which a root of a negative number is a call: an RMS norm takes up to
    # 1.06. It changes no result, and does not reach the linker as -ffast-math would.
    "-fno-math-errno",
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
    # Neighbours that are computed alike without a loop, such as channels and pairs, make a vector:
    # columns of an image take 1.9 without it, the gradient of rotated pairs 2.8, all 1.01.
    "-ftree-slp-vectorize",
    # Passes have chosen the order of loops. Vectors that begin at other elements gcc takes for
    # apart, also where they overlap: in the order that it makes of such loops results are others.
    "-fno-loop-interchange",
    "-fno-loop-unroll-and-jam",
    # No loop is long enough for its vectors. Had it none at all, gcc would hand elements from one
    # iteration to the next: edit_distance takes 1.2.
    "-ftree-loop-vectorize",
    "--param=min-vect-loop-bound=30000000",
    # Else it writes vectors for loops of unknown length, with a test for that many iterations.
    "-fvect-cost-model=very-cheap",
    # It cuts a loop in two where a condition changes, and takes 1.05 of gcc's time for code that is
    # no quicker.
    "-fno-split-loops",
    # It follows single bits through all loops, for 1.04 of gcc's time and no quicker code.
    "-fno-tree-bit-ccp",
    # It copies blocks so that jumps know where they lead, and looks for that three times: together
    # 1.02 of gcc's time and no quicker code.
    "-fno-thread-jumps",
    "-fno-tree-dominator-opts",
    # It orders instructions anew, as processors do by themselves: a cumulative sum takes 1.4 with
    # it, a dilation 1.24, all kernels 1.01.
    "-fno-schedule-insns2",
)
"""What gcc alone knows: other compilers refuse a flag that they do not know.

Times are those of a kernel without the flag by its time with all, with gcc 12.2, AVX-512 and one
thread, over 455 kernels.
"""

_ASKED_FOR = re.compile(r"^// gcc: (-f\S+)$", re.MULTILINE)

_memos: dict[tuple[object, ...], Library] = {}


def flags_of_gcc(text: str) -> tuple[str, ...]:
    """Returns what gcc alone knows, with what the translation unit itself asks for."""
    return (*GCC_FLAGS, *dict.fromkeys(_ASKED_FOR.findall(text)))


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
        flags = (*FLAGS, *flags_of_gcc(text)) if is_gcc else FLAGS
        built, content, _, _ = build_recorded(
            source, Build(flags=flags, libraries=libraries), (), who
        )
    functions = parse_elf(content, built.path, who).functions
    library = Library(built.hash, built.name, built.path, None, False, functions, False)
    _memos[memo_key] = library
    return library
