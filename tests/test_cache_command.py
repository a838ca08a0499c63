"""``msops cache``: what was built, how much of it, and none of it."""

from __future__ import annotations

import os
import re
import time
from pathlib import Path

import jax.numpy as jnp
import numpy as np
import pytest
from conftest import run_command

from msops import Custom

SOURCE = """
extern "C" int Two(int nparam, void **params, int *ndims, long **shapes, const char **dtypes,
                   void *stream, void *extra) {
  for (long i = 0; i < shapes[0][0]; ++i) static_cast<float *>(params[1])[i] = 2;
  return 0;
}
"""


@pytest.fixture
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A cache folder of its own, which holds one library, and a file that is not msops's."""
    folder = tmp_path / "cache"
    monkeypatch.setenv("MSOPS_CACHE_DIR", str(folder))
    (tmp_path / "two.cc").write_text(SOURCE)
    run_op(tmp_path)
    (folder / "mine.txt").write_text("not msops's")
    return folder


def run_op(folder: Path) -> None:
    op = Custom(f"{folder / 'two.cc'}:Two", lambda x: x, lambda x: x)
    np.testing.assert_array_equal(op(jnp.zeros(3)), 2)


def shown(capsys: pytest.CaptureFixture[str], *arguments: str) -> str:
    run_command("cache", *arguments)
    return capsys.readouterr().out


def test_libraries_are_listed(cache: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (library,) = cache.glob("objects/*/*/two.so")
    os.utime(library, (0, time.mktime((2026, 1, 2, 3, 4, 0, 0, 0, -1))))
    size = f"{library.stat().st_size / 1024:.1f} KiB"
    assert shown(capsys, "ls") == f"2026-01-02 03:04  {size:>10}  {library}\n"


def test_the_size_is_that_of_the_files(cache: Path, capsys: pytest.CaptureFixture[str]) -> None:
    files = [path for path in cache.rglob("*") if path.is_file()]
    own = sum(path.stat().st_size for path in files if path.name != "mine.txt")
    assert shown(capsys, "size") == f"{cache}: {own / 1024:.1f} KiB, libraries: 1\n"


def test_clearing_leaves_what_is_not_ours(
    cache: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert re.fullmatch(rf"{cache}: freed [\d.]+ KiB\n", shown(capsys, "clear"))
    assert not list(cache.rglob("*.so"))
    assert (cache / "mine.txt").exists()
    assert shown(capsys, "ls") == f"{cache} holds no library\n"
    run_op(tmp_path)
    assert list(cache.rglob("two.so"))


def test_an_absent_folder_is_empty(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("MSOPS_CACHE_DIR", str(tmp_path / "none"))
    assert shown(capsys, "size") == f"{tmp_path / 'none'}: 0 B, libraries: 0\n"
    assert shown(capsys, "clear") == f"{tmp_path / 'none'}: freed 0 B\n"
    assert not (tmp_path / "none").exists()


@pytest.mark.parametrize(
    ("size_bytes", "text"),
    [
        (0, "0 B"),
        (1023, "1023 B"),
        (1024, "1.0 KiB"),
        (3 << 20, "3.0 MiB"),
        (5 << 40, "5120.0 GiB"),
    ],
)
def test_sizes_have_units(
    cache: Path, capsys: pytest.CaptureFixture[str], size_bytes: int, text: str
) -> None:
    (library,) = cache.glob("objects/*/*/two.so")
    os.truncate(library, size_bytes)
    assert shown(capsys, "ls").split("  ")[-2].strip() == text


def test_a_folder_that_is_a_loop_of_links_is_an_error(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "loop").symlink_to("loop")
    monkeypatch.setenv("MSOPS_CACHE_DIR", str(tmp_path / "loop" / "cache"))
    with pytest.raises(SystemExit):
        run_command("cache", "size")
    shown = capsys.readouterr().err
    assert "MSOPS_CACHE_DIR: expected a folder; got" in shown
    assert "Traceback" not in shown


def test_without_an_action_the_libraries_are_listed(
    cache: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert "two.so" in shown(capsys)
    assert shown(capsys) == shown(capsys, "ls")
