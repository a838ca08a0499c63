"""The cell magic ``%%aot``, run through IPython's shell in this process."""

from __future__ import annotations

import io
import re
import shutil
import subprocess
import sys
import uuid
from contextlib import redirect_stderr, redirect_stdout

import jax
import jax.numpy as jnp
import numpy as np
import pytest

interactiveshell = pytest.importorskip("IPython.core.interactiveshell")

from msops.errors import (  # noqa: E402
    ArgumentTypeError,
    ArgumentValueError,
    BuildError,
    GradientTypeError,
    InferenceValueError,
)

KERNEL = (
    "int nparam, void **params, int *ndims, int64_t **shapes, const char **dtypes, "
    "void *stream, void *extra"
)
HEAD = """#include <cmath>
#include <cstdint>
static int64_t Size(int ndim, const int64_t *shape) {
  int64_t size = 1;
  for (int i = 0; i < ndim; ++i) size *= shape[i];
  return size;
}
"""


def kernel(name: str, body: str) -> str:
    """Returns a kernel over n float32 elements, whose pointers are a, b, c, ..."""
    pointers = "".join(
        f"  auto {letter} = static_cast<float *>(params[{index}]); (void){letter};\n"
        for index, letter in enumerate("abcd")
    )
    return (
        f'extern "C" int {name}({KERNEL}) {{\n  if (nparam > 4) return 1;\n{pointers}'
        "  const int64_t n = Size(ndims[0], shapes[0]);\n"
        f"  for (int64_t i = 0; i < n; ++i) {{ {body} }}\n  return 0;\n}}\n"
    )


SQUARE = HEAD + kernel("Square", "b[i] = a[i] * a[i];")
CUBE = HEAD + kernel("Square", "b[i] = a[i] * a[i] * a[i];")
SWISH = (
    HEAD
    + kernel("Swish", "b[i] = a[i] / (1 + std::exp(-a[i]));")
    + kernel(
        "SwishGrad",
        "float s = 1 / (1 + std::exp(-a[i])); d[i] = c[i] * (s + b[i] * (1 - s));",
    )
)
X = np.array([-1.5, 0.0, 2.0], np.float32)


class Notebook:
    """A running IPython; `run` is one cell."""

    def __init__(self):
        self.shell = interactiveshell.InteractiveShell()
        self.shell.extension_manager.load_extension("msops")

    def __getitem__(self, name):
        return self.shell.user_ns[name]

    def run(self, cell: str) -> str:
        """Runs a cell, raises what it raised; returns what it printed."""
        printed = io.StringIO()
        with redirect_stdout(printed), redirect_stderr(printed):
            result = self.shell.run_cell(cell)
        self.shown = printed.getvalue()
        result.raise_error()
        return self.shown


@pytest.fixture
def notebook(tmp_path, monkeypatch):
    monkeypatch.setenv("IPYTHONDIR", str(tmp_path / "ipython"))
    notebook = Notebook()
    yield notebook
    notebook.shell.history_manager.end_session()


@pytest.fixture
def compilations(caplog):
    """Counts the compilers that were run: a line of the log each."""
    caplog.set_level("DEBUG", "msops.toolchain")
    return lambda: len([r for r in caplog.records if ": building " in r.getMessage()])


def test_a_cell_binds_an_op_that_works_eagerly_and_under_transformations(notebook):
    notebook.run(f"%%aot Square --bprop 'lambda x, out, dout: (2 * x * dout,)'\n{SQUARE}")
    square = notebook["Square"]
    x = jnp.asarray(X)
    np.testing.assert_array_equal(square(X), X * X)
    np.testing.assert_array_equal(jax.jit(square)(x), X * X)
    np.testing.assert_array_equal(jax.jit(jax.grad(lambda x: square(x).sum()))(x), 2 * X)
    np.testing.assert_array_equal(jax.vmap(square)(x[None]), (X * X)[None])


def test_an_identical_cell_compiles_nothing_and_shares_the_primitive(notebook, compilations):
    source = SQUARE + f"// {uuid.uuid4()}\n"
    notebook.run(f"%%aot Square\n{source}")
    first = notebook["Square"]
    assert compilations() == 1
    first(X)
    notebook.run(f"%%aot Square\n{source}")
    assert notebook["Square"] is not first
    assert notebook["Square"]._resolve() is first._resolve()
    assert compilations() == 1
    notebook.run(f"%%aot other=Square --shape 'lambda x: x'\n{source}")
    notebook["other"](X)
    assert compilations() == 1


