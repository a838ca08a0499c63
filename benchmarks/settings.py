"""What the command line asks of every benchmark."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True)
class Settings:
    """How to measure.

    Attributes:
      counts: numbers of float32 elements.
      rounds: how often each contender has its turn.
      results: folder of tables and plots.
      times: measure what takes long to measure; False leaves those columns empty.
      tree: another tree of msops, to compare with.
    """

    counts: tuple[int, ...]
    rounds: int
    results: Path
    times: bool = True
    tree: Path | None = None
