"""Functions, methods and operators of special values: MindSpore's results, or why not.

Zeros of both signs, NaN, infinities, ties, extreme integers, single numbers and empty Tensors, in
both modes, with gradients. The values are those that MindSpore 2.10.0 computed on a CPU
(tests/oracle/dump_special.py, whose results were equal in both of its modes).
"""

from __future__ import annotations

import functools
import json
import os
import re
import runpy
import subprocess
from collections.abc import Callable, Iterator
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from face_namespace import ms
from quick_cases import case_of, in_turn

from msops import ops

pytestmark = pytest.mark.usefixtures("as_users_compile")

ORACLE = Path(__file__).parent / "oracle"
RECORDED = json.loads((ORACLE / "special_mindspore_2_10_0.json").read_text())["found"]
CASES = runpy.run_path(str(ORACLE / "special_cases.py"))
REAL = os.environ.get("MSOPS_TEST_MINDSPORE")

_DIVISIONS = r"7 // x|x // y|x / y|ops\.(floor_)?div\(x, y\)|ops\.RealDiv\(\)\(x, y\)"
_REMAINDERS = r"7 % x|x % [y0]|ops\.floor_mod\(x, y\)|ops\.Mod\(\)\(x, y\)"
_EXTREMES = r"(ops|x)\.(maximum|minimum|amax|amin|max|min)\(.*|ops\.Reduce(Max|Min).*"
_POWERS = r"x \*\* \S+|2 \*\* x|(ops|x)\.pow\(.*"
_TO_INTEGERS = r"x\.(int|long)\(\)|x\.astype\(.*|ops\.cast\(x, ms\.int.*"
_NOT_OF_EACH = ("softmax", "sort", "topk", "arg", "cumsum")
DIFFERENT = (
    ("NaN is lost, or goes by its place", "nan", rf"({_EXTREMES}) .*"),
    ("NaN is lost", "nan", r"(x\.|ops\.)(relu|sign|clamp|clip|clip_by_value|softmax)\(.* .*"),
    ("NaN is lost", "nan", r"(x|ops)\.(argm|topk|sort|any).* .*|x //? 0 value .*"),
    ("NaN is lost", "nan", r"(abs\(x\)|ops\.abs\(x\)|x\.abs\(\)|x \*\* 0|ops\.prod\(x\)) dx .*"),
    ("NaN is lost", "nan", rf"({_DIVISIONS}|{_REMAINDERS}) .*"),
    ("the slope of x ** 0 is NaN", "zero", r"x \*\* 0 dx .*"),
    ("-0.0 counts as 0.0", "minus zero", rf"({_DIVISIONS}|{_REMAINDERS}) .*"),
    ("-0.0 counts as 0.0", "minus zero", r"ops\.(log|rsqrt)\(x\) dx .*"),
    ("the sign of -0.0 is lost", "minus zero", r"(ops|x)\.(expm1|log1p|sign)\(.* value .*"),
    ("of 0.0 and -0.0 one by its place", "minus zero", rf"({_EXTREMES}) value .*"),
    ("-0.0 counts as true", "minus zero", r"(ops|x)\.any\(.* value .*"),
    ("any looks at some bits, or beside them", "wide", r"(ops|x)\.any\(.* value Bool"),
    (
        "any looks at some bits, or beside them",
        "all",
        r"(ops|x)\.any\(.* value Bool (int16|float64)",
    ),
    ("the sign of a first -0.0 is kept", "minus zero", r"x\.cumsum\(1\) value .*"),
    ("the slope of 0 / 0 is infinite", "zero", rf"({_DIVISIONS}) dy .*"),
    ("a remainder by infinity is NaN", "infinite", rf"({_REMAINDERS}) .*"),
    ("a remainder of integers by 0 is the least", "all", rf"({_REMAINDERS}) value (Int|Bool).*"),
    ("a remainder that is 0 has no sign", "all", r"ops\.Mod\(\)\(x, y\) value Float.*"),
    ("a float's remainder by 0 may be 0", "zero", rf"({_REMAINDERS}) value Float.*"),
    ("the slope of Mod is that of a floored one", "all", r"ops\.Mod\(\)\(x, y\) dy .*"),
    ("powers of integers are rounded as floats", "all", rf"({_POWERS}) value U?Int.*"),
    ("powers of bool are rounded as floats", "all", r"x \*\* -1 value (Int|Bool).*"),
    ("0 ** y has other slopes", "zero", rf"({_POWERS}) dy .*"),
    ("integers pass through floats", "wide", r"(x // .*|ops\.floor_div\(x, y\)) value Int64"),
    ("integers pass through floats", "wide", r"(ops|x)\.round\(x?\) value Int64"),
    ("integers pass through floats", "wide", r"x % (3|1\.5) value .*"),
    ("sums of integers saturate", "wide", r"(x|ops)\.(sum|ReduceSum)\(.* value Int(32|64)"),
    ("means of integers wrap", "all", r"(x|ops)\.(Reduce[mM]ean|mean|var|std)\(.* value U?Int.*"),
    ("means of integers wrap", "all", r"(x|ops)\.(var|std)\(.* value Float32.*"),
    ("the least integers are not the least", "all", r"ops\.topk\(x, 2, largest=False\).* value .*"),
    ("floats out of range become integers as in C", "infinite", rf"({_TO_INTEGERS}) value .*"),
    ("floats out of range become integers as in C", "nan", rf"({_TO_INTEGERS}) value .*"),
    ("floats out of range become integers as in C", "negative", r"x\.astype\(ms\.uint8\) value .*"),
    ("a cast to integers has the slope 1", "all", rf"({_TO_INTEGERS}|x\.bool\(\)) dx .*"),
    ("softmax of infinity is lost", "infinite", r"ops\.softmax\(.* value .*"),
    ("bounds of clamp have no slope", "all", r"ops\.clamp\(x, y, y\) dy .*"),
    ("a variance of Float64 is rounded to Float32", "all", r"ops\.var\(x, 1\) \w+ Float64"),
    ("the slope of a variance of equals is NaN", "equal", r"ops\.var\(x, 1\) dx .*"),
)
"""Where msops differs on purpose: what MindSpore does, of which elements, in which rows."""

