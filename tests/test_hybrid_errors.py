"""What is not in the Hybrid DSL is refused: with the place, the rule and the remedy."""

from __future__ import annotations

import importlib
import re
import sys
import textwrap
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hybrid_error_cases import BUILD_ERRORS, TYPE_ERRORS, VALUE_ERRORS
from loop_ir import Spec, Stages, read_kernel
from loop_source import define, matrix, read, run, specialise, vector

from msops.errors import ArgumentTypeError, ArgumentValueError, BuildError, explain


def kernel_of(statements: str) -> str:
    return (
        "def k(a, b, n, m, q):\n    c = output_tensor(a.shape, a.dtype)\n"
        + textwrap.indent(statements, "    ")
        + "\n    return c\n"
    )


def message_of(marked: str, problem: str, remedy: str, head: int = 3) -> str:
    """Returns the whole message for statements with « » around what the caret shows."""
    lines = marked.split("\n")
    number = next(index for index, line in enumerate(lines) if "«" in line)
    line = lines[number].strip()
    start, end = line.index("«"), line.index("»") - 1
    text = line.replace("«", "").replace("»", "")
    caret = " " * start + "^" * (end - start)
    place = [f"<kernel>:{number + head}", f"  {text}", f"  {caret}"]
    return explain("Custom 'k'", problem, remedy, place)


def said(error: pytest.ExceptionInfo[Any]) -> str:
    """Returns a message, with one name for all sources."""
    text = str(error.value)
    name = text[text.find("<kernel ") : text.find(">:") + 1]
    return text.replace(name, "<kernel>") if name else text


def marked(func: Any) -> Any:
    func.ms_kernel_flag = True
    return func


@pytest.mark.parametrize(("statements", "problem", "remedy"), TYPE_ERRORS)
def test_type_errors_when_the_op_is_made(statements: str, problem: str, remedy: str) -> None:
    func = define(kernel_of(statements.replace("«", "").replace("»", "")))
    with pytest.raises(ArgumentTypeError) as error:
        read(marked(func), "hybrid")
    assert said(error) == message_of(statements, problem, remedy)


@pytest.mark.parametrize(("statements", "problem", "remedy"), VALUE_ERRORS)
def test_value_errors_when_the_op_is_made(statements: str, problem: str, remedy: str) -> None:
    func = define(kernel_of(statements.replace("«", "").replace("»", "")))
    with pytest.raises(ArgumentValueError) as error:
        read(marked(func), "hybrid")
    assert said(error) == message_of(statements, problem, remedy)


@pytest.mark.parametrize(
    ("name", "function"),
    {
        "asin": np.arcsin,
        "acos": np.arccos,
        "tan": np.tan,
        "sinh": np.sinh,
        "cosh": np.cosh,
        "exp2": np.exp2,
        "log2": np.log2,
        "log10": np.log10,
        "log1p": np.log1p,
        "cbrt": np.cbrt,
        "hypot": np.hypot,
        "fmod": np.fmod,
    }.items(),
)
def test_what_to_write_for_a_function_of_c(name: str, function: np.ufunc) -> None:
    text = "def k(x, y):\n    z = output_tensor(x.shape, x.dtype)\n    z[0] = {}\n    return z\n"
    arguments = ", ".join(["x[0]", "y[0]"][: function.nin])
    with pytest.raises(ArgumentValueError) as error:
        read(marked(define(text.format(f"{name}({arguments})"))), "hybrid")
    (instead,) = re.findall(r"Write (.*)\.", str(error.value))
    instead = re.sub(r"\b([xy])\b", r"\1[0]", instead)
    for values in ((0.3, 0.7), (0.9, -0.2)):
        x, y = (np.float32([value]) for value in values)
        (got,) = run(define(text.format(instead)), x, y)
        np.testing.assert_allclose(got, function(*(x, y)[: function.nin]), 1e-6)


@pytest.mark.parametrize(("statements", "problem", "remedy"), BUILD_ERRORS)
def test_errors_of_shapes_and_dtypes(statements: str, problem: str, remedy: str) -> None:
    func = define(kernel_of(statements.replace("«", "").replace("»", "")), q2=(1, 2))
    specs = vector(), vector(dtype="float16"), vector(dtype="int32"), matrix()
    with pytest.raises(BuildError) as error:
        specialise(func, *specs, attributes={"q": 2.0})
    assert said(error) == message_of(statements, problem, remedy)


