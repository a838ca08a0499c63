"""The loop IR as text and as legal kernels: parse.py, text.py, rules.py and verify.py."""

from __future__ import annotations

import contextlib
import copy
import dataclasses
import gc
import math
import pickle
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from loop_ir import (
    BINARY,
    DTYPES,
    FLOATS,
    FUNCTIONS,
    INTEGERS,
    Binary,
    Buffer,
    Cast,
    Const,
    Expr,
    For,
    FunctionCall,
    If,
    IRError,
    Kernel,
    Load,
    Local,
    Location,
    Select,
    Stmt,
    Store,
    TextError,
    Unary,
    Var,
    Within,
    body_text,
    collector_waits,
    expr_text,
    kept,
    kernel_text,
    map_operands,
    parse_body,
    parse_expr,
    parse_kernel,
    result_dtype,
    statements,
    verify,
)
from loop_ir import VERIFIER_RULES as RULES
from loop_strategies import WIDE_DTYPES, Case, kernels
from random_examples import examples

EXAMPLE = """kernel example(a: float32[4, 8], idx: int64[4]) -> (s, a) {
  buffer s: float32[4]
  parallel i in 0 .. 4 @parallel {
    local t: float32[2] {
      reduction j in (i + 1) .. min(8, 2 * i) @reduce {
        t[j % 2] = t[0] + (a[i, j] * -0.5:float32)
        if ((i < j) && !(isnan(a[i, 0]))) {
          s[i] = max(t[1], -inf:float32)
        } else {
          s[i - -1] = (j == 3) ? nan:float32 : float32(idx[i] + -9223372036854775808:int64)
        }
      }
    }
    parallel empty in 0 .. 0 @threads(16) @vector(lanes) {
    }
    local u: int8[5000] @workspace {
      parallel point in 0 .. 5000 @grid {
      }
    }
    if (s[i] < 5.0:float32) @usual {
    } else {
      s[i] = 0.0:float32
    }
  }
}"""

NUMBERS = [
    Const(value, dtype)
    for dtype, values in {
        "bool": (True, False),
        "int32": (0, -1, 2**31 - 1, -(2**31)),
        "int64": (0, -(2**63), 2**63 - 1),
        "uint64": (0, 2**64 - 1),
        "int8": (-128, 127),
        "float32": (0.0, -0.0, 1e-45, -1.5e30, math.inf, -math.inf, math.nan),
        "float64": (0.1, 5e-324, 1e16, 1.7976931348623157e308, math.nan),
        "bfloat16": (1.0, math.inf),
        "float16": (-65504.0, 0.1),
    }.items()
    for value in values
]


PLACE = Location("f.py", 1, 0, 4, "a[i]")


# The text form.


def test_text_of_an_example_round_trips() -> None:
    assert kernel_text(parse_kernel(EXAMPLE)) == EXAMPLE


@given(kernels(WIDE_DTYPES))
@settings(max_examples=examples(80), deadline=None)
def test_any_kernel_round_trips(case: Case) -> None:
    text = kernel_text(case.kernel)
    assert parse_kernel(text) == case.kernel
    assert kernel_text(parse_kernel(text)) == text


@pytest.mark.parametrize("number", NUMBERS, ids=expr_text)
def test_numbers_round_trip(number: Const) -> None:
    parsed = parse_expr(expr_text(number))
    assert isinstance(parsed, Const)
    assert (type(parsed.value), repr(parsed.value)) == (type(number.value), repr(number.value))
    assert parsed.dtype == number.dtype


@given(st.floats(), st.sampled_from(FLOATS))
@settings(max_examples=examples(100), deadline=None)
def test_any_float_round_trips(value: float, dtype: str) -> None:
    assert parse_expr(expr_text(Const(value, dtype))) == Const(value, dtype)


def test_numbers_are_equal_if_they_are_the_same() -> None:
    assert Const(math.nan, "float32") == Const(-float("nan"), "float32")
    assert len({Const(0.0, "float32"), Const(-0.0, "float32"), Const(0.0, "float64")}) == 3


BUFFERS = (
    Buffer("a", (4,), "float32"),
    Buffer("n", (4,), "int32"),
    Buffer("b", (4,), "bool"),
    # Words of the text form are names, too.
    Buffer("local", (), "float32"),
    Buffer("max", (2,), "float32"),
    Buffer("float32", (2,), "int32"),
)
VAR = Var("i")
TWO = Const(2, "int32")
A, N, B = (
    Load(name, (VAR,), dtype) for name, dtype in (("a", "float32"), ("n", "int32"), ("b", "bool"))
)


