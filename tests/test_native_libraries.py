"""The library store: found by hash, opened from a private path, kept to the allow-list."""

from __future__ import annotations

import ctypes
import shutil

import jax
import numpy as np
import pytest
from native_harness import (
    PREAMBLE,
    Call,
    Library,
    build,
    compile_library,
    failure,
    native,
    register,
    run,
)
from toolchain import resolve, returns, write

import msops

SOURCE = (
    PREAMBLE
    + """
KERNEL(Value) {
  *static_cast<float *>(params[1]) = VALUE;
  return 0;
}
"""
)
SCALAR = jax.ShapeDtypeStruct((), np.float32)


def library_of(directory, value, name="value"):
    return build(directory, SOURCE.replace("VALUE", str(value)), name)


def value_of(library):
    (out,) = run(Call(library, "Value", (SCALAR,)), np.float32(0))
    return float(out)


def test_unknown_hash_is_an_error_that_names_where_it_looked(tmp_path):
    unknown = Library(tmp_path / "libfar.so", "0123456789ab" + "0" * 52)
    text = failure(Call(unknown, "Value", (SCALAR,)), np.float32(0))
    assert "Library libfar.so (0123456789ab): expected to find it by its hash" in text
    assert unknown.hash in text
    assert "looked among the libraries that this process built or loaded" in text
    assert "set MSOPS_LIBRARY_PATH to that folder, and call msops.register_ffi_targets()" in text
    with pytest.raises(RuntimeError, match="expected to find it by its hash"):
        native.open_library(unknown.hash)
    with pytest.raises(RuntimeError, match="expected to find it by its hash"):
        native.infer_type(unknown.hash, "Value", [], {}, False)


def test_an_unknown_hash_lists_the_folders_searched_and_the_files_refused(tmp_path, monkeypatch):
    inside, outside = tmp_path / "inside", tmp_path / "outside"
    for folder in (inside, outside):
        folder.mkdir()
    compile_library(inside, SOURCE.replace("VALUE", "61"), "inside")
    refused = compile_library(outside, SOURCE.replace("VALUE", "62"), "outside")
    monkeypatch.setenv("MSOPS_LIBRARY_PATH", f"{inside}:{outside}:{tmp_path / 'none'}")
    monkeypatch.setenv("MS_CUSTOM_AOT_WHITE_LIST", str(inside))
    msops.register_ffi_targets()
    with pytest.raises(RuntimeError, match="expected to find it by its hash") as caught:
        native.open_library("ab" * 32)
    lines = str(caught.value).splitlines()
    for folder, found in (
        (inside, "it holds 1 *.so and 0 *.cubin"),
        (outside, "it holds 1 *.so and 0 *.cubin"),
        (tmp_path / "none", "no such folder"),
    ):
        assert f"  looked in {folder}: {found}" in lines
    (line,) = (line for line in lines if "refused" in line)
    assert line.startswith(f"  refused {refused}: ")
    assert "MS_CUSTOM_AOT_WHITE_LIST" in str(caught.value)
    monkeypatch.delenv("MSOPS_LIBRARY_PATH")
    msops.register_ffi_targets()
    with pytest.raises(RuntimeError, match="MSOPS_LIBRARY_PATH is not set, or empty"):
        native.open_library("ab" * 32)


@pytest.fixture
def cached(tmp_path, monkeypatch):
    """A library that this process does not know, in a cache of its own."""
    monkeypatch.setenv("MSOPS_CACHE_DIR", str(tmp_path / "cache"))
    monkeypatch.delenv("MSOPS_LIBRARY_PATH", raising=False)
    # Its own content for each test: what the process once knew it knows for ever.
    own = f'extern "C" const char own[] = "{tmp_path}";'
    return resolve(write(tmp_path / "kernel.cc", returns(63) + own), "test")


def test_what_no_folder_has_is_found_in_the_cache(cached):
    msops.register_ffi_targets()
    native.open_library(cached.hash)


def test_a_cache_that_others_may_write_is_not_searched(cached):
    cached.path.parent.chmod(0o777)
    msops.register_ffi_targets()
    with pytest.raises(RuntimeError, match="expected to find it by its hash") as caught:
        native.open_library(cached.hash)
    assert "refused what the cache has: the cache folder" in str(caught.value)
    assert "can be written by every user" in str(caught.value)
    cached.path.parent.chmod(0o700)
    native.open_library(cached.hash)


