"""A disk without space or inodes, and folders for temporary files that cannot be used."""

from __future__ import annotations

import errno
import os
import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import jax.numpy as jnp
import numpy as np
import pytest
from toolchain import (
    WHO,
    BuildReport,
    ModuleSources,
    build,
    build_generated,
    build_module,
    call,
    doctor,
    record_measurement,
    resolve,
    returns,
    temporary,
    write,
)

from msops import Custom
from msops.errors import BuildError
from msops.testing import opcheck

NEGATE = """
#include <string.h>
extern "C" int Negate(int nparam, void **params, int *ndims, long **shapes, const char **dtypes,
                      void *stream, void *extra) {
  if (strcmp(dtypes[0], "float32")) return 1;
  for (long i = 0; i < shapes[0][0]; ++i) ((float *)params[1])[i] = -((float *)params[0])[i];
  return 0;
}
"""
pytestmark = pytest.mark.skipif(not shutil.which("g++"), reason="needs g++")


@pytest.fixture(autouse=True)
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("MSOPS_CACHE_DIR", str(tmp_path / "cache"))
    return tmp_path / "cache"


@pytest.fixture
def odd_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A folder for temporary files whose path has two lines."""
    folder = tmp_path / "a\nb c'$x"
    folder.mkdir()
    monkeypatch.setenv("TMPDIR", str(folder))
    monkeypatch.setattr(tempfile, "tempdir", None)
    yield folder
    # What the variable named is kept there.
    tempfile.tempdir = None


def fill(monkeypatch: pytest.MonkeyPatch, cache: Path, name: str) -> None:
    """Lets a function fail in the cache folder, as on a disk without inodes or space."""
    owner = Path if name == "write_bytes" else os
    whole = getattr(owner, name)

    def fail(path: Any, *args: Any, **kwargs: Any) -> Any:
        if isinstance(path, int) or str(cache) in os.fsdecode(path):
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), path)
        return whole(path, *args, **kwargs)

    monkeypatch.setattr(owner, name, fail)


@pytest.mark.parametrize("name", ["mkdir", "write_bytes", "rename", "chmod"])
@pytest.mark.parametrize("is_there", [False, True])
def test_a_cache_on_a_disk_without_inodes_is_an_error_with_the_variable(
    tmp_path: Path, cache: Path, monkeypatch: pytest.MonkeyPatch, name: str, is_there: bool
) -> None:
    source = write(tmp_path / "op.cc", returns(1))
    given = tmp_path / "libop.so"
    built = build(write(tmp_path / "other.cc", returns(2)), who=WHO)
    given.write_bytes(built.path.read_bytes() + b"\0")
    if not is_there:
        shutil.rmtree(cache)
    fill(monkeypatch, cache, name)
    module = ModuleSources("op", (source,), ("-fPIC",), (), (), (), False)
    uses = (
        lambda: resolve(source, WHO),
        lambda: resolve(given, WHO),
        lambda: build_generated("int f(void) { return 5; }", "op", WHO),
        lambda: build_module(module, WHO, BuildReport(lambda text: None)),
    )
    for use in uses:
        with pytest.raises(BuildError) as caught:
            use()
        assert str(caught.value) == (
            f"Custom 'op': the cache folder {cache} cannot be written (No space left on device).\n"
            "Set MSOPS_CACHE_DIR to a folder that can be written and has space."
        )
    # Times are measured again then.
    record_measurement("op", {"xla": 1.0}, WHO)


def test_a_temporary_folder_that_cannot_be_made_or_filled_is_an_error(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*args: Any, **kwargs: Any) -> Any:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    remedy = "\nSet TMPDIR to a folder that can be written and has space."
    with pytest.raises(BuildError, match="is full"), temporary.temporary_folder(WHO) as folder:
        fail()
    assert not folder.exists()
    with pytest.raises(FileNotFoundError), temporary.temporary_folder(WHO) as folder:
        (folder / "absent").read_text()
    monkeypatch.setattr(temporary, "tempfile", SimpleNamespace(mkdtemp=fail))
    for use, who in (
        (lambda: opcheck(negate(tmp_path), (X,)), "opcheck"),
        (doctor.main, "msops doctor"),
    ):
        with pytest.raises(BuildError) as caught:
            use()
        problem = "no temporary folder can be made (No space left on device)."
        assert str(caught.value) == f"{who}: {problem}{remedy}"


X = np.arange(4, dtype=np.float32)


def negate(folder: Path) -> Custom:
    file = write(folder / "negate.cc", NEGATE)
    return Custom(f"{file}:Negate", lambda x: x, lambda x: x)


def test_a_path_of_two_lines_is_one_of_sources_and_of_temporary_files(
    odd_folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("MSOPS_CACHE_DIR", str(odd_folder / "cache"))
    op = negate(odd_folder)
    np.testing.assert_array_equal(op(jnp.asarray(X)), -X)
    # The kernel is for vectors.
    report = opcheck(op, (X,), skip=["sizes"])
    assert report.ok, str(report)


@pytest.mark.skipif(not shutil.which("nvcc"), reason="needs nvcc")
def test_nvcc_takes_a_plain_folder_for_temporary_files_or_says_so(
    tmp_path: Path, odd_folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    source = write(tmp_path / "op.cu", returns(1))
    assert call(build(source, who=WHO)) == 1
    monkeypatch.setenv("MSOPS_CACHE_DIR", str(odd_folder / "cache"))
    with pytest.raises(BuildError) as caught:
        build(source, who=WHO)
    assert str(caught.value).startswith("Custom 'op': expected a path of plain characters, as nvcc")
    assert "Set MSOPS_CACHE_DIR or TMPDIR" in str(caught.value)
