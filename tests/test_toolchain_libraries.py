"""Users' libraries: the private copy, $ORIGIN, the allow-list, the index, and the memo."""

from __future__ import annotations

import ctypes
import hashlib
import os
import resource
import shutil
import subprocess
import sys
import time
from pathlib import Path

import pytest
from quick_cases import one_in
from test_extension_builder import PLAIN

from msops import Build
from msops._ascend.tbe.kernel_files import KernelScope
from msops._toolchain import check_allowed, index, libraries, open_copy, resolve
from msops.errors import ArgumentTypeError, ArgumentValueError, BuildError
from msops.ops import CustomOpBuilder

pytestmark = pytest.mark.skipif(not shutil.which("gcc"), reason="needs gcc")

WHO = "Custom 'op'"
PACKAGE_FOLDER = Path(__file__).resolve().parent.parent


@pytest.fixture(autouse=True)
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("MSOPS_CACHE_DIR", str(tmp_path / "cache"))
    monkeypatch.delenv("MS_CUSTOM_AOT_WHITE_LIST", raising=False)
    monkeypatch.delenv("CC", raising=False)
    return tmp_path / "cache"


def library_file(path: Path, text: str, *flags: object) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    command = ["gcc", "-x", "c", "-", "-shared", "-fPIC", "-o", path, *flags]
    subprocess.run(command, input=text.encode(), check=True)
    return path


def call(library) -> int:
    return ctypes.CDLL(str(library.path), mode=ctypes.RTLD_LOCAL | os.RTLD_NOW).f()


# The private copy.


def test_a_library_is_copied_under_its_content_hash(tmp_path: Path, cache: Path) -> None:
    path = library_file(tmp_path / "libop.so", "int f(void) { return 4; }")
    library = resolve(path, WHO)
    content = path.read_bytes()
    assert library.hash == hashlib.sha256(content).hexdigest()
    assert library.path == cache / "objects" / library.hash[:2] / library.hash / "libop.so"
    assert library.path.read_bytes() == content
    assert (library.name, library.origin) == ("libop.so", path)
    assert library.functions == {"f"}
    assert open_copy(path, WHO).path == library.path
    assert call(library) == 4


def test_a_library_rebuilt_at_its_path_gives_its_new_code(tmp_path: Path) -> None:
    path = tmp_path / "libop.so"
    for value in (1, 2, 3):
        # Written in place, the same inode: what defeats opening the original.
        built = library_file(tmp_path / "new.so", f"int f(void) {{ return {value}; }}")
        path.write_bytes(built.read_bytes())
        assert call(resolve(path, WHO)) == value


def test_a_relative_path_starts_at_the_working_directory(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    library_file(tmp_path / "sub" / "libop.so", "int f(void) { return 6; }")
    monkeypatch.chdir(tmp_path)
    library = resolve("./sub/libop.so", WHO)
    assert (call(library), library.origin) == (6, tmp_path / "sub" / "libop.so")


@pytest.mark.parametrize("name", ["a b.so", "q'uo\"te$x.so", "ünï.so", "lib.so.1.2", "-l.so"])
def test_any_library_name_works(tmp_path: Path, name: str) -> None:
    path = library_file(tmp_path / "built.so", "int f(void) { return 8; }").rename(tmp_path / name)
    assert call(resolve(path, WHO)) == 8


@pytest.mark.parametrize("linked", [False, True], ids=["plain", "with $ORIGIN"])
def test_a_damaged_copy_is_made_again(tmp_path: Path, linked: bool) -> None:
    flags = linked_to_dependency(tmp_path / "lib", 5) if linked else ()
    text = "int dep(void);" if linked else ""
    path = library_file(
        tmp_path / "lib" / "libop.so", f"{text} int f(void) {{ return 5; }}", *flags
    )
    copy = open_copy(path, WHO)
    content = path.read_bytes()
    copy.path.write_bytes(content[:100])
    assert open_copy(path, WHO) == copy
    assert copy.path.read_bytes() == content


@pytest.mark.parametrize(
    ("content", "reason"),
    [(b"", "an empty file"), (b"!<arch>\n", "a static archive"), (b"text", "not an ELF file")],
)
def test_what_is_no_library_is_refused_and_not_cached(
    tmp_path: Path, cache: Path, content: bytes, reason: str
) -> None:
    path = tmp_path / "libop.so"
    path.write_bytes(content)
    with pytest.raises(BuildError, match=f"libop.so is {reason}"):
        resolve(path, WHO)
    assert not cache.exists()


def test_a_folder_and_an_unknown_suffix_are_errors(tmp_path: Path) -> None:
    (tmp_path / "dir.so").mkdir()
    with pytest.raises(BuildError) as caught:
        resolve(tmp_path / "dir.so", WHO)
    assert str(caught.value) == (
        f"Custom 'op': {tmp_path}/dir.so is no regular file.\nName a source or a shared library."
    )
    with pytest.raises(ArgumentValueError, match=r"got notes.txt\."):
        resolve(tmp_path / "notes.txt", WHO)
    with pytest.raises(BuildError) as caught:
        resolve(tmp_path / "no" / "lib.so", WHO)
    assert str(caught.value) == (
        f"Custom 'op': there is no file {tmp_path}/no/lib.so.\n"
        f"There is no folder {tmp_path}/no either; relative paths start at {os.getcwd()}."
    )


def test_a_copy_that_does_not_fit_is_an_error_and_leaves_nothing(
    tmp_path: Path, cache: Path
) -> None:
    path = library_file(tmp_path / "libop.so", "int f(void) { return 4; }")
    limits = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (4096, limits[1]))
    try:
        with pytest.raises(BuildError) as caught:
            resolve(path, WHO)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limits)
    assert str(caught.value) == (
        f"Custom 'op': the cache folder {cache} cannot be written (File too large).\n"
        "Set MSOPS_CACHE_DIR to a folder that can be written and has space."
    )
    assert [path for path in cache.rglob("*") if path.is_file()] == []


