"""What is known of the processor, and what gcc gets for it."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path
from unittest import mock

import pytest
from loop_ir import FLAGS, gcc_flags

from msops._base import processor

XEON = "vendor_id\t: GenuineIntel\nmodel name\t: Xeon\nflags\t\t: fpu avx2 avx512f avx512vl"
OLDER = XEON.replace(" avx512f avx512vl", "")
EPYC = XEON.replace("GenuineIntel", "AuthenticAMD")


@pytest.mark.parametrize(
    ("description", "leak", "is_quick"),
    [
        (XEON, "Not affected\n", True),
        (XEON, "Mitigation: Microcode\n", False),
        (XEON, "Vulnerable: No microcode\n", False),
        (XEON, None, False),
        (OLDER, "Not affected\n", False),
        (EPYC, "Not affected\n", False),
        ("Features\t: fp asimd sve", "Not affected\n", False),
    ],
)
def test_gathers_are_quick_where_no_microcode_holds_them_up(
    tmp_path: Path, description: str, leak: str | None, is_quick: bool
) -> None:
    file = tmp_path / "gather_data_sampling"
    if leak is not None:
        file.write_text(leak)
    with (
        mock.patch.object(processor, "processor_description", return_value=description),
        mock.patch.object(processor, "_SLOW_GATHERS", file),
    ):
        assert processor.has_quick_gathers.__wrapped__() is is_quick


@pytest.mark.skipif(os.uname().machine != "x86_64", reason="the flags are those of one processor")
@pytest.mark.parametrize("architecture", ["cascadelake", "sapphirerapids"])
def test_gcc_gathers_whole_vectors_where_gathers_are_quick(
    tmp_path: Path, architecture: str
) -> None:
    source = tmp_path / "look_up.c"
    source.write_text(
        "void look_up(float* restrict y, const float* restrict table, const int* restrict at) {\n"
        "  for (long i = 0; i < 1000; ++i) y[i] = table[at[i]];\n"
        "}\n"
    )

    def assembly(is_quick: bool) -> str:
        with mock.patch.object(processor, "has_quick_gathers", return_value=is_quick):
            flags = (*FLAGS, *gcc_flags(), f"-march={architecture}", "-O3", "-S", "-o", "-")
        command = ["gcc", *flags, str(source)]
        return subprocess.run(command, capture_output=True, text=True, check=True).stdout

    gathers = [line for line in assembly(True).splitlines() if "gather" in line]
    assert any("%zmm" in line for line in gathers)
    assert not any("gather" in line and "%zmm" in line for line in assembly(False).splitlines())
