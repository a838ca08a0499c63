"""Findings that an analysis reports to the author of a kernel."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from msops._loops.ir.nodes import Location


@dataclass(frozen=True)
class LoopFinding:
    """Something the author should know.

    Attributes:
      kind: "out of range" is an error; "unwritten" (a read of an element that nothing wrote) and
        "hint" (a scheduling keyword that cannot be honoured) are warnings.
      message: one sentence without its full stop.
      location: where in the source.
    """

    kind: Literal["out of range", "unwritten", "hint"]
    message: str
    location: Location | None
