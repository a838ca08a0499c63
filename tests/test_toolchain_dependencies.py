"""Libraries that kernels' libraries are linked with: each kernel gets its own, or an error."""

from __future__ import annotations

import subprocess
from pathlib import Path

import jax.numpy as jnp
import numpy as np
import pytest
from test_extension_builder import PLAIN

from msops import Custom
from msops.errors import BuildError
from msops.ops import CustomOpBuilder

KERNEL = """
int NAME(void);
int F(int n, void **p, int *nd, long **shapes, const char **dt, void *stream, void *extra) {
  ((float *)p[n - 1])[0] = NAME();
  return 0;
}
"""


def compile_c(path: Path, text: str, *flags: object) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    command = ["gcc", "-shared", "-fPIC", "-o", path, "-x", "c", "-", "-x", "none", *flags]
    subprocess.run(command, input=text.encode(), check=True)
    return path


def dependency(folder: Path, name: str, value: int) -> Path:
    """Builds lib<name>.so in a folder; its function `name` returns `value`."""
    return compile_c(folder / f"lib{name}.so", f"int {name}(void) {{ return {value}; }}")


def kernel(folder: Path, name: str, runpath: str = "$ORIGIN") -> Path:
    """Builds libop.so in a folder; its kernel F returns what lib<name>.so does."""
    flags = (f"-L{folder}", f"-l{name}", f"-Wl,-rpath,{runpath}")
    return compile_c(folder / "libop.so", KERNEL.replace("NAME", name), *flags)


def value(library: Path) -> float:
    return float(Custom(f"{library}:F", [1], np.float32)(jnp.zeros(1))[0])


def refusal(library: Path) -> str:
    with pytest.raises(BuildError) as caught:
        value(library)
    return str(caught.value)


# The process keeps what it has loaded, so each test has a name of its own.


@pytest.mark.parametrize("form", ["$ORIGIN", "absolute"])
def test_a_dependency_of_a_name_that_is_loaded_is_refused_with_both_paths(
    tmp_path: Path, form: str
) -> None:
    name = f"meets{form.strip('$').lower()}"
    paths = []
    for index in (1, 2):
        folder = tmp_path / str(index)
        dependency(folder, name, index)
        paths.append(kernel(folder, name, form if form == "$ORIGIN" else str(folder)))
    assert value(paths[0]) == 1
    text = refusal(paths[1])
    assert f"libop.so needs lib{name}.so, and this process has loaded another library" in text
    assert f"needed: {tmp_path}/2/lib{name}.so" in text
    assert f"loaded: {tmp_path}/1/lib{name}.so\n" in text
    assert value(paths[0]) == 1


def test_equal_dependencies_in_two_folders_meet_without_harm(tmp_path: Path) -> None:
    paths = []
    for index in (1, 2):
        folder = tmp_path / str(index)
        dependency(folder, "equal", 7)
        compile_c(
            folder / "libtwice.so",
            KERNEL.replace("NAME", "equal").replace("= equal()", f"= {index} * equal()"),
            f"-L{folder}",
            "-lequal",
            "-Wl,-rpath,$ORIGIN",
        )
        paths.append(folder / "libtwice.so")
    assert [value(path) for path in paths] == [7, 14]


def test_a_rebuilt_dependency_is_refused_until_python_starts_again(tmp_path: Path) -> None:
    dependency(tmp_path, "rebuilt", 1)
    op = kernel(tmp_path, "rebuilt")
    assert value(op) == 1
    path = dependency(tmp_path, "rebuilt", 2)
    assert f"loaded: {path}, as it was before" in refusal(op)
    # Built as it was, it is the one that is loaded.
    dependency(tmp_path, "rebuilt", 1)
    assert value(op) == 1


def test_a_rebuilt_need_of_a_dependency_is_refused_too(tmp_path: Path) -> None:
    dependency(tmp_path, "inner", 1)
    compile_c(
        tmp_path / "libouter.so",
        "int inner(void); int outer(void) { return inner(); }",
        *(f"-L{tmp_path}", "-linner", "-Wl,-rpath,$ORIGIN"),
    )
    op = kernel(tmp_path, "outer")
    assert value(op) == 1
    dependency(tmp_path, "inner", 2)
    assert "libop.so needs libinner.so" in refusal(op)


def test_an_extension_with_a_rebuilt_dependency_is_refused(tmp_path: Path) -> None:
    source = tmp_path / "ext.cpp"
    source.write_text(PLAIN % ('extern "C" int linked();', "linked()"))

    def load() -> int:
        flags = f"-L{tmp_path} -llinked -Wl,-rpath,{tmp_path}"
        return CustomOpBuilder("ext", str(source), ldflags=flags).load().value()

    dependency(tmp_path, "linked", 1)
    assert load() == 1
    dependency(tmp_path, "linked", 2)
    with pytest.raises(BuildError, match=r"needs liblinked\.so, and this process has loaded"):
        load()
