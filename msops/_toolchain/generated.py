"""Sources that are not files of a user's: C that msops itself wrote, and text from a program.

    <cache folder>/generated/ab/ab12.../add.c    a source, in a folder named by its SHA-256

From there it is built as a user's source is. Such a library has no origin: nobody named a file, so
no allow-list speaks of it.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
from collections.abc import Iterator
from pathlib import Path

from msops._base.building import Build, SourceText
from msops._toolchain.allow_list import check_allowed
from msops._toolchain.builder import build_recorded
from msops._toolchain.compilers import CHOICE_VARIABLES, SEARCH_VARIABLES
from msops._toolchain.elf import parse_elf
from msops._toolchain.libraries import Library, resolve
from msops._toolchain.options import NO_OPTIONS
from msops._toolchain.store import STORE_VARIABLES, open_store, read_verified, retried
from msops.errors import ArgumentValueError, BuildError, explain

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

_ENVIRONMENT = (*SEARCH_VARIABLES, *CHOICE_VARIABLES, *STORE_VARIABLES)
_memos: dict[tuple[object, ...], Library] = {}


def store_source(text: str, name: str, who: str) -> Path:
    """Returns a file of the cache that holds a source, under its name and its content's hash.

    Raises:
      ArgumentValueError: the text has a character that UTF-8 cannot write.
      BuildError: the cache cannot be written.
    """
    try:
        data = text.encode()
    except UnicodeEncodeError as error:
        raise ArgumentValueError(
            explain(
                who,
                f"expected the text of a source; got {error.object[error.start]!r} in it",
                "Take it out: UTF-8 cannot write it.",
            )
        ) from error
    digest = hashlib.sha256(data).hexdigest()
    store = open_store(who)
    path = store.root / "generated" / digest[:2] / digest / name
    if read_verified(path, digest) is None:
        store.write(path, data)
    return path


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
    memo_key = (text, name, *map(os.environ.get, _ENVIRONMENT))
    known = _memos.get(memo_key)
    if known is not None and known.path.exists():
        return known
    source = store_source(text, f"{name}.c", who)
    with _stored(source, who):
        built, content, _, _ = build_recorded(source, Build(flags=FLAGS), (), who)
    functions = parse_elf(content, built.path, who).functions
    library = Library(built.hash, built.name, built.path, None, False, functions, False)
    _memos[memo_key] = library
    return library


@retried
def resolve_text(
    source: SourceText,
    who: str,
    *,
    include_dirs: tuple[Path, ...] = (),
    options: Build = NO_OPTIONS,
    cxx11_abi: bool | None = None,
) -> Library:
    """Returns the library built from a source that a program gives as text.

    Args:
      source: the text.
      who, include_dirs, options, cxx11_abi: as for `resolve`.

    Raises:
      ArgumentTypeError, ArgumentValueError, BuildError: as `store_source` and `resolve`.
    """
    path = store_source(source.text, f"{source.name}{source.suffix}", who)
    for other in options.sources:
        check_allowed(other, who)
    with _stored(path, who):
        return resolve(
            path,
            who,
            include_dirs=include_dirs,
            options=options,
            cxx11_abi=cxx11_abi,
            is_named=False,
        )


@contextlib.contextmanager
def _stored(source: Path, who: str) -> Iterator[None]:
    """Turns an error inside the block into VanishedError if the stored source is gone."""
    try:
        yield
    except (BuildError, OSError):
        if not source.exists():
            raise open_store(who).vanished() from None
        raise
