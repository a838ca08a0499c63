"""Exceptions that a Python function raises on purpose, and others, which are accidents."""

from __future__ import annotations

import re
import traceback
from pathlib import Path

# How Python shows where an exception came from, and the line that raised it.
_RAISED_AT = re.compile(r'^ *File "[^\n]*\n(?P<line>[^\n]*)', re.MULTILINE)
_ON_PURPOSE = re.compile(r"\b(?:raise|assert)\b")


def is_on_purpose(error: Exception) -> bool:
    """Returns whether an exception that was caught was raised by a statement for that."""
    frames = traceback.extract_tb(error.__traceback__)
    return bool(frames) and bool(_ON_PURPOSE.search(frames[-1].line or ""))


def is_of_library(error: Exception) -> bool:
    """Returns whether JAX or NumPy raised an exception, or an operator did: nobody meant it."""
    frames = traceback.extract_tb(error.__traceback__)
    packages = {"jax", "jaxlib", "numpy", "opt_einsum"}
    if frames and packages.intersection(Path(frames[-1].filename).parts):
        return True
    return not is_on_purpose(error)


def tells_of_accident(text: str) -> bool:
    """Returns whether a message with a traceback is of an exception that nobody meant."""
    raised = _RAISED_AT.findall(text)
    return bool(raised) and not _ON_PURPOSE.search(raised[-1])
