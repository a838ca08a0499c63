"""What kernels say in bytes that are not UTF-8 arrives with those replaced, and the rest kept."""

from __future__ import annotations

from pathlib import Path

import jax
import jax.numpy as jnp
import pytest
from aicpu_cases import UNOPTIMISED
from aicpu_harness import DOUBLE, info

from msops import Custom
from msops.errors import KernelError

# Of one to four bytes, the first and the last of each.
WHOLE = "a~\u0080\u07ff\u0800\ud7ff\ue000\uffff\U00010000\U0010ffff"
# They begin nothing, are cut short, longer than need be, a surrogate, or too high.
BROKEN = (b"\xff", b"\xc3", b"\xe2\x82", b"\xc0\xaf", b"\xe0\x9f\xbf", b"\xed\xa0\x80")
BROKEN += (b"\xf0\x8f\xbf\xbf", b"\xf4\x90\x80\x80", b"\x80")
SAID = WHOLE.encode() + b"".join(part + b"." for part in BROKEN)
HEARD = WHOLE + "".join("\ufffd" * len(part) + "." for part in BROKEN)
LITERAL = '"' + "".join(f"\\{byte:03o}" for byte in SAID) + '"'

AOT = f"""
#include <stdexcept>
extern "C" int F(int, void **, int *, long **, const char **, void *, void *) {{ BODY; }}
extern "C" const char *FMessage(int) {{ return {LITERAL}; }}
"""


@pytest.mark.parametrize("body", [f"throw std::runtime_error({LITERAL})", "return 3"])
@pytest.mark.parametrize("jit", [False, True], ids=["eager", "jit"])
def test_an_aot_kernels_text(tmp_path: Path, body: str, jit: bool) -> None:
    source = tmp_path / "op.cc"
    source.write_text(AOT.replace("BODY", body))
    op = Custom(f"{source}:F", lambda x: x, lambda x: x)
    with pytest.raises(jax.errors.JaxRuntimeError if jit else KernelError) as caught:
        (jax.jit(op) if jit else op)(jnp.zeros(1)).block_until_ready()
    assert HEARD in str(caught.value)
    assert "symbol F of library op.cc" in str(caught.value)


@pytest.mark.parametrize(
    "body",
    [f"throw std::runtime_error({LITERAL})", f'KERNEL_LOG_ERROR("%s", {LITERAL}); return 1'],
)
def test_an_aicpu_kernels_text(tmp_path: Path, body: str) -> None:
    source = tmp_path / "times.cc"
    source.write_text(DOUBLE.replace("    return 0;", f"    {body};").replace("FACTOR", "2"))
    op = Custom(
        str(source),
        *(lambda x: x, lambda x: x, "aicpu"),
        reg_info=info("Times"),
        build=UNOPTIMISED,
    )
    with pytest.raises(KernelError) as caught:
        op(jnp.zeros(1))
    assert HEARD in str(caught.value)
    assert "kernel Times of library times.cc" in str(caught.value)