def test_an_edited_cell_gives_the_new_kernel_and_earlier_ops_keep_theirs(notebook):
    notebook.run(f"%%aot Square\n{SQUARE}")
    old = notebook["Square"]
    notebook.run(f"%%aot Square\n{CUBE}")
    np.testing.assert_array_equal(notebook["Square"](X), X**3)
    np.testing.assert_array_equal(old(X), X**2)
    notebook.run(f"%%aot Square\n{SQUARE}")
    np.testing.assert_array_equal(notebook["Square"](X), X**2)


def test_a_kernel_of_the_cell_can_be_the_bprop(notebook):
    notebook.run(f"%%aot Swish --bprop SwishGrad\n{SWISH}")
    swish = notebook["Swish"]
    assert "SwishGrad" not in notebook.shell.user_ns
    with jax.enable_x64(True):
        expected = jax.grad(lambda x: jax.nn.swish(x).sum())(jnp.asarray(X, jnp.float64))
    for grad in (jax.grad(lambda x: swish(x).sum()), jax.jit(jax.grad(lambda x: swish(x).sum()))):
        np.testing.assert_allclose(grad(jnp.asarray(X)), expected, rtol=1e-6)


def test_a_gradient_kernel_has_no_output_for_an_integer_input(notebook):
    # Inputs x, index, out, dout; the only output is the gradient of x.
    take = """
extern "C" int Take(KERNEL) {
  auto x = static_cast<float *>(params[0]);
  auto index = static_cast<int32_t *>(params[1]);
  auto out = static_cast<float *>(params[2]);
  for (int64_t i = 0; i < shapes[1][0]; ++i) out[i] = x[index[i]];
  return 0;
}
extern "C" int TakeGrad(KERNEL) {
  if (nparam != 5) return 1;
  auto index = static_cast<int32_t *>(params[1]);
  auto dout = static_cast<float *>(params[3]), dx = static_cast<float *>(params[4]);
  for (int64_t i = 0; i < shapes[0][0]; ++i) dx[i] = 0;
  for (int64_t i = 0; i < shapes[1][0]; ++i) dx[index[i]] += dout[i];
  return 0;
}
""".replace("KERNEL", KERNEL)
    notebook.run(f"%%aot Take --shape 'lambda x, i: i' --bprop TakeGrad\n{HEAD}{take}")
    index = jnp.array([2, 0, 2, 2])
    take = notebook["Take"]
    np.testing.assert_array_equal(take(X, index), X[[2, 0, 2, 2]])
    grad = jax.grad(lambda x: take(x, index).sum())(jnp.asarray(X))
    np.testing.assert_array_equal(grad, [1, 0, 3])


def test_a_gradient_kernel_keeps_the_width_of_tensors(notebook):
    from msops import Tensor, grad

    source = HEAD + (
        kernel("Double", "b[i] = 2 * a[i];") + kernel("DoubleGrad", "d[i] = 2 * c[i];")
    )
    notebook.run(f"%%aot Double --bprop DoubleGrad\n{source.replace('float', 'double')}")
    gradient = grad(notebook["Double"])(Tensor(X.astype(np.float64)))
    assert gradient.asnumpy().dtype == np.float64
    np.testing.assert_array_equal(gradient.asnumpy(), [2, 2, 2])


def test_a_gradient_kernel_refuses_attributes(notebook):
    notebook.run("import msops")
    notebook.run(
        "info = {'op_name': 'Swish', 'target': 'CPU', 'inputs': [{'index': 0, 'name': 'x', "
        "'paramType': 'required'}], 'outputs': [{'index': 0, 'name': 'y', 'paramType': "
        "'required'}], 'attr': [{'name': 'k', 'type': 'int', 'paramType': 'required'}]}"
    )
    notebook.run(
        "%%aot Swish --bprop SwishGrad --reg-info info --shape 'lambda x, k: x' "
        f"--dtype 'lambda x, k: x'\n{SWISH}"
    )
    np.testing.assert_allclose(notebook["Swish"](X, 3), jax.nn.swish(X), rtol=1e-6)
    with pytest.raises(GradientTypeError, match=r"takes tensors only.*\n.*--bprop 'lambda x, attr"):
        jax.grad(lambda x: notebook["Swish"](x, 3).sum())(jnp.asarray(X))