# $ORIGIN.


def linked_to_dependency(
    folder: Path, value: int, runpath: str = "$ORIGIN", name: str = "dep", *more: object
) -> tuple[object, ...]:
    """Builds lib<name>.so in `folder`; returns the flags that link to it through `runpath`."""
    library_file(folder / f"lib{name}.so", f"int {name}(void) {{ return {value}; }}", *more)
    return "-Wl,--no-as-needed", f"-L{folder}", f"-l{name}", f"-Wl,-rpath,{runpath}"


def run_in_fresh_process(path: Path, environment: dict[str, str]) -> str:
    """What f() of a resolved library returns where nothing else is loaded yet."""
    code = (
        "import ctypes, sys; from msops._toolchain import resolve\n"
        "print(ctypes.CDLL(str(resolve(sys.argv[1], 'op').path)).f())"
    )
    done = subprocess.run(
        [sys.executable, "-c", code, path],
        env={**environment, "PYTHONPATH": str(PACKAGE_FOLDER)},
        capture_output=True,
        text=True,
        check=False,
    )
    return done.stdout.strip() or done.stderr


FORMS = ["$ORIGIN", "${ORIGIN}"]
DTAGS = ["--enable-new-dtags", "--disable-new-dtags"]
PLACES = [("", "lib"), ("/../deps", "deps"), ("/../../far/x", "../far/x")]


@pytest.mark.parametrize(
    ("form", "dtags", "suffix", "where"),
    one_in(
        2,
        [
            # Each is a process: each form meets both kinds of tags, and each place one of the two.
            pytest.param(
                form, dtags, *place, marks=() if (a + b - c) % 3 == 0 else pytest.mark.slow
            )
            for a, form in enumerate(FORMS)
            for b, dtags in enumerate(DTAGS)
            for c, place in enumerate(PLACES)
        ],
    ),
)
def test_origin_keeps_meaning_the_original_folder(
    tmp_path: Path, form: str, dtags: str, suffix: str, where: str
) -> None:
    home = tmp_path / "home"
    flags = linked_to_dependency(home / where, 31, form + suffix)
    text = "int dep(void); int f(void) { return dep() + 1; }"
    path = library_file(home / "lib" / "libop.so", text, *flags, f"-Wl,{dtags}")
    assert run_in_fresh_process(path, dict(os.environ)) == "32"


def test_origin_reaches_the_needs_of_needs(tmp_path: Path) -> None:
    deps = tmp_path / "deps"
    inner = linked_to_dependency(deps / "inner", 7, "$ORIGIN/inner", "inner")
    library_file(
        deps / "libouter.so", "int inner(void); int outer(void) { return inner(); }", *inner
    )
    path = library_file(
        tmp_path / "lib" / "libop.so",
        "int outer(void); int f(void) { return outer() * 2; }",
        *(f"-L{deps}", "-louter", "-Wl,-rpath,$ORIGIN/../deps", "-Wl,--allow-shlib-undefined"),
    )
    assert run_in_fresh_process(path, dict(os.environ)) == "14"


def test_the_older_rpath_serves_the_needs_of_needs(tmp_path: Path) -> None:
    deps = tmp_path / "deps"
    linked_to_dependency(deps, 7, "$ORIGIN", "inner")
    text = "int inner(void); int outer(void) { return inner(); }"
    library_file(deps / "libouter.so", text, f"-L{deps}", "-linner")
    path = library_file(
        tmp_path / "lib" / "libop.so",
        "int outer(void); int f(void) { return outer() * 3; }",
        *(f"-L{deps}", "-louter", "-Wl,-rpath,$ORIGIN/../deps", "-Wl,--disable-new-dtags"),
        "-Wl,--allow-shlib-undefined",
    )
    assert run_in_fresh_process(path, dict(os.environ)) == "21"


