"""Runs notebooks from top to bottom and writes their outputs in place.

    python notebooks/execute.py [NOTEBOOK ...]

Without arguments: all of this folder. They run by this interpreter, in a folder of their own.
"""

from __future__ import annotations

import os
import sys
import tempfile
from pathlib import Path

import nbformat
from jupyter_client import AsyncKernelManager
from jupyter_client.kernelspec import KernelSpecManager
from nbclient import NotebookClient

HERE = Path(__file__).resolve().parent
CELL_TIMEOUT_S = 300


def execute(path: Path, folder: Path) -> nbformat.NotebookNode:
    """Returns the notebook at `path` with the outputs of a run in `folder`.

    Raises:
      nbclient.exceptions.CellExecutionError: a cell raised.
    """
    notebook = nbformat.read(path, as_version=4)
    # Without folders to look in there is only the kernel of the interpreter that runs this.
    kernels = KernelSpecManager(kernel_dirs=[])
    client = NotebookClient(
        notebook,
        km=AsyncKernelManager(kernel_name="python3", kernel_spec_manager=kernels),
        timeout=CELL_TIMEOUT_S,
        record_timing=False,
        coalesce_streams=True,
        resources={"metadata": {"path": os.fspath(folder)}},
    )
    search = [os.fspath(HERE.parent), *filter(None, [os.environ.get("PYTHONPATH")])]
    # A manager of our own is not shut down otherwise.
    client.execute(cleanup_kc=True, env=os.environ | {"PYTHONPATH": os.pathsep.join(search)})
    for cell in notebook.cells:
        if cell.cell_type == "code":
            # JAX's log goes there, with paths of this machine.
            cell.outputs = [out for out in cell.outputs if out.get("name") != "stderr"]
    notebook.metadata.language_info = {"name": "python"}
    return notebook


def main() -> None:
    """Executes the notebooks that the command line names."""
    for path in [Path(name) for name in sys.argv[1:]] or sorted(HERE.glob("*.ipynb")):
        with tempfile.TemporaryDirectory() as folder:
            notebook = execute(path, Path(folder))
        nbformat.write(notebook, path)
        print(path.name)


if __name__ == "__main__":
    main()
