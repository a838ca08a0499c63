"""`msops.Build` and `msops.source`: how a kernel is compiled and linked, and sources as text."""

from __future__ import annotations

import dataclasses
import shutil
import subprocess
import sys
from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import scipy
from quick_cases import one_in

import msops
from msops.errors import ArgumentTypeError, ArgumentValueError, BuildError

KERNEL = """#include <cstdint>
extern "C" int {name}(int nparam, void **params, int *ndims, int64_t **shapes,
                      const char **dtypes, void *stream, void *extra) {{
  const float *x = static_cast<const float *>(params[0]);
  float *y = static_cast<float *>(params[1]);
  for (int64_t i = 0; i < shapes[0][0]; ++i) y[i] = {value};
  return 0;
}}
"""
GEMM = """#include <cstdint>
extern "C" void scipy_cblas_sgemm(int, int, int, int, int, int, float, const float *, int,
                                  const float *, int, float, float *, int);
extern "C" int Gemm(int nparam, void **params, int *ndims, int64_t **shapes, const char **dtypes,
                    void *stream, void *extra) {
  const int rows = shapes[0][0], inner = shapes[0][1], columns = shapes[1][1];
  const int row_major = 101, plain = 111;
  scipy_cblas_sgemm(row_major, plain, plain, rows, columns, inner, 1,
                    static_cast<const float *>(params[0]), inner,
                    static_cast<const float *>(params[1]), columns, 0,
                    static_cast<float *>(params[2]), columns);
  return 0;
}
"""


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("MSOPS_CACHE_DIR", str(tmp_path / "cache"))
    monkeypatch.chdir(tmp_path)
    return tmp_path


def same(x):
    return x


def kernel(value: str, name: str = "Map") -> object:
    return msops.source(KERNEL.format(name=name, value=value), name)


def run(func, build: msops.Build | None = None) -> list[float]:
    return msops.Custom(func, same, same, build=build)(jnp.arange(3.0)).tolist()


def shared_library(path: Path, text: str) -> Path:
    path.parent.mkdir(exist_ok=True)
    path.with_suffix(".c").write_text(text)
    command = ["gcc", "-shared", "-fPIC", "-o", path, path.with_suffix(".c")]
    subprocess.run([*command, f"-Wl,-soname,{path.name}"], check=True)
    return path


# What is linked.


def test_a_kernel_is_linked_with_openblas() -> None:
    wheel = Path(scipy.__file__).parents[1] / "scipy.libs"
    (library,) = wheel.glob("libscipy_openblas*.so*")
    gemm = msops.Custom(
        msops.source(GEMM, "Gemm"),
        lambda x, y: (x[0], y[1]),
        lambda x, y: x,
        build=msops.Build(libraries=library),
    )
    random = np.random.default_rng(0)
    x, y = (random.normal(size=size).astype("f") for size in ((5, 7), (7, 3)))
    expected = x.astype("d") @ y
    np.testing.assert_allclose(gemm(x, y), expected, rtol=1e-4, atol=1e-5)
    np.testing.assert_allclose(jax.jit(gemm)(x, y), expected, rtol=1e-4, atol=1e-5)


def test_a_library_by_name_a_header_and_a_macro(folder: Path) -> None:
    shared_library(folder / "libs" / "libtriple.so", "float Triple(float x) { return 3 * x; }")
    header = folder / "include" / "triple.h"
    header.parent.mkdir()
    header.write_text('extern "C" float Triple(float);\n#define OFFSET 10\n')
    build = msops.Build(
        include_dirs="include",
        libraries="triple",
        library_dirs=Path("libs"),
        defines={"SCALE": 2, "EXACT": None},
    )
    text = "SCALE * Triple(x[i]) + OFFSET\n#ifndef EXACT\n+ 1\n#endif\n"
    source = folder / "op.cc"
    source.write_text('#include "triple.h"\n' + KERNEL.format(name="Map", value=text))
    assert run("op.cc:Map", build) == [10, 16, 22]
    header.write_text('extern "C" float Triple(float);\n#define OFFSET 20\n')
    assert run(source.with_name("op.cc:Map"), build) == [20, 26, 32]
    op = msops.cpp(source.with_name("op.cc:Map"), out=same, build=build)
    assert op(jnp.arange(3.0)).tolist() == [20, 26, 32]


