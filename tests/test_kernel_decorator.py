"""`@kernel` marks a function, and runs it on numpy arrays without touching the author's globals."""

from __future__ import annotations

import json
import math
from typing import Any

import numpy as np
import pytest
from loop_corpus import CORPUS, Case
from loop_ir import INTRINSICS, interpret, parse_kernel

from msops import ops
from msops.errors import ArgumentTypeError
from msops.ops import CustomRegOp, kernel


def double(a, n):
    """Doubles n elements."""
    c = output_tensor(a.shape, a.dtype)  # noqa: F821
    for i in range(n):
        c[i] = 2.0 * a[i]
    return c


@pytest.mark.parametrize("case", CORPUS, ids=lambda case: case.name)
def test_the_corpus_runs_as_python(case: Case) -> None:
    inputs = case.inputs(np.random.default_rng(6), 6)
    copies = [array.copy() for array in inputs]
    outputs = kernel(case.func)(*copies, *case.attributes.values())
    case.check(inputs, outputs if isinstance(outputs, tuple) else (outputs,))


def test_globals_stay_as_they_were() -> None:
    before = dict(globals())
    assert kernel(double)(np.float32([1, 2, 3]), 2).tolist() == [2, 4, 0]
    assert globals() == before
    assert vars(double) == {}


def test_the_decorated_function_looks_like_the_function() -> None:
    decorated = kernel(double)
    assert (decorated.__name__, decorated.__doc__) == ("double", "Doubles n elements.")
    assert decorated.__wrapped__ is double
    assert decorated.ms_kernel_flag is True
    assert decorated.compile_attrs == "{}"
    assert not hasattr(decorated, "reg_info")


def test_settings_are_kept_on_the_function() -> None:
    info = CustomRegOp().input(0, "a").output(0, "c").target("CPU").get_op_info()
    attrs = {"lower": "native", "enable_polytops": "always", "level": 2}
    decorated = kernel(reg_info=info, compile_attrs=attrs)(double)
    assert json.loads(decorated.compile_attrs) == attrs
    assert decorated.reg_info is info
    attrs = {"lower": "native"}
    op = ops.Custom(kernel(reg_info=info, compile_attrs=attrs)(double), func_type="hybrid")
    assert op.__name__ == "double"


def test_arguments_may_be_given_by_name() -> None:
    assert kernel(double)(np.float32([1, 2, 3]), n=2).tolist() == [2, 4, 0]
    with pytest.raises(TypeError, match="unexpected keyword argument 'm'"):
        kernel(double)(np.zeros(2), m=2)


def test_closures_and_defaults_are_seen() -> None:
    factor = 3

    @kernel
    def scaled(a, shift=1):
        for i in range(len(a)):
            a[i] = factor * a[i] + shift
        return a

    assert scaled(np.arange(3.0)).tolist() == [1, 4, 7]
    factor = 5
    assert scaled(np.arange(3.0), 0).tolist() == [0, 5, 10]


def test_numpy_stores_convert() -> None:
    """In a compiled kernel the store of a float into integers is an error."""

    @kernel
    def mixed(a):
        c = output_tensor(a.shape, "int32")  # noqa: F821
        for i in range(len(a)):
            c[i] = a[i]
        return c

    result = mixed(np.float32([1.5, -2.5]))
    assert (result.dtype, result.tolist()) == (np.int32, [1, -2])


@pytest.mark.parametrize(
    ("arguments", "problem", "remedy"),
    [
        (
            {"compile_attrs": "lower"},
            "the input 'compile_attrs' of @kernel must be a dict; got a str",
            'Pass compile_attrs={"lower": "native"}, for example.',
        ),
        (
            {"compile_attrs": {1: 2}},
            "the key of 'compile_attrs' of @kernel must be a str; got 1, a int",
            "Name settings by strings.",
        ),
        (
            {"compile_attrs": {"a": double}},
            "the values of 'compile_attrs' of @kernel must be JSON values: Object of type function "
            "is not JSON serializable",
            "Pass numbers, strings, bools, and lists or dicts of them.",
        ),
        (
            {"reg_info": 3},
            "the input 'reg_info' of @kernel should be one of str, dict and tuple; got a int",
            "Pass CustomRegOp(...).get_op_info(), or a tuple of them.",
        ),
        (
            {"fn": "double"},
            "expected a function to decorate; got str",
            "Write @kernel above a def.",
        ),
    ],
)
def test_wrong_arguments(arguments: dict[str, Any], problem: str, remedy: str) -> None:
    with pytest.raises(ArgumentTypeError) as error:
        kernel(**arguments)
    assert str(error.value) == f"kernel: {problem}.\n{remedy}"