TYPED = ("a result keeps UInt8", r"(ops|x)\.any\(.* UInt8")
EMPTY = r"(ops|x)\.(Reduce\w+|sum|prod|mean|any|all|std|var|amax|amin)\(.*"
"""What MindSpore takes out of memory if a Tensor is empty; msops refuses to look for extremes."""


def parsed(text: str) -> tuple[str, list[int], np.ndarray]:
    head, _, numbers = text.partition(":")
    dtype, _, shape = head.partition(" ")
    kind: Any = float if "Float" in dtype else int
    kind = "True".__eq__ if dtype == "Bool" else kind
    return dtype, json.loads(shape), np.array([kind(number) for number in numbers.split()])


def rows_of(kind: str, dtype: str) -> Iterator[tuple[str, str, str]]:
    """Yields expression, "value" or a slope's name, and MindSpore's result."""
    rows = RECORDED[kind].get(dtype, {})
    for text, row in rows.items():
        row = rows.get(row, row) if isinstance(row, str) else row
        for what, result in (row if isinstance(row, dict) else {"value": row}).items():
            yield text, what, result


def is_excused(mask: str, inputs: list[np.ndarray], shape: list[int], text: str) -> np.ndarray:
    """Returns which elements of a result of `shape` are computed from special inputs."""
    tests: dict[str, Callable[[np.ndarray], Any]] = {
        "all": lambda x: np.ones(x.shape, bool),
        "nan": np.isnan,
        "zero": lambda x: x == 0,
        "minus zero": lambda x: (x == 0) & np.signbit(x),
        "infinite": np.isinf,
        "negative": lambda x: x < 0,
        "wide": lambda x: abs(x) > 2.0**24,
        "equal": lambda x: (x == x[:, :1]).all(1, keepdims=True) & np.ones(x.shape, bool),
    }
    found = functools.reduce(np.logical_or, (tests[mask](x.astype(float)) for x in inputs))
    if (
        found.ndim == 2
        and len(shape)
        and shape[0] == found.shape[0]
        and re.search("axis=1|[(, ]1", text)
    ):
        return np.broadcast_to(found.any(1).reshape(-1, *[1] * (len(shape) - 1)), shape)
    each = (
        found.ndim < 2
        and list(found.shape) == shape
        and not any(name in text for name in _NOT_OF_EACH)
    )
    return found if each else np.full(shape, found.any())


