"""What kernels say: bytes that are not UTF-8 arrive replaced and the rest kept, as no text does."""

from __future__ import annotations

from pathlib import Path

import jax
import jax.numpy as jnp
import pytest
from aicpu_cases import UNOPTIMISED
from aicpu_harness import DOUBLE, info

from msops import Custom, ffi
from msops.errors import BuildError, KernelError

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


SILENT = """
#include <exception>
struct Silent : std::exception {
  const char *what() const noexcept override { return nullptr; }
};
"""
HEADERS = """
#include <cstdint>
#include <vector>
#include "custom_aot_extra.h"
#include "msops_parallel_for.h"
enum TypeId : int {};
"""
NAMED = """
extern "C" int NAME(int, void **, int *, int64_t **, const char **, void *, void *extra) { KERNEL }
extern "C" int NAMEInit(int *, int64_t **, const char **, AotExtra *) { INIT }
extern "C" std::vector<int64_t> NAMEInferShape(int *, int64_t **, AotExtra *) { SHAPE }
extern "C" TypeId NAMEInferType(std::vector<TypeId> types, AotExtra *) { TYPE }
"""
USUAL = {
    "KERNEL": "return 0;", "INIT": "return 0;", "SHAPE": "return {1};", "TYPE": "return types[0];",
}  # fmt: skip
THROW = "throw Silent();"
BLOCK = "msops::ParallelFor(extra, 9, 1, [](int64_t, int64_t) { throw Silent(); }); return 0;"
THROWING = {
    "Kernel": ({"KERNEL": THROW}, "kernel threw an exception"),
    "Block": ({"KERNEL": BLOCK}, "kernel threw an exception"),
    "Init": ({"INIT": THROW}, "Init threw an exception"),
    "Shape": ({"SHAPE": THROW}, "ShapeInferShape of library op.cc"),
    "Type": ({"TYPE": THROW}, "TypeInferType of library op.cc"),
}
HANDLER = """
#include "xla/ffi/api/ffi.h"
using Array = xla::ffi::Buffer<xla::ffi::F32>;
static xla::ffi::Error Fail(Array, xla::ffi::Result<Array>) { throw Silent(); }
XLA_FFI_DEFINE_HANDLER_SYMBOL(F, Fail, xla::ffi::Ffi::Bind().Arg<Array>().Ret<Array>());
"""


def functions(name: str, **bodies: str) -> str:
    """Returns a kernel with all of its companions."""
    text = NAMED.replace("NAME", name)
    for part, body in (USUAL | bodies).items():
        text = text.replace(f"{{ {part} }}", f"{{ {body} }}")
    return text


@pytest.mark.usefixtures("quick_builds")
def test_exceptions_without_a_text(tmp_path: Path) -> None:
    source = tmp_path / "op.cc"
    texts = [functions(name, **bodies) for name, (bodies, _) in THROWING.items()]
    source.write_text("\n".join([HEADERS, SILENT, *texts]))
    for name, (_, said) in THROWING.items():
        with pytest.raises(KernelError, match=r"\n +Silent: \n") as caught:
            Custom(f"{source}:{name}", func_type="aot")(jnp.zeros(1))
        assert said in str(caught.value)


@pytest.mark.usefixtures("quick_builds")
def test_a_constructor_and_a_handler_that_throw_without_a_text(tmp_path: Path) -> None:
    source, handler = tmp_path / "op.cc", tmp_path / "handler.cc"
    constructor = "static int f() { throw Silent(); }\nint n = f();\n"
    source.write_text("\n".join([HEADERS, SILENT, constructor, functions("F")]))
    with pytest.raises(BuildError, match="terminate called after throwing an instance of 'Silent'"):
        Custom(f"{source}:F", func_type="aot")(jnp.zeros(1))
    handler.write_text(SILENT + HANDLER)
    with pytest.raises(KernelError, match="the handler threw an exception:\n  Silent: \n"):
        ffi(f"{handler}:F", out=lambda x: x)(jnp.zeros(1))
