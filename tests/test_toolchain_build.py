"""Building sources: what compiles, what the cache keeps, and what a failure says."""

from __future__ import annotations

import ctypes
import hashlib
import itertools
import json
import os
import re
import shutil
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from quick_cases import in_turn
from toolchain import (
    WHO,
    BuildReport,
    ModuleSources,
    SourceText,
    build,
    build_generated,
    build_module,
    builder,
    call,
    compilers,
    config,
    cuda,
    find_object,
    message_of,
    open_store,
    parse_depfile,
    resolve,
    returns,
    script,
    write,
)

from msops import Build, Custom
from msops.errors import ArgumentValueError, BuildError

pytestmark = pytest.mark.skipif(
    not (shutil.which("gcc") and shutil.which("g++")), reason="needs gcc and g++"
)
needs_nvcc = pytest.mark.skipif(not shutil.which("nvcc"), reason="needs nvcc")

# As published kernels are written: without the headers of the types that they use.
ADD_CC = """#include <string.h>
using size_t = decltype(sizeof(int));
using int64_t = decltype(sizeof(long));

extern "C" int CustomAdd(int, void **, int *, int64_t **, const char **dtypes, void *, void *) {
  return strcmp(dtypes[0], "float32");
}
"""
ADD_CU = """
__global__ void AddAll(const float *x, const float *y, float *sum, size_t size) {
  const size_t i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < size) sum[i] = x[i] + y[i];
}

extern "C" int CustomAdd(int, void **params, int *, int64_t **shapes, const char **dtypes,
                         void *stream, void *) {
  if (strcmp(dtypes[0], "float32") != 0) return 2;
  auto array = [params](int i) { return static_cast<float *>(params[i]); };
  AddAll<<<1, 128, 0, static_cast<cudaStream_t>(stream)>>>(array(0), array(1), array(2),
                                                          shapes[2][0]);
  return 0;
}
"""


@pytest.fixture(autouse=True)
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    folder = tmp_path / "cache"
    monkeypatch.setenv("MSOPS_CACHE_DIR", str(folder))
    for variable in (*compilers.SEARCH_VARIABLES, "CC", "CXX", "MSOPS_CUDA_ARCH"):
        monkeypatch.delenv(variable, raising=False)
    monkeypatch.delenv("MS_CUSTOM_AOT_WHITE_LIST", raising=False)
    return folder


@pytest.fixture
def commands(monkeypatch: pytest.MonkeyPatch) -> list[tuple[str, ...]]:
    """The compilations that ran, in order."""
    ran: list[tuple[str, ...]] = []
    run = compilers.run_quietly

    def record(command, folder, temporary=None, echo=None):
        if command[-1] != "--version":
            ran.append(command)
        return run(command, folder, temporary)

    monkeypatch.setattr(compilers, "run_quietly", record)
    return ran


# What compiles, and how.


@pytest.mark.parametrize("suffix", [".c", ".cc", ".cpp", ".cxx"])
def test_each_suffix_builds_and_runs(tmp_path: Path, suffix: str) -> None:
    text = "int f(void) { return 7; }" if suffix == ".c" else returns(7)
    built = build(write(tmp_path / f"op{suffix}", text), who=WHO)
    assert call(built) == 7
    assert built.name == f"op{suffix}"
    assert built.hash == hashlib.sha256(built.path.read_bytes()).hexdigest()
    assert built.hash in str(built.path)


def test_a_source_that_names_types_of_its_own_compiles(tmp_path: Path) -> None:
    library = resolve(write(tmp_path / "add.cc", ADD_CC), WHO)
    assert "CustomAdd" in library.functions
    assert not library.has_device_code
    assert (library.name, library.origin) == ("add.cc", tmp_path / "add.cc")


def test_an_unknown_suffix_lists_the_known_ones(tmp_path: Path) -> None:
    with pytest.raises(ArgumentValueError) as caught:
        build(write(tmp_path / "op.f90", ""), who=WHO)
    assert str(caught.value) == (
        "Custom 'op': expected a source ending in .c, .cc, .cpp, .cxx, .cu or a library ending in "
        ".so; got op.f90.\nRename the file after the language it is written in."
    )


def test_a_missing_source_is_an_error_with_near_names(tmp_path: Path) -> None:
    write(tmp_path / "addition.cc", "")
    assert message_of(tmp_path / "adition.cc") == (
        f"Custom 'op': there is no file {tmp_path}/adition.cc.\nThat folder has addition.cc."
    )


