"""The ELF reader against binutils, on real libraries, stripped ones, foreign ones and garbage."""

from __future__ import annotations

import _ctypes
import contextlib
import os
import re
import shutil
import struct
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from msops._toolchain import elf
from msops.errors import BuildError

pytestmark = pytest.mark.skipif(
    not (shutil.which("gcc") and shutil.which("nm") and shutil.which("readelf")),
    reason="needs gcc and binutils",
)

SOURCE = """
#include <math.h>
#include <stdlib.h>
int answer = 42;
static int hidden_by_static(void) { return 1; }
__attribute__((visibility("hidden"))) int hidden(void) { return 2; }
__attribute__((weak)) int weak_one(void) { return 3; }
__attribute__((visibility("protected"))) int guarded(void) { return 4; }
extern int absent_but_weak(void) __attribute__((weak));
double Kernel(double x) { return sin(x) + hidden() + hidden_by_static() + rand(); }
int calls(void) { return absent_but_weak ? absent_but_weak() : 0; }
"""


def gcc(output: Path, source: str, *flags: str) -> Path:
    command = ["gcc", "-x", "c", "-", "-shared", "-fPIC", "-O1", "-o", output, *flags]
    subprocess.run(command, input=source.encode(), check=True)
    return output


def names_by_nm(path: Path, which: str) -> set[str]:
    text = subprocess.run(
        ["nm", "-D", which, path], check=True, capture_output=True, text=True
    ).stdout
    return {line.split()[-1].partition("@")[0] for line in text.splitlines()}


def loaded_libraries() -> list[Path]:
    """The libraries of this process: real ones, of several makers."""
    # Libraries of other tests may have names that are not UTF-8.
    maps = os.fsdecode(Path("/proc/self/maps").read_bytes())
    paths = {Path(path) for path in re.findall(r"(/\S+\.so[.\d]*)$", maps, re.MULTILINE)}
    # jaxlib's takes nm half a minute.
    return sorted(path for path in paths if path.exists() and path.stat().st_size < 50e6)


def one_of_each_folder(paths: list[Path]) -> list[Path]:
    """The smallest library of each folder, but only one of those that tests have built.

    Large ones are left out: nm takes seconds for each.
    """
    cache, built = Path(os.environ["MSOPS_CACHE_DIR"]), Path("built")
    folders: dict[Path, list[Path]] = {}
    for path in paths:
        folders.setdefault(built if path.is_relative_to(cache) else path.parent, []).append(path)
    smallest = [min(group, key=lambda path: path.stat().st_size) for group in folders.values()]
    return [path for path in smallest if path.stat().st_size < 5e6]


def without_section_headers(data: bytes) -> bytes:
    table = bytearray(data)
    table[40:48] = bytes(8)
    table[58:64] = bytes(6)
    return bytes(table)


