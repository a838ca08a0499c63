"""Exported programs that call Python functions, which other processes import by name."""

from __future__ import annotations

import functools
import gc
import importlib
import json
import os
import py_compile
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import msops
from msops.errors import ArgumentTypeError, BackendError

KERNELS = """
import functools
import os
import jax
import numpy as np
import msops

@msops.pyfunc(out=lambda x: jax.ShapeDtypeStruct(x.shape, np.int32))
def ranks(x):
    # A comment is no change.
    return np.argsort(np.argsort(x)).astype(np.int32)

def scale(tree, *, alpha=2.0, shift=(1, 2.5)):
    y = np.float32(alpha) * tree["x"] + np.float32(shift[1])
    return {"y": y, "z": (y.sum(keepdims=True), tree["n"])}

def square(x):
    return x * x

def add_one(x, out):
    x += 1
    out[...] = x

def scaled(factor):
    def decorate(function):
        @functools.wraps(function)
        def call(x):
            return np.float32(factor) * function(x)
        return call
    return decorate

@scaled(3)
def tripled(x):
    return x

STEP = 0.5

def stepped(x, step=STEP):
    return x + np.float32(step)
"""

EXPORTER = """
import sys
import jax, jax.numpy as jnp, numpy as np
import msops, my_kernels

one = jax.ShapeDtypeStruct((1,), jnp.float32)
scale = msops.pyfunc(
    my_kernels.scale, out=lambda t: {"y": t["x"], "z": (one, t["n"])}, attrs={"shift": [1, 2.5]}
)
square = msops.pyfunc(my_kernels.square, out=lambda x: x, bprop=lambda x, out, dx: (2 * x * dx,))
add_one = msops.Custom(my_kernels.add_one, lambda x: x, lambda x: x, writable=True)
programs = {
    "ranks": my_kernels.ranks,
    "scale": lambda x: scale({"x": x, "n": x}, alpha=3.0),
    "square": square,
    "add_one": add_one,
    "negative": msops.Custom(np.negative, lambda x: x, lambda x: x),
    "tripled": msops.Custom(my_kernels.tripled, lambda x: x, lambda x: x),
    "stepped": msops.Custom(my_kernels.stepped, lambda x: x, lambda x: x),
}
for name, program in programs.items():
    struct = jax.ShapeDtypeStruct(jax.export.symbolic_shape("n"), jnp.float32)
    checks = msops.export_checks()
    exported = jax.export.export(jax.jit(program), disabled_checks=checks)(struct)
    with open(name, "wb") as file:
        file.write(exported.serialize(vjp_order=int(name == "square")))
"""

LOADER = """
import json, sys
import jax, jax.numpy as jnp, numpy as np
import msops

def load(name):
    with open(name, "rb") as file:
        return jax.export.deserialize(bytearray(file.read()))

def call(name, function, *inputs):
    try:
        results = jax.tree.leaves(jax.jit(function)(*inputs))
        report[name] = [np.asarray(result).tolist() for result in results]
    except Exception as error:
        report[name] = str(error)

report = {}
modules = sys.argv[1:]
msops.register_ffi_targets(modules=modules)
x = np.array([3.0, -1.0, 2.0], np.float32)
for name in ("ranks", "scale", "square", "add_one", "negative", "tripled", "stepped"):
    call(name, load(name).call, x)
call("two", load("ranks").call, x[:2])
call("gradient", jax.grad(lambda x: load("square").call(x).sum()), x)
report["imported"] = "my_kernels" in sys.modules
print(json.dumps(report))
"""


def run(code: str, folder: Path, *arguments: str) -> str:
    done = subprocess.run(
        [sys.executable, "-c", code, *arguments],
        cwd=folder,
        env={
            **os.environ,
            "PYTHONPATH": os.pathsep.join([str(folder), *filter(None, sys.path)]),
            "PYTHONDONTWRITEBYTECODE": "1",
        },
        capture_output=True,
        text=True,
        timeout=240,
        check=False,
    )
    assert done.returncode == 0, done.stderr[-4000:]
    return done.stdout