def test_equal_libraries_in_two_folders_keep_their_own_dependencies(tmp_path: Path) -> None:
    text = "int dep(void); int f(void) { return dep(); }"
    paths = []
    for value in (1, 2):
        folder = tmp_path / str(value)
        flags = linked_to_dependency(folder, value)
        paths.append(library_file(folder / "libop.so", text, *flags))
    assert paths[0].read_bytes() == paths[1].read_bytes()
    copies = [open_copy(path, WHO) for path in paths]
    assert copies[0].hash == copies[1].hash
    assert copies[0].path != copies[1].path
    assert [run_in_fresh_process(path, dict(os.environ)) for path in paths] == ["1", "2"]


def test_only_what_is_needed_is_linked(tmp_path: Path, cache: Path) -> None:
    flags = linked_to_dependency(tmp_path / "lib", 5)
    (tmp_path / "lib" / "unrelated.so").touch()
    path = library_file(tmp_path / "lib" / "libop.so", "int f(void) { return 5; }", *flags)
    copy = open_copy(path, WHO).path
    assert sorted(os.listdir(copy.parent)) == ["libdep.so", "libop.so"]
    assert (copy.parent / "libdep.so").resolve() == tmp_path / "lib" / "libdep.so"
    assert copy.is_relative_to(cache / "origins")
    assert os.fspath(copy).endswith(os.fspath(path))
    assert not copy.is_symlink()


def test_a_dependency_that_is_no_library_is_left_to_the_linker(tmp_path: Path) -> None:
    flags = linked_to_dependency(tmp_path / "lib", 5)
    path = library_file(tmp_path / "lib" / "libop.so", "int f(void) { return 5; }", *flags)
    (tmp_path / "lib" / "libdep.so").write_text("garbage")
    assert "libdep.so" in run_in_fresh_process(path, dict(os.environ))


# The string ABI.


@pytest.mark.skipif(not shutil.which("g++"), reason="needs g++")
def test_the_string_abi_is_told_and_can_be_forced(tmp_path: Path) -> None:
    text = """#include <string>
    struct Extra { virtual ~Extra(); virtual bool HasAttr(std::string name) = 0; };
    extern "C" int f(Extra *extra) { return extra->HasAttr("axis"); }
    """
    (tmp_path / "op.cc").write_text(text)
    for new in (False, True):
        flags = (f"-D_GLIBCXX_USE_CXX11_ABI={int(new)}",)
        library = resolve(tmp_path / "op.cc", WHO, options=Build(flags=flags))
        assert library.old_string_abi is not new
        copied = resolve(library.path, WHO)
        assert copied.old_string_abi is not new
        for forced in (False, True):
            assert resolve(library.path, WHO, cxx11_abi=forced).old_string_abi is not forced


# The allow-list.


@pytest.fixture
def allowed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    folder = tmp_path / "allowed"
    folder.mkdir()
    monkeypatch.setenv("MS_CUSTOM_AOT_WHITE_LIST", str(folder))
    return folder


def test_files_inside_pass(allowed: Path, tmp_path: Path) -> None:
    check_allowed(allowed / "op.cc", WHO)
    check_allowed(allowed / "sub" / ".." / "op.cc", WHO)
    (tmp_path / "link").symlink_to(allowed)
    check_allowed(tmp_path / "link" / "op.cc", WHO)
    assert call(resolve(library_file(allowed / "l.so", "int f(void) { return 1; }"), WHO)) == 1


def test_a_list_named_through_a_link_is_resolved(
    allowed: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "link").symlink_to(allowed)
    monkeypatch.setenv("MS_CUSTOM_AOT_WHITE_LIST", str(tmp_path / "link"))
    check_allowed(allowed / "op.cc", WHO)


@pytest.mark.parametrize(
    "path", ["allowed-evil/op.cc", "x/allowed/op.cc", "allowed/../op.cc", "allowed/out/op.cc"]
)
def test_files_outside_are_refused(allowed: Path, tmp_path: Path, path: str) -> None:
    (tmp_path / "x" / "allowed").mkdir(parents=True)
    (allowed / "out").symlink_to(tmp_path / "x")
    with pytest.raises(ArgumentTypeError) as caught:
        check_allowed(tmp_path / path, WHO)
    real = (tmp_path / path).resolve()
    assert str(caught.value) == (
        f"Custom 'op': expected a file in {allowed}, the folder MS_CUSTOM_AOT_WHITE_LIST allows; "
        f"got {tmp_path / path}{'' if real == tmp_path / path else f', which is {real}'}.\n"
        "Move the file there, or change the variable."
    )
    assert isinstance(caught.value, TypeError)