def test_expressions_see_the_notebooks_variables_when_they_are_called(notebook):
    notebook.run("factor = 2.0\ndef of_square(x, out, dout): return (factor * x * dout,)")
    notebook.run(f"%%aot Square --bprop of_square\n{SQUARE}")
    grad = jax.grad(lambda x: notebook["Square"](x).sum())
    np.testing.assert_array_equal(grad(jnp.asarray(X)), 2 * X)
    notebook.run("factor = 3.0")
    notebook.run(
        f"%%aot Square --bprop 'lambda x, out, dout: (sum({{factor}}) * x * dout,)'\n{SQUARE}"
    )
    grad = jax.grad(lambda x: notebook["Square"](x).sum())
    np.testing.assert_array_equal(grad(jnp.asarray(X)), 3 * X)


def test_options_hold_for_all_ops_or_for_the_one_they_name(notebook):
    source = HEAD + kernel("First", "if (i == 0) b[0] = a[0];") + kernel("Copy", "b[i] = a[i];")
    notebook.run(f"%%aot First copy=Copy --shape First='lambda x: x[1:] + [1]'\n{source}")
    assert notebook["First"](X[:1]).shape == (1,)
    assert notebook["copy"](X).shape == (3,)
    notebook.run("import jax.numpy as jnp")
    notebook.run(
        "%%aot First Copy --shape [1] --shape 'Copy = lambda x: x' --dtype jnp.float32 "
        f"--bprop Copy='lambda x, out, dout: (dout,)'\n{source}"
    )
    np.testing.assert_array_equal(notebook["First"](X), X[:1])
    np.testing.assert_array_equal(notebook["Copy"](X), X)
    np.testing.assert_array_equal(
        jax.grad(lambda x: notebook["Copy"](x).sum())(jnp.asarray(X)), [1, 1, 1]
    )


def test_the_kernels_own_inference_is_asked_where_it_has_one(notebook):
    source = (
        '#include "custom_aot_extra.h"\n'
        + HEAD
        + "enum TypeId : int {};\n"
        + kernel("Twice", "b[i] = a[i]; b[n + i] = a[i];")
        + """
extern "C" std::vector<int64_t> TwiceInferShape(int *ndims, int64_t **shapes, AotExtra *) {
  return {2, shapes[0][0]};
}
"""
    )
    notebook.run(f"%%aot Twice\n{source}")
    np.testing.assert_array_equal(notebook["Twice"](X), [X, X])
    notebook.run(f"%%aot Twice --dtype None\n{source}\n")
    with pytest.raises(InferenceValueError, match="has no TwiceInferType"):
        notebook["Twice"](X)


def test_a_list_of_tensors_gives_an_output_like_its_first(notebook):
    notebook.run(f"%%aot Square\n{SQUARE}")
    output = jax.eval_shape(notebook["Square"], [jnp.ones((2, 3), jnp.bfloat16), jnp.ones(4)])
    assert (output.shape, output.dtype) == ((2, 3), jnp.bfloat16)


def test_without_names_every_kernel_is_bound_but_the_gradients(notebook):
    source = (
        SWISH
        + f"""
#define MAKE_NO_KERNEL extern "C" int Hidden({KERNEL}) {{ return 0; }}
// extern "C" int Commented({KERNEL}) {{ return 0; }}
extern "C" int Helper(int n) {{ return n; }}
extern "C" int
Unnamed(int, void *params[], int *, std::int64_t **, char const **, void *, void *) noexcept {{
  return 0;
}}
int NotExported({KERNEL}) {{ return 0; }}
"""
    )
    printed = notebook.run(f"%%aot --bprop Swish=SwishGrad\n{source}")
    assert printed == "%%aot bound Swish, Unnamed\n"
    np.testing.assert_allclose(notebook["Swish"](X), jax.nn.swish(X), rtol=1e-6)
    assert {"SwishGrad", "Helper", "NotExported"}.isdisjoint(notebook.shell.user_ns)
    assert notebook.run(f"%%aot\n{SWISH}") == "%%aot bound Swish, SwishGrad\n"


def test_the_path_serves_options_the_magic_has_not(notebook):
    notebook.run(f"%%aot Square --path source\n{SQUARE}")
    notebook.run(
        "import msops\n"
        "op = msops.Custom(f'{source}:Square', lambda x: x, lambda x: x, stateful=True)"
    )
    np.testing.assert_array_equal(notebook["op"](X), X * X)


def test_a_build_holds_for_the_kernels_of_the_cell_and_their_gradients(notebook):
    cell = SQUARE.replace("a[i] * a[i]", "FACTOR * a[i] * a[i]")
    gradient = kernel("Slope", "d[i] = FACTOR * 2 * a[i] * c[i];")
    notebook.run("import msops")
    build = "--build \"msops.Build(defines={'FACTOR': 3})\""
    notebook.run(f"%%aot Square --bprop Slope {build}\n{cell}{gradient}")
    np.testing.assert_array_equal(notebook["Square"](X), 3 * X * X)
    slope = jax.grad(lambda x: notebook["Square"](x).sum())(X)
    np.testing.assert_array_equal(slope, 6 * X)
    with pytest.raises(ArgumentTypeError, match=r"expected a msops\.Build for --build"):
        notebook.run(f"%%aot Square --build 3\n{SQUARE}")


