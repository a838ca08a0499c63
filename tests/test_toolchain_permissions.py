"""Who may write the cache folder: modes of what is made in it, and what is refused."""

from __future__ import annotations

import os
import pickle
import shutil
import stat
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np
import pytest
from toolchain import (
    WHO,
    build,
    build_generated,
    call,
    find_measurement,
    message_of,
    open_copy,
    record_measurement,
    resolve,
    returns,
    store_source,
    write,
)

import msops
from msops.errors import BuildError

pytestmark = pytest.mark.skipif(not shutil.which("g++"), reason="needs g++")


@pytest.fixture(params=[0o000, 0o002, 0o022, 0o077])
def umask(request: pytest.FixtureRequest) -> Iterator[int]:
    before = os.umask(request.param)
    yield request.param
    os.umask(before)


@pytest.fixture
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("MSOPS_CACHE_DIR", str(tmp_path / "new" / "cache"))
    return tmp_path / "new" / "cache"


def fill(tmp_path: Path) -> Path:
    """Puts one of everything into the cache; returns a library that was built."""
    built = build(write(tmp_path / "op.cc", returns(1)), who=WHO)
    build_generated("int f(void) { return 2; }", "op", WHO)
    record_measurement("op", {"xla": 1.0}, WHO)
    libraries = tmp_path / "libraries"
    libraries.mkdir()
    shutil.copy(built.path, libraries / "libneeded.so")
    command = f"cd {libraries} && g++ -shared -fPIC -o libop.so {tmp_path}/op.cc"
    needed = "-Wl,--no-as-needed -L. -lneeded '-Wl,-rpath,$ORIGIN'"
    assert os.system(f"{command} {needed}") == 0
    resolve(libraries / "libop.so", WHO)
    return built.path


def modes(cache: Path) -> dict[str, set[int]]:
    """Returns the modes of all folders and files in a cache folder, by its first folder."""
    found: dict[str, set[int]] = {}
    for path in cache.rglob("*"):
        if not path.is_symlink():
            kind = "folder" if path.is_dir() else "file"
            found.setdefault(kind, set()).add(stat.S_IMODE(path.stat().st_mode))
    return found


def test_the_cache_folder_is_made_for_its_user_alone(
    tmp_path: Path, cache: Path, umask: int
) -> None:
    assert call(build(write(tmp_path / "op.cc", returns(1)), who=WHO)) == 1
    for folder in (cache, cache.parent):
        assert stat.S_IMODE(folder.stat().st_mode) == 0o700


@pytest.mark.parametrize("mode", [0o755, 0o700, 0o2775])
def test_all_in_the_cache_has_the_mode_of_the_folder_whatever_the_umask(
    tmp_path: Path, cache: Path, umask: int, mode: int
) -> None:
    cache.mkdir(parents=True)
    cache.parent.chmod(0o755)
    cache.chmod(mode)
    fill(tmp_path)
    assert {path.name for path in cache.iterdir()} == {
        *("objects", "origins", "manifests", "generated", "measurements", "locks", "scratch")
    }
    assert modes(cache) == {"folder": {mode}, "file": {mode & 0o666}}


def test_a_part_of_the_cache_that_others_may_write_is_refused(tmp_path: Path, cache: Path) -> None:
    fill(tmp_path)
    text = "int f(void) { return 2; }"
    uses = {
        "objects": lambda: build(tmp_path / "op.cc", who=WHO),
        "manifests": lambda: build(tmp_path / "op.cc", who=WHO),
        "generated": lambda: store_source(text, "op.c", WHO),
        "measurements": lambda: find_measurement("op", WHO),
        "origins": lambda: open_copy(tmp_path / "libraries" / "libop.so", WHO),
        "scratch": lambda: build(write(tmp_path / "scratch.cc", returns(3)), who=WHO),
        "locks": lambda: build(write(tmp_path / "locks.cc", returns(4)), who=WHO),
    }
    for name, use in uses.items():
        parts = [cache / name]
        if name not in ("scratch", "locks"):
            parts += [path for path in (cache / name).rglob("*") if not path.is_symlink()]
        refused = [path for path in parts if is_refused(cache, path, use)]
        # Of all others, at least the folders down to one file, and that file.
        assert len(refused) >= (1 if name in ("scratch", "locks") else 3), name


def is_refused(cache: Path, part: Path, use: Callable[[], object]) -> bool:
    """Returns whether the cache is refused while others may write a part of it."""
    mode = stat.S_IMODE(part.stat().st_mode)
    part.chmod(mode | stat.S_IWOTH)
    message = (
        f"Custom 'op': {part.relative_to(cache)} in the cache folder {cache} can be written by "
        "every user, who could put libraries into it that then run in this process.\n"
        "Set MSOPS_CACHE_DIR to a folder of your own (chmod -R o-w), or MSOPS_CACHE_TRUST=1 if "
        "you trust those users."
    )
    try:
        use()
    except BuildError as error:
        return str(error) == message
    finally:
        part.chmod(mode)
    return False


def test_a_folder_above_the_cache_that_others_may_write_is_refused(
    tmp_path: Path, cache: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    source = write(tmp_path / "op.cc", returns(1))
    cache.mkdir(parents=True)
    cache.parent.chmod(0o777)
    assert message_of(source) == (
        f"Custom 'op': the folder {cache.parent} can be written by every user, who could put "
        f"another folder in the place of the cache folder {cache}, with libraries that then run in "
        "this process.\nSet MSOPS_CACHE_DIR to a folder of your own (chmod -R o-w), or "
        "MSOPS_CACHE_TRUST=1 if you trust those users."
    )
    monkeypatch.setenv("MSOPS_CACHE_TRUST", "1")
    assert call(build(source, who=WHO)) == 1
    monkeypatch.delenv("MSOPS_CACHE_TRUST")
    cache.parent.chmod(0o1777)
    assert call(build(source, who=WHO)) == 1


def test_a_pickled_op_takes_no_library_that_others_may_write(tmp_path: Path, cache: Path) -> None:
    library = fill(tmp_path)
    given = tmp_path / "libf.so"
    shutil.copy(library, given)
    resolve(given, WHO)
    pickled = pickle.dumps(msops.Custom(f"{given}:f", (1,), np.float32, func_type="aot"))
    given.unlink()
    assert pickle.loads(pickled) is not None
    library.parent.chmod(0o777)
    with pytest.raises(BuildError, match="can be written by every user"):
        pickle.loads(pickled)
