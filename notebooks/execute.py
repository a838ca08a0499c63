"""Runs notebooks from top to bottom and writes their outputs in place.

    python notebooks/execute.py [--fresh] [NOTEBOOK ...]

Without names: all of this folder. They run by this interpreter, in a folder of their own. A cell
tagged `varies` (times, plots of times) runs too, but keeps the outputs that git has of it, so that
a run changes only what an edit changed; --fresh stores the new ones.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import tempfile
from pathlib import Path
from typing import Any

import nbformat
from jupyter_client import AsyncKernelManager
from jupyter_client.kernelspec import KernelSpecManager
from nbclient import NotebookClient

HERE = Path(__file__).resolve().parent
CELL_TIMEOUT_S = 300


class _Client(NotebookClient):
    """Runs cells; those tagged `check`, which the tests add, do not count."""

    async def async_execute_cell(
        self, cell: nbformat.NotebookNode, cell_index: int, **options: Any
    ) -> nbformat.NotebookNode:
        counts = "check" not in cell.metadata.get("tags", [])
        return await super().async_execute_cell(cell, cell_index, store_history=counts, **options)


def execute(notebook: nbformat.NotebookNode, folder: Path) -> None:
    """Gives a notebook the outputs of a run in `folder`.

    Raises:
      nbclient.exceptions.CellExecutionError: a cell raised.
    """
    # Sockets are files in a folder that is this user's alone; over TCP, ipykernel warns that others
    # on the machine could listen. Jupyter's own folder for them may be too deep for a socket.
    with tempfile.TemporaryDirectory() as sockets:
        manager = AsyncKernelManager(
            kernel_name="python3",
            # Without folders to look in there is only the kernel of this interpreter.
            kernel_spec_manager=KernelSpecManager(kernel_dirs=[]),
            transport="ipc",
            ip=os.path.join(sockets, "kernel"),
        )
        client = _Client(
            notebook,
            km=manager,
            timeout=CELL_TIMEOUT_S,
            record_timing=False,
            coalesce_streams=True,
            resources={"metadata": {"path": os.fspath(folder)}},
        )
        search = [os.fspath(HERE.parent), *filter(None, [os.environ.get("PYTHONPATH")])]
        # Without timing, loop kernels become the same in every run.
        settings = {"PYTHONPATH": os.pathsep.join(search), "MSOPS_LOOPS_TIMING": "0"}
        # A manager of our own is not shut down otherwise.
        client.execute(cleanup_kc=True, env=os.environ | settings)
    for cell in notebook.cells:
        if cell.cell_type == "code":
            # JAX's log goes there, with paths of this machine.
            cell.outputs = [out for out in cell.outputs if out.get("name") != "stderr"]
    notebook.metadata.language_info = {"name": "python"}


def read_committed(path: Path) -> nbformat.NotebookNode | None:
    """Returns the notebook as git's last commit has it, or None if there is no such thing."""
    command = ["git", "show", f"HEAD:./{path.name}"]
    try:
        shown = subprocess.run(
            command, cwd=path.parent, capture_output=True, encoding="utf-8", check=True
        )
    except (OSError, subprocess.CalledProcessError):
        return None
    return nbformat.reads(shown.stdout, as_version=4)


def keep_committed_outputs(
    notebook: nbformat.NotebookNode, committed: nbformat.NotebookNode
) -> None:
    """Gives cells tagged `varies` their committed outputs, up to the first cell that was edited.

    What comes after an edited cell may follow from it, so it keeps the new outputs.
    """
    code, old_code = (
        [cell for cell in book.cells if cell.cell_type == "code"] for book in (notebook, committed)
    )
    for cell, old in zip(code, old_code, strict=False):
        if cell.source != old.source:
            return
        if "varies" in cell.metadata.get("tags", []) and old.outputs:
            cell.outputs = old.outputs


def main() -> None:
    """Executes the notebooks that the command line names."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("notebooks", nargs="*", type=Path, help="the default is all of them")
    parser.add_argument("--fresh", action="store_true", help="store new outputs of all cells")
    options = parser.parse_args()
    for path in options.notebooks or sorted(HERE.glob("*.ipynb")):
        notebook = nbformat.read(path, as_version=4)
        with tempfile.TemporaryDirectory() as folder:
            execute(notebook, Path(folder))
        committed = None if options.fresh else read_committed(path)
        if committed is not None:
            keep_committed_outputs(notebook, committed)
        nbformat.write(notebook, path)
        print(path.name)


if __name__ == "__main__":
    main()
