"""A kernel of another signature is an error when its source is compiled."""

from __future__ import annotations

import itertools
import subprocess
import sys
from pathlib import Path

import jax.numpy as jnp
import numpy as np
import pytest
from quick_cases import one_in
from test_toolchain_build import needs_nvcc

import msops
from msops.errors import BackendError, BuildError
from msops.ops import CustomRegOp, DataType

pytestmark = pytest.mark.usefixtures("quick_builds")

TYPES = "int, void **, int *, int64_t **, const char **, void *, void *"
NAMED = "int, void **params, int *, int64_t **, const char **, void *, void *"
BODY = "{ *static_cast<float *>(params[1]) = RESULT; return 0; }"
# Code of its own for each kernel: equal code is checked once.
RESULTS = itertools.count(1)
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


def call(path: Path, text: str, **options: object) -> bool:
    """Returns whether F of a source writes what stands for RESULT."""
    result = next(RESULTS)
    path.write_text(text.replace("RESULT", str(result)))
    op = msops.cpp(f"{path}:F", out=lambda x: x, **options)
    return op(jnp.zeros(1, np.float32)).item() == result


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
    assert call(tmp_path / "op.cc", f"#include <cstdint>\n{text}\n", build=build)


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
    first, other = "float value() { return RESULT; }\n", tmp_path / "other.cc"
    build = msops.Build(sources=other)
    right = f'extern "C" int F({NAMED}) {BODY.replace("RESULT", "value()")}\n'
    other.write_text(f"#include <cstdint>\nfloat value();\n{right}")
    assert call(tmp_path / "op.cc", first, build=build)
    other.write_text('extern "C" int F(float *x) { return x != nullptr; }\n')
    with pytest.raises(BuildError, match=rf"the function F in {other} does not have"):
        call(tmp_path / "op.cc", first, build=build)


FULL_INIT = (
    'Write it as\n  extern "C" '
    "int FInit(int *ndims, int64_t **shapes, const char **dtypes, AotExtra *extra)\n"
    "It returns 0 unless it fails."
)
FULL_SHAPE = (
    'Write it as\n  extern "C" std::vector<int64_t> FInferShape('
    "int *ndims, int64_t **shapes, AotExtra *extra)\nFor a tuple of outputs"
)
FULL_TYPE = (
    'Write it as\n  extern "C" TypeId FInferType(std::vector<TypeId> '
    "input_types, AotExtra *extra)\nFor a tuple of outputs"
)
EXTENTS, EXTRA = "int *, int64_t **", "AotExtra *extra"
INIT = f"int FInit({EXTENTS}, const char **, {EXTRA})"
SHAPE = f"std::vector<int64_t> FInferShape({EXTENTS} shapes, {EXTRA})"
TYPE = f"TypeId FInferType(std::vector<TypeId> types, {EXTRA})"
BODIES = {
    INIT: "{ return 0; }",
    SHAPE: "{ return {shapes[0], shapes[0] + 1}; }",
    TYPE: "{ return types[0]; }",
}
HEAD = '#include <cstdint>\n#include "custom_aot_extra.h"\nenum TypeId : int {};\n'


def name_in(head: str) -> str:
    return head.split("(")[0].split()[-1]


def call_with(path: Path, companions: dict[str, str], **options: object) -> bool:
    """Returns whether F of a source with companions writes what stands for RESULT."""
    functions = [*companions.items(), (f"int F({NAMED})", BODY)]
    result = next(RESULTS)
    text = HEAD + "\n".join(f'extern "C" {head} {body}' for head, body in functions)
    path.write_text(text.replace("RESULT", str(result)))
    return msops.Custom(f"{path}:F", **options)(jnp.zeros(1, np.float32)).item() == result