@pytest.mark.parametrize(
    ("text", "expr"),
    [
        ("-(1)", Unary("neg", Const(1, "int32"), "int32")),
        ("-1", Const(-1, "int32")),
        ("i - -1", Binary("sub", VAR, Const(-1, "int32"), "int32")),
        ("!(b[i])", Unary("not", B, "bool")),
        ("~(n[i])", Unary("invert", N, "int32")),
        ("float32(n[i])", Cast(N, "float32")),
        ("float32[i]", Load("float32", (VAR,), "int32")),
        ("max(a[i], a[i])", Binary("max", A, A, "float32")),
        ("max[i]", Load("max", (VAR,), "float32")),
        ("local[]", Load("local", (), "float32")),
        ("a[n[i]]", Load("a", (N,), "float32")),
        ("isnan(a[i])", FunctionCall("isnan", (A,), "bool")),
        ("atan2(a[i], a[i])", FunctionCall("atan2", (A, A), "float32")),
        ("a[i] < a[i]", Binary("lt", A, A, "bool")),
        ("b[i] ? a[i] : a[i]", Select(B, A, A, "float32")),
        ("a[within(i, -1, 2)]", Load("a", (Within(VAR, -1, 2),), "float32")),
        ("b[i] ? (b[i] ? i : 2) : i", Select(B, Select(B, VAR, TWO, "int32"), VAR, "int32")),
        ("nan ? inf : e1", Select(Var("nan"), Var("inf"), Var("e1"), "int32")),
        ("(i >> 2) << i", Binary("shl", Binary("shr", VAR, TWO, "int32"), VAR, "int32")),
    ],
)  # fmt: skip
def test_expressions_read_as_written(text: str, expr: Expr) -> None:
    assert parse_expr(text, BUFFERS) == expr
    assert expr_text(expr, outermost=True) == text


@pytest.mark.parametrize("op", BINARY)
def test_every_operation_round_trips(op: str) -> None:
    left, right = Load("a", (VAR,), "float32"), Load("a", (N,), "float32")
    expr = Binary(op, left, right, result_dtype(op, "float32"))  # type: ignore[arg-type]
    assert parse_expr(expr_text(expr), BUFFERS) == expr


@pytest.mark.parametrize("name", FUNCTIONS)
def test_every_function_round_trips(name: str) -> None:
    row = FUNCTIONS[name]
    expr = FunctionCall(name, (A,) * row.arity, "bool" if row.to_bool else "float32")
    assert parse_expr(expr_text(expr), BUFFERS) == expr


@pytest.mark.parametrize("dtype", DTYPES)
def test_every_cast_round_trips(dtype: str) -> None:
    assert parse_expr(expr_text(Cast(A, dtype)), BUFFERS) == Cast(A, dtype)


def test_a_body_round_trips() -> None:
    text = "\n".join(
        ["local t: int32[] {", "  t[] = n[0]", "  n[1] = t[]", "}", "if (b[0]) {", "}"]
    )
    body = parse_body(text, BUFFERS)
    assert body_text(body) == text
    assert isinstance(body[0], Local)


def test_nodes_know_their_place_in_the_text() -> None:
    kernel = parse_kernel(EXAMPLE)
    store = next(stmt for stmt in statements(kernel.body) if isinstance(stmt, Store))
    place = store.location
    assert place is not None
    assert (place.line, place.text[place.column : place.end_column]) == (
        6,
        "t[j % 2] = t[0] + (a[i, j] * -0.5:float32)",
    )