@pytest.fixture(scope="module")
def library(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("elf")
    flags = ("-lm", "-Wl,-rpath,$ORIGIN/../deps:/opt/x")
    return gcc(folder / "libk.so", SOURCE, *flags)


def test_exports_imports_and_dynamic_entries_are_those_binutils_sees(library: Path) -> None:
    info = elf.read_elf(library)
    assert info.exports == names_by_nm(library, "--defined-only")
    assert info.imports == names_by_nm(library, "--undefined-only")
    assert {"Kernel", "weak_one", "guarded", "answer"} <= info.exports
    assert not {"hidden", "hidden_by_static"} & info.exports
    assert info.needed[0].startswith("libm.so")
    assert (*info.runpath, *info.rpath) == ("$ORIGIN/../deps", "/opt/x")


@pytest.mark.slow
@pytest.mark.parametrize("choose", [one_of_each_folder, pytest.param(list, marks=pytest.mark.slow)])
def test_libraries_of_this_process_read_as_binutils_reads_them(
    choose: Callable[[list[Path]], list[Path]],
) -> None:
    paths = choose(loaded_libraries())
    for path in paths:
        info = elf.read_elf(path)
        assert info.exports == names_by_nm(path, "--defined-only"), path
        assert info.imports == names_by_nm(path, "--undefined-only"), path
        text = subprocess.run(
            ["readelf", "-dW", path], check=True, capture_output=True, text=True
        ).stdout
        assert list(info.needed) == re.findall(r"\(NEEDED\).*\[(.*)\]", text), path
    assert len(paths) >= 5


@pytest.mark.parametrize("style", ["gnu", "sysv", "both"])
def test_stripping_changes_nothing(tmp_path: Path, style: str) -> None:
    whole = gcc(tmp_path / "whole.so", SOURCE, f"-Wl,--hash-style={style}", "-lm")
    expected = elf.read_elf(whole)
    stripped = tmp_path / "stripped.so"
    subprocess.run(["strip", "--strip-all", whole, "-o", stripped], check=True)
    assert elf.read_elf(stripped) == expected
    bare = tmp_path / "bare.so"
    bare.write_bytes(without_section_headers(stripped.read_bytes()))
    assert elf.read_elf(bare) == expected


def test_imports_alone_are_found_without_section_headers(tmp_path: Path) -> None:
    source = '#include <stdlib.h>\n__attribute__((visibility("hidden"))) int f(void)'
    source += "{ return rand(); }\n__attribute__((constructor)) static void g(void) { f(); }"
    whole = gcc(tmp_path / "whole.so", source, "-Wl,--hash-style=gnu")
    assert not elf.read_elf(whole).exports
    bare = tmp_path / "bare.so"
    bare.write_bytes(without_section_headers(whole.read_bytes()))
    assert "rand" in elf.read_elf(bare).imports


def message_of(path: Path) -> str:
    with pytest.raises(BuildError) as caught:
        elf.read_elf(path, "Custom 'k'")
    return str(caught.value)


def expected_message(path: Path, reason: str) -> str:
    return (
        f"Custom 'k': expected a shared library for {os.uname().machine}; {path} is {reason}.\n"
        "Build it again for this machine with -shared -fPIC, or name its source instead."
    )


@pytest.mark.parametrize(
    ("content", "reason"),
    [
        (b"", "an empty file"),
        (b"#!/bin/sh\n", "not an ELF file"),
        (b"!<arch>\nabc", "a static archive"),
        (b"MZ\x90\0", "a Windows library"),
        (b"\xcf\xfa\xed\xfe" + bytes(60), "a macOS library"),
        (b"\x7fELF", "a damaged or truncated library"),
    ],
)
def test_other_files_are_named_for_what_they_are(
    tmp_path: Path, content: bytes, reason: str
) -> None:
    path = tmp_path / "lib.so"
    path.write_bytes(content)
    assert message_of(path) == expected_message(path, reason)


@pytest.mark.parametrize(
    ("offset", "value", "reason"),
    [
        (4, b"\x01", "a 32-bit library"),
        (5, b"\x02", "a big-endian library"),
        (16, struct.pack("<H", 1), "an object file, not a library"),
        (16, struct.pack("<H", 2), "a program, not a library"),
        (18, struct.pack("<H", 21), "a library for ppc64le"),
        (18, struct.pack("<H", 9999), "a library for machine number 9999"),
    ],
)
def test_libraries_for_others_are_refused(
    tmp_path: Path, library: Path, offset: int, value: bytes, reason: str
) -> None:
    data = bytearray(library.read_bytes())
    data[offset : offset + len(value)] = value
    path = tmp_path / "lib.so"
    path.write_bytes(data)
    assert message_of(path) == expected_message(path, reason)


def test_an_aarch64_library_on_x86_is_refused_by_name(tmp_path: Path, library: Path) -> None:
    other, number = ("x86_64", 62) if os.uname().machine == "aarch64" else ("aarch64", 183)
    data = bytearray(library.read_bytes())
    struct.pack_into("<H", data, 18, number)
    path = tmp_path / "lib.so"
    path.write_bytes(data)
    assert f"is a library for {other}." in message_of(path)


def test_a_position_independent_program_is_refused(tmp_path: Path) -> None:
    program = tmp_path / "program"
    source = "int main(void) { return 0; }"
    subprocess.run(
        ["gcc", "-x", "c", "-", "-pie", "-fPIE", "-o", program], input=source.encode(), check=True
    )
    assert message_of(program) == expected_message(program, "a program (position-independent)")


def test_a_missing_file_is_an_error_of_the_op(tmp_path: Path) -> None:
    (tmp_path / "libkernel.so").touch()
    assert message_of(tmp_path / "libkernl.so") == (
        f"Custom 'k': there is no file {tmp_path}/libkernl.so.\nThat folder has libkernel.so."
    )


def test_every_truncation_is_an_error(library: Path) -> None:
    data = library.read_bytes()
    for length in range(0, len(data), 97):
        with pytest.raises(BuildError):
            elf.parse_elf(data[:length], "lib.so", "test")


FUZZ = settings(
    max_examples=300, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)


def parse_or_refuse(data: bytes) -> None:
    with contextlib.suppress(BuildError):
        elf.parse_elf(data, "lib.so", "test")


@FUZZ
@given(st.binary(max_size=400))
def test_random_bytes_raise_nothing_else(data: bytes) -> None:
    parse_or_refuse(data)
    parse_or_refuse(b"\x7fELF\x02\x01\x01" + bytes(9) + struct.pack("<HH", 3, 62) + data)


@FUZZ
@given(st.data())
def test_a_damaged_library_raises_nothing_else(library: Path, data: st.DataObject) -> None:
    content = bytearray(library.read_bytes())
    if data.draw(st.booleans()):
        content = bytearray(without_section_headers(bytes(content)))
    dynamic = content.find(struct.pack("<QQ", 5, struct.unpack_from("<Q", content, 40)[0])) or 0
    positions = st.integers(0, 900) | st.integers(max(0, dynamic), len(content) - 9)
    for _ in range(data.draw(st.integers(1, 6))):
        position = data.draw(positions)
        value = data.draw(st.integers(0, 2**64 - 1) | st.integers(0, 255))
        struct.pack_into("<Q", content, position, value)
    parse_or_refuse(bytes(content[: data.draw(st.integers(0, len(content)))]))
    parse_or_refuse(bytes(content))


def test_this_interpreters_own_module_is_read() -> None:
    path = Path(getattr(_ctypes, "__file__", sys.executable))
    assert "PyInit__ctypes" in elf.read_elf(path).exports