@pytest.mark.parametrize(
    ("head", "body", "written"),
    one_in(
        2,
        [
            ("void FInit()", "{}", FULL_INIT),
            (f"int FInit({EXTENTS}, {EXTRA})", "{ return 0; }", FULL_INIT),
            (f"float FInit({EXTENTS}, const char **, {EXTRA})", "{ return 0; }", FULL_INIT),
            (f"std::vector<int> FInferShape({EXTENTS}, {EXTRA})", "{ return {}; }", FULL_SHAPE),
            (f"void FInferShape({EXTENTS}, {EXTRA})", "{}", FULL_SHAPE),
            (
                f"std::vector<int64_t> FInferShape(int *, int **, {EXTRA})",
                "{ return {}; }",
                FULL_SHAPE,
            ),
            ("TypeId FInferType(TypeId type)", "{ return type; }", FULL_TYPE),
            (f"int FInferType(std::vector<TypeId>, {EXTRA})", "{ return 0; }", FULL_TYPE),
        ],
    ),
)
def test_a_companion_of_another_signature_is_an_error(
    tmp_path: Path, head: str, body: str, written: str
) -> None:
    source = tmp_path / "op.cc"
    given = {} if "Infer" in head else {"out_shape": lambda x: x, "out_dtype": lambda x: x}
    others = {"FInferType": {SHAPE: BODIES[SHAPE]}, "FInferShape": {TYPE: BODIES[TYPE]}}
    name = name_in(head)
    with pytest.raises(BuildError) as caught:
        call_with(source, {head: body} | others.get(name, {}), **given)
    message = str(caught.value)
    expected = f"does not have the signature of an {name[1:]} function"
    assert f"the function {name} in {source} {expected}" in message
    assert written in message


@pytest.mark.parametrize(
    "changes",
    one_in(
        2,
        [
            {},
            {f"{INIT} noexcept": BODIES[INIT], f"{SHAPE} noexcept": BODIES[SHAPE]},
            {INIT.replace("AotExtra", "void"): BODIES[INIT]},
            {TYPE.replace("std::vector<TypeId>", "const std::vector<TypeId> &"): BODIES[TYPE]},
            {SHAPE.replace("int64_t", "unsigned long"): "{ return {1}; }"},
        ],
    ),
)
def test_companions_in_other_words(tmp_path: Path, changes: dict[str, str]) -> None:
    changed = {name_in(head) for head in changes}
    kept = {head: body for head, body in BODIES.items() if name_in(head) not in changed}
    assert call_with(tmp_path / "op.cc", changes | kept)


def test_companions_of_several_outputs(tmp_path: Path) -> None:
    text = (
        f"{HEAD}"
        f'extern "C" std::vector<std::vector<int64_t>> FInferShape({EXTENTS}, {EXTRA}) '
        "{ return {{1}, {1}}; }\n"
        f'extern "C" std::vector<TypeId> FInferType(std::vector<TypeId> types, {EXTRA}) '
        "{ return {types[0], types[0]}; }\n"
        f'extern "C" int F({NAMED}) {{ return 0; }}\n'
    )
    (tmp_path / "op.cc").write_text(text)
    info = CustomRegOp("F").input(0, "x").output(0, "y").output(1, "z")
    info = info.dtype_format(*[DataType.F32_Default] * 3).target("CPU").get_op_info()
    op = msops.Custom(f"{tmp_path / 'op.cc'}:F", reg_info=info)
    assert [array.shape for array in op(jnp.zeros(1))] == [(1,), (1,)]


def test_equal_code_is_checked_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    log, compiler = tmp_path / "log", tmp_path / "compiler"
    compiler.write_text(f'#!/bin/sh\necho "$*" >> {log}\nexec g++ "$@"\n')
    compiler.chmod(0o755)
    monkeypatch.setenv("CXX", str(compiler))
    text = f'#include <cstdint>\nextern "C" int F({NAMED}) {BODY}\n'.replace("RESULT", "7")
    (tmp_path / "op.cc").write_text(text)
    code = (
        "import jax.numpy as jnp, msops\n"
        f"msops.cpp({str(tmp_path / 'op.cc')!r} + ':F', out=lambda x: x)(jnp.zeros(1))\n"
    )
    for _ in range(2):
        subprocess.run([sys.executable, "-c", code * 2], check=True, timeout=120)
        assert log.read_text().count("-fsyntax-only") == 1