@pytest.mark.parametrize(
    ("folder", "name"),
    in_turn(
        ["with space", "ünï¢ode", "q'uo\"te$x;`", "-dash", "#a%b\\c", "\ta b\udcff"],
        ["k", "a b", "-o", "@k", "$x'\"é#", "$ORIGIN", "a\tb", "a\rb\x7f", "\udcff\udcfe"],
    ),
)
def test_any_path_works(
    tmp_path: Path, folder: str, name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("MSOPS_CACHE_DIR", str(tmp_path / f"cache {folder}"))
    write(tmp_path / folder / "in c" / "value$1 #.h", "#define VALUE 5\n")
    text = '#include "value$1 #.h"\n' + returns("VALUE")
    source = write(tmp_path / folder / f"{name}.cc", text)
    options = {"include_dirs": (tmp_path / folder / "in c",), "who": WHO}
    assert call(build(source, **options)) == 5
    write(tmp_path / folder / "in c" / "value$1 #.h", "#define VALUE 66\n")
    assert call(build(source, **options)) == 66


def test_an_op_of_any_file_name_runs(tmp_path: Path) -> None:
    text = (
        "#include <cstdint>\n"
        'extern "C" int Two(int, void **params, int *, int64_t **shapes, const char **, void *, '
        "void *) {\n"
        "  for (long i = 0; i < shapes[0][0]; ++i) static_cast<float *>(params[1])[i] = 2;\n"
        "  return 0;\n}\n"
    )
    for name in ("$ORIGIN.cc", "${LIB}.cc", "a\tb.cc", "\udcff.cc"):
        op = Custom(f"{write(tmp_path / name, text)}:Two", lambda x: x, lambda x: x)
        assert op(np.zeros(2, np.float32)).tolist() == [2, 2]


def test_a_name_of_two_lines_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(ArgumentValueError) as caught:
        build(write(tmp_path / "a\nb.cc", returns("1")), who=WHO)
    assert str(caught.value) == (
        "Custom 'op': expected a source whose name is one line; got 'a\\nb.cc'.\n"
        "Rename the file: compilers write names into lists of one per line."
    )


NOBODY = 65534


@pytest.mark.parametrize(
    ("mode", "owner", "problem"),
    [
        (0o777, None, "can be written by every user"),
        (0o1777, None, "can be written by every user"),
        (0o755, NOBODY, "belongs to user nobody"),
        (0o775, None, ""),
        (0o700, None, ""),
    ],
)
def test_a_cache_folder_that_others_may_write_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, mode: int, owner: int | None, problem: str
) -> None:
    if owner is not None and os.geteuid() != 0:
        pytest.skip("only root can give a folder away")
    folder = tmp_path / "shared"
    folder.mkdir()
    folder.chmod(mode)
    if owner is not None:
        os.chown(folder, owner, -1)
    monkeypatch.setenv("MSOPS_CACHE_DIR", str(folder))
    source = write(tmp_path / "op.cc", returns("1"))
    if problem:
        assert message_of(source) == (
            f"Custom 'op': the cache folder {folder} {problem}, who could put libraries into it "
            "that then run in this process.\n"
            "Set MSOPS_CACHE_DIR to a folder of your own (chmod -R o-w), or MSOPS_CACHE_TRUST=1 if "
            "you trust those users."
        )
        monkeypatch.setenv("MSOPS_CACHE_TRUST", "1")
    assert call(build(source, who=WHO)) == 1


def test_headers_beside_the_source_come_before_include_dirs(tmp_path: Path) -> None:
    write(tmp_path / "src" / "value.h", "#define VALUE 1\n")
    write(tmp_path / "include" / "value.h", "#define VALUE 2\n")
    source = write(tmp_path / "src" / "op.cc", "#include <value.h>\n" + returns("VALUE"))
    assert call(build(source, include_dirs=(tmp_path / "include",), who=WHO)) == 1


def test_arithmetic_stays_ieee(tmp_path: Path) -> None:
    text = 'extern "C" int f(void) { volatile double n = __builtin_nan(""); return n != n; }'
    assert call(build(write(tmp_path / "op.cc", text), who=WHO)) == 1


def test_equal_sources_in_other_folders_make_equal_libraries(tmp_path: Path) -> None:
    text = '#include <assert.h>\nextern "C" int f(int x) { assert(x); return *__FILE__; }\n'
    built = [build(write(tmp_path / folder / "op.cc", text), who=WHO) for folder in "ab"]
    assert built[0] == built[1]


def test_flags_come_last_and_are_relative_to_the_source(tmp_path: Path) -> None:
    write(tmp_path / "extra" / "v.h", "#define V 3\n")
    source = write(tmp_path / "op.cc", '#include "v.h"\n' + returns("V + W"))
    assert call(build(source, options=Build(flags=("-Iextra", "-DW=4")), who=WHO)) == 7


def test_libraries_in_flags_are_linked_and_watched(tmp_path: Path) -> None:
    def archive(value: int) -> None:
        part = write(tmp_path / "part.c", f"int part(void) {{ return {value}; }}")
        subprocess.run(["gcc", "-fPIC", "-c", part, "-o", tmp_path / "part.o"], check=True)
        subprocess.run(["ar", "rcs", tmp_path / "libpart.a", tmp_path / "part.o"], check=True)

    text = 'extern "C" int part(void);\nextern "C" int f(void) { return part(); }'
    source = write(tmp_path / "op.cc", text)
    for value, flags in ((1, ("-L.", "-lpart")), (2, ("-L.", "-lpart")), (3, ("libpart.a",))):
        archive(value)
        assert call(build(source, options=Build(flags=flags), who=WHO)) == value
    archive(4)
    assert call(build(source, options=Build(flags=("libpart.a",)), who=WHO)) == 4