def test_a_compile_error_shows_the_compilers_lines_with_the_cells_numbers(notebook):
    cell = f"%%aot Square\n{SQUARE}"
    number, line = next((n, text) for n, text in enumerate(cell.split("\n"), 1) if "b[i] =" in text)
    with pytest.raises(BuildError) as caught:
        notebook.run(cell.replace("b[i] = a", "b[i] = missing"))
    message = str(caught.value)
    assert re.search(rf"^  cell.cc:{number}:\d+: error: .*missing.*not declared", message, re.M)
    # The compiler's own excerpt comes from that line, too.
    assert line.replace("b[i] = a", "b[i] = missing").strip() in message
    assert "the one with %%aot is line 1" in notebook.shown
    assert message in notebook.shown
    assert "Traceback" not in notebook.shown
    assert "magic.py" not in notebook.shown
    assert "Square" not in notebook.shell.user_ns


def test_a_failed_cell_leaves_earlier_ops_as_they_were(notebook):
    notebook.run(f"%%aot Square\n{SQUARE}")
    with pytest.raises(BuildError):
        notebook.run(f"%%aot Square Cube\n{CUBE}")
    np.testing.assert_array_equal(notebook["Square"](X), X * X)


@pytest.mark.parametrize(
    ("line", "source", "error", "message"),
    [
        ("Sqare", SQUARE, BuildError, r"%%aot: cell.cc exports no function Sqare.*:\n  Square\n"),
        (
            "Square",
            SQUARE.replace('extern "C"', ""),
            BuildError,
            r'_Z6Square.*\nDeclare Square as extern "C"',
        ),
        ("", SQUARE.replace('extern "C"', ""), BuildError, r'Declare Square as extern "C"'),
        ("my-op", SQUARE, ArgumentValueError, r"name of a C function; got 'my-op'\.\n.*in quotes"),
        ("2d=Square", SQUARE, ArgumentValueError, r"can bind; got '2d'.\n.*%%aot NAME=FUNCTION"),
        ("a=2d", SQUARE, ArgumentValueError, r"name of a C function; got 'a=2d'"),
        ("lambda", SQUARE.replace("Square", "lambda"), ArgumentValueError, r"got 'lambda'"),
        ("Square --path 3", SQUARE, ArgumentValueError, r"can bind; got '3'"),
        ("Square --shape lambda x: x", SQUARE, ArgumentValueError, r"got 'x:'.\n.*in quotes"),
        (
            "Square --shape 'lambda x x'",
            SQUARE,
            ArgumentValueError,
            r"--shape 'lambda x x' raised SyntaxError.*\n.*quote it",
        ),
        (
            "Square --dtype nowhere",
            SQUARE,
            ArgumentValueError,
            r"--dtype 'nowhere' raised NameError: name 'nowhere' is not defined\.\n.*earlier cell",
        ),
        ("Swish --bprop SwishGard", SWISH, BuildError, r"no function SwishGard.*:\n  SwishGrad\n"),
        ("Swish --bprop 3", SWISH, ArgumentTypeError, r"expected a function for bprop; got int"),
        (
            "Swish --bprop Swisch=SwishGrad",
            SWISH,
            ArgumentValueError,
            r"--bprop is for 'Swisch'.*\nIts kernels are Swish: write --bprop Swish=EXPR",
        ),
        (
            "Swish SwishGrad --bprop SwishGrad",
            SWISH,
            ArgumentValueError,
            r"the kernel that 'SwishGrad' is the gradient of.*\nWrite --bprop Swish=SwishGrad",
        ),
        (
            "Size",
            HEAD.replace("static", 'extern "C"'),
            ArgumentTypeError,
            r"got \(int ndim, const int64_t \*shape\).\nDefine it as extern \"C\" int Size\(int np",
        ),
        (
            "",
            HEAD.replace("static", 'extern "C"'),
            ArgumentValueError,
            r"found no kernel in the cell, which exports:\n  Size\nDefine extern \"C\" int Name",
        ),
        ("", "", ArgumentValueError, r"found no kernel in the cell\.\nDefine"),
    ],
)
def test_a_wrong_cell_says_what_to_do(notebook, line, source, error, message):
    with pytest.raises(error, match=message):
        notebook.run(f"%%aot {line}\n{source}\n")
    assert f"{error.__name__}: " in notebook.shown
    assert "Traceback" not in notebook.shown


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("Square --shape 'x", "No closing quotation"),
        ("Square --flags -O1", "unrecognized arguments: --flags"),
        ("Square --shape", "expected one argument"),
    ],
)
def test_a_line_that_cannot_be_read_is_a_usage_error(notebook, line, message):
    from IPython.core.error import UsageError

    with pytest.raises(UsageError, match=message):
        notebook.run(f"%%aot {line}\n{SQUARE}")


