"""Valid C and C++ that released compilers compile wrongly, as far as kernels meet it."""

from __future__ import annotations

from dataclasses import dataclass

from msops._toolchain.compilers import Compiler


@dataclass(frozen=True)
class KnownFault:
    """What some releases of gcc do.

    Attributes:
      releases: the major versions.
      what: the fault.
      advice: what keeps kernels of users from it; generated C avoids it.
    """

    releases: tuple[int, ...]
    what: str
    advice: str


KNOWN_FAULTS = (
    KnownFault(
        (11, 12, 13),
        "neighbours that are loaded under conditions, in several vectors, take the mask of the "
        "first vector (measured with 11.3 and 12.2, -O3 -mavx2; 13 by its source)",
        "Build kernels that choose between neighbours with -fno-tree-loop-if-convert.",
    ),
    KnownFault(
        (12,),
        "(float)(int)x of -0.25 is -0.0 with -fno-trapping-math and SSE4.1 (measured with 12.2)",
        "Build kernels without -fno-trapping-math and -ffast-math.",
    ),
    KnownFault(
        (11, 12),
        "a vector that overlaps the one that an iteration stores is handed on to the next as it "
        "was before, also by intrinsics (measured with 11.3 -O3 and 12.2 -O2)",
        "Build kernels that use vectors with -fno-predictive-commoning -fno-loop-interchange.",
    ),
)


def known_faults(compiler: Compiler) -> tuple[KnownFault, ...]:
    """Returns what is known of a compiler; nothing of compilers other than gcc."""
    return tuple(fault for fault in KNOWN_FAULTS if compiler.gcc_release in fault.releases)
