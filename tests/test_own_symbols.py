"""A kernel may give its globals any name: those of libc and libm, too."""

from __future__ import annotations

import subprocess
from pathlib import Path

import jax.numpy as jnp
import numpy as np
import pytest
from aicpu_harness import DOUBLE, info
from conftest import run_command

from msops import Custom
from msops.ops import CustomOpBuilder
from msops.testing import Finding, opcheck

# Global names of libc or libm. The last is a variable there, the others are functions.
NAMES = ("error", "index", "time", "gamma", "signal", "step", "y1", "environ")
FUNCTION = "float {name}(float a) {{ return a + {value}; }}\n"
VARIABLE = "float {name}[2] = {{0, 2 + {value}}};\n"
KERNEL = """
int F(int n, void **p, int *nd, long **shapes, const char **dt, void *stream, void *extra) {{
  float *x = (float *)p[0], *y = (float *)p[1];
  {statements}
  return 0;
}}
"""

SUM = " + ".join(f"own::{name}" for name in NAMES)


def variables(kind: str) -> str:
    """Returns C++ that defines a variable of each name; their `SUM` is 28."""
    # In a namespace headers of libc may declare the names, too; C linkage keeps them as they are.
    text = "".join(f" {kind} {name} = {i};" for i, name in enumerate(NAMES))
    return f'namespace own {{ extern "C" {{{text} }} }}\n'


def kernel(definition: str, use: str, linkage: str) -> str:
    """Returns a source whose kernel puts 2 + i into y[i], by a global that has the i-th name."""
    globals_ = [definition.format(name=name, value=i) for i, name in enumerate(NAMES)]
    uses = [f"y[{i}] = {use.format(name=name)};" for i, name in enumerate(NAMES)]
    text = "".join(globals_) + KERNEL.format(statements="\n  ".join(uses))
    return f"{linkage} {{\n{text}}}\n" if linkage else text


@pytest.mark.parametrize(("suffix", "linkage"), [(".c", ""), (".cc", 'extern "C"')])
@pytest.mark.parametrize(
    ("definition", "use"), [(FUNCTION, "{name}(x[0])"), (VARIABLE, "{name}[(int)x[0] - 1]")]
)
def test_an_aot_kernel_uses_its_own(
    tmp_path: Path, suffix: str, linkage: str, definition: str, use: str
) -> None:
    source = tmp_path / f"own{suffix}"
    source.write_text(kernel(definition, use, linkage))
    op = Custom(f"{source}:F", [len(NAMES)], np.float32)
    np.testing.assert_array_equal(op(jnp.full(1, 2.0)), 2 + np.arange(len(NAMES)))


@pytest.mark.slow
def test_an_aicpu_kernel_uses_its_own(tmp_path: Path) -> None:
    source = tmp_path / "own.cc"
    text = DOUBLE.replace("FACTOR", f"({SUM})")
    source.write_text(text.replace("namespace", f"{variables('float')}namespace", 1))
    op = Custom(str(source), lambda x: x, lambda x: x, "aicpu", reg_info=info("Times"))
    np.testing.assert_array_equal(op(jnp.array([1.0, 2.0])), [28, 56])


def test_an_extension_uses_its_own(tmp_path: Path) -> None:
    source = tmp_path / "own.cpp"
    source.write_text(
        "#include <Python.h>\n"
        f"{variables('int')}"
        f"static PyObject* Value(PyObject*, PyObject*) {{ return PyLong_FromLong({SUM}); }}\n"
        'static PyMethodDef methods[] = {{"value", Value, METH_NOARGS, nullptr}, {}};\n'
        'static PyModuleDef definition = {PyModuleDef_HEAD_INIT, "own", nullptr, -1, methods};\n'
        "PyMODINIT_FUNC PyInit_own() { return PyModule_Create(&definition); }\n"
    )
    # Else the globals of an extension are hidden, and nothing can take their names.
    module = CustomOpBuilder("own", str(source), cflags="-fvisibility=default").load()
    assert module.value() == 28


def given(folder: Path, name: str, *flags: str) -> Path:
    """Returns a library with a kernel and a function that libc has, built without msops."""
    source = "int index(int a) { return a; }\n" + KERNEL.format(statements="y[0] = index(2);")
    library = folder / name
    command = ["gcc", "-x", "c", "-", "-shared", "-fPIC", "-fno-builtin", "-o", library, *flags]
    subprocess.run(command, input=source.encode(), check=True)
    return library


def own_symbols(library: Path) -> Finding:
    op = Custom(f"{library}:F", lambda x: x, lambda x: x)
    skip = ["memory bounds", "two threads", "sizes", "refusals", "vmap", "eager and jit"]
    return opcheck(op, jnp.zeros(1), skip=skip)["own symbols"]


def test_opcheck_names_the_symbols_that_libc_takes_from_a_given_library(tmp_path: Path) -> None:
    taken = own_symbols(given(tmp_path, "libtaken.so"))
    assert taken.verdict == "failed"
    assert taken.details == ("index: libtaken.so does not use its own",)
    assert "-Wl,-Bsymbolic" in taken.remedy
    assert own_symbols(given(tmp_path, "libown.so", "-Wl,-Bsymbolic")).verdict == "passed"


@pytest.mark.slow
def test_the_doctor_names_the_symbols_that_libc_takes_from_a_given_library(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    taken, own = given(tmp_path, "libtaken.so"), given(tmp_path, "libown.so", "-Wl,-Bsymbolic")
    with pytest.raises(SystemExit) as ended:
        run_command("doctor", own, taken)
    assert ended.value.code == 1
    lines = capsys.readouterr().out.splitlines()
    assert f"library      {own}: uses its own functions and variables" in lines
    start = lines.index(next(line for line in lines if f"AMISS: {taken}: " in line))
    assert lines[start + 1].strip() == "index"


@pytest.mark.parametrize(
    ("flag", "names"),
    [
        ("-O0", {"index", "environ", "error"}),
        ("-Wl,-Bsymbolic", set()),
        ("-Wl,-Bsymbolic-functions", {"environ"}),
        ("-fvisibility=protected", set()),
    ],
)
def test_names_are_taken_where_the_library_reaches_them_by_relocations(
    tmp_path: Path, flag: str, names: set[str]
) -> None:
    # A function, a variable, a weak function, one that no other library sees, one never used.
    source = """
    int index(int a) { return a; }
    int environ[2] = {1, 2};
    __attribute__((weak)) int error(void) { return 1; }
    static int time(void) { return 1; }
    int signal(void) { return index(environ[0]) + error() + time(); }
    """ + KERNEL.format(statements="")
    library = tmp_path / "lib.so"
    command = ["gcc", "-x", "c", "-", "-shared", "-fPIC", "-fno-builtin", "-o", library, flag]
    subprocess.run(command, input=source.encode(), check=True)
    details = own_symbols(library).details
    assert {line.partition(":")[0] for line in details} == names