def test_a_loop_of_links_is_refused(allowed: Path, tmp_path: Path) -> None:
    (tmp_path / "loop").symlink_to(tmp_path / "loop")
    with pytest.raises(ArgumentTypeError):
        check_allowed(tmp_path / "loop", WHO)


@pytest.mark.parametrize("name", ["op.c", "libop.so"])
def test_a_link_that_changes_after_it_was_checked_is_not_followed(
    allowed: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    for folder, value in ((allowed, 1), (tmp_path / "outside", 2)):
        text = f"int f(void) {{ return {value}; }}"
        if name == "op.c":
            folder.mkdir(exist_ok=True)
            (folder / name).write_text(text)
        else:
            library_file(folder / name, text)
    link = tmp_path / f"link{Path(name).suffix}"
    link.symlink_to(allowed / name)

    def check_and_change(path: Path, who: str) -> Path:
        checked = check_allowed(path, who)
        link.unlink()
        link.symlink_to(tmp_path / "outside" / name)
        return checked

    monkeypatch.setattr(libraries, "check_allowed", check_and_change)
    library = resolve(link, WHO)
    assert call(library) == 1
    assert library.origin == allowed / name


def test_extensions_and_tbe_files_are_kept_to_the_list(allowed: Path, tmp_path: Path) -> None:
    for folder in (allowed, tmp_path):
        (folder / "ext.cpp").write_text(PLAIN % ("", "6"))
        (folder / "kernel.py").write_text("def double(x, y, kernel_name='double'):\n    return x\n")
    assert CustomOpBuilder("ext", str(allowed / "ext.cpp")).load().value() == 6
    # A text is no file.
    assert CustomOpBuilder.from_source("text", PLAIN % ("", "7")).load().value() == 7
    with pytest.raises(ArgumentTypeError, match="MS_CUSTOM_AOT_WHITE_LIST allows"):
        CustomOpBuilder("ext", str(tmp_path / "ext.cpp")).load()
    KernelScope(allowed).load(allowed / "kernel.py")
    with pytest.raises(ArgumentTypeError, match="MS_CUSTOM_AOT_WHITE_LIST allows"):
        KernelScope(tmp_path).load(tmp_path / "kernel.py")


@pytest.mark.parametrize("name", ["op.c", "libop.so"])
def test_resolve_refuses_before_it_builds_or_copies_and_after_it_did(
    tmp_path: Path, cache: Path, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    text = "int f(void) { return 1; }"
    (tmp_path / "op.c").write_text(text)
    library_file(tmp_path / "libop.so", text)
    monkeypatch.setenv("MS_CUSTOM_AOT_WHITE_LIST", str(tmp_path / "elsewhere"))
    with pytest.raises(ArgumentTypeError):
        resolve(tmp_path / name, WHO)
    assert not cache.exists()
    monkeypatch.delenv("MS_CUSTOM_AOT_WHITE_LIST")
    assert call(resolve(tmp_path / name, WHO)) == 1
    monkeypatch.setenv("MS_CUSTOM_AOT_WHITE_LIST", str(tmp_path / "elsewhere"))
    with pytest.raises(ArgumentTypeError):
        resolve(tmp_path / name, WHO)


# The index and the memo.


def test_the_index_finds_libraries_by_content(tmp_path: Path) -> None:
    first = library_file(tmp_path / "a.so", "int f(void) { return 1; }")
    second = library_file(tmp_path / "b.so", "int f(void) { return 2; }")
    (tmp_path / "dir.so").mkdir()
    (tmp_path / "dangling.so").symlink_to(tmp_path / "nowhere")
    (tmp_path / "readme.txt").write_text("x")
    expected = {hashlib.sha256(path.read_bytes()).hexdigest(): path for path in (first, second)}
    assert index(tmp_path) == expected
    assert set(expected) == {resolve(path, WHO).hash for path in (first, second)}
    second.write_bytes(first.read_bytes())
    assert index(tmp_path) == {next(iter(expected)): first}
    assert index(tmp_path / "nowhere") == {}


def test_an_unchanged_file_is_resolved_without_reading_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = library_file(tmp_path / "libop.so", "int f(void) { return 1; }")
    monkeypatch.setattr("msops._toolchain.stamps.SETTLING_NS", 0)
    time.sleep(0.02)
    first = resolve(path, WHO)
    monkeypatch.setattr(libraries, "_resolve_file", None)
    monkeypatch.setattr("msops._toolchain.stamps.read_stamped", None)
    assert resolve(path, WHO) is first


def test_a_removed_copy_is_made_again(tmp_path: Path, cache: Path) -> None:
    path = library_file(tmp_path / "libop.so", "int f(void) { return 1; }")
    library = resolve(path, WHO)
    shutil.rmtree(cache)
    assert resolve(path, WHO) == library
    assert library.path.exists()