@pytest.mark.parametrize(
    ("text", "line", "column", "problem"),
    [
        ("kernel f() -> (x) {\n  x[] = $\n}", 2, 9, "no token begins with '$'"),
        ("kernel f() -> (x) {\n  x[] = y[]\n}", 2, 9, "no buffer in scope has the name 'y'"),
        ("kernel f() -> (x) {\n  local t: int8[] {}\n  x[] = t[]\n}", 3, 9, "no buffer in scope"),
        ("kernel f() -> (x) {", 1, 20, "expected a statement, got the end"),
        ("kernel f() -> (x) {}}", 1, 21, "expected the end of the text, got '}'"),
        ("kernel f() -> (x) {\n  x[] = 1.5\n}", 2, 9, "1.5 is not a number of dtype int32"),
        ("kernel f() -> (x) {\n  x[] = f(1)\n}", 2, 9, "'f' is neither a function nor a dtype"),
        ("kernel f() -> (x) {\n  x[] = max(1)\n}", 2, 9, "expected 2 argument(s) of 'max', got 1"),
        ("kernel f(a: float[2]) -> (x) {}", 1, 13, "expected a dtype, got 'float'"),
        ("kernel f(a: int8[-2]) -> (x) {}", 1, 18, "expected the size of a dimension, got '-2'"),
        ("kernel f() -> (x) {\n  serial i in 0 .. 2 @no {}\n}", 2, 23, "expected one of serial"),
        ("kernel f() -> (x) {\n  serial i in 0 .. 2 @vector(no) {}\n}", 2, 30, "expected one of"),
        ("kernel f() -> (x) {\n  x = 1\n}", 2, 3, "expected a statement, got 'x'"),
        ("kernel f() -> (x) {\n  x[] = (1 + 2\n}", 3, 1, "expected ')', got '}'"),
        ("kernel f() -> (x) {\n  x[] = 1 + 2 + 3\n}", 2, 15, "expected a statement, got '+'"),
    ],
)  # fmt: skip
def test_malformed_text_is_pointed_at(text: str, line: int, column: int, problem: str) -> None:
    with pytest.raises(TextError) as caught:
        parse_kernel(text)
    assert str(caught.value).startswith(
        f"text of a kernel, line {line}, column {column}: {problem}"
    )
    assert "^" in str(caught.value)


# Legal kernels.


@pytest.mark.parametrize(
    ("expr", "operands"),
    [
        (Load("a", (Var("i"), Var("j")), "int8", location=PLACE), {"indices"}),
        (Unary("invert", Var("i"), "int16"), {"operand"}),
        (Cast(Var("i"), "int64"), {"operand"}),
        (Within(Var("i"), 2, 5, is_guarded=True), {"operand"}),
        (Binary("xor", Var("i"), Var("j"), "uint8"), {"left", "right"}),
        (FunctionCall("sin", (Var("i"),), "float16"), {"args"}),
        (Select(Var("i"), Var("i"), Var("j"), "bool"), {"condition", "then", "otherwise"}),
    ],
    ids=lambda value: type(value).__name__,
)
def test_a_new_operand_leaves_the_rest_of_an_expression(expr: Expr, operands: set[str]) -> None:
    assert map_operands(expr, lambda part: part) is expr
    changed = map_operands(expr, lambda part: Var("other"))
    assert type(changed) is type(expr)
    fields = [field.name for field in dataclasses.fields(expr)]
    kept = {name for name in fields if getattr(changed, name) == getattr(expr, name)}
    assert kept == {*fields} - operands


@given(kernels(WIDE_DTYPES))
@settings(max_examples=30, deadline=None)
def test_random_kernels_are_legal(case: Case) -> None:
    verify(case.kernel)


def test_the_example_is_legal() -> None:
    verify(parse_kernel(EXAMPLE))


X = Buffer("x", (4,), "float32")
ZERO = Const(0, "int32")
ONE = Const(1.0, "float32")
READ = Load("x", (ZERO,), "float32")


def kernel(*body: Stmt, **changes: Any) -> Kernel:
    return dataclasses.replace(Kernel("k", (X,), ("x",), (), body), **changes)


def with_value(value: Expr) -> Kernel:
    return kernel(Store("x", (ZERO,), value))


def with_condition(condition: Expr) -> Kernel:
    return kernel(If(condition, ()))


def with_buffer(name: Any, shape: Any, dtype: Any) -> Kernel:
    return kernel(buffers=(Buffer(name, shape, dtype),))


def loop(var: str = "i", begin: Expr = ZERO, end: Expr = ZERO, **changes: Any) -> For:
    return For(var, begin, end, **{"body": (), **changes})


