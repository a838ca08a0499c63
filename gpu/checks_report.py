"""The table that `make gpu` prints, in Markdown, with what it was measured on."""

from __future__ import annotations

import dataclasses
import datetime
import importlib.metadata
import platform
import shutil
import subprocess
import textwrap
from collections.abc import Iterable

import jax


@dataclasses.dataclass(frozen=True)
class Row:
    """The outcome of one check.

    Attributes:
      name: the check.
      error: the largest error relative to the largest value; None where text is compared.
      call_us: median time of one jitted call in microseconds; None where it was not timed.
      beside_us: the same of what one would write in `jax.numpy`; None where that was not timed.
      failure: what went wrong; empty for a check that passed.
    """

    name: str
    error: float | None = None
    call_us: float | None = None
    beside_us: float | None = None
    failure: str = ""


def print_report(rows: Iterable[Row]) -> bool:
    """Prints versions, the table, the total and failures in full; returns whether all passed.

    A row is printed before the next check runs, so that a run that is stopped has its rows.
    """
    print(f"{datetime.datetime.now(datetime.UTC).date()}: {_machine()}.", end="\n\n")
    print("| check | result | largest error | median call (us) | jax.numpy (us) |")
    print("|---|---|---|---|---|", flush=True)
    done = []
    for row in rows:
        result = "FAILED" if row.failure else "passed"
        error = "" if row.error is None else f"{row.error:.1e}"
        times = " | ".join(
            "" if time_us is None else f"{time_us:.1f}" for time_us in (row.call_us, row.beside_us)
        )
        print(f"| {row.name} | {result} | {error} | {times} |", flush=True)
        done.append(row)
    failed = [row for row in done if row.failure]
    print(f"\n{len(done) - len(failed)} of {len(done)} passed.")
    for row in failed:
        print(f"\n{row.name}:", textwrap.indent(row.failure, "    "), sep="\n")
    return not failed


def _machine() -> str:
    device = jax.devices()[0]
    parts = [
        device.device_kind,
        _said_by("driver", "nvidia-smi", "--query-gpu=driver_version", "--format=csv,noheader"),
        _said_by("nvcc", "nvcc", "--version"),
        *(f"{name} {importlib.metadata.version(name)}" for name in ("jax", "jaxlib")),
        f"Python {platform.python_version()}",
        f"Linux {platform.release()}",
    ]
    return ", ".join(part for part in parts if part)


def _said_by(title: str, *command: str) -> str:
    """Returns the last line that a program prints, after a title; nothing if it is not there."""
    if shutil.which(command[0]) is None:
        return ""
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    lines = done.stdout.splitlines()
    return f"{title} {lines[-1]}" if done.returncode == 0 and lines else ""