def test_an_archive_may_be_used_by_every_source(folder: Path) -> None:
    folder.joinpath("part.c").write_text("float Part(float x) { return x + 0.5f; }")
    subprocess.run(["gcc", "-fPIC", "-c", "part.c"], check=True)
    subprocess.run(["ar", "rcs", "libpart.a", "part.o"], check=True)
    folder.joinpath("more.cc").write_text(
        'extern "C" float Part(float);\nfloat Twice(float x) { return 2 * Part(x); }\n'
    )
    build = msops.Build(sources="more.cc", libraries=[folder / "libpart.a"])
    text = KERNEL.format(name="Map", value="Twice(x[i])").replace(
        "extern", "float Twice(float);\nextern", 1
    )
    assert run(msops.source(text, "Map"), build) == [1, 3, 5]
    folder.joinpath("part.c").write_text("float Part(float x) { return x + 1.5f; }")
    subprocess.run(["gcc", "-fPIC", "-c", "part.c"], check=True)
    subprocess.run(["ar", "rcs", "libpart.a", "part.o"], check=True)
    assert run(msops.source(text, "Map"), build) == [3, 5, 7]


def archive(path: Path, value: int) -> Path:
    """Makes an archive with a function that returns `value`."""
    path.parent.mkdir(exist_ok=True)
    path.with_suffix(".c").write_text(f"float Value(void) {{ return {value}; }}")
    subprocess.run(["gcc", "-fPIC", "-c", path.with_suffix(".c"), "-o", path.with_suffix(".o")])
    path.unlink(missing_ok=True)
    subprocess.run(["ar", "rcs", path, path.with_suffix(".o")], check=True)
    return path


WAYS_TO_AN_ARCHIVE = {
    "library": {"libraries": "value", "library_dirs": "libs"},
    "flag": {"link_flags": "-lvalue", "library_dirs": "libs"},
    "file name": {"link_flags": "-l:libvalue.a", "library_dirs": "libs"},
    "variable": {"libraries": "value"},
    "linker script": {"libraries": "script", "library_dirs": "libs"},
}


