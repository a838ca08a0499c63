"""The code of BUILD_NOTES.md runs and prints what it says; the notes' links lead somewhere."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from conftest import ROOT
from documents import run_document

NOTES = (ROOT / "BUILD_NOTES.md").read_text()


def section(heading: str) -> str:
    """Returns the section of the notes under `heading`."""
    (text,) = re.findall(rf"^## {heading}\n(.*?)(?=^## )", NOTES, re.MULTILINE | re.DOTALL)
    return text


def test_the_kernel_of_the_notes_runs_and_prints_what_they_say(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    assert run_document(section("The kernel interface"), tmp_path) == 2


def test_the_exported_program_of_the_notes_runs(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pytest.importorskip("flatbuffers")
    monkeypatch.chdir(tmp_path)
    text = section("The kernel interface") + section("Exporting a program")
    assert run_document(text, tmp_path) == text.count("```text")


def test_signatures_in_the_notes_are_those_of_the_header() -> None:
    header = (ROOT / "xla_kernels" / "include" / "custom_aot_extra.h").read_text()

    def normalise(text: str) -> str:
        return re.sub(r"\s+", "", text.replace("//", ""))

    declared = re.findall(
        r'^extern "C" ([^;{]*\bName\w*\([^;{]*\));', section("The kernel interface"), re.MULTILINE
    )
    assert len(declared) == 4
    for signature in declared:
        assert normalise(signature) in normalise(header)


def test_links_lead_to_headings_and_files() -> None:
    headings = re.findall(r"^#+ (.*)$", NOTES, re.MULTILINE)
    anchors = {re.sub(r"[^\w-]", "", heading.lower().replace(" ", "-")) for heading in headings}
    links = re.findall(r"\]\(([^)]+)\)", NOTES)
    assert links
    for link in links:
        file, _, anchor = link.partition("#")
        assert (ROOT / file).exists() if file else anchor in anchors, link