def test_the_dtype_of_conditions_converts_nothing() -> None:
    text = "def k(a):\n    c = output_tensor((1,), 'int32')\n    c[0] = {}\n    return c\n"
    marked = "c[0] = «a.dtype.type(3)»"
    with pytest.raises(BuildError) as error:
        specialise(define(text.format("a.dtype.type(3)")), vector(dtype="bool"))
    assert said(error) == message_of(
        marked,
        "'a.dtype.type(3)' converts to bool, which is no dtype of numbers",
        "For a condition, compare: 3 != 0.",
    )


def test_advice_converts_to_the_floats_of_the_kernel() -> None:
    text = "def k(n, a):\n    c = output_tensor((1,), a.dtype)\n    c[0] = n[0] / 2\n    return c\n"
    for dtype, wide in (("float64", "float64"), ("float16", "float32")):
        with pytest.raises(BuildError, match=rf"convert: {wide}\(n\[0\]\) / 2\."):
            specialise(define(text), vector(dtype="int32"), vector(dtype=dtype))


@pytest.mark.parametrize(
    ("text", "kind", "problem", "remedy"),
    [
        (
            "«def k(a):»\n    a[0] = 1.0",
            ArgumentValueError,
            "no valid return found in the function body",
            "End it with return c, where c is an output_tensor or an argument.",
        ),
        (
            "def k(a):\n    return «a[0]»",
            ArgumentTypeError,
            "the return value should be either a single tensor or a tuple of tensors, but gets "
            "'a[0]'",
            "Assign to an output_tensor and return its name.",
        ),
        (
            "def k(a):\n    «return»",
            ArgumentTypeError,
            "the return value should be either a single tensor or a tuple of tensors, but gets "
            "'nothing'",
            "Assign to an output_tensor and return its name.",
        ),
        (
            "def k(a):\n    return a, «a[0]»",
            ArgumentTypeError,
            "the element in the return value should be the name of a tensor, but gets 'a[0]'",
            "Assign to an output_tensor and return its name.",
        ),
        (
            "def k(a):\n    d = allocate((3,), 'float32')\n    return «d»",
            ArgumentTypeError,
            "the element in the return value should be either an input tensor or a tensor "
            "allocated by output_tensor, but gets name: d",
            "Declare it, d = output_tensor(shape, dtype), and write its elements, d[i] = value, in "
            "a loop over i.",
        ),
        (
            "def k(a):\n    d = output_tensor(a.shape, a.dtype)\n    return «a»",
            ArgumentTypeError,
            "the tensor is allocated as an output tensor but not in the return value: d",
            "Return it too, or declare it with allocate().",
        ),
        (
            "def k(a):\n    return «a», a",
            ArgumentValueError,
            "'a' is returned twice",
            "Return each tensor once.",
        ),
        (
            "def k(*«a»):\n    return a",
            ArgumentValueError,
            "parameter 'a' is not positional",
            "List the tensors, then the attributes, as plain parameters.",
        ),
    ],
)
def test_errors_of_signature_and_return(
    text: str, kind: type[Exception], problem: str, remedy: str
) -> None:
    func = define(text.replace("«", "").replace("»", ""))
    with pytest.raises(kind) as error:
        read(marked(func), "hybrid")
    assert said(error) == message_of(text, problem, remedy, head=1)


@pytest.mark.parametrize(
    ("statement", "integer"),
    [
        ("c[0] = float32(«n[0] * 2.0»)", "n[0]"),
        ("for i in range(8):\n    c[i] = float32(«1e3 - i»)", "i"),
        ("s = 1\nfor i in range(8):\n    «s *= 2.0»\n    c[i] = float32(s)", "s"),
    ],
)
def test_a_float_constant_that_becomes_an_integer_is_reported(statement: str, integer: str) -> None:
    func = define(kernel_of(statement.replace("«", "").replace("»", "")))
    kernel = specialise(
        func, vector(), vector(), vector(dtype="int32"), matrix(), attributes={"q": 2}
    )
    (warning,) = (text for text in Stages(kernel, "Custom 'k'").warnings if "wraps" in text)
    constant = "1000.0" if "1e3" in statement else "2.0"
    problem = f"the constant {constant} is int32, as {integer} is; what does not fit wraps"
    remedy = f"Write an integer, or compute in floats: float32({integer})."
    name = warning[warning.find("<kernel ") : warning.find(">:") + 1]
    assert warning.replace(name, "<kernel>") == message_of(statement, problem, remedy)


