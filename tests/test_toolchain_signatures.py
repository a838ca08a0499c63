"""A kernel of another signature is an error when its source is compiled."""

from __future__ import annotations

from pathlib import Path

import jax.numpy as jnp
import numpy as np
import pytest
from test_toolchain_build import needs_nvcc

import msops
from msops._toolchain import compilers, signatures
from msops.errors import BackendError, BuildError

TYPES = "int, void **, int *, int64_t **, const char **, void *, void *"
NAMED = "int, void **params, int *, int64_t **, const char **, void *, void *"
BODY = "{ *static_cast<float *>(params[1]) = 5; return 0; }"
WRITTEN = (
    "Write it as\n"
    '  extern "C" int F(int nparam, void **params, int *ndims, int64_t **shapes, '
    "const char **dtypes,\n"
    "      void *stream, void *extra)\n"
    "It returns 0 unless it fails."
)


@pytest.fixture(autouse=True)
def _fresh_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MSOPS_CACHE_DIR", str(tmp_path / "cache"))
    monkeypatch.setattr(signatures, "_checked", set())


def call(path: Path, text: str, **options: object) -> float:
    path.write_text(text)
    op = msops.cpp(f"{path}:F", out=lambda x: x, **options)
    return float(op(jnp.zeros(1, np.float32))[0])


@pytest.mark.parametrize(
    ("name", "text", "shown"),
    [
        ("op.cc", f'extern "C" void F({TYPES}) {{}}', "void F"),
        ("op.cc", 'extern "C" int F(const float *, float *, int) { return 0; }', "const float*"),
        ("op.cc", 'extern "C" int F() { return 0; }', "int F()"),
        ("op.cc", f'extern "C" float F({TYPES}) noexcept {{ return 0; }}', "float F"),
        ("op.cc", 'namespace a { extern "C" int F(float *) { return 0; } }', ""),
        ("op.c", "int F(const float *x, float *y, int n) { return 0; }", "const float *"),
        ("op.c", "void F(void) {}", "void"),
        pytest.param(
            "op.cu",
            'extern "C" int F(const float *, float *, int) { return 0; }',
            "const float *",
            marks=needs_nvcc,
        ),
    ],
)
def test_another_signature_is_an_error(tmp_path: Path, name: str, text: str, shown: str) -> None:
    source = tmp_path / name
    with pytest.raises(BuildError) as caught:
        call(source, f"#include <stdint.h>\n{text}\n")
    message = str(caught.value)
    assert f"the function F in {source} does not have the signature of a kernel" in message
    assert shown in message
    assert (WRITTEN.replace('extern "C" ', "") if name == "op.c" else WRITTEN) in message
    assert "msops_kernel_signature" not in message


@pytest.mark.parametrize(
    "text",
    [
        f'extern "C" int F({NAMED}) {BODY}',
        f'extern "C" int F({NAMED}) noexcept {BODY}',
        f'extern "C" auto F({NAMED}) -> int {BODY}',
        f'extern "C" __attribute__((visibility("default"))) int F({NAMED}) {BODY}',
        f'namespace a {{ namespace b {{ extern "C" int F({NAMED}) {BODY} }} }}',
        f'#define KERNEL(name) extern "C" int name##F({NAMED})\nKERNEL() {BODY}',
        f'extern "C" {{\nint F({TYPES});\nint F({NAMED}) {BODY}\n}}',
        f'extern "C" int F({NAMED.replace("**params", "*params[]")}) {BODY}',
        f'extern "C" int F({NAMED.replace("int64_t", "unsigned long")}) {BODY}',
        f'extern "C" int F({NAMED.replace("int64_t", "long long")}) {BODY}',
    ],
)
def test_the_signature_in_other_words(tmp_path: Path, text: str) -> None:
    flags = ("-Wall", "-Wextra", "-Wredundant-decls", "-Werror")
    build = msops.Build(flags=(*flags, "-Wno-unused-parameter"))
    assert call(tmp_path / "op.cc", f"#include <cstdint>\n{text}\n", build=build) == 5


@needs_nvcc
def test_a_cuda_source_for_several_architectures(tmp_path: Path) -> None:
    arches = [f"-gencode=arch=compute_{number},code=sm_{number}" for number in (80, 90)]
    build = msops.Build(flags=arches)
    other = 'extern "C" int F(const float *, float *, int) { return 0; }\n'
    with pytest.raises(BuildError, match="does not have the signature of a kernel"):
        call(tmp_path / "op.cu", other, build=build)
    right = f'#include <cstdint>\nextern "C" int F({NAMED}) noexcept {BODY}\n'
    with pytest.raises(BackendError, match="holds GPU code"):
        call(tmp_path / "op.cu", right, build=build)


def test_a_kernel_in_another_source(tmp_path: Path) -> None:
    other = tmp_path / "other.cc"
    build = msops.Build(sources=other)
    other.write_text(f'#include <cstdint>\nextern "C" int F({NAMED}) {BODY}\n')
    assert call(tmp_path / "op.cc", "int g() { return 0; }\n", build=build) == 5
    other.write_text('extern "C" int F(float *x) { return x != nullptr; }\n')
    with pytest.raises(BuildError, match=rf"the function F in {other} does not have"):
        call(tmp_path / "op.cc", "int g() { return 1; }\n", build=build)


def test_equal_code_is_checked_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    runs = []
    run = compilers.run_quietly

    def counted(command: tuple[str, ...], *args: object) -> object:
        runs.append("-fsyntax-only" in command)
        return run(command, *args)  # type: ignore[arg-type]

    monkeypatch.setattr(compilers, "run_quietly", counted)
    text = f'#include <cstdint>\nextern "C" int F({NAMED}) {BODY}\n'
    for _ in range(2):
        assert call(tmp_path / "op.cc", text) == 5
        assert sum(runs) == 1
    # As another process does.
    signatures._checked.clear()
    assert call(tmp_path / "op.cc", text) == 5
    assert sum(runs) == 1
