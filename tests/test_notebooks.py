"""The notebooks run, print what they are committed with, and are committed as they should be."""

from __future__ import annotations

import importlib.util
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from documents import without_times

nbformat = pytest.importorskip("nbformat")
for _module in ("nbclient", "ipykernel", "matplotlib"):
    pytest.importorskip(_module)

FOLDER = Path(__file__).resolve().parent.parent / "notebooks"
NOTEBOOKS = sorted(FOLDER.glob("*.ipynb"))
CHECKS = Path(__file__).resolve().parent / "notebook_checks"
MOST_BYTES = 250_000
# Folders of one machine: Linux homes and temporary files, and anything of a site's packages.
MACHINE_PATH = re.compile(r"/(home|root|tmp|work|usr|opt)/|site-packages|ipykernel_\d")

pytestmark = pytest.mark.skipif(not shutil.which("g++"), reason="needs g++")
each_notebook = pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
# The others show what pages of the site show too, whose code runs with the fast tests.
FAST = ("01",)


def load_execute():
    """Returns the module that ``make notebooks`` runs each notebook with."""
    spec = importlib.util.spec_from_file_location("execute_notebooks", FOLDER / "execute.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def code_cells(notebook):
    return [cell for cell in notebook.cells if cell.cell_type == "code"]


def texts(cell) -> list[str]:
    """Returns what a cell printed and returned, without the hashes of libraries and estimates.

    What a compiler makes of a source depends on its version, an estimate on the processor.
    """
    shown = [
        output.text if output.output_type == "stream" else output.data.get("text/plain", "")
        for output in cell.outputs
    ]
    hashes = re.compile(r"(of library \S+) \([0-9a-f]{12}\)")
    return [without_times(hashes.sub(r"\1 (hash)", text)) for text in shown]


def test_there_are_notebooks_and_their_checks_are_in_the_tests():
    checks = sorted(CHECKS.glob("*.txt"))
    assert checks
    assert {path.stem for path in checks} <= {path.stem for path in NOTEBOOKS}
    for path in NOTEBOOKS:
        assert not any("assert" in cell.source for cell in nbformat.read(path, 4).cells), path
    assert [path.stem[:2] for path in NOTEBOOKS] == ["01", "02", "03", "04", "05", "06"]


def add_checks(notebook, checks: str) -> None:
    """Adds cells that check what a notebook computes.

    Args:
      notebook: the notebook.
      checks: their text; each begins with a comment that quotes a line of the cell it follows.
    """
    for check in re.split(r"^(?=# After the cell with: )", checks, flags=re.MULTILINE)[1:]:
        line = check.partition("\n")[0].removeprefix("# After the cell with: ")
        (index,) = (i for i, cell in enumerate(notebook.cells) if line in cell.source.splitlines())
        cell = nbformat.v4.new_code_cell(check, metadata={"tags": ["check"]})
        notebook.cells.insert(index + 1, cell)


@pytest.mark.parametrize(
    "path",
    [
        path if path.stem[:2] in FAST else pytest.param(path, marks=pytest.mark.slow)
        for path in NOTEBOOKS
    ],
    ids=lambda path: path.stem,
)
@pytest.mark.slow
def test_a_run_in_another_folder_prints_what_is_committed(path, tmp_path, monkeypatch):
    monkeypatch.setenv("JAX_PLATFORMS", "cpu")
    monkeypatch.setenv("IPYTHONDIR", str(tmp_path / "ipython"))
    committed = nbformat.read(path, as_version=4)
    executed = nbformat.read(path, as_version=4)
    checks = CHECKS / f"{path.stem}.txt"
    if checks.exists():
        add_checks(executed, checks.read_text())
    # A cell that raises, one of the checks say, raises here.
    load_execute().execute(executed, tmp_path)
    run = [cell for cell in code_cells(executed) if "check" not in cell.metadata.get("tags", [])]
    for before, after in zip(code_cells(committed), run, strict=True):
        if "varies" not in before.metadata.get("tags", []):
            assert texts(after) == texts(before), before.source


@each_notebook
def test_it_is_committed_executed_in_order_small_and_without_traces_of_a_machine(path):
    notebook = nbformat.read(path, as_version=4)
    nbformat.validate(notebook)
    cells = code_cells(notebook)
    assert [cell.execution_count for cell in cells] == list(range(1, len(cells) + 1))
    assert path.stat().st_size < MOST_BYTES
    assert notebook.cells[0].source.startswith("# ")
    for cell in cells:
        assert not any(output.get("name") == "stderr" for output in cell.outputs)
        for text in [cell.source, *texts(cell)]:
            assert not MACHINE_PATH.search(text), text


@pytest.mark.slow
@pytest.mark.skipif(not shutil.which("git"), reason="needs git")
def test_a_second_run_changes_nothing_but_what_was_edited(tmp_path):
    def git(*arguments: str) -> str:
        command = ["git", "-c", "user.name=a", "-c", "user.email=a@b", *arguments]
        return subprocess.run(
            command, cwd=tmp_path, check=True, capture_output=True, text=True
        ).stdout

    def run(*options: str) -> str:
        command = [sys.executable, str(FOLDER / "execute.py"), *options, str(path)]
        done = subprocess.run(command, check=True, capture_output=True, text=True)
        # Not stderr: kernels write there, and may on their way out.
        assert done.stdout == "book.ipynb\n"
        return "".join(text for cell in nbformat.read(path, 4).cells for text in texts(cell))

    def cell(source: str, tag: str = ""):
        return nbformat.v4.new_code_cell(source, metadata={"tags": [tag]} if tag else {})

    path = tmp_path / "book.ipynb"
    time_it = cell("import time; print(time.time_ns())", "varies")
    notebook = nbformat.v4.new_notebook(cells=[cell("print(1)"), time_it])
    nbformat.write(notebook, path)
    first = run()
    assert run() != first  # git has nothing to keep
    git("init", "--quiet")
    git("add", "book.ipynb")
    git("commit", "--quiet", "--message", "book")
    committed = run()
    assert git("status", "--short") == ""
    assert run("--fresh") != committed
    notebook.cells[0].source = "print(2)"
    nbformat.write(notebook, path)
    edited = run()
    assert edited[0] == "2"
    assert edited[1:] != committed[1:]