@pytest.mark.parametrize(
    "statement",
    [
        "c[0] = float32(n[0] * 2)",
        "c[0] = a[0] * 2.0",
        "c[0] = float32(n[0]) * 2.0",
        "c[0] = 1.0 if n[0] > 2.0 else 0.0",
        "n[0] += 2.0",
        "c[0] = 2 * 0.5 + a[0]",
    ],
)
def test_other_constants_are_not_reported(statement: str) -> None:
    func = define(kernel_of(statement))
    kernel = specialise(
        func, vector(), vector(), vector(dtype="int32"), matrix(), attributes={"q": 2}
    )
    assert not [text for text in Stages(kernel, "k").warnings if "wraps" in text]


@pytest.mark.parametrize("dialect", ["akg", "hybrid"])
def test_an_unknown_function_is_answered_with_the_list(dialect: str) -> None:
    func = define(kernel_of("c[0] = relu(a[0])"))
    with pytest.raises(ArgumentValueError) as error:
        read(marked(func), dialect)
    listed = said(error).splitlines()[-1]
    assert listed.startswith("There are sqrt, rsqrt, ")
    assert ("sigmoid" in listed) == (dialect == "akg")


@pytest.mark.parametrize(
    "statements",
    [
        "c[0] = sigmoid(a[0])",
        "d = allocate((3,), 'float32', 'local')",
        "d = allocate((3,))",
        "for i in unroll(3):\n    c[i] = 1.0",
        "for i in const_range(3):\n    c[i] = 1.0",
        "for i in bind('threadIdx.x', 3):\n    c[i] = 1.0",
        "d = output_tensor((3,), 'float32')",
    ],
)
def test_only_the_akg_dialect_has(statements: str) -> None:
    func = marked(define(kernel_of(statements)))
    read(func, "akg")
    with pytest.raises((ArgumentValueError, ArgumentTypeError)):
        read(func, "hybrid")


def test_hybrid_wants_the_decorator() -> None:
    with pytest.raises(ArgumentTypeError) as error:
        read(define("def k(a):\n    return a"), "hybrid")
    assert str(error.value) == (
        "Custom 'k': 'func' must be a function decorated by kernel.\n"
        "Decorate it with @ops.kernel, or pass func_type='akg' and out_shape, out_dtype."
    )


@pytest.mark.parametrize(
    ("func", "got"), [(lambda a: a, "a lambda"), ("k", "str"), (np.add, "ufunc")]
)
def test_a_kernel_is_a_def(func: Any, got: str) -> None:
    with pytest.raises(ArgumentTypeError) as error:
        read(func)
    assert str(error.value) == (
        f"Custom 'k': expected a kernel that is a function made by def; got {got}.\n"
        "Kernels are compiled from the source of a def: write one."
    )


@pytest.mark.parametrize(
    ("specs", "attributes", "problem", "remedy"),
    [
        (
            (vector(),),
            {},
            "the kernel has the parameters (a, n); it is called with 1 tensor",
            "Pass an array for n, or its value by name, n=...",
        ),
        (
            (vector(), vector(), vector()),
            {},
            "the kernel has the parameters (a, n); it is called with 3 tensors",
            "Pass an array for each tensor, in order; the parameters after them are attributes.",
        ),
        (
            (vector(),),
            {"m": 1},
            "the kernel has the parameters (a, n); it is called with 1 tensor and the attributes m",
            "Pass an array for n, or its value by name, n=...",
        ),
        (
            (vector(),),
            {"n": None},
            "the attribute 'n' is None, which is no constant of the language",
            "Attributes are numbers, strings, and tuples of them.",
        ),
        (
            ((vector(),),),
            {"n": 1},
            "'a' is a list of tensors",
            "A kernel of loops takes tensors one by one: give it a parameter for each.",
        ),
    ],
)
def test_a_call_gives_every_parameter(
    specs: tuple[Spec, ...], attributes: dict[str, Any], problem: str, remedy: str
) -> None:
    func = define("def k(a, n):\n    a[0] = a[0] * n\n    return a")
    with pytest.raises(BuildError) as error:
        specialise(func, *specs, attributes=attributes)
    assert said(error) == message_of("«def k(a, n):»", problem, remedy, head=1)