FAULTS: dict[str, list[Kernel]] = {
    "a kernel's name is an identifier": [kernel(name="a b")],
    "buffers and variables have names of their own": [
        kernel(buffers=(X,)),
        kernel(loop("x")),
        kernel(loop(), loop()),
        kernel(Local(X, ())),
        kernel(Local(Buffer("t", (), "int8"), (loop("t"),))),
    ],
    "a kernel has a result": [kernel(results=())],
    "results are buffers of the kernel": [
        kernel(results=("y",)),
        kernel(Local(Buffer("t", (), "int8"), ()), results=("t",)),
    ],
    "a buffer's name is an identifier": [
        with_buffer("1", (), "int8"),
        with_buffer("true", (), "int8"),
    ],
    "a buffer's dtype is one of the IR": [
        with_buffer("t", (), "complex64"),
        kernel(Local(Buffer("t", (), "int4"), ())),
    ],
    "sizes are whole numbers": [
        with_buffer("t", (2.0,), "int8"),
        with_buffer("t", (True,), "int8"),
    ],
    "sizes are not negative": [with_buffer("t", (2, -1), "int8")],
    "every index of a buffer is an int32": [with_buffer("t", (2**31,), "int8")],
    "a constant's dtype is one of the IR": [with_value(Const(1.0, "float8"))],
    "a constant's type fits": [
        with_value(Const(1, "float32")),
        kernel(Store("x", (Const(1.0, "int32"),), ONE)),
        kernel(Store("x", (Const(True, "int32"),), ONE)),
        with_condition(Const(1, "bool")),
    ],
    "a constant is in its range": [
        kernel(loop(end=Const(2**31, "int32"))),
        kernel(Store("x", (Const(-1, "uint8"),), ONE)),
    ],
    "a variable belongs to an enclosing loop": [
        kernel(Store("x", (Var("i"),), ONE)),
        kernel(loop(), Store("x", (Var("i"),), ONE)),
        kernel(loop(end=Var("i"))),
    ],
    "a load reads a buffer in scope": [
        with_value(Load("y", (), "float32")),
        kernel(
            Local(Buffer("t", (), "float32"), ()), Store("x", (ZERO,), Load("t", (), "float32"))
        ),
    ],
    "a load has an index for each dimension": [with_value(Load("x", (), "float32"))],
    "indices of a load are integers": [with_value(Load("x", (ONE,), "float32"))],
    "a load has its buffer's dtype": [with_value(Load("x", (ZERO,), "float64"))],
    "a sign is a known one": [with_value(Unary("plus", ONE, "float32"))],  # type: ignore[arg-type]
    "a sign applies to its operand": [
        with_value(Unary("invert", ONE, "float32")),
        with_condition(Unary("not", ONE, "bool")),
        with_condition(Unary("neg", Const(True, "bool"), "bool")),
    ],
    "a sign has its result's dtype": [
        with_value(Unary("neg", ZERO, "float32")),
        with_value(Unary("bits", ONE, "float32")),
    ],
    "an operation is a known one": [with_value(Binary("atan2", ONE, ONE, "float32"))],  # type: ignore[arg-type]
    "operands of an operation have one dtype": [with_value(Binary("add", ONE, ZERO, "float32"))],
    "an operation takes such operands": [
        with_value(Binary("and", ONE, ONE, "float32")),
        kernel(Store("x", (Binary("div", ZERO, ZERO, "int32"),), ONE)),
        with_condition(Binary("land", ZERO, ZERO, "bool")),
        with_condition(Binary("add", Const(True, "bool"), Const(True, "bool"), "bool")),
    ],
    "an operation has its result's dtype": [
        with_value(Binary("add", ZERO, ZERO, "float32")),
        with_condition(If(Binary("lt", ONE, ONE, "float32"), ()).condition),
    ],
    "a function is a known one": [with_value(FunctionCall("gamma", (ONE,), "float32"))],
    "a function has its arguments": [with_value(FunctionCall("exp", (ONE, ONE), "float32"))],
    "arguments of a function have one dtype": [
        with_value(FunctionCall("atan2", (ONE, ZERO), "float32"))
    ],
    "a function takes such ones": [
        kernel(Store("x", (FunctionCall("exp", (ZERO,), "int32"),), ONE)),
        with_value(FunctionCall("popcount", (ONE,), "float32")),
    ],
    "a function has its result's dtype": [
        with_value(FunctionCall("exp", (ONE,), "float64")),
        with_value(FunctionCall("isnan", (ONE,), "float32")),
    ],
    "a cast is to a dtype of the IR": [with_value(Cast(ONE, "double"))],
    "what is within a range is an integer": [with_value(Within(ONE, 0, 1))],
    "the condition of a select is a bool": [with_value(Select(ZERO, ONE, ONE, "float32"))],
    "branches have one dtype": [
        with_value(Select(Const(True, "bool"), ONE, ZERO, "float32")),
        with_value(Select(Const(True, "bool"), ONE, ONE, "float64")),
    ],
    "a store writes a buffer in scope": [kernel(Store("y", (), ONE))],
    "a store has an index for each dimension": [kernel(Store("x", (ZERO, ZERO), ONE))],
    "indices of a store are integers": [kernel(Store("x", (ONE,), ONE))],
    "a stored value has its buffer's dtype": [with_value(ZERO)],
    "a variable's name is an identifier": [kernel(loop("false")), kernel(loop("a.b"))],
    "bounds are int32": [
        kernel(loop(end=ONE)),
        kernel(loop(begin=Const(0, "int64"), end=Const(0, "int64"))),
    ],
    "a loop's kind is a known one": [kernel(loop(kind="fast"))],
    "a loop's hint is a known one": [kernel(loop(hint="fast"))],
    "a loop's vector is a known one": [kernel(loop(vector="fast"))],
    "a loop in vectors is an innermost one": [kernel(loop(body=(loop("j"),), vector="lanes"))],
    "a loop of a grid is parallel": [kernel(loop(in_grid=True))],
    "the condition of an if is a bool": [with_condition(ZERO)],
    "a local's storage is a known one": [
        kernel(Local(Buffer("t", (), "int8"), (), storage="heap")),  # type: ignore[arg-type]
    ],
}  # fmt: skip


