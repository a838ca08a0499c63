"""Scripts of MindSpore's documents on custom operators, taken out of the documents.

The documents are no part of the repository: ``MSOPS_TEST_SEEDS`` names a folder that has them, as
Markdown or as a notebook. Each script is found by what it says.
"""

from __future__ import annotations

import json
import os
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

_FENCED = re.compile(r"^```(\w+)\n(.*?)^```", re.MULTILINE | re.DOTALL)


def seed(language: str, *marks: str) -> str:
    """Returns the first block of a language that has all `marks`; skips the test without one."""
    folder = os.environ.get("MSOPS_TEST_SEEDS")
    if not folder:
        pytest.skip("MSOPS_TEST_SEEDS names no folder")
    for path in sorted(Path(folder).iterdir()):
        for kind, block in _blocks(path.read_text()):
            if kind == language and all(mark in block for mark in marks):
                return block
    return pytest.skip(f"the documents of MSOPS_TEST_SEEDS have no block with {marks}")


def _blocks(text: str) -> Iterator[tuple[str, str]]:
    """Yields the blocks of code in a document, each with its language."""
    if text.lstrip().startswith("{"):
        for cell in json.loads(text)["cells"]:
            if cell["cell_type"] == "code":
                yield "python", "".join(cell["source"])
        return
    yield from _FENCED.findall(text)
