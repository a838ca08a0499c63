"""The documents are true: their code runs and prints what they say; docstring examples too."""

from __future__ import annotations

import contextlib
import doctest
import importlib
import io
import linecache
import os
import pkgutil
import re
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
from conftest import ROOT

import msops

BLOCK = re.compile(r"^```(\w+)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
FILE_NAME = re.compile(r"(?://|#) (\S+\.(?:c|cc|cpp|cu|h|py))\b")


def run_document(text: str, folder: Path) -> int:
    """Runs the blocks of a document in order; returns how many printed what they promised.

    A cpp block whose first line names a file is that file; python blocks share one namespace, and
    each is a file to Python, as a doctest is, of that name if its first line has one; a text block
    holds what the python block before it prints.
    """
    with np.printoptions():  # a document may set its own
        return _run_blocks(text, folder)


def _run_blocks(text: str, folder: Path) -> int:
    namespace: dict[str, object] = {}
    printed: str | None = None
    checked = 0
    for number, (language, code) in enumerate(BLOCK.findall(text)):
        name = FILE_NAME.match(code)
        if language == "cpp" and name:
            (folder / name[1]).write_text(code)
        elif language == "python":
            stream = io.StringIO()
            file = name[1] if name else f"<block {number}>"
            linecache.cache[file] = (len(code), None, code.splitlines(keepends=True), file)
            with contextlib.redirect_stdout(stream):
                exec(compile(code, file, "exec"), namespace)
            printed = stream.getvalue()
        elif language == "text" and printed is not None:
            assert printed == code
            printed = None
            checked += 1
    return checked


def test_readme_runs_and_prints_what_it_says(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    text = (ROOT / "README.md").read_text()
    assert run_document(text, tmp_path) == text.count("```text")


def test_a_wrong_promise_is_noticed(tmp_path: Path) -> None:
    with pytest.raises(AssertionError):
        run_document("```python\nprint(1)\n```\n```text\n2\n```\n", tmp_path)


def test_readme_links_lead_to_files() -> None:
    prose = re.sub(r"(?ms)^```.*?^```$", "", (ROOT / "README.md").read_text())
    for target in re.findall(r"\]\(([^)#]+)\)", prose):
        assert (ROOT / target).exists(), target


def test_readme_names_make_targets_that_exist() -> None:
    makefile = (ROOT / "Makefile").read_text()
    named = re.findall(r"\bmake (\w[\w-]*)", (ROOT / "README.md").read_text())
    for target in named:
        assert re.search(rf"^{target}:", makefile, re.MULTILINE), target


def modules() -> Iterator[str]:
    yield "msops"
    for module in pkgutil.walk_packages(msops.__path__, "msops."):
        if not module.name.endswith("__main__") and not module.name.startswith("msops._native."):
            yield module.name


@pytest.mark.parametrize("name", sorted(set(modules())))
def test_docstring_examples_run(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    result = doctest.testmod(
        importlib.import_module(name), optionflags=doctest.NORMALIZE_WHITESPACE
    )
    assert result.failed == 0
    assert os.getcwd() == str(tmp_path)