def test_every_rule_has_a_fault() -> None:
    assert set(FAULTS) == {rule.text for rules in RULES.values() for rule in rules}


@pytest.mark.parametrize(
    ("rule", "faulty"), [(rule, faulty) for rule, planted in FAULTS.items() for faulty in planted]
)
def test_a_fault_is_found(rule: str, faulty: Kernel) -> None:
    with pytest.raises(IRError) as caught:
        verify(faulty)
    assert f"a rule is broken: {rule}:\n" in str(caught.value)


def test_a_fault_deep_inside_is_shown_with_its_place() -> None:
    text = EXAMPLE.replace("a[i, j] * -0.5:float32", "a[i, j] * 1")
    with pytest.raises(IRError) as caught:
        verify(parse_kernel(text))
    assert str(caught.value) == (
        "loop IR of kernel 'example': a rule is broken: operands of an operation have one dtype:\n"
        "  (a[i, j] * 1)\n"
        "This is a fault in msops: in the front end or pass that made the kernel."
    )
    with pytest.raises(IRError) as caught:
        verify(parse_kernel(EXAMPLE.replace("t[j % 2] = t[0]", "t[j % 2] = 1 - 2  ", 1).replace(
            "1 - 2   + (a[i, j] * -0.5:float32)", "7")))  # fmt: skip
    assert "t[j % 2] = 7\n  <kernel text>:6\n    t[j % 2] = 7\n    ^^^^^^^^^^^^\n" in str(
        caught.value
    )


@pytest.mark.parametrize("dtype", INTEGERS)
def test_indices_may_have_any_integer_dtype(dtype: str) -> None:
    verify(kernel(Store("x", (Const(0, dtype),), ONE)))


def test_a_fact_is_found_once_and_is_no_part_of_a_node():
    asked = []

    @kept
    def width(expr: Expr) -> int:
        asked.append(expr)
        return len(expr.dtype)

    one, other = Var("i"), Var("i")
    assert [width(one), width(one), width(other)] == [5, 5, 5]
    assert [node is one for node in asked] == [True, False]
    assert one == Var("i")
    assert hash(one) == hash(Var("i"))
    assert repr(one) == "Var(name='i')"
    copies = copy.deepcopy(one), pickle.loads(pickle.dumps(one)), dataclasses.replace(one)
    assert [width(node) for node in copies] == [5, 5, 5]
    assert len(asked) == 5


@pytest.mark.parametrize("was_enabled", [True, False])
def test_the_garbage_collector_waits_for_all_and_is_then_as_it_was(was_enabled):
    (gc.enable if was_enabled else gc.disable)()
    try:
        with contextlib.suppress(ZeroDivisionError), collector_waits():
            with collector_waits():
                assert not gc.isenabled()
            assert not gc.isenabled()
            _ = 1 / 0
        assert gc.isenabled() == was_enabled
    finally:
        gc.enable()


@pytest.mark.parametrize("is_frozen", [True, False])
def test_what_a_compiler_keeps_is_not_looked_through_at_its_end(is_frozen):
    """Nor does the collector get back what a program has taken from it."""
    collections = []
    gc.callbacks.append(lambda phase, info: collections.append(phase))
    try:
        if is_frozen:
            gc.freeze()
        frozen = gc.get_freeze_count()
        with collector_waits():
            made = [[number] for number in range(3 * gc.get_threshold()[0])]
        of_all_ages = [gc.get_objects(generation=age) for age in range(3)]
        assert any(made[0] is each for each in of_all_ages[2]) != is_frozen
        assert gc.get_freeze_count() == frozen
        assert bool(collections) == is_frozen
    finally:
        gc.callbacks.pop()
        gc.unfreeze()