@pytest.fixture(scope="module")
def programs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with exported programs and the module whose functions they call."""
    folder = tmp_path_factory.mktemp("programs")
    (folder / "my_kernels.py").write_text(KERNELS)
    run(EXPORTER, folder)
    return folder


def test_another_process_calls_functions_of_the_modules_that_it_names(programs: Path) -> None:
    kernels = programs / "my_kernels.py"
    kernels.write_text(KERNELS.replace("is no change", "was changed"))
    report = json.loads(run(LOADER, programs, "my_kernels", "numpy"))
    assert report["ranks"] == [[2, 0, 1]]
    assert report["two"] == [[1, 0]]
    assert report["scale"] == [[11.5, -0.5, 8.5], [19.5], [3.0, -1.0, 2.0]]
    assert report["square"] == [[9.0, 1.0, 4.0]]
    assert report["gradient"] == [[6.0, -2.0, 4.0]]
    assert report["add_one"] == [[4.0, 0.0, 3.0]]
    assert report["negative"] == [[-3.0, 1.0, -2.0]]
    assert report["tripled"] == [[9.0, -3.0, 6.0]]
    assert report["stepped"] == [[3.5, -0.5, 2.5]]


def test_no_module_is_imported_that_the_process_does_not_name(programs: Path) -> None:
    report = json.loads(run(LOADER, programs))
    assert not report["imported"]
    for name, module in (("ranks", "my_kernels"), ("negative", "numpy")):
        assert (
            f"the program calls the Python function {name} of module {module}, and this process "
            "allows programs no functions of that module"
        ) in report[name]
        assert f"call msops.register_ffi_targets(modules=['{module}'])" in report[name]


def test_a_function_that_changed_or_went_is_refused(programs: Path, tmp_path: Path) -> None:
    for path in programs.iterdir():
        if path.is_file():
            (tmp_path / path.name).write_bytes(path.read_bytes())
    changed = KERNELS.replace("return x * x", "return x * x * x").replace("def ranks", "def rank")
    changed = changed.replace("* function(x)", "/ function(x)").replace("STEP = 0.5", "STEP = 5.0")
    (tmp_path / "my_kernels.py").write_text(changed)
    report = json.loads(run(LOADER, tmp_path, "my_kernels"))
    for name in ("square", "tripled", "stepped"):
        assert f"{name} of module my_kernels is not the one that the program was" in report[name]
    assert "ranks of module my_kernels, which has no such function" in report["ranks"]
    assert report["add_one"] == [[4.0, 0.0, 3.0]]


@pytest.mark.slow
def test_without_sources_the_bytecode_is_compared(tmp_path: Path) -> None:
    compiled = str(tmp_path / "my_kernels.pyc")

    def write(kernels: str) -> None:
        (tmp_path / "source").write_text(kernels)
        py_compile.compile(str(tmp_path / "source"), compiled, str(tmp_path / "gone.py"))

    write(KERNELS)
    run(EXPORTER, tmp_path)
    write(KERNELS.replace("x += 1", "x += 100"))
    report = json.loads(run(LOADER, tmp_path, "my_kernels"))
    assert "add_one of module my_kernels is not the one that the program was" in report["add_one"]
    assert report["square"] == [[9.0, 1.0, 4.0]]


def test_a_function_whose_file_changed_after_its_import_is_refused(
    programs: Path, tmp_path: Path
) -> None:
    """The file says what the function is to be, not what it is."""
    for path in programs.iterdir():
        if path.is_file():
            (tmp_path / path.name).write_bytes(path.read_bytes())
    kernels = tmp_path / "my_kernels.py"
    kernels.write_text(KERNELS.replace("return x * x", "return x + x"))
    edit = f"import my_kernels\nopen('my_kernels.py', 'w').write({KERNELS!r})\n"
    report = json.loads(run(edit + LOADER, tmp_path, "my_kernels"))
    assert (
        f"square of module my_kernels, and {kernels} has changed since it was" in report["square"]
    )
    assert "Import it again, in a new process say." in report["square"]
    assert report["tripled"] == [[9.0, -3.0, 6.0]]


def test_a_program_reaches_only_what_the_module_itself_defines(
    programs: Path, tmp_path: Path
) -> None:
    """A program is text, which anyone may have written; my_kernels imports os."""
    content = (programs / "square").read_bytes()
    other = content.replace(b"square", b"os.abc")
    assert other != content
    for path in programs.iterdir():
        if path.is_file():
            (tmp_path / path.name).write_bytes(path.read_bytes())
    (tmp_path / "my_kernels.py").write_text(KERNELS)
    (tmp_path / "square").write_bytes(other)
    report = json.loads(run(LOADER, tmp_path, "my_kernels"))
    assert "function os.abc of module my_kernels, which has no such function" in report["square"]


def export(op: Callable[..., Any], *arguments: Any) -> jax.export.Exported:
    checks = msops.export_checks()
    return jax.export.export(jax.jit(op), disabled_checks=checks)(*arguments)


class Pair(NamedTuple):
    first: Any
    second: Any


def top(x):
    return x


def in_main(x):
    return x


in_main.__module__ = "__main__"


class Adder:
    def __call__(self, x):
        return x

    def method(self, x):
        return x


def make_closure() -> Callable[..., Any]:
    def inner(x):
        return x

    return inner


@pytest.mark.parametrize(
    ("function", "reason"),
    [
        (lambda x: x, "which is a lambda"),
        (make_closure(), "which is defined inside another function"),
        (in_main, r"defined in the program that runs \(__main__\)"),
        (functools.partial(top), "which is no function at a name of a module"),
        (Adder(), "which is no function at a name of a module"),
        (Adder().method, "which is no function at a name of a module"),
    ],
)
def test_what_cannot_be_imported_is_refused(function: Callable[..., Any], reason: str) -> None:
    op = msops.Custom(function, lambda x: x, lambda x: x, func_type="pyfunc")
    with pytest.raises(BackendError, match=reason) as caught:
        export(op, jnp.ones(3))
    assert "Define it by def at the top of a module" in str(caught.value)


def test_a_function_that_is_no_more_at_its_name_is_refused(monkeypatch: Any) -> None:
    op = msops.Custom(top, lambda x: x, lambda x: x)
    monkeypatch.setattr(sys.modules[__name__], "top", None)
    with pytest.raises(BackendError, match=r"which is not what module .* has at that name"):
        export(op, jnp.ones(3))


MODULE = """
from __future__ import annotations
import numpy as np