@pytest.mark.parametrize("way", one_in(4, WAYS_TO_AN_ARCHIVE))
def test_an_archive_that_was_made_anew_is_linked_anew(
    way: str, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    text = KERNEL.format(name="Map", value="Value()")
    text = text.replace("extern", 'extern "C" float Value();\nextern', 1)
    source = msops.source(text, "Map")
    library = archive(folder / "libs" / "libvalue.a", 1)
    if way == "variable":
        monkeypatch.setenv("LIBRARY_PATH", str(folder / "libs"))
    if way == "linker script":
        library = library.rename(folder / "part of it.a")
        (folder / "libs" / "libscript.a").write_text(f'INPUT("{library}")\n')
    build = msops.Build(**WAYS_TO_AN_ARCHIVE[way])
    assert run(source, build) == [1] * 3
    archive(library, 2)
    assert run(source, build) == [2] * 3
    archive(library, 3)
    in_a_new_process = f"""
import jax.numpy as jnp, msops
source, build = msops.source({text!r}, "Map"), msops.Build(**{WAYS_TO_AN_ARCHIVE[way]!r})
print(msops.Custom(source, lambda x: x, lambda x: x, build=build)(jnp.arange(1.0)).tolist())
"""
    done = subprocess.run([sys.executable, "-c", in_a_new_process], capture_output=True, text=True)
    assert done.stdout == "[3.0]\n", done.stderr


def test_a_thin_archive_is_linked_anew_when_only_a_member_changed(folder: Path) -> None:
    text = KERNEL.format(name="Map", value="Value()")
    source = msops.source(text.replace("extern", 'extern "C" float Value();\nextern', 1), "Map")
    build = msops.Build(libraries="value", library_dirs="libs")
    member = archive(folder / "parts" / "with a long name.a", 1).with_suffix(".o")
    folder.joinpath("libs").mkdir()
    thin, contents = Path("libs", "libvalue.a"), set()
    for value in (1, 2):
        archive(folder / "parts" / "with a long name.a", value)
        thin.unlink(missing_ok=True)
        subprocess.run(["ar", "rcsDT", thin, member.relative_to(folder)], check=True)
        contents.add(thin.read_bytes())
        assert run(source, build) == [value] * 3
    assert len(contents) == 1


def test_a_shared_library_beside_an_archive_is_found_first_as_by_the_linker(folder: Path) -> None:
    text = KERNEL.format(name="Map", value="Value()")
    source = msops.source(text.replace("extern", 'extern "C" float Value();\nextern', 1), "Map")
    archive(folder / "libs" / "libbeside.a", 1)
    build = msops.Build(libraries="beside", library_dirs="libs")
    assert run(source, build) == [1] * 3
    shared_library(folder / "libs" / "libbeside.so", "float Value(void) { return 2; }")
    assert run(source, build) == [2] * 3


def test_a_linker_that_cannot_report_what_it_reads_still_links(
    folder: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    # As GNU ld 2.34 answers; each attempt leaves a line.
    old = folder / "old" / "ld"
    old.parent.mkdir()
    old.write_text(f"""#!/bin/sh
echo run >> '{folder}/runs'
for word; do
  case "$word" in --dependency-file*)
    echo "ld: unrecognized option '$word'" >&2
    echo "ld: use the --help option for usage information" >&2
    exit 1
  esac
done
exec {shutil.which("ld")} "$@"
""")
    old.chmod(0o755)
    monkeypatch.setenv("COMPILER_PATH", str(old.parent))
    text = KERNEL.format(name="Map", value="Value()")
    text = text.replace("extern", 'extern "C" float Value();\nextern', 1)
    library = archive(folder / "libs" / "libvalue.a", 1)
    build = msops.Build(libraries=library)
    assert run(msops.source(text, "Map"), build) == [1] * 3
    archive(library, 2)
    assert run(msops.source(text, "Map"), build) == [2] * 3
    assert len(folder.joinpath("runs").read_text().split()) == 3
    warnings = [entry.getMessage() for entry in caplog.records if entry.levelname == "WARNING"]
    assert ["GNU ld 2.35" in warning for warning in warnings] == [True]
    with pytest.raises(BuildError, match="Install the library nowhere"):
        run(msops.source(text, "Map"), msops.Build(libraries="nowhere"))


def test_an_edited_further_source_is_built_anew(folder: Path) -> None:
    more = folder / "more.cc"
    text = KERNEL.format(name="Map", value="Offset() + x[i]")
    source = msops.source(text.replace("extern", "float Offset();\nextern", 1), "Map")
    build = msops.Build(sources=[more])
    for offset in (1, 5):
        more.write_text(f"float Offset() {{ return {offset}; }}\n")
        assert run(source, build) == [offset, offset + 1, offset + 2]


def test_a_kernel_in_c_may_use_cxx(folder: Path) -> None:
    folder.joinpath("more.cc").write_text(
        "#include <string>\n"
        'extern "C" float Length(float x) { return std::to_string(static_cast<int>(x)).size(); }\n'
    )
    text = KERNEL.format(name="Map", value="Length(10 * x[i])")
    text = text.replace("cstdint", "stdint.h").replace('extern "C"', "float Length(float);\n")
    for cast in ("const float *", "float *"):
        text = text.replace(f"static_cast<{cast}>", f"({cast})")
    source = msops.source(text, "Map", language="c")
    assert run(source, msops.Build(sources="more.cc", std="c99")) == [1, 2, 2]


def test_std_and_flags_override_those_of_msops() -> None:
    source = kernel(
        "__cplusplus > 201703L ? __OPTIMIZE__ + 0 : -1".replace("__OPTIMIZE__", "LEVEL")
    )
    text = "#ifdef __OPTIMIZE__\n#define LEVEL 2\n#else\n#define LEVEL 0\n#endif\n" + source.text
    source = dataclasses.replace(source, text=text)
    assert run(source) == [-1] * 3
    assert run(source, msops.Build(std="c++20")) == [2] * 3
    assert run(source, msops.Build(std="c++20", flags=["-O0"])) == [0] * 3


def test_libraries_of_one_name_are_refused_with_both_paths(folder: Path) -> None:
    for name, value in (("one", 1), ("two", 2)):
        shared_library(folder / name / "libvalue.so", f"float Value(void) {{ return {value}; }}")
    text = KERNEL.format(name="Map", value="Value()")
    source = msops.source(text.replace("extern", 'extern "C" float Value();\nextern', 1), "Map")
    assert run(source, msops.Build(libraries="value", library_dirs="one")) == [1] * 3
    with pytest.raises(BuildError, match="libvalue") as caught:
        run(source, msops.Build(libraries="value", library_dirs="two"))
    assert str(folder / "one") in str(caught.value)
    assert str(folder / "two") in str(caught.value)


@pytest.mark.slow
def test_an_extension_is_linked_with_a_library(folder: Path) -> None:
    shared_library(folder / "libs" / "libanswer.so", "int Answer(void) { return 42; }")
    module = msops.ops.CustomOpBuilder.from_source(
        "answers",
        '#include "ms_extension/api.h"\nextern "C" int Answer();\n'
        "PYBIND11_MODULE(MS_EXTENSION_NAME, m) {\n"
        '  m.def("answer", [] { return Answer() + MORE; });\n}',
        build=msops.Build(
            libraries="answer", library_dirs="libs", defines=["MORE=1"], flags=["-O0"]
        ),
        build_dir=folder / "built",
    ).load()
    assert module.answer() == 43
    assert (folder / "built" / "answers.so").is_file()


# What is refused.


@pytest.mark.parametrize(
    ("line", "header"),
    [
        ("msops::ParallelFor(nullptr, 1, 1, [](int64_t, int64_t) {});", "msops_parallel_for.h"),
        ("static_cast<AotExtra *>(nullptr);", "custom_aot_extra.h"),
    ],
)
def test_a_header_of_ours_that_is_not_included_is_named(line: str, header: str) -> None:
    source = f"void Use() {{ {line} }}\n" + KERNEL.format(name="Map", value="1")
    with pytest.raises(BuildError) as caught:
        run(msops.source("#include <cstdint>\n" + source, "Map"))
    assert f'Write #include "{header}"' in str(caught.value)


def test_a_missing_header_is_named_with_the_option() -> None:
    source = msops.source('#include "cblas.h"\n' + KERNEL.format(name="Map", value="1"), "Map")
    with pytest.raises(BuildError) as caught:
        run(source)
    assert "Map.cc:1:10: fatal error: cblas.h" in str(caught.value)
    assert "Install what cblas.h comes with" in str(caught.value)
    assert "Build(include_dirs=...)" in str(caught.value)


def test_the_headers_of_jax_are_named_where_they_are() -> None:
    text = '#include "xla/ffi/api/ffi.h"\n' + KERNEL.format(name="Map", value="1")
    with pytest.raises(BuildError, match=r"msops.ffi\('file.cc:Handler', out=...\)"):
        run(msops.source(text, "Map"))


def test_a_missing_library_is_named_with_the_option(folder: Path) -> None:
    folder.joinpath("libs").mkdir()
    build = msops.Build(libraries="nowhere", library_dirs="libs")
    with pytest.raises(BuildError) as caught:
        run(kernel("1"), build)
    assert "Install the library nowhere" in str(caught.value)
    assert "Build(library_dirs=...)" in str(caught.value)
    shared_library(folder / "libs" / "libnowhere.so", "").rename("libs/libnowhere.so.3")
    with pytest.raises(BuildError) as caught:
        run(kernel("1"), build)
    assert f"Build(libraries='{folder}/libs/libnowhere.so.3')" in str(caught.value)


@pytest.mark.parametrize("option", ["sources", "include_dirs", "library_dirs", "libraries"])
def test_files_and_folders_that_are_not_there_are_refused_at_once(option: str) -> None:
    build = msops.Build(**{option: "absent.so" if option == "libraries" else "absent.cc"})
    with pytest.raises(BuildError, match=r"there is no (file|folder) .*absent\.(cc|so)"):
        msops.Custom(kernel("1"), same, same, build=build)


def test_options_for_a_library_are_refused(folder: Path) -> None:
    shared_library(folder / "libop.so", "int Map(void) { return 0; }")
    with pytest.raises(ArgumentValueError, match="got the library"):
        run("libop.so:Map", msops.Build(defines="A"))


def test_the_allow_list_covers_sources_and_libraries(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder.joinpath("allowed").mkdir()
    folder.joinpath("allowed", "op.cc").write_text(KERNEL.format(name="Map", value="1"))
    folder.joinpath("more.cc").write_text("")
    shared_library(folder / "libmore.so", "")
    monkeypatch.setenv("MS_CUSTOM_AOT_WHITE_LIST", str(folder / "allowed"))
    assert run("allowed/op.cc:Map", msops.Build(defines="A")) == [1] * 3
    for option, name in (("sources", "more.cc"), ("libraries", "./libmore.so")):
        for func in ("allowed/op.cc:Map", kernel("1")):
            with pytest.raises(ArgumentTypeError, match="more"):
                run(func, msops.Build(**{option: name}))


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"flags": "-O2 -g"}, r"Pass flags=\['-O2', '-g'\]"),
        ({"std": "fast"}, "expected std such as"),
        ({"defines": ["1=2"]}, "expected defines such as"),
        ({"sources": ["a\0b"]}, "null characters"),
        ({"libraries": 3}, "expected libraries as"),
        ({"include_dirs": [b"bytes"]}, "expected include_dirs as"),
    ],
)
def test_wrong_options_say_what_is_expected(options: dict[str, object], message: str) -> None:
    with pytest.raises((ArgumentTypeError, ArgumentValueError), match=message):
        msops.Build(**options)