def differences(kind: str, dtype: str, text: str, what: str, expected: str, found: Any) -> str:
    """Returns what is wrong with a result; "" if it is as it should be."""
    wanted_dtype, shape, wanted = parsed(expected)
    if str(found.dtype) != wanted_dtype and re.fullmatch(TYPED[1], f"{text} {wanted_dtype}"):
        return ""
    if (str(found.dtype), list(found.shape)) != (wanted_dtype, shape):
        return f"{found.dtype} {found.shape}, not {expected}"
    wanted = wanted.reshape(shape)
    got = found.asnumpy().astype(wanted.dtype)
    close = {"Float16": 2e-3, "BFloat16": 1e-2, "Float32": 5e-6, "Float64": 1e-11}
    # Of slopes neither the sign of 0 is compared, nor what is left of a cancellation.
    atol = 0 if what == "value" else close.get(wanted_dtype, 0)
    with np.errstate(invalid="ignore"):
        right = np.isclose(got, wanted, close.get(wanted_dtype, 0), atol, equal_nan=True)
    if what == "value" and wanted.dtype.kind == "f":
        right &= (wanted != 0) | (np.signbit(got) == np.signbit(wanted))
    x, y = CASES["inputs"](kind, dtype)
    inputs = [x, y] if "y" in re.findall(r"\b[xy]\b", text) else [x]
    for _, mask, pattern in DIFFERENT:
        if re.match(pattern, f"{text} {what} {wanted_dtype} {dtype}"):
            right |= is_excused(mask, inputs, shape, text)
    return "" if right.all() else f"{got.tolist()}, not {wanted.tolist()}"


def computed(kind: str, dtype: str, mode: int) -> Iterator[tuple[str, str, str, Any]]:
    """Yields the rows with what msops computes: in GRAPH_MODE by one program."""
    rows = [
        row for row in rows_of(kind, dtype) if kind != "nothing" or not re.fullmatch(EMPTY, row[0])
    ]
    typed = getattr(ms, "bool_" if dtype == "bool" else dtype)
    inputs = [ms.Tensor(array, typed) for array in CASES["inputs"](kind, dtype)]

    def compute(text: str, what: str, *inputs: Any) -> Any:
        function = eval(f"lambda x, y: {text}", {"ms": ms, "ops": ops})
        return (function if what == "value" else ms.grad(function, "xy".index(what[1])))(*inputs)

    class Net(ms.nn.Cell):
        def construct(self, *inputs: Any) -> Any:
            return tuple(compute(text, what, *inputs) for text, what, _ in rows)

    ms.set_context(mode=mode)
    try:
        results = Net()(*inputs)
    finally:
        ms.set_context(mode=ms.PYNATIVE_MODE)
    for row, result in zip(rows, results, strict=True):
        yield *row, result


FEW = ("float32", "int32", "uint8")
KINDS = list(CASES["EXPRESSIONS"])
TABLE = [
    *in_turn(KINDS, FEW),
    *(
        case_of(*case, quick=False)
        for case in product(KINDS, CASES["DTYPES"])
        if case[1] not in FEW
    ),
]


@pytest.mark.parametrize(("kind", "dtype"), TABLE)
def test_programs_give_mindspores_values(kind: str, dtype: str) -> None:
    check(kind, dtype, ms.GRAPH_MODE)


@pytest.mark.slow
@pytest.mark.parametrize(("kind", "dtype"), TABLE)
def test_single_operations_give_mindspores_values(kind: str, dtype: str) -> None:
    check(kind, dtype, ms.PYNATIVE_MODE)


def check(kind: str, dtype: str, mode: int) -> None:
    wrong = {
        f"{text} {what}": problem
        for text, what, expected, found in computed(kind, dtype, mode)
        if (problem := differences(kind, dtype, text, what, expected, found))
    }
    assert not wrong


def test_every_difference_is_of_rows_that_there_are() -> None:
    texts = [
        f"{text} {what} {parsed(result)[0]} {dtype}"
        for kind in RECORDED
        for dtype in RECORDED[kind]
        for text, what, result in rows_of(kind, dtype)
    ]
    assert len(texts) > 3000
    for reason, _, pattern in DIFFERENT:
        assert any(re.match(pattern, text) for text in texts), reason


@pytest.mark.slow
@pytest.mark.skipif(REAL is None, reason="MSOPS_TEST_MINDSPORE names no Python")
def test_the_real_mindspore_still_gives_the_table() -> None:
    run = subprocess.run(
        [str(REAL), str(ORACLE / "dump_special.py")], capture_output=True, text=True, check=True
    )
    table = json.loads(run.stdout)
    if table["mindspore"] != "2.10.0":
        pytest.skip(f"the table is of MindSpore 2.10.0; here is {table['mindspore']}")
    # Of empty Tensors it gives what is in memory.
    assert {**table["found"], "nothing": 0} == {**RECORDED, "nothing": 0}