def test_cc_and_cxx_choose_the_compiler(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, commands: list[tuple[str, ...]]
) -> None:
    compiler = script(tmp_path / "my compiler", 'exec g++ "$@"')
    monkeypatch.setenv("CXX", f"'{compiler}' -DV=9")
    assert call(build(write(tmp_path / "op.cc", returns("V")), who=WHO)) == 9
    assert commands[0][:2] == (str(compiler), "-DV=9")


# What the cache keeps.


def test_an_unchanged_source_is_compiled_once(
    tmp_path: Path, commands: list[tuple[str, ...]]
) -> None:
    source = write(tmp_path / "op.cc", returns(1))
    first = build(source, who=WHO)
    assert build(source, who=WHO) == first
    assert len(commands) == 1


def test_going_back_to_an_earlier_source_or_header_compiles_nothing(
    tmp_path: Path, commands: list[tuple[str, ...]]
) -> None:
    source = tmp_path / "op.cc"
    for _ in range(2):
        for value in "12":
            write(source, '#include "v.h"\n' + returns(f"V + {value}0"))
            for header in "34":
                write(tmp_path / "v.h", f"#define V {header}\n")
                assert call(build(source, who=WHO)) == int(f"{value}{header}")
    assert len(commands) == 4


def test_a_header_of_a_header_rebuilds(tmp_path: Path) -> None:
    write(tmp_path / "outer.h", '#include "deep/inner.h"\n')
    source = write(tmp_path / "op.cc", '#include "outer.h"\n' + returns("V"))
    for value in (1, 2, 3):
        write(tmp_path / "deep" / "inner.h", f"#define V {value}\n")
        # The same size within one tick of the clock: only the content distinguishes them.
        assert call(resolve(source, WHO)) == value


def test_a_new_header_that_is_found_first_rebuilds(tmp_path: Path) -> None:
    write(tmp_path / "include" / "v.h", "#define V 1\n")
    source = write(tmp_path / "src" / "op.cc", "#include <v.h>\n" + returns("V"))
    options = {"include_dirs": (tmp_path / "include",)}
    assert call(resolve(source, WHO, **options)) == 1
    write(tmp_path / "src" / "v.h", "#define V 2\n")
    assert call(resolve(source, WHO, **options)) == 2


@pytest.mark.parametrize("variable", ["CPATH", "CPLUS_INCLUDE_PATH", "CXX"])
def test_a_new_header_that_is_found_first_through_the_environment_rebuilds(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, variable: str
) -> None:
    first, second = tmp_path / "first", tmp_path / "second"
    first.mkdir()
    write(second / "v.h", "#define V 1\n")
    value = f"g++ -I{first} -I{second}" if variable == "CXX" else f"{first}:{second}"
    monkeypatch.setenv(variable, value)
    source = write(tmp_path / "src" / "op.cc", "#include <v.h>\n" + returns("V"))
    assert call(resolve(source, WHO)) == 1
    write(first / "v.h", "#define V 2\n")
    assert call(resolve(source, WHO)) == 2
    assert call(build(source, who=WHO)) == 2


@pytest.mark.parametrize("through", ["CXX", "flags"])
def test_an_edited_file_of_options_rebuilds(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, through: str
) -> None:
    options = tmp_path / "options"
    if through == "CXX":
        monkeypatch.setenv("CXX", f"g++ @{options}")
    flags = (f"@{options}",) if through == "flags" else ()
    source = write(tmp_path / "op.cc", returns("V"))
    for value in (1, 2):
        write(options, f"-DV={value}\n")
        assert call(resolve(source, WHO, options=Build(flags=flags))) == value
        assert call(build(source, who=WHO, options=Build(flags=flags))) == value


@pytest.mark.parametrize("flags", [(), ("-pipe",)])
def test_an_edited_file_that_the_assembler_includes_rebuilds(
    tmp_path: Path, flags: tuple[str, ...]
) -> None:
    text = 'asm(".data\\n.global table\\ntable: .incbin \\"data.bin\\"\\n.text");\n'
    text += 'extern "C" __attribute__((visibility("hidden"))) char table[];\n'
    source = write(tmp_path / "op.cc", text + returns("table[0]"))
    for value in (1, 2):
        (tmp_path / "data.bin").write_bytes(bytes([value]))
        assert call(resolve(source, WHO, options=Build(flags=flags))) == value
        assert call(build(source, who=WHO, options=Build(flags=flags))) == value


def test_flags_and_environment_are_part_of_the_key(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, commands: list[tuple[str, ...]]
) -> None:
    source = write(tmp_path / "op.cc", '#include "where.h"\n' + returns("V"))
    for folder in ("a", "b"):
        write(tmp_path / folder / "where.h", f"#define V '{folder}'\n")
        monkeypatch.setenv("CPATH", str(tmp_path / folder))
        assert call(resolve(source, WHO)) == ord(folder)
    resolve(source, WHO, options=Build(flags=("-g",)))
    assert len(commands) == 3


