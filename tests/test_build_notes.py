"""The table of headers in BUILD_NOTES.md is the headers that there are."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from conftest import ROOT

NOTES = (ROOT / "BUILD_NOTES.md").read_text()
KERNELS = ROOT / "xla_kernels"
FRAMEWORKS = {"XLA": "xla", "pybind11": "pybind11"}


def rows(folder: str) -> dict[str, str]:
    """Returns what the table of a folder says of each of its headers."""
    table = NOTES.partition(f"`xla_kernels/{folder}/` is ")[2].partition("|---|---|\n")[2]
    table = table.partition("\n\n")[0]
    return {
        name: meaning
        for names, meaning in re.findall(r"^\| (.*) \| (.*) \|$", table, re.MULTILINE)
        for name in re.findall(r"`([\w./]+)`", names)
    }


def headers(folder: Path) -> set[str]:
    """Returns the headers in a folder, and the folders of headers in it."""
    return {
        f"{p.name}/" if p.is_dir() else p.name for p in folder.iterdir() if p.suffix in ("", ".h")
    }


@pytest.mark.parametrize("folder", ["include", "src"])
def test_the_table_has_every_header(folder: str) -> None:
    assert set(rows(folder)) == headers(KERNELS / folder)


def included(header: str) -> set[str]:
    """Returns what a header of the module includes, itself or through others of the module."""
    text = (KERNELS / "src" / header).read_text()
    found = set(re.findall(r'^#include ["<](\S+)[">]', text, re.MULTILINE))
    own = [name for name in found if (KERNELS / "src" / name).is_file()]
    return found.union(*map(included, own))


@pytest.mark.parametrize("header", sorted(headers(KERNELS / "src")))
def test_a_header_is_marked_with_the_frameworks_that_it_includes(header: str) -> None:
    marks = set(re.findall(r"\((XLA|pybind11)\)", rows("src")[header]))
    prefixes = {name.partition("/")[0] for name in included(header)}
    assert marks == {mark for mark, folder in FRAMEWORKS.items() if folder in prefixes}
