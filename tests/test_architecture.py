"""docs/architecture.md follows five calls from `Custom` to running code; here they are traced.

The page lists functions in the order in which a first call enters them. A child process makes each
call under `sys.setprofile`, with an empty build cache.
"""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
from conftest import ROOT
from quick_cases import one_in

PAGE = (ROOT / "docs" / "architecture.md").read_text()

TRACE = """
import json, sys, threading
from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np

import msops

PACKAGE = str(Path(msops.__file__).parent) + "/"
entered = []


def enter(frame, event, argument):
    code = frame.f_code
    # Bodies of modules and classes are no calls.
    if event == "call" and code.co_filename.startswith(PACKAGE) and code.co_flags & 1:
        entered.append((code.co_filename.removeprefix(PACKAGE), code.co_qualname))


def follow(call):
    threading.setprofile(enter)
    sys.setprofile(enter)
    call()
    sys.setprofile(None)
    threading.setprofile(None)


x = jnp.arange(6.0)
"""


def sections() -> dict[str, tuple[str, list[tuple[str, str]]]]:
    """Returns for each call of the page its code, and the functions it lists."""
    found = {}
    for title, body in re.findall(r"^### (.*?)\n(.*?)(?=^##|\Z)", PAGE, re.MULTILINE | re.DOTALL):
        (code,) = re.findall(r"^```python\n(.*?)^```", body, re.MULTILINE | re.DOTALL)
        steps = re.findall(r"^\d+\. `([\w/]+\.py)`: `([\w.<>]+)`", body, re.MULTILINE)
        found[title] = (code, steps)
    return found


SECTIONS = sections()


def test_the_page_follows_five_calls() -> None:
    assert len(SECTIONS) == 5
    for _, steps in SECTIONS.values():
        assert len(steps) >= 8


def trace(code: str, folder: Path) -> list[tuple[str, str]]:
    """Returns the functions that `code` enters, when it runs for the first time."""
    source = re.findall(r"^// (\w+\.cc)$", PAGE, re.MULTILINE)
    blocks = re.findall(r"^```cpp\n(// (\w+\.cc)\n.*?)^```", PAGE, re.MULTILINE | re.DOTALL)
    assert len(source) == len(blocks)
    for text, name in blocks:
        (folder / name).write_text(text)
    program = f"{TRACE}\ndef call():\n    " + code.strip().replace("\n", "\n    ")
    program += "\n\nfollow(call)\nprint(json.dumps(entered))\n"
    # A loop kernel's source is read from its file.
    (folder / "program.py").write_text(program)
    done = subprocess.run(
        [sys.executable, "program.py"],
        cwd=folder,
        env=os.environ
        | {
            "PYTHONPATH": str(ROOT),
            "JAX_PLATFORMS": "cpu",
            "MSOPS_CACHE_DIR": str(folder / "cache"),
        },
        capture_output=True,
        text=True,
        check=False,
        timeout=120,
    )
    assert done.returncode == 0, done.stderr
    return [(file, name) for file, name in json.loads(done.stdout.splitlines()[-1])]


@pytest.mark.parametrize("title", one_in(2, SECTIONS))
def test_a_call_enters_the_functions_of_the_page_in_their_order(title: str, tmp_path: Path) -> None:
    code, steps = SECTIONS[title]
    entered = iter(trace(code, tmp_path))
    for step in steps:
        assert step in entered, f"{step} is not entered, or before the step above it"