def test_a_macro_may_stand_for_the_parameters(notebook):
    source = SQUARE.replace(KERNEL, "KERNEL_PARAMETERS")
    notebook.run(f"%%aot Square\n#define KERNEL_PARAMETERS {KERNEL}\n{source}")
    np.testing.assert_array_equal(notebook["Square"](X), X * X)


def test_the_tutorials_own_int64_is_accepted(notebook):
    own = "using int64_t = decltype(sizeof(long));\n"
    source = kernel("One", "b[i] = 1;").replace("Size(ndims[0], shapes[0])", "shapes[0][0]")
    assert notebook.run(f"%%aot\n{own}{source}") == "%%aot bound One\n"
    np.testing.assert_array_equal(notebook["One"](X), [1, 1, 1])


def test_cells_obey_the_white_list(notebook, tmp_path, monkeypatch):
    monkeypatch.setenv("MS_CUSTOM_AOT_WHITE_LIST", str(tmp_path))
    with pytest.raises(ArgumentTypeError, match="MS_CUSTOM_AOT_WHITE_LIST"):
        notebook.run(f"%%aot Square\n{SQUARE}")
    assert "set MSOPS_CACHE_DIR to a folder in there" in notebook.shown
    monkeypatch.setenv("MSOPS_CACHE_DIR", str(tmp_path / "cache"))
    notebook.run(f"%%aot Square\n{SQUARE}")
    np.testing.assert_array_equal(notebook["Square"](X), X * X)


def test_a_cuda_cell_asks_for_nvcc(notebook, monkeypatch):
    monkeypatch.delenv("CUDA_HOME", raising=False)
    monkeypatch.setenv("PATH", "")
    with pytest.raises(BuildError, match=r"cell\.cu needs the CUDA compiler nvcc"):
        notebook.run(f"%%aot --cuda\n{SQUARE}")


@pytest.mark.skipif(not shutil.which("nvcc"), reason="needs nvcc")
def test_a_cuda_cell_is_built_by_nvcc(notebook):
    source = f"{HEAD}__global__ void Fill(float *y) {{ *y = 1; }}\n" + kernel(
        "One", "Fill<<<1, 1, 0, static_cast<cudaStream_t>(stream)>>>(b); break;"
    )
    assert notebook.run(f"%%aot --cuda --path path\n{source}") == "%%aot bound One\n"
    assert notebook["path"].endswith("/cell.cu")


def test_the_help_shows_every_option_and_an_example(notebook):
    help_text = notebook.shell.find_cell_magic("aot").__doc__
    for text in ("--shape", "--dtype", "--bprop", "--reg-info", "--path", "--cuda"):
        assert text in help_text
    assert "%%aot Swish --bprop SwishGrad" in help_text


def test_importing_msops_does_not_import_ipython():
    code = "import msops, sys; print([name for name in sys.modules if 'IPython' in name])"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


TOTAL = (
    '#include "custom_aot_extra.h"\n' + HEAD + f'extern "C" int Scale({KERNEL}) {{\n'
    '  auto alpha = static_cast<AotExtra *>(extra)->Attr<float>("alpha");\n'
    "  auto a = static_cast<float *>(params[0]);\n"
    "  auto b = static_cast<float *>(params[1]);\n"
    "  b[0] = 0;\n"
    "  for (int64_t i = 0; i < Size(ndims[0], shapes[0]); ++i) b[0] += alpha * a[i];\n"
    "  return 0;\n}\n"
)


def test_out_and_attrs_are_those_of_custom(notebook):
    notebook.run("import jax")
    notebook.run(
        "%%aot scale=Scale --attrs dict(alpha=2.0) "
        '--out "lambda x: jax.ShapeDtypeStruct((), x.dtype)"\n' + TOTAL
    )
    op = notebook["scale"]
    assert op(X).shape == ()
    np.testing.assert_allclose(op(X), 2 * X.sum())
    np.testing.assert_allclose(op(X, alpha=3.0), 3 * X.sum())