@pytest.mark.parametrize("name", ["ms_kernel", "ms_hybrid"])
def test_old_names_are_deprecated(name: str) -> None:
    with pytest.warns(DeprecationWarning, match="use 'kernel' instead"):
        decorated = getattr(ops, name)(double)
    assert decorated.ms_kernel_flag


def test_every_name_of_the_language_runs() -> None:
    inside: set[str] = set()

    @kernel
    def look(a):
        inside.update(globals())
        return a

    look(np.zeros(1))
    assert inside - set(globals()) - {"__builtins__"} | {"range", "round"} >= set(INTRINSICS)
    assert inside - set(globals()) <= set(INTRINSICS) | {"__builtins__"}


@pytest.mark.parametrize(
    ("name", "arguments", "expected"),
    [
        ("erf", (np.float32(0.5),), math.erf(0.5)),
        ("rsqrt", (np.float32(4),), 0.5),
        ("sigmoid", (np.float32(1),), 1 / (1 + math.exp(-1))),
        ("popcount", (np.int32(-1),), 32),
        ("popcount", (np.uint8(7),), 3),
        ("ceil_div", (7, 2), 4),
        ("atan2", (np.float32(1), np.float32(-1)), math.atan2(1, -1)),
        ("power", (np.float32(2), np.float32(3)), 8),
        ("round", (np.float32(2.5),), 2),
        ("likely", (np.float32(2.5),), 2.5),
    ],
)
def test_numpy_functions(name: str, arguments: tuple[Any, ...], expected: float) -> None:
    scope: dict[str, Any] = {}
    exec(f"def k(*arguments):\n    return {name}(*arguments)", scope)
    result = kernel(scope["k"])(*arguments)
    assert float(result) == pytest.approx(expected, rel=1e-6)
    if name in ("erf", "rsqrt", "sigmoid", "popcount"):
        assert result.dtype == arguments[0].dtype


@pytest.mark.parametrize("target", ["int8", "uint8", "int32", "uint32", "int64", "uint64"])
@pytest.mark.parametrize("source", ["float32", "float64", "int64", "uint8"])
def test_conversions_to_integers_are_those_of_compiled_kernels(source: str, target: str) -> None:
    scope: dict[str, Any] = {}
    lines = [
        "def convert(x):",
        f"    y = output_tensor(x.shape, {target})",
        f"    for i in range(x.shape[0]): y[i] = {target}(x[i])",
        "    return y",
    ]
    exec("\n".join(lines), scope)
    if source.startswith("float"):
        numbers = [math.nan, math.inf, -math.inf, 2.5, -2.5, -0.25, -0.0, 255.9, 1e10, -1e10, 3e19]
    else:
        numbers = [0, 1, 100, 200, 255]
        numbers += [-1, -129, 2**31, -(2**63), 2**63 - 1] if source == "int64" else []
    x = np.array(numbers, source)
    by_python = kernel(scope["convert"])(x)
    text = f"""kernel convert(x: {source}[{x.size}]) -> (y) {{
      buffer y: {target}[{x.size}]
      parallel i in 0 .. {x.size} {{ y[i] = {target}(x[i]) }}
    }}"""
    (by_interpreter,) = interpret(parse_kernel(text), [x])
    assert by_python.dtype == target
    np.testing.assert_array_equal(by_python, by_interpreter)


@pytest.mark.parametrize("name", ["min", "max"])
@pytest.mark.parametrize("arguments", [(math.nan, 1.0), (1.0, math.nan), (1, 2, math.nan)])
def test_min_and_max_keep_a_nan_as_compiled_ones_do(name: str, arguments: tuple[Any, ...]) -> None:
    scope: dict[str, Any] = {}
    exec(f"def k(*arguments):\n    return {name}(*arguments)", scope)
    choose = kernel(scope["k"])
    assert math.isnan(choose(*arguments))
    assert choose(2, 2.0, 2) == 2


def test_scopes_and_ranges_run() -> None:
    @kernel
    def walk(a):
        with block_realize(a), attr("key", True):  # noqa: F821
            for i in bind("threadIdx.x", 2):  # noqa: F821
                for t in grid((2, 2)):  # noqa: F821
                    a[t[:1] + t[1:]] += i + 1
        d = allocate((1,), "bfloat16", "local")  # noqa: F821
        return a, d

    result, temporary = walk(np.zeros((2, 2)))
    assert result.tolist() == [[3, 3], [3, 3]]
    assert temporary.dtype.name == "bfloat16"