def test_a_damaged_library_of_the_cache_is_not_opened(cached, tmp_path):
    other = resolve(write(tmp_path / "other.cc", returns(64)), "test")
    cached.path.chmod(0o600)
    cached.path.write_bytes(other.path.read_bytes())
    msops.register_ffi_targets()
    with pytest.raises(RuntimeError, match="expected to find it by its hash") as caught:
        native.open_library(cached.hash)
    assert f"  looked in the cache folder {tmp_path / 'cache'}" in str(caught.value)


def test_the_allow_list_concerns_the_cache_that_a_program_is_served_from(
    cached, tmp_path, monkeypatch
):
    monkeypatch.setenv("MS_CUSTOM_AOT_WHITE_LIST", str(tmp_path / "elsewhere"))
    msops.register_ffi_targets()
    with pytest.raises(RuntimeError, match="MS_CUSTOM_AOT_WHITE_LIST") as caught:
        native.open_library(cached.hash)
    assert "expected to find it by its hash" in str(caught.value)


@pytest.mark.parametrize("name", ["../../../etc", "", "AB" * 32, "ab" * 31])
def test_what_is_no_hash_is_not_looked_for_in_the_cache(cached, name):
    msops.register_ffi_targets()
    with pytest.raises(RuntimeError, match="not looked in this machine's cache"):
        native.open_library(name)


def test_libraries_with_equal_symbols_do_not_meet(tmp_path):
    one, two = library_of(tmp_path, 1, "one"), library_of(tmp_path, 2, "two")
    assert (value_of(one), value_of(two), value_of(one)) == (1, 2, 1)


def test_library_is_private_to_the_module(tmp_path):
    library = library_of(tmp_path, 31)
    assert value_of(library) == 31
    with pytest.raises(AttributeError):
        _ = ctypes.CDLL(None).Value


def test_library_moved_before_it_was_opened_is_found_when_registered_again(tmp_path):
    library = library_of(tmp_path, 41)
    moved = tmp_path / "moved.so"
    shutil.move(library.path, moved)
    assert "cannot open shared object file" in failure(
        Call(library, "Value", (SCALAR,)), np.float32(0)
    )
    assert register(moved).hash == library.hash
    assert value_of(library) == 41


def test_file_that_is_no_library_is_an_error(tmp_path):
    path = tmp_path / "text.so"
    path.write_text("not a library")
    library = register(path)
    text = failure(Call(library, "Value", (SCALAR,)), np.float32(0))
    assert f"Library text.so ({library.hash[:12]}): expected a library that can be opened" in text
    with pytest.raises(RuntimeError, match="expected a library that can be opened"):
        native.open_library(library.hash)


def test_library_with_an_unresolved_symbol_is_refused_when_opened(tmp_path):
    source = PREAMBLE + "extern int elsewhere();\nKERNEL(Value) { return elsewhere(); }\n"
    with pytest.raises(RuntimeError, match="undefined symbol"):
        native.open_library(build(tmp_path, source, "unresolved").hash)


@pytest.mark.parametrize("symbol", ["variable", "local", "system", "msops_missing"])
def test_what_is_no_function_of_the_library_itself_is_not_called(tmp_path, symbol):
    source = 'extern "C" { int variable = 1; thread_local int local = 2; }\n' + SOURCE
    library = build(tmp_path, source.replace("VALUE", "1"), "variables")
    text = failure(Call(library, symbol, (SCALAR,)), np.float32(0))
    assert "expected a function in a library, found none" in text
    assert f"symbol {symbol} of library" in text


def test_a_variable_is_no_companion(tmp_path):
    source = SOURCE.replace("VALUE", "7") + 'extern "C" { int ValueInit = 1; }\n'
    assert value_of(build(tmp_path, source, "companions")) == 7


def test_a_function_that_is_chosen_when_the_library_is_opened_is_called(tmp_path):
    hidden = "#pragma GCC visibility push(hidden)\nKERNEL(Chosen)"
    source = SOURCE.replace("KERNEL(Value)", hidden).replace("VALUE", "9")
    source += """
    #pragma GCC visibility pop
    extern "C" void *Choose() { return reinterpret_cast<void *>(&Chosen); }
    extern "C" int Value(...) __attribute__((ifunc("Choose")));
    """
    assert value_of(build(tmp_path, source, "chosen")) == 9