@pytest.mark.parametrize(
    ("value", "problem", "remedy"),
    [
        (
            np.ones(3, np.float32),
            "'w' is an array from outside, which a kernel cannot read",
            "Give the kernel a parameter w, and pass the array as an input.",
        ),
        (
            None,
            "'w' is None, which a kernel cannot read from outside",
            "From outside, a kernel takes numbers and tuples of numbers.",
        ),
        (
            1j,
            "'w' is of type complex, which a kernel cannot read from outside",
            "Pass the real and the imaginary part as two numbers.",
        ),
    ],
)
def test_a_value_from_outside_is_a_constant(value: Any, problem: str, remedy: str) -> None:
    with pytest.raises(ArgumentValueError) as caught:
        read(define("def k(a):\n    a[0] = a[0] * w\n    return a", w=value))
    assert problem in str(caught.value)
    assert str(caught.value).endswith(remedy)


def test_a_reduction_of_numpy_is_a_loop() -> None:
    with pytest.raises(ArgumentValueError, match="Add up in a loop, s"):
        read(define("def k(a):\n    a[0] = np.mean(a)\n    return a", np=np))


def test_an_extent_by_position_is_named() -> None:
    func = define("def k(a, n):\n    c = output_tensor((n,), a.dtype)\n    return c")
    with pytest.raises(BuildError, match=r"pass it by name, n=\.\.\.$"):
        specialise(func, vector(), Spec((), "int32"))


def test_a_method_is_no_kernel() -> None:
    with pytest.raises(BuildError, match="A kernel is a function, not a method"):
        specialise(define("def k(self, a):\n    return a"), vector())


def test_carets_count_characters_in_indented_code() -> None:
    text = "if True:\n        def k(a):\n            é = a[0]; a[0] = relu(é)\n            return a"
    with pytest.raises(ArgumentValueError) as error:
        read(define(text))
    place = said(error).splitlines()[1:4]
    assert place == [
        "  <kernel>:3",
        "    é = a[0]; a[0] = relu(é)",
        "                     ^^^^",
    ]


def test_a_file_edited_after_its_import_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "edited_kernel.py"
    path.write_text("def k(a):\n    a[0] = 1.0\n    return a\n")
    monkeypatch.syspath_prepend(tmp_path)
    module = importlib.import_module("edited_kernel")
    path.write_text("def k(a):\n    a[0] = 2.25\n    return a\n")
    with pytest.raises(ArgumentValueError) as error:
        read(module.k)
    assert str(error.value) == (
        f"Custom 'k': {path}:1 no longer holds the function that was defined there.\n"
        "The file was edited after its import, or the function was changed by a tool: import the "
        "module again, or restart Python."
    )
    # Lines added above move the function, but it is the same one.
    path.write_text("import math\n\n\ndef k(a):\n    a[0] = 1.0\n    return a\n")
    assert read(module.k).location.line == 4


def test_source_that_is_nowhere_is_asked_for(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delitem(sys.modules, "readline", raising=False)
    scope: dict[str, Any] = {}
    exec(compile("def k(a):\n    return a\n", "<stdin>", "exec"), scope)
    with pytest.raises(ArgumentValueError) as error:
        read(scope["k"])
    assert str(error.value) == (
        "Custom 'k': the source of the function cannot be read; it was defined in <stdin>.\n"
        "Kernels are compiled from their source: define it in a file, a notebook cell, or an "
        "interactive session whose history Python keeps (readline)."
    )


def test_the_other_kinds_are_not_checked_as_loops() -> None:
    func = define(
        """
        def k(x):
            from akg import topi
            return topi.exp(x)
        """
    )
    assert read_kernel(func, "akg", "Custom 'k'").hybrid is None


def test_errors_do_not_depend_on_the_numbers() -> None:
    """The same statements, legal with other types, are run."""
    func = define("def k(a, n):\n    a[0] = a[0] * n[0]\n    return a")
    with pytest.raises(BuildError, match="mismatch type"):
        specialise(func, vector(), vector(dtype="int32"))
    assert run(func, np.float32([3, 1]), np.float32([4])).tolist() == [12, 1]
