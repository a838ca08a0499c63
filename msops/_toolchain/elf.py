"""A reader of ELF shared libraries: what one is for, offers, and needs, without opening it.

It follows the dynamic segment as the dynamic linker does, so stripped libraries read the same. Any
damage is one error with its reason; offsets and counts are checked by slicing inside the file.
"""

from __future__ import annotations

import os
import re
import struct
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from msops._toolchain.inputs import read_input
from msops.errors import BuildError

_MACHINES = {3: "i386", 40: "arm", 62: "x86_64", 183: "aarch64", 243: "riscv64", 21: "ppc64le"}
_KINDS = {1: "an object file", 2: "a program", 4: "a core dump"}
_OTHER_FORMATS = (
    (b"!<arch>\n", "a static archive"),
    (b"!<thin>\n", "a static archive"),
    (b"MZ", "a Windows library"),
    (b"\xcf\xfa\xed\xfe", "a macOS library"),
    (b"\xca\xfe\xba\xbe", "a macOS library"),
)
_SHARED_OBJECT = 3
_LOAD, _DYNAMIC = 1, 2
_SYMBOL_TABLE_SECTION = 11
_SYMBOL = struct.Struct("<IBBHQQ")
_GLOBAL, _WEAK, _GNU_UNIQUE = 1, 2, 10
_DEFAULT, _PROTECTED = 0, 3
_FUNCTION, _INDIRECT_FUNCTION = 2, 10

# Tags of the dynamic segment, as in <elf.h>.
_NEEDED, _HASH, _STRTAB, _SYMTAB, _RELA, _RELASZ = 1, 4, 5, 6, 7, 8
_STRSZ, _RPATH, _JMPREL, _PLTRELSZ, _RUNPATH = 10, 15, 23, 2, 29
_SYMBOLIC, _FLAGS, _FLAG_SYMBOLIC, _INIT_ARRAYSZ = 16, 30, 2, 27
_GNU_HASH, _FLAGS_1 = 0x6FFFFEF5, 0x6FFFFFFB
_FLAG_PIE = 0x08000000


# Where nvcc and hipcc put device code, and the runtimes that launch it.
_DEVICE_SECTIONS = (b"\0.nv_fatbin\0", b"\0.hip_fatbin\0")
_GPU_RUNTIMES = ("libcudart", "libcuda.", "libnvrtc", "libcublas", "libcudnn", "libamdhip64")

# gcc and clang put one function, frame_dummy, into every library's array of constructors.
_COMPILERS_OWN_BYTES = 8
_SYSTEM_LIBRARY = re.compile(r"(?:libc|libm|libdl|librt|libpthread|libgcc_s|libstdc\+\+|ld-.*)\.so")


@dataclass(frozen=True)
class ElfInfo:
    """The headers of a shared library.

    Attributes:
      machine: as ``uname -m`` names it, e.g. ``"x86_64"``.
      exports: names of the dynamic symbols it defines for others, without versions.
      functions: those of the exports that are functions.
      preemptible: names of those exports that its own code looks up by name: a library that the
        dynamic linker searches earlier, and that defines the name too, takes them from it.
      unique: those of the exports of which a process has one, whoever defines it first.
      imports: names of those it takes from others.
      needed: libraries it is linked with, in order.
      runpath: folders its own needs are searched in (DT_RUNPATH).
      rpath: folders its own needs, and theirs, are searched in (DT_RPATH, the older form).
      has_device_code: it carries GPU code, or is linked with a GPU runtime.
      has_constructors: it, or a library it needs, runs code of its author's when it is opened.
    """

    machine: str
    exports: frozenset[str]
    functions: frozenset[str]
    preemptible: frozenset[str]
    unique: frozenset[str]
    imports: frozenset[str]
    needed: tuple[str, ...]
    runpath: tuple[str, ...]
    rpath: tuple[str, ...]
    has_device_code: bool
    has_constructors: bool


class _Damaged(Exception):
    """The file is not a whole ELF library; the text says what it is instead."""


def read_elf(path: str | os.PathLike[str], who: str = "shared library") -> ElfInfo:
    """Returns what the shared library at `path` says of itself.

    Raises:
      BuildError: it cannot be read, or is no whole 64-bit shared library for this machine.
    """
    return parse_elf(read_input(Path(path), who)[0], path, who)