@pytest.fixture
def places(tmp_path, monkeypatch):
    """A folder that is allowed, and a private copy elsewhere for libraries to be opened from."""
    allowed = tmp_path / "allowed"
    for name in ("allowed", "allowed-not", "private"):
        (tmp_path / name).mkdir()
    monkeypatch.setenv("MS_CUSTOM_AOT_WHITE_LIST", str(allowed))
    return tmp_path


def registered_from(places, origin, value):
    path = compile_library(places / "private", SOURCE.replace("VALUE", str(value)), f"v{value}")
    return register(path, origin=origin)


def test_allow_list_judges_where_the_library_came_from(places):
    inside = places / "allowed" / "deep" / "v.cc"
    assert value_of(registered_from(places, inside, 51)) == 51


@pytest.mark.parametrize("outside", ["allowed-not/v.cc", "v.cc", "allowed/../v.cc"])
def test_library_from_outside_the_allow_list_is_refused(places, outside):
    library = registered_from(places, places / outside, 52)
    text = failure(Call(library, "Value", (SCALAR,)), np.float32(0))
    assert "expected a file in the allowed folder, got one outside it" in text
    assert f"MS_CUSTOM_AOT_WHITE_LIST is {places / 'allowed'}" in text
    with pytest.raises(RuntimeError, match="allowed folder"):
        native.infer_shape(library.hash, "Value", [], [], {}, False)


def test_link_out_of_the_allow_list_is_refused(places):
    target = places / "allowed-not" / "v.so"
    target.touch()
    (places / "allowed" / "link.so").symlink_to(target)
    library = registered_from(places, places / "allowed" / "link.so", 53)
    assert "got one outside it" in failure(Call(library, "Value", (SCALAR,)), np.float32(0))


def test_allow_list_is_read_again_for_a_library_that_is_open(places, monkeypatch):
    library = registered_from(places, places / "v.cc", 54)
    monkeypatch.delenv("MS_CUSTOM_AOT_WHITE_LIST")
    assert value_of(library) == 54
    monkeypatch.setenv("MS_CUSTOM_AOT_WHITE_LIST", str(places / "allowed"))
    with pytest.raises(RuntimeError, match="allowed folder"):
        native.open_library(library.hash)
    # Once it was registered from an allowed place too, its content is as good as allowed.
    register(library.path, origin=places / "allowed" / "v.cc")
    native.open_library(library.hash)


@pytest.mark.parametrize("form", ["{}/", "~/allowed"])
def test_forms_of_the_allow_list(places, monkeypatch, form):
    monkeypatch.setenv("HOME", str(places))
    monkeypatch.setenv("MS_CUSTOM_AOT_WHITE_LIST", form.format(places / "allowed"))
    assert value_of(registered_from(places, places / "allowed" / "v.cc", 55)) == 55


def test_registrations_list_types_before_the_targets_that_use_them():
    rows = [(row["kind"], row["platform"], row["name"]) for row in native.registrations()]
    targets = [
        ("cpu", "msops_aicpu"),
        ("cpu", "msops_aot"),
        ("cpu", "msops_pyfunc"),
        ("cpu", "msops_runner"),
        ("cpu", "msops_indices"),
        ("cpu", "msops_ffi"),
        ("CUDA", "msops_ffi"),
        ("ROCM", "msops_ffi"),
        ("CUDA", "msops_aot"),
        ("ROCM", "msops_aot"),
        ("CUDA", "msops_loops_cuda"),
        ("CUDA", "msops_loops_cuda_scratch"),
        ("CUDA", "msops_runner"),
        ("ROCM", "msops_runner"),
    ]
    assert [row for row in rows if row[0] == "target"] == [("target", *row) for row in targets]
    # Plugins number types by themselves: no two platforms share one.
    assert [row for row in rows if row[0] == "type"] == [
        ("type", platform, f"{name}_state_{platform}") for platform, name in targets
    ]
    assert [row[0] for row in rows] == ["type", "target"] * len(targets)
    # The Python side knows a registration by these two.
    assert len({(name, platform) for _, platform, name in rows}) == len(rows)
    for row in native.registrations():
        names = {"type": {"type_id", "type_info"}, "target": {"instantiate", "execute"}}
        assert set(row["capsules"]) == names[row["kind"]]


def test_registering_a_target_twice_is_allowed(tmp_path):
    library = library_of(tmp_path, 61)
    value_of(library)
    for row in native.registrations():
        if (row["kind"], row["platform"]) == ("target", "cpu"):
            jax.ffi.register_ffi_target(row["name"], row["capsules"], platform="cpu")
    assert value_of(library) == 61
