"""The README of the loop compiler is true: its examples print what they say, its modules exist."""

from __future__ import annotations

import re
from pathlib import Path

from conftest import ROOT
from test_docs import run_document

PACKAGE = ROOT / "msops" / "_loops"


def test_examples_print_what_they_say(tmp_path: Path) -> None:
    text = (PACKAGE / "README.md").read_text()
    assert run_document(text, tmp_path) == text.count("```text") > 5


def test_modules_of_the_map_exist() -> None:
    rows = re.findall(r"^\|.*\|(.*)\|$", (PACKAGE / "README.md").read_text(), re.MULTILINE)
    named = [name for row in rows for name in re.findall(r"`([\w/.]+)`", row)]
    assert len(named) > 10
    assert [name for name in named if not (PACKAGE / name).exists()] == []
