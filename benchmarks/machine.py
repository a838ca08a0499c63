"""What a result was measured on, and when."""

from __future__ import annotations

import os
import platform
import subprocess
import time
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

_PAGE_BYTES = os.sysconf("SC_PAGE_SIZE")


def describe_machine() -> list[str]:
    """Returns one line each for the time, hardware, software, and what else was going on."""
    load = ", ".join(f"{value:.2f}" for value in os.getloadavg())
    packages = ", ".join(f"{name} {_version(name)}" for name in ("jax", "jaxlib", "numpy", "msops"))
    compiler = os.environ.get("CXX", "g++")
    malloc = [f"{key}={value}" for key, value in os.environ.items() if key.startswith("MALLOC_")]
    return [
        f"Measured: {time.strftime('%Y-%m-%d %H:%M', time.gmtime())} UTC",
        f"Machine: {_cpu_model()}, {len(os.sched_getaffinity(0))} cores, {_memory_gib():.0f} GiB; "
        f"Linux {platform.release()}, {' '.join(platform.libc_ver())}",
        f"Versions: Python {platform.python_version()}, {packages}, {_first_line(compiler)}",
        f"Load average at the start: {load}; malloc settings: {', '.join(malloc) or 'defaults'}",
    ]


def resident_mib() -> float:
    """Returns the memory that this process holds, in MiB."""
    pages = int(Path("/proc/self/statm").read_text().split()[1])
    return pages * _PAGE_BYTES / 2**20


def _cpu_model() -> str:
    for line in Path("/proc/cpuinfo").read_text().splitlines():
        if line.startswith("model name"):
            return line.partition(":")[2].strip()
    return platform.machine()


def _memory_gib() -> float:
    return os.sysconf("SC_PHYS_PAGES") * _PAGE_BYTES / 2**30


def _version(package: str) -> str:
    try:
        return version(package)
    except PackageNotFoundError:
        return "(from the checkout)"


def _first_line(compiler: str) -> str:
    shown = subprocess.run([*compiler.split(), "--version"], capture_output=True, text=True)
    return shown.stdout.splitlines()[0]