def test_what_is_no_build_is_refused() -> None:
    with pytest.raises(ArgumentTypeError, match=r"expected a msops\.Build"):
        run(kernel("1"), {"flags": ["-g"]})
    with pytest.raises(ArgumentValueError, match="option build is for func_type"):
        msops.Custom(np.sin, same, same, build=msops.Build())


def test_equal_options_are_one_value() -> None:
    assert msops.Build(flags=["-g"]) == msops.Build(flags=("-g",))
    assert hash(msops.Build(flags="-g")) == hash(msops.Build(flags=("-g",)))
    assert msops.Build(flags="-g") != msops.Build(flags="-O0")
    with pytest.raises(dataclasses.FrozenInstanceError):
        msops.Build().std = "c++20"


# Sources as text.


def test_a_text_is_a_kernel_under_transformations() -> None:
    square = msops.Custom(
        kernel("x[i] * x[i]"), same, same, bprop=lambda x, out, dout: (2 * x * dout,)
    )
    x = jnp.array([1.0, 3.0])
    assert square.__name__ == "Map"
    assert jax.jit(square)(x).tolist() == [1, 9]
    assert jax.grad(lambda x: square(x).sum())(x).tolist() == [2, 6]


def test_a_text_outlives_the_cache(folder: Path) -> None:
    op = msops.Custom(kernel("2 * x[i]"), same, same)
    assert op(jnp.arange(2.0)).tolist() == [0, 2]
    shutil.rmtree(folder / "cache")
    assert op(jnp.arange(3.0)).tolist() == [0, 2, 4]
    assert run(kernel("2 * x[i]")) == [0, 2, 4]


def test_a_typo_shows_its_line_and_a_caret_in_under_ten_lines() -> None:
    with pytest.raises(BuildError) as caught:
        run(kernel("2 * undeclared[i]; int a = b; c = 3"))
    lines = str(caught.value).splitlines()
    assert len(lines) < 10
    assert lines[1].startswith("  Map.cc:6:")
    assert "undeclared" in lines[1]
    assert "y[i] = 2 * undeclared[i]" in lines[2]
    assert lines[3].index("^") - lines[2].index("undeclared") in (0, 1)
    assert any("more error" in line for line in lines)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ((3, "f"), "expected text str"),
        (("", "a b"), "expected the name of a C function"),
        (("", "f", "fortran"), "expected language to be one of"),
    ],
)
def test_a_wrong_text_says_what_is_expected(arguments: tuple[object, ...], message: str) -> None:
    with pytest.raises((ArgumentTypeError, ArgumentValueError), match=message):
        msops.source(*arguments)


def test_a_text_that_no_file_can_hold_is_refused() -> None:
    with pytest.raises(ArgumentValueError, match="UTF-8 cannot write it"):
        run(msops.source("// \ud800", "Map"))