def parse_elf(data: bytes, path: str | os.PathLike[str], who: str) -> ElfInfo:
    """Does what `read_elf` does, from content already read; `path` is for messages."""
    try:
        return _Reader(data).info()
    except _Damaged as error:
        reason = str(error)
    except (struct.error, IndexError, ValueError, OverflowError):
        reason = "a damaged or truncated library"
    raise BuildError.explained(
        who,
        f"expected a shared library for {os.uname().machine}; {os.fspath(path)} is {reason}",
        "Build it again for this machine with -shared -fPIC, or name its source instead.",
    )


class _Reader:
    """The parts of one file; every method raises one of the errors `parse_elf` catches."""

    def __init__(self, data: bytes):
        self.data = data
        self.machine = self._check_header()
        self.segments = self._segments()
        self.dynamic = self._dynamic()
        start = self._offset(self._one(_STRTAB))
        self.strings = self._slice(start, self._one(_STRSZ))

    def info(self) -> ElfInfo:
        """Returns the facts; to be called once."""
        if self.dynamic.get(_FLAGS_1, [0])[0] & _FLAG_PIE:
            raise _Damaged("a program (position-independent)")
        exports, functions, imports = set[str](), set[str](), set[str]()
        preemptible, unique = set[str](), set[str]()
        looked_up = frozenset() if self._is_symbolic() else frozenset(self._relocated_symbols())
        for index, symbol in enumerate(self._symbols(), start=1):
            name_offset, info, other, section, _, _ = symbol
            if info >> 4 not in (_GLOBAL, _WEAK, _GNU_UNIQUE):
                continue
            name = self._string(name_offset)
            if section == 0:
                imports.add(name)
            elif other & 3 in (_DEFAULT, _PROTECTED):
                exports.add(name)
                if info & 0xF in (_FUNCTION, _INDIRECT_FUNCTION):
                    functions.add(name)
                if index in looked_up and other & 3 == _DEFAULT:
                    preemptible.add(name)
                if info >> 4 == _GNU_UNIQUE:
                    unique.add(name)
        needed = self._texts(_NEEDED)
        # Section names are looked for as bytes: they stand once, in the table of names.
        has_device_code = any(name in self.data for name in _DEVICE_SECTIONS) or any(
            name.startswith(_GPU_RUNTIMES) for name in needed
        )
        return ElfInfo(
            machine=self.machine,
            exports=frozenset(exports),
            functions=frozenset(functions),
            preemptible=frozenset(preemptible),
            unique=frozenset(unique),
            imports=frozenset(imports),
            needed=needed,
            runpath=tuple(part for text in self._texts(_RUNPATH) for part in text.split(":")),
            rpath=tuple(part for text in self._texts(_RPATH) for part in text.split(":")),
            has_device_code=has_device_code,
            has_constructors=self.dynamic.get(_INIT_ARRAYSZ, [0])[0] > _COMPILERS_OWN_BYTES
            or not all(map(_SYSTEM_LIBRARY.match, needed)),
        )

    def _check_header(self) -> str:
        """Returns the machine; raises unless this is a shared library for the one we run on."""
        data = self.data
        if not data:
            raise _Damaged("an empty file")
        if data[:4] != b"\x7fELF":
            known = (title for magic, title in _OTHER_FORMATS if data.startswith(magic))
            raise _Damaged(next(known, "not an ELF file"))
        if data[4:5] == b"\x01":
            raise _Damaged("a 32-bit library")
        if data[5:6] == b"\x02":
            raise _Damaged("a big-endian library")
        kind, machine_number = struct.unpack_from("<HH", data, 16)
        if kind != _SHARED_OBJECT:
            raise _Damaged(f"{_KINDS.get(kind, 'an ELF file of unknown kind')}, not a library")
        machine = _MACHINES.get(machine_number, f"machine number {machine_number}")
        if machine != os.uname().machine:
            raise _Damaged(f"a library for {machine}")
        return machine

    def _segments(self) -> list[tuple[int, ...]]:
        """Returns the program headers, after checking that the file holds all they promise."""
        offset, sections = struct.unpack_from("<QQ", self.data, 32)
        entry_size, count, section_size, section_count = struct.unpack_from("<HHHH", self.data, 54)
        if entry_size != 56:
            raise _Damaged("a damaged or truncated library")
        table = self._slice(offset, entry_size * count)
        segments = list(struct.iter_unpack("<IIQQQQQQ", table))
        for kind, _, start, _, _, size, _, _ in segments:
            if kind in (_LOAD, _DYNAMIC):
                self._check(start, size)
        self.sections = self._slice(sections, section_size * section_count)
        self.section_size = section_size
        return segments

    def _dynamic(self) -> dict[int, list[int]]:
        """Returns the dynamic segment's values by tag."""
        found: dict[int, list[int]] = {}
        for kind, _, offset, _, _, size, _, _ in self.segments:
            if kind != _DYNAMIC:
                continue
            for tag, value in struct.iter_unpack("<QQ", self._slice(offset, size // 16 * 16)):
                if tag == 0:
                    break
                found.setdefault(tag, []).append(value)
            return found
        raise _Damaged("an ELF file without a dynamic segment")

    def _symbols(self) -> list[tuple[int, ...]]:
        """Returns the dynamic symbols without the empty first one."""
        count = self._symbol_count()
        table = self._slice(self._offset(self._one(_SYMTAB)), count * _SYMBOL.size)
        return list(_SYMBOL.iter_unpack(table))[1:]

    def _symbol_count(self) -> int:
        """Returns the number of dynamic symbols, which the dynamic segment itself does not hold.

        Section headers know it. Where they are stripped: the classic hash table does; GNU's knows
        of all if one is exported; and a symbol that is only imported is named by a relocation.
        """
        if self.section_size == 64:
            for section in struct.iter_unpack("<IIQQQQIIQQ", self.sections):
                if section[1] == _SYMBOL_TABLE_SECTION:
                    return int(section[5]) // _SYMBOL.size
        if _HASH in self.dynamic:
            return int(self._unpack("<II", self._one(_HASH))[1])
        return max(self._count_in_gnu_hash(), max(self._relocated_symbols(), default=0) + 1)

    def _count_in_gnu_hash(self) -> int:
        """Returns one more than the highest symbol that GNU's hash table knows."""
        if _GNU_HASH not in self.dynamic:
            return 0
        address = self._one(_GNU_HASH)
        buckets, first, filters, _ = self._unpack("<IIII", address)
        address += 16 + 8 * filters
        last = max(self._unpack(f"<{buckets}I", address), default=0)
        if last < first:
            return first
        address += 4 * buckets
        # The low bit marks the end of a bucket's chain, and the highest bucket's chain is the last.
        while not self._unpack("<I", address + 4 * (last - first))[0] & 1:
            last += 1
        return last + 1

    def _relocated_symbols(self) -> Iterator[int]:
        """Yields the index of each symbol that a relocation names; 0 is none."""
        for table_tag, size_tag in ((_RELA, _RELASZ), (_JMPREL, _PLTRELSZ)):
            if table_tag in self.dynamic:
                start = self._offset(self._one(table_tag))
                table = self._slice(start, self._one(size_tag) // 24 * 24)
                yield from (info >> 32 for _, info, _ in struct.iter_unpack("<QQq", table))

    def _is_symbolic(self) -> bool:
        """Returns whether the dynamic linker searches the library itself first."""
        return _SYMBOLIC in self.dynamic or any(
            flags & _FLAG_SYMBOLIC for flags in self.dynamic.get(_FLAGS, ())
        )

    def _one(self, tag: int) -> int:
        """Returns the value of a tag that must be there."""
        if tag not in self.dynamic:
            raise _Damaged("a library whose dynamic segment is incomplete")
        return self.dynamic[tag][0]

    def _texts(self, tag: int) -> tuple[str, ...]:
        """Returns the strings that the values of a tag point to."""
        return tuple(self._string(value) for value in self.dynamic.get(tag, ()))

    def _string(self, offset: int) -> str:
        """Returns the string that starts at `offset` of the string table."""
        end = self.strings.index(b"\0", offset)
        return self.strings[offset:end].decode("utf-8", "surrogateescape")

    def _unpack(self, layout: str, address: int) -> tuple[int, ...]:
        """Returns what lies at a virtual address."""
        return struct.unpack_from(layout, self.data, self._offset(address))

    def _offset(self, address: int) -> int:
        """Returns where in the file a virtual address comes from."""
        for kind, _, offset, start, _, size, _, _ in self.segments:
            if kind == _LOAD and start <= address < start + size:
                return address - start + offset
        raise _Damaged("a damaged or truncated library")

    def _slice(self, offset: int, size: int) -> bytes:
        """Returns `size` bytes at `offset`, all of which must be in the file."""
        self._check(offset, size)
        return self.data[offset : offset + size]

    def _check(self, offset: int, size: int) -> None:
        """Raises unless the file holds `size` bytes at `offset`."""
        if offset + size > len(self.data):
            raise _Damaged("a damaged or truncated library")