def twice(x):
    return x * 2

if True:
    class Kernels:
        def __private(self):
            return __class__

        def third(x: A) -> B:
            text = f"{x.shape!r:>{10}} {'a' + '}'}"
            return x / np.float32(3) if text and x.ndim in {1, 2, 3} else [y for y in x]

    @np.errstate(all="ignore")
    def fourth(x):
        assert x.ndim == 1, "a message"
        return x / 4
"""


@pytest.fixture
def module(tmp_path: Path, monkeypatch: Any) -> Any:
    (tmp_path / "edited_kernels.py").write_text(MODULE)
    monkeypatch.syspath_prepend(tmp_path)
    yield importlib.import_module("edited_kernels")
    del sys.modules["edited_kernels"]


def make(function: Callable[..., Any]) -> Any:
    return msops.Custom(function, lambda x: x, lambda x: x, func_type="pyfunc")


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("x * 2", "x * 100"),
        ("x * 2", "x * 2.0"),
        ("x * 2", "x * np.ones(3)"),
        ("def twice(x):", "def twice(x, y=1):"),
        ("def twice", "def thrice"),
        ("x * 2", "x *"),
    ],
)
def test_a_file_that_changed_since_its_import_is_not_taken_for_the_function(
    module: Any, old: str, new: str
) -> None:
    op = make(module.twice)
    Path(module.__file__).write_text(MODULE.replace(old, new))
    with pytest.raises(
        BackendError, match=r"edited_kernels\.py has changed since it was"
    ) as caught:
        export(op, jnp.ones(3))
    assert "Import it again, in a new process say, and export" in str(caught.value)


@pytest.mark.parametrize("edit", [lambda text: text, lambda text: "# Moved.\n\n" + text])
def test_functions_of_every_place_are_found_in_their_files(
    module: Any, edit: Callable[[str], str]
) -> None:
    Path(module.__file__).write_text(edit(MODULE))
    for function in (module.twice, module.Kernels.third, module.fourth):
        export(make(function), jnp.ones(3))


@pytest.mark.slow
def test_exporting_keeps_no_calls_of_functions_alive() -> None:
    def count() -> int:
        jax.clear_caches()
        gc.collect()
        return sum(type(value).__name__ == "HostFunction" for value in gc.get_objects())

    before = count()
    for length in range(2):
        export(make(top), jnp.ones(length + 40))
    assert count() <= before


def test_trees_of_classes_are_refused() -> None:
    op = msops.pyfunc(top, out=lambda pair: pair)
    with pytest.raises(
        BackendError, match=r"a Pair is being exported(.|\n)*tuples, lists and dicts"
    ):
        export(op, Pair(jnp.ones(3), jnp.ones(2)))


def test_a_program_runs_where_it_was_exported() -> None:
    exported = export(msops.Custom(top, lambda x: x, lambda x: x), jnp.ones(3))
    np.testing.assert_array_equal(exported.call(jnp.arange(3.0)), [0, 1, 2])


def test_wrong_modules_are_refused() -> None:
    with pytest.raises(ArgumentTypeError, match="a list of modules or of their names; got 3"):
        msops.register_ffi_targets(modules=[3])
    with pytest.raises(ModuleNotFoundError):
        msops.register_ffi_targets(modules=["no_such_module_here"])
