"""Stamps: when stat fields prove that a file's content is the same, and when they do not."""

from __future__ import annotations

import os
from pathlib import Path
from types import SimpleNamespace

import pytest

from msops._toolchain import stamps
from msops._toolchain.stamps import take_stamp


@pytest.fixture
def path(tmp_path: Path) -> Path:
    path = tmp_path / "file"
    path.write_text("one")
    return path


def freeze_file_clock(monkeypatch: pytest.MonkeyPatch, now_ns: int) -> None:
    """Makes every file look written at `now_ns`, as a file system with a coarse clock does."""

    def frozen(stat):
        def call(target):
            real = stat(target)
            fields = {name: getattr(real, name) for name in ("st_mode", "st_size", "st_ino")}
            return SimpleNamespace(**fields, st_mtime_ns=now_ns, st_ctime_ns=now_ns)

        return call

    fake = SimpleNamespace(stat=frozen(os.stat), fstat=frozen(os.fstat), fspath=os.fspath)
    monkeypatch.setattr(stamps, "os", fake)


def test_a_file_written_twice_in_one_tick_is_told_by_its_content(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    freeze_file_clock(monkeypatch, stamps.time.time_ns())
    stamp = take_stamp(path)
    assert not stamp.settled
    assert stamp.refreshed() == stamp
    path.write_text("two")
    assert stamp.refreshed() is None


def test_a_file_at_rest_is_not_read_again(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    freeze_file_clock(monkeypatch, stamps.time.time_ns() - stamps.SETTLING_NS - 1)
    stamp = take_stamp(path)
    assert stamp.settled
    monkeypatch.setattr(stamps, "take_stamp", None)
    assert stamp.refreshed() is stamp


def test_a_touched_file_gets_a_new_stamp_of_the_same_content(path: Path) -> None:
    stamp = take_stamp(path)
    os.utime(path, (1, 1))
    fresh = stamp.refreshed()
    assert fresh is not None
    assert (fresh.sha256, fresh.mtime_ns) == (stamp.sha256, 1_000_000_000)
    assert fresh != stamp


@pytest.mark.parametrize("change", ["edit", "replace", "delete", "truncate"])
def test_a_changed_file_has_no_stamp(path: Path, change: str) -> None:
    stamp = take_stamp(path)
    if change == "replace":
        other = path.with_name("other")
        other.write_text("two")
        os.replace(other, path)
    elif change == "delete":
        path.unlink()
    else:
        path.write_text("two" if change == "edit" else "")
    assert stamp.refreshed() is None
