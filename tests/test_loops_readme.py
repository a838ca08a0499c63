"""The README of the loop compiler is true: its examples print what they say, its modules exist."""

from __future__ import annotations

import re
from pathlib import Path

from conftest import ROOT
from documents import run_document

PACKAGE = ROOT / "msops" / "_loops"


def test_examples_print_what_they_say(tmp_path: Path) -> None:
    text = (PACKAGE / "README.md").read_text()
    assert run_document(text, tmp_path) == text.count("```text") > 5


def test_the_map_names_every_module() -> None:
    rows = re.findall(r"^\|.*\|(.*)\|$", (PACKAGE / "README.md").read_text(), re.MULTILINE)
    named = {name.rstrip("/") for row in rows for name in re.findall(r"`([\w/.]+)`", row)}
    files = {path.name for path in PACKAGE.glob("*.py") if path.name != "__init__.py"}
    folders = {path.parent.name for path in PACKAGE.glob("*/*.py")}
    assert named == files | folders


def importers(name: str) -> set[str]:
    """Returns the parts of the package with an import of a library."""
    pattern = re.compile(rf"^\s*(import|from) {name}\b", re.MULTILINE)
    files = [path for path in PACKAGE.rglob("*.py") if pattern.search(path.read_text())]
    return {path.relative_to(PACKAGE).parts[0] for path in files}


def test_one_part_knows_jax_and_one_isl() -> None:
    assert importers("jax") == {"to_jax"}
    assert importers("islpy") == {"analysis"}