def test_an_upgraded_compiler_rebuilds(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, commands: list[tuple[str, ...]]
) -> None:
    source = write(tmp_path / "op.cc", returns("V"))
    monkeypatch.setenv("CXX", str(tmp_path / "cxx"))
    for version in ("12.1.0", "12.11.0"):
        answer = f'test "$1" = --version && echo "g++ (GCC) {version}" && exit'
        script(tmp_path / "cxx", f'{answer}\nexec g++ "-DV={version[3:-2]}" "$@"')
        assert call(build(source, who=WHO)) == int(version[3:-2])
    assert len(commands) == 2


def test_march_native_puts_the_cpu_into_the_key() -> None:
    assert compilers.processor_identity(("-O2",)) == os.uname().machine
    named = compilers.processor_identity(("-march=native",))
    assert re.search(r"^(flags|Features)\s*: .{20}", named, re.MULTILINE)


@pytest.mark.parametrize("damage", ["truncate", "flip", "empty", "remove"])
def test_a_damaged_library_is_rebuilt(tmp_path: Path, damage: str) -> None:
    source = write(tmp_path / "op.cc", returns(5))
    good = build(source, who=WHO)
    content = good.path.read_bytes()
    flipped = bytes((content[0], content[1] ^ 1)) + content[2:]
    good.path.unlink()
    if damage != "remove":
        good.path.write_bytes(
            {"truncate": content[: len(content) // 2], "flip": flipped, "empty": b""}[damage]
        )
    again = build(source, who=WHO)
    assert again == good
    assert again.path.read_bytes() == content


@pytest.mark.parametrize(
    "text",
    [
        "",
        "{",
        "[[1]]",
        '[{"library": 1}]',
        "null",
        "\xff",
        "[" * 99999,
        '{"a":' * 99999,
        "9" * 9999,
    ],
)
def test_a_damaged_manifest_is_as_good_as_none(tmp_path: Path, cache: Path, text: str) -> None:
    source = write(tmp_path / "op.cc", returns(5))
    good = build(source, who=WHO)
    (manifest,) = (cache / "manifests").rglob("*.json")
    manifest.write_text(text, encoding="latin-1")
    assert build(source, who=WHO) == good


VALUES = (None, -1, 10**30, True, "", "\0", "\ud800", "/dev/null", "..", "../" * 9, [], {}, [1])


def test_a_manifest_of_any_values_is_as_good_as_none(tmp_path: Path, cache: Path) -> None:
    write(tmp_path / "v.h", "#define V 5\n")
    good = build(write(tmp_path / "op.cc", '#include "v.h"\n' + returns("V")), who=WHO)
    (manifest,) = (cache / "manifests").rglob("*.json")
    whole = json.loads(manifest.read_text())
    os.mkfifo(tmp_path / "pipe")
    found = 0
    for place in places(whole):
        for value in (*VALUES, str(tmp_path / "pipe")):
            manifest.write_text(json.dumps(replaced(whole, place, value)))
            pair = find_object(open_store(WHO), manifest.stem, good.path.name)
            assert pair is None or pair[1] == good.path.read_bytes()
            found += pair is not None
    # Of a file whose times are others, the content is compared.
    assert found


def places(value: object) -> Iterator[tuple[object, ...]]:
    """Yields where parts of a JSON value are: keys and positions from the outermost on."""
    yield ()
    parts: dict[object, object] = {}
    if isinstance(value, dict):
        parts = value
    elif isinstance(value, list):
        parts = dict(enumerate(value))
    for key, part in parts.items():
        yield from ((key, *place) for place in places(part))


def replaced(value: object, place: tuple[object, ...], new: object) -> object:
    """Returns a JSON value with another part at a place."""
    if not place:
        return new
    changed = value.copy()
    changed[place[0]] = replaced(value[place[0]], place[1:], new)
    return changed


def test_a_manifest_that_names_no_files_is_as_good_as_none(tmp_path: Path, cache: Path) -> None:
    write(tmp_path / "v.h", "#define V 5\n")
    source = write(tmp_path / "op.cc", '#include "v.h"\n' + returns("V"))
    good = build(source, who=WHO)
    (manifest,) = (cache / "manifests").rglob("*.json")
    text = manifest.read_text()
    stamp = json.loads(text)[0]["inputs"][0]
    handle = os.open(os.devnull, os.O_RDONLY)
    for index, value in ((0, handle), (0, True), (0, "a\0b"), (1, "1"), (5, 5), (6, None)):
        bad = [*stamp[:index], value, *stamp[index + 1 :]]
        manifest.write_text(text.replace(json.dumps(stamp), json.dumps(bad)))
        assert build(source, who=WHO) == good
    # Taken for a file, the number would have been closed after it was read.
    os.close(handle)


def test_a_cache_that_was_deleted_is_filled_again(tmp_path: Path, cache: Path) -> None:
    source = write(tmp_path / "op.cc", returns(5))
    resolve(source, WHO)
    shutil.rmtree(cache)
    assert call(resolve(source, WHO)) == 5


@pytest.mark.parametrize("deleted", ["", "scratch", "objects", "generated", "locks"])
@pytest.mark.parametrize("kind", ["source", "generated", "module"])
def test_a_cache_that_is_deleted_while_a_compiler_runs_is_filled_again(
    tmp_path: Path, cache: Path, monkeypatch: pytest.MonkeyPatch, deleted: str, kind: str
) -> None:
    run, counted = compilers.run_quietly, itertools.count()
    # The compiler of the first source; of a module the linker, which reads an object of the cache.
    last = 1 if kind == "module" else 0

    def run_and_delete(command, folder, temporary=None, echo=None):
        if command[-1] != "--version" and next(counted) == last:
            shutil.rmtree(cache / deleted, ignore_errors=True)
        return run(command, folder, temporary, echo)

    monkeypatch.setattr(compilers, "run_quietly", run_and_delete)
    source = write(tmp_path / "op.cc", returns(5))
    if kind == "generated":
        library = build_generated('extern "C" int f(void) { return 5; }', "op", WHO)
    elif kind == "module":
        sources = ModuleSources("op", (source,), ("-fPIC",), (), (), (), False)
        library = build_module(sources, WHO, BuildReport(lambda text: None))
    else:
        library = resolve(source, WHO)
    assert call(library) == 5


@pytest.mark.parametrize("kind", ["source", "text", "generated", "module", "library"])
def test_a_cache_that_is_deleted_again_and_again_is_an_error_after_eight_attempts(
    tmp_path: Path, cache: Path, monkeypatch: pytest.MonkeyPatch, kind: str
) -> None:
    source = write(tmp_path / "op.cc", returns(5))
    sources = (source, write(tmp_path / "other.cc", returns(6)))
    module = ModuleSources("op", sources, ("-fPIC",), (), (), (), False)
    given = tmp_path / "libop.so"
    shutil.copy(build(source, who=WHO).path, given)
    shutil.rmtree(cache)
    make = {
        "source": lambda: resolve(source, WHO),
        "text": lambda: resolve(SourceText(returns(5), "f"), WHO),
        "generated": lambda: build_generated('extern "C" int f(void) { return 5; }', "op", WHO),
        "module": lambda: build_module(module, WHO, BuildReport(lambda text: None)),
        "library": lambda: resolve(given, WHO),
    }[kind]
    attempts: list[str] = []
    rename = os.rename

    def delete_and_rename(made, path):
        attempts.append(Path(path).parent.name)
        # Another thread may make folders meanwhile.
        shutil.rmtree(cache, ignore_errors=True)
        shutil.rmtree(Path(made).parent, ignore_errors=True)
        rename(made, path)

    monkeypatch.setattr(os, "rename", delete_and_rename)
    with pytest.raises(BuildError) as caught:
        make()
    assert str(caught.value) == (
        f"Custom 'op': the cache folder {cache} cannot be written (parts of it are deleted at the "
        "same time).\nSet MSOPS_CACHE_DIR to a folder that can be written and has space."
    )
    # A module compiles its sources side by side.
    assert len(attempts) <= 8 * (2 if kind == "module" else 1)


def test_scratch_folders_are_gone_after_success_and_failure(tmp_path: Path, cache: Path) -> None:
    build(write(tmp_path / "op.cc", returns(5)), who=WHO)
    message_of(write(tmp_path / "bad.cc", "nonsense"))
    assert list((cache / "scratch").iterdir()) == []
    assert sorted(path.name for path in tmp_path.iterdir()) == ["bad.cc", "cache", "op.cc"]


def test_a_rebuilt_source_gives_its_new_code_in_the_same_process(tmp_path: Path) -> None:
    # An inline static, and a template's static member: the kinds that libraries of one process
    # share unless told not to.
    text = """
    template <class T> struct Held {{ static int value; }};
    template <class T> int Held<T>::value = {0};
    inline int &counter() {{ static int count = {0}; return count; }}
    extern "C" int f() {{ return Held<int>::value * 1000 + counter()++; }}
    """
    source = tmp_path / "op.cc"
    first = resolve(write(source, text.format(1)), WHO)
    assert [call(first), call(first)] == [1001, 1002]
    second = resolve(write(source, text.format(5)), WHO)
    assert [call(second), call(second)] == [5005, 5006]
    assert call(first) == 1003


def test_a_header_that_changes_during_the_build_is_not_mixed_up(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    header = write(tmp_path / "v.h", "#define V 1\n")
    source = write(tmp_path / "op.cc", '#include "v.h"\n' + returns("V"))
    run, edits = compilers.run_quietly, [2]

    def edit_after(command, folder, temporary=None, echo=None):
        done = run(command, folder, temporary)
        if command[-1] != "--version" and edits:
            write(header, f"#define V {edits.pop()}\n")
        return done

    monkeypatch.setattr(compilers, "run_quietly", edit_after)
    assert call(build(source, who=WHO)) == 2
    assert call(build(source, who=WHO)) == 2


def test_a_header_that_never_rests_is_an_error(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    header = write(tmp_path / "v.h", "#define V 1\n")
    source = write(tmp_path / "op.cc", '#include "v.h"\n' + returns("V"))
    run, versions = compilers.run_quietly, iter(range(100))

    def edit_after(command, folder, temporary=None, echo=None):
        done = run(command, folder, temporary)
        write(header, f"#define V {next(versions)}\n")
        return done

    monkeypatch.setattr(compilers, "run_quietly", edit_after)
    assert message_of(source) == (
        f"Custom 'op': {source}, or a header it includes, changed while it was being compiled.\n"
        "Build it again when nothing writes to these files."
    )


def median_s(function, repeats: int) -> float:
    times = []
    for _ in range(repeats):
        started = time.perf_counter()
        function()
        times.append(time.perf_counter() - started)
    return sorted(times)[repeats // 2]


@pytest.mark.slow
def test_warm_and_repeated_look_ups_are_cheap(tmp_path: Path) -> None:
    text = "#include <algorithm>\n#include <string>\n#include <vector>\n" + returns(1)
    source = write(tmp_path / "op.cc", text)
    resolve(source, WHO)
    # Bounds are wide for a busy machine: quiet, these take 1.5 ms and 0.04 ms.
    assert median_s(lambda: build(source, who=WHO), 9) < 0.02
    assert median_s(lambda: resolve(source, WHO), 99) < 0.0005


# What a failure says.


def test_a_source_that_does_not_compile_shows_command_and_first_errors(tmp_path: Path) -> None:
    source = write(tmp_path / "bad folder" / "op.cc", "int f() { return missing_name; }\n")
    with pytest.raises(BuildError) as caught:
        build(source, options=Build(flags=("-Wall",)), who=WHO)
    lines = str(caught.value).splitlines()
    assert lines[0] == f"Custom 'op': g++ could not build {source}:"
    assert lines[1].startswith("  op.cc:1:18: error: ")
    assert "missing_name" in lines[1]
    assert lines[-3:-1] == [
        f"Correct the source or the flags. The command was, in {source.parent}:",
        f"  {shutil.which('g++')} -O3 -std=c++17 -fPIC -fvisibility-inlines-hidden "
        "-Werror=return-type -fno-semantic-interposition -fno-gnu-unique "
        "--param=ggc-min-heapsize=524288 -shared -Wl,-Bsymbolic -I. op.cc -Wall",
    ]
    assert lines[-1] == "All that the compiler said is in the attribute 'output' of this error."
    assert "missing_name" in caught.value.output
    assert isinstance(caught.value, RuntimeError)


@pytest.mark.parametrize("name", ["op.c", "op.cc"])
def test_a_function_without_its_return_value_is_an_error(tmp_path: Path, name: str) -> None:
    source = write(tmp_path / name, "int f(int *x) { x[0] = 1; }\n")
    with pytest.raises(BuildError, match=rf"{re.escape(name)}:1:\d+: error: .*return"):
        build(source, who=WHO)
    build(write(tmp_path / name, "void f(int *x) { x[0] = 1; }\n"), who=WHO)
    write(tmp_path / name, "int f(int *x) { x[0] = 1; }\n")
    build(source, options=Build(flags=("-Wno-error=return-type",)), who=WHO)


def test_the_first_error_is_no_name_in_the_line_on_its_function(tmp_path: Path) -> None:
    source = write(tmp_path / "op.cc", "struct Error {};\nint f(Error e) { return missing; }\n")
    assert message_of(source).splitlines()[1].startswith("  op.cc:2:25: error: ")


def test_long_output_is_cut_at_the_first_errors_and_kept_whole(tmp_path: Path) -> None:
    bad = "".join(f"int f{n}() {{ return missing_{n}; }}\n" for n in range(50))
    with pytest.raises(BuildError) as caught:
        build(write(tmp_path / "op.cc", "#warning first\n" + bad), who=WHO)
    assert "missing_0" in str(caught.value)
    assert "missing_49" not in str(caught.value)
    assert "missing_49" in caught.value.output
    assert len(str(caught.value).splitlines()) < 10


def test_a_failed_build_is_tried_again_after_the_fix(tmp_path: Path) -> None:
    source = write(tmp_path / "op.cc", "nonsense")
    message_of(source)
    assert call(build(write(source, returns(3)), who=WHO)) == 3


def test_a_linkers_error_is_shown(tmp_path: Path) -> None:
    text = message_of(
        write(tmp_path / "op.cc", returns(1)), options=Build(flags=("-lno_such_library_here",))
    )
    assert "cannot find -lno_such_library_here" in text


def test_a_missing_compiler_is_named_with_its_install_command(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    assert message_of(write(tmp_path / "op.cc", "")) == (
        f"Custom 'op': building {tmp_path}/op.cc needs the C++ compiler g++, which is not "
        "installed or not on PATH.\n"
        "Install it (Debian, Ubuntu: apt-get install g++; Fedora: dnf install gcc-c++; conda: "
        "conda install gxx), or name another C++ compiler with CXX."
    )
    assert message_of(write(tmp_path / "op.cu", "")) == (
        f"Custom 'op': building {tmp_path}/op.cu needs the CUDA compiler nvcc, which is not "
        "installed or not on PATH.\n"
        "Install the CUDA toolkit, and put its bin folder on PATH or set CUDA_HOME to the toolkit."
    )


def test_an_old_gcc_is_refused_with_its_version(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    told = "g++ (Ubuntu 9.4.0-1ubuntu1~20.04.2) 9.4.0\nCopyright (C) 2019 Free Software Foundation"
    monkeypatch.setenv("CXX", str(script(tmp_path / "old", f"echo '{told}'")))
    assert message_of(write(tmp_path / "op.cc", returns(1))) == (
        f"Custom 'op': building {tmp_path}/op.cc needs g++ 11 or newer; {tmp_path}/old is 9.4.0.\n"
        "Install a newer one, or name it with CXX, for example CXX=g++-12."
    )


def test_a_compiler_that_does_not_run_is_an_error(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("CC", str(script(tmp_path / "cc", "echo no licence; exit 3")))
    assert message_of(write(tmp_path / "op.c", "")) == (
        f"Custom 'op': the compiler {tmp_path}/cc does not run:\n"
        "  no licence\n"
        "Repair it, or name another with CC, CXX or CUDA_HOME."
    )


def test_generated_code_is_built_by_a_compiler_that_refuses_flags_of_gcc(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    flags = "-fno-tree-bit-ccp|-fno-split-loops|-fno-schedule-insns2"
    body = f"""
    for word in "$@"; do
      case $word in
        --version) echo "clang version 14.0.6"; exit 0;;
        {flags}) echo "error: unknown argument: '$word'"; exit 1;;
      esac
    done
    exec g++ "$@"
    """
    monkeypatch.setenv("CXX", str(script(tmp_path / "clang", body)))
    text = 'extern "C" int seven(void) { return 7; }'
    library = build_generated(text, "seven", "Custom 'op'")
    assert ctypes.CDLL(str(library.path)).seven() == 7


def test_a_command_with_an_open_quote_is_an_error(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("CC", 'gcc "-DNAME')
    assert message_of(write(tmp_path / "op.c", "")) == (
        "CC: expected a command in words of a shell; got 'gcc \"-DNAME': No closing quotation.\n"
        "Close its quotes, or unset it to use gcc."
    )


def test_a_cache_that_cannot_be_written_is_an_error_with_the_variable(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    blocked = write(tmp_path / "file", "") / "cache"
    monkeypatch.setenv("MSOPS_CACHE_DIR", str(blocked))
    assert message_of(write(tmp_path / "op.cc", returns(1))) == (
        f"Custom 'op': the cache folder {blocked} cannot be written (Not a directory).\n"
        "Set MSOPS_CACHE_DIR to a folder that can be written and has space."
    )


def test_a_full_disk_is_an_error_with_the_variable(
    tmp_path: Path, cache: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    full = "cc1plus: fatal error: error writing to /x.s: No space left on device"
    answer = 'test "$1" = --version && echo other && exit'
    compiler = script(tmp_path / "cxx", f"{answer}\necho '{full}'; exit 1")
    monkeypatch.setenv("CXX", str(compiler))
    assert message_of(write(tmp_path / "op.cc", returns(1))) == (
        f"Custom 'op': the cache folder {cache} cannot be written (No space left on device).\n"
        "Set MSOPS_CACHE_DIR to a folder that can be written and has space."
    )


def test_a_library_for_another_machine_is_refused_before_it_is_cached(
    tmp_path: Path, cache: Path
) -> None:
    source = write(tmp_path / "op.c", "int f(void) { return 1; }")
    assert "is an object file, not a library" in message_of(source, options=Build(flags=("-c",)))
    assert not (cache / "objects").exists()


# CUDA.


@needs_nvcc
@pytest.mark.parametrize(
    ("folder", "name"),
    [
        # nvcc takes long: the hardest folder with the hardest name.
        pytest.param(folder, name, marks=() if len(folder + name) > 15 else pytest.mark.slow)
        for folder in ["plain", "sp ace", "q'uo\"te $x;,"]
        for name in ["add", "a b", "a,b '\"$é"]
    ],
)
def test_cuda_sources_compile_unchanged_wherever_they_lie(
    tmp_path: Path, folder: str, name: str, commands: list[tuple[str, ...]]
) -> None:
    write(tmp_path / folder / "in" / "size.h", "#define UNUSED 1\n")
    source = write(tmp_path / folder / f"{name}.cu", '#include "size.h"\n' + ADD_CU)
    options = {"include_dirs": (tmp_path / folder / "in",)}
    library = resolve(source, WHO, **options)
    assert "CustomAdd" in library.functions
    assert library.has_device_code
    assert sorted(path.name for path in source.parent.iterdir()) == sorted(["in", source.name])
    build(source, who=WHO, **options)
    assert len(commands) == 1
    write(tmp_path / folder / "in" / "size.h", "#define UNUSED 2\n")
    build(source, who=WHO, **options)
    assert len(commands) == 2


@pytest.mark.slow
@needs_nvcc
def test_cuda_libraries_are_reproducible_for_a_chosen_architecture(
    tmp_path: Path, cache: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(compilers, "device_architectures", lambda: ())
    source = write(tmp_path / "add.cu", ADD_CU)
    default = build(source, who=WHO)
    monkeypatch.setenv("MSOPS_CUDA_ARCH", "sm_90")
    chosen = build(source, who=WHO)
    assert chosen.hash != default.hash
    assert b"sm_90" in chosen.path.read_bytes()
    shutil.rmtree(cache)
    assert build(source, who=WHO) == chosen


@needs_nvcc
def test_cuda_errors_are_shown(tmp_path: Path) -> None:
    text = message_of(write(tmp_path / "bad.cu", "int x = ;\n"))
    assert "bad.cu(1): error: expected an expression" in text
    text = message_of(write(tmp_path / "bad.cu", "int f(int *x) { x[0] = 1; }\n"))
    assert "error: no return statement in function returning non-void" in text


def test_cuda_home_names_the_toolkit(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    script(tmp_path / "toolkit" / "bin" / "nvcc", "echo release 99")
    monkeypatch.setenv("CUDA_HOME", str(tmp_path / "toolkit"))
    plan = builder.make_plan(write(tmp_path / "op.cu", ""), Build(), (), WHO)
    assert plan.command[0] == str(tmp_path / "toolkit" / "bin" / "nvcc")


@pytest.mark.parametrize(
    ("devices", "variable", "flags"),
    [
        ((), None, []),
        ((), "sm_80", ["-arch=sm_80"]),
        (("sm_90",), "sm_80", ["-arch=sm_80"]),
        (("sm_90",), None, ["-arch=sm_90"]),
        (
            ("sm_80", "sm_90"),
            None,
            [
                "-gencode=arch=compute_80,code=sm_80",
                "-gencode=arch=compute_90,code=sm_90",
            ],
        ),
    ],
)
def test_cuda_is_built_for_the_devices_present(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    devices: tuple[str, ...],
    variable: str | None,
    flags: list[str],
) -> None:
    script(tmp_path / "toolkit" / "bin" / "nvcc", "echo release 99")
    monkeypatch.setenv("CUDA_HOME", str(tmp_path / "toolkit"))
    monkeypatch.setattr(compilers, "device_architectures", lambda: devices)
    if variable:
        monkeypatch.setenv("MSOPS_CUDA_ARCH", variable)
    plan = builder.make_plan(write(tmp_path / "op.cu", ""), Build(), (), WHO)
    assert [word for word in plan.command if "arch" in word] == flags


def test_architectures_come_from_the_driver(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A stand-in for libcuda with two devices of two kinds, called as the real one is."""
    text = """
    int cuInit(unsigned flags) { return flags != 0; }
    int cuDeviceGetCount(int *count) { *count = 3; return 0; }
    int cuDeviceGet(int *device, int ordinal) { *device = 100 + ordinal; return 0; }
    int cuDeviceGetAttribute(int *value, int attribute, int device) {
      if (device < 100 || device > 102) return 1;
      *value = attribute == 75 ? (device == 101 ? 8 : 9) : attribute == 76 ? 0 : -1;
      return 0;
    }
    """
    driver = ctypes.CDLL(str(build(write(tmp_path / "cuda.c", text), who=WHO).path))
    fake = SimpleNamespace(CDLL=lambda name: driver, c_int=ctypes.c_int, byref=ctypes.byref)
    monkeypatch.setattr(cuda, "ctypes", fake)
    assert cuda.device_architectures.__wrapped__() == ("sm_80", "sm_90")


# Depfiles.


def test_depfiles_of_every_style_are_read() -> None:
    assert parse_depfile("out: a.cc b.h \\\n c\\ d.h e$$f.h g\\#h.h\n") == (
        "a.cc",
        "b.h",
        "c d.h",
        "e$f.h",
        "g#h.h",
    )
    assert parse_depfile("out : a.cu \\\n    b.h \\\n    b.h\n") == ("a.cu", "b.h")


@settings(max_examples=25, deadline=None)
@given(name=st.text("ab $#'\"%&;()[]{}é~!^=+,.-\\", min_size=1, max_size=8))
def test_a_header_of_any_name_is_read_back(
    name: str, tmp_path_factory: pytest.TempPathFactory
) -> None:
    name = f"x{name}.h"
    # gcc's own notation cannot tell a backslash before these from its quoting.
    if re.search(r"\\[ #$\\]|\\$|\"", name):
        return
    folder = tmp_path_factory.mktemp("depfile")
    write(folder / name, "")
    write(folder / "op.c", f"#include <{name}>\n")
    command = ["gcc", "-I.", "-fsyntax-only", "-MD", "-MT", "out", "-MF", "out.d", "op.c"]
    subprocess.run(command, cwd=folder, check=True)
    assert name in parse_depfile((folder / "out.d").read_text()), name


def test_the_cache_folder_follows_the_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("MSOPS_CACHE_DIR")
    monkeypatch.setenv("XDG_CACHE_HOME", "/somewhere/else")
    assert config.cache_dir() == Path("/somewhere/else/msops")
