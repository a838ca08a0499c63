"""The processor of this machine, which generated code is built for."""

from __future__ import annotations

import functools
import re

LEAST_VECTOR_BYTES = 16
"""Bytes of the vector registers that every processor has."""
LEAST_GATHERED_BYTES = 4
"""Bytes of the smallest elements for which `has_gathers` holds."""


@functools.cache
def processor_description() -> str:
    """Returns what Linux says of the kind of the first processor: model, stepping and features."""
    with open("/proc/cpuinfo", encoding="utf-8", errors="replace") as file:
        first_processor = file.read(1 << 16).partition("\n\n")[0]
    named = re.findall(
        r"^(?:vendor_id|cpu family|model|model name|stepping|flags|Features|CPU \w+)\s*:.*$",
        first_processor,
        re.MULTILINE,
    )
    return "\n".join(named)


@functools.cache
def vector_bytes() -> int:
    """Returns the bytes of the widest vector register: 64 with AVX-512, 32 with AVX2, else 16."""
    features = processor_description().split()
    return 64 if "avx512f" in features else 32 if "avx2" in features else LEAST_VECTOR_BYTES


def has_gathers() -> bool:
    """Returns whether one instruction loads elements from anywhere, or only some of them: AVX2."""
    return vector_bytes() >= 32


def has_mask_registers() -> bool:
    """Returns whether any instruction on vectors can leave lanes out: AVX-512."""
    return vector_bytes() >= 64
