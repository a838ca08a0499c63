"""XLA rewrites operations as if floats were real numbers; raised kernels are kept from it."""

from __future__ import annotations

import ast
import itertools
from collections.abc import Callable
from typing import Any

import jax
import numpy as np
import pytest
from loop_ir import FUNCTIONS, as_dtype, interpret, parse_kernel, to_raised
from loop_ir import build_jax as build
from quick_cases import in_turn, one_in

import msops
from msops.lang import log, output_tensor

pytestmark = pytest.mark.usefixtures("as_users_compile")


@pytest.fixture(autouse=True)
def x64() -> Any:
    """All dtypes of the IR, without touching JAX's global flag."""
    with jax.enable_x64(True):
        yield


FLOATS = """
x / y / z ; x / (y / z) ; (x / y) / (z / x) ; 1 / (x / y) ; x / 3 / y ; x / 3 ; x / 1e30
7 / (3 / x)
floor(x / 0.1) ; (x / 3) * 3 ; x / exp(y) ; exp(x) / exp(y) ; x / pow(y, z) ; x / sqrt(y)
x / rsqrt(y) ; x / sigmoid(y) ; x / log2(y) ; x / s ; s / x ; (x * 2) / s ; x / log(s)
x / pow(2, s)
pow(x / y, -1) ; pow(pow(x, y), -1) ; pow(exp(x), -2) ; pow(x, -2)
log(exp(x)) ; log(pow(x, y)) ; log(sqrt(x)) ; log(rsqrt(x)) ; log2(exp(x)) ; log(exp2(x))
exp(x) * exp(y) ; exp(x) * exp(x) ; pow(exp(x), 2) ; pow(exp(x), y) ; pow(pow(x, 2), 0.5)
sqrt(x * x) ; sqrt(pow(x, 2)) ; sqrt(x) * sqrt(x) ; sqrt(abs(x)) * sqrt(abs(x)) ; rsqrt(x * x)
rsqrt(1 / x) ; rsqrt(pow(x, -2)) ; rsqrt(x) * rsqrt(x) ; rsqrt(abs(x)) * rsqrt(abs(x))
(x + C) - C ; C + (x - C) ; (1 - x) + 2 ; (x - 1) - 2 ; x + 0 ; 0 + x ; x - (-0.0) ; (x * 2) + 0
(x * 3) * 1e30 ; 1e30 * (1e30 * x) ; (x * 1e-30) * 1e30 ; (x * 1e30) * s ; (x / 0.5) * 1e30
(x * 0.5) + (y * 0.5) ; (x * 2) - (y * 2)
F(x > 0) * y ; y * F(x == y) ; F(x > 0) / y
F(abs(x) >= 0) ; F(x * x >= 0) ; F(0 <= exp(x)) ; F(sqrt(x) < 0) ; F(0 > x * x)
""".replace("\n", ";").split(";")
"""Shapes that XLA rewrites, or would by its rules: x, y and z are elements, s is a number, C is so
large that what is added to it is rounded to a whole number. F makes a float of a condition."""

FEW = ["x / y / z", "x / 3", "x + 0", "(x + C) - C", "1e30 * (1e30 * x)", "log(exp(x))"]
"""One of each kind."""

INTEGERS = """
abs(x * x) ; F(x * x < 0) ; F(0 <= x * x) ; (x * x) // 2 ; (x * x) % 8 ; truncdiv(x * x, 4)
truncmod(x * x, 4) ; max(x * x, 0) ; sign(x * x) ; F(pow(x, 2) < 0) ; abs(pow(x, 4)) ; x - (x + y)
(x + y) - y ; (x * 3) * 5 ; (x * 7) // 7 ; abs((x + y) * (y + x)) ; (x * y) // y
""".replace("\n", ";").split(";")

_SIGNS: dict[type, str] = {
    ast.Add: "+", ast.Sub: "-", ast.Mult: "*", ast.Div: "/", ast.FloorDiv: "//", ast.Mod: "%",
    ast.Lt: "<", ast.Gt: ">", ast.GtE: ">=", ast.LtE: "<=", ast.Eq: "==",
}  # fmt: skip


def kernel_of(shapes: list[str], dtype: str, size: int, constants: dict[str, float]) -> Any:
    """Returns a kernel with a result for each of the shapes."""
    names = [f"r{n}" for n in range(len(shapes))]
    lines = [f"buffer {name}: {dtype}[{size}]" for name in names]
    trees = (ast.parse(shape, mode="eval").body for shape in shapes)
    texts = (text_of(tree, dtype, constants) for tree in trees)
    body = [f"{name}[i] = {text}" for name, text in zip(names, texts, strict=True)]
    inputs = ", ".join([*(f"{name}: {dtype}[{size}]" for name in "xyz"), f"s: {dtype}[]"])
    text = "\n".join([*lines, f"parallel i in 0 .. {size} {{", *body, "}"])
    return parse_kernel(f"kernel shapes({inputs}) -> ({', '.join(names)}) {{\n{text}\n}}")


def stored_kernel(shapes: list[str], dtype: str, size: int, constants: dict[str, float]) -> Any:
    """Returns the kernel whose operands are elements of arrays that are written part by part."""
    declared, stored, others, read = [], [], [], []
    for n, shape in enumerate(shapes):
        tree = ast.parse(shape, mode="eval").body
        is_float_of = isinstance(tree, ast.Call) and ast.unparse(tree.func) == "F"
        outermost = tree.args[0] if is_float_of else tree
        names = {}
        for part in _operands(outermost):
            name = names[part] = f"p{n}_{len(names)}"
            declared.append(f"buffer {name}: {dtype}[2, {size}]")
            stored.append(f"{name}[0, i] = {text_of(part, dtype, constants)}")
            others.append(f"{name}[1, i] = z[i]")
        arrays = [f"{name}[0, i]" for name in names.values()]
        value = _applied(outermost, arrays)
        declared.append(f"buffer r{n}: {dtype}[{size}]")
        read.append(f"r{n}[i] = {f'{dtype}({value})' if is_float_of else value}")
    nests = [f"parallel i in 0 .. {size} {{ {line} }}" for line in (*stored, *others, *read)]
    inputs = ", ".join([*(f"{name}: {dtype}[{size}]" for name in "xyz"), f"s: {dtype}[]"])
    results = ", ".join(f"r{n}" for n in range(len(shapes)))
    text = "\n".join([*declared, *nests])
    return parse_kernel(f"kernel stored({inputs}) -> ({results}) {{\n{text}\n}}")


def _operands(tree: ast.expr) -> list[ast.expr]:
    match tree:
        case ast.BinOp(left=left, right=right) | ast.Compare(left=left, comparators=[right]):
            return [left, right]
        case ast.Call(args=args):
            return args
    raise AssertionError(ast.unparse(tree))


def _applied(tree: ast.expr, operands: list[str]) -> str:
    match tree:
        case ast.BinOp(op=op) | ast.Compare(ops=[op]):
            return f"({operands[0]} {_SIGNS[type(op)]} {operands[1]})"
        case ast.Call(func=ast.Name(id=name)):
            return f"{name}({', '.join(operands)})"
    raise AssertionError(ast.unparse(tree))


def text_of(tree: ast.expr, dtype: str, constants: dict[str, float]) -> str:
    """Returns a Python expression as text of the IR, all operands in parentheses."""
    parts = [text_of(part, dtype, constants) for part in ast.iter_child_nodes(tree)
             if isinstance(part, ast.expr)]  # fmt: skip
    match tree:
        case ast.Constant(value=value):
            number = constants.get(str(value), value)
            return f"{float(number) if dtype.startswith('float') else number}:{dtype}"
        case ast.Name(id=name) if name in constants:
            return f"{constants[name]}:{dtype}"
        case ast.Name(id="s"):
            return "s[]"
        case ast.Name(id=name):
            return f"{name}[i]" if name in "xyz" else dtype if name == "F" else name
        case ast.UnaryOp(operand=ast.Constant(value=value)):
            return f"-{value}:{dtype}"
        case ast.BinOp(op=op) | ast.Compare(ops=[op]):
            return f"({parts[0]} {_SIGNS[type(op)]} {parts[1]})"
        case ast.Call():
            return f"{parts[0]}({', '.join(parts[1:])})"
    raise AssertionError(ast.unparse(tree))


def grid(values: list[Any], dtype: str) -> list[np.ndarray]:
    """Returns all triples of values, as three arrays."""
    return [
        np.array(column, dtype) for column in zip(*itertools.product(values, repeat=3), strict=True)
    ]


def assert_same(got: np.ndarray, want: np.ndarray, shape: str) -> None:
    """Checks floats: the same NaN, infinities and signs of zeros, else a few roundings apart."""
    kind = np.finfo(want.dtype)
    np.testing.assert_allclose(got, want, 16 * kind.eps, kind.tiny, err_msg=shape)
    zeros = (got == 0) & (want == 0)
    np.testing.assert_array_equal(np.signbit(got[zeros]), np.signbit(want[zeros]), shape)


@pytest.mark.parametrize(("dtype", "batched"), in_turn(["float32", "float64"], [False, True]))
@pytest.mark.parametrize(
    ("made", "shapes"),
    [
        (kernel_of, FLOATS),
        (stored_kernel, FEW),
        pytest.param(stored_kernel, FLOATS, marks=pytest.mark.slow),
    ],
    ids=["values", "few stored", "stored"],
)
def test_floats_are_not_taken_for_real_numbers(
    made: Callable[..., Any], shapes: list[str], dtype: str, batched: bool
) -> None:
    big = 1e30 if dtype == "float32" else 1e200
    nearest = 12582912.0 if dtype == "float32" else 1.5 * 2.0**52
    constants = {"C": nearest, "1e+30": big, "1e-30": 1 / big}
    shapes = [shape.strip() for shape in shapes if shape.strip()]
    values = [0.0, -0.0, 0.7, 6.0, -3.0, -800.0, 800.0, big, -1 / big, np.inf, -np.inf, np.nan]
    inputs = [*grid(values, dtype), np.array(3.0, dtype)]
    kernel = made(shapes, dtype, inputs[0].size, constants)
    function = build(to_raised(kernel))
    if batched:
        got = [r[1] for r in jax.jit(jax.vmap(function))(*(np.stack([a, a]) for a in inputs))]
    else:
        got = jax.jit(function)(*inputs)
    with np.errstate(all="ignore"):
        want = interpret(kernel, inputs)
    for shape, one, other in zip(shapes, got, want, strict=True):
        assert_same(np.asarray(one), other, shape)


@pytest.mark.parametrize("way", ["shared by a batch", "known to XLA"])
def test_divisors_that_the_program_shares_or_knows(way: str) -> None:
    """By ``jax.vmap`` over the numerators alone, or as constants of a jitted program."""
    kernel = parse_kernel("""kernel quotients(x: float32[4], d: float32[4])
                                     -> (by_data, floored, counted) {
      buffer by_data: float32[4]
      buffer floored: float32[4]
      buffer counted: float32[4]
      parallel i in 0 .. 4 {
        by_data[i] = x[i] / d[i]
        floored[i] = x[i] // d[i]
        counted[i] = x[i] / float32((3 * i) + 3)
      }
    }""")
    function = build(to_raised(kernel))
    x, d = np.float32([3e38, 1.75, -1.75, 7]), np.float32([3e38, 6, 6, -3e38])
    if way == "known to XLA":
        got = jax.jit(lambda x: function(x, d))(x)
    else:
        got = [r[1] for r in jax.vmap(function, in_axes=(0, None))(np.stack([x, x]), d)]
    wanted = x / d, x // d, x / np.float32([3, 6, 9, 12])
    for one, other in zip(got, wanted, strict=True):
        np.testing.assert_array_equal(np.asarray(one), other)


def once(x, y):
    out = output_tensor(x.shape, x.dtype)
    for i in range(x.shape[0]):
        out[i] = x[i] / y[i]
    return out


def twice(x, y):
    out = output_tensor(x.shape, x.dtype)
    for i in range(x.shape[0]):
        out[i] = x[i] / y[i] / y[i]
    return out


def of_log(x, y):
    out = output_tensor(x.shape, x.dtype)
    for i in range(x.shape[0]):
        out[i] = log(x[i]) / y[i]
    return out


def slopes_of(function: Callable[..., Any], lower: str, *arrays: np.ndarray) -> list[np.ndarray]:
    op = msops.Custom(function, func_type="akg", compile_attrs={"lower": lower})
    slopes = jax.jit(jax.grad(lambda *xs: op(*xs).sum(), (0, 1)))(*arrays)
    return [np.asarray(slope) for slope in slopes]


@pytest.mark.parametrize("function", [once, twice, of_log])
def test_slopes_of_quotients_are_those_of_adjoint_loops(function: Callable[..., Any]) -> None:
    """Where the square of a divisor is infinite, a quotient is NaN, or divisors are in a chain."""
    numbers = np.float32([0.7, -3, 1e30, 1e25, 1e-30, 1e-25, 2, 80])
    x, y = np.repeat(numbers, len(numbers)), np.tile(numbers, len(numbers))
    raised, native = (slopes_of(function, lower, x, y) for lower in ("xla", "native"))
    for one, other in zip(raised, native, strict=True):
        np.testing.assert_allclose(one, other, 1e-6)
    if function is once:
        with np.errstate(all="ignore"):
            wanted = 1 / y, -(1 / y) * (x / y)
        for one, want in zip(raised, wanted, strict=True):
            np.testing.assert_allclose(one, want, 1e-6)


@pytest.mark.parametrize("dtype", ["int8", "int32", "int64", "uint8", "uint32"])
def test_products_of_integers_wrap(dtype: str) -> None:
    shapes = [s.strip() for s in INTEGERS if s.strip() and (dtype[0] != "u" or "sign" not in s)]
    info = np.iinfo(dtype)
    root = int(info.max**0.5) + 1
    values = [0, 1, 2, 7, root, info.max, info.max // 3, info.min, info.min + 1]
    inputs = [*grid(values, dtype), np.array(3, dtype)]
    kernel = kernel_of(shapes, dtype, inputs[0].size, {})
    got = jax.jit(build(to_raised(kernel)))(*inputs)
    for shape, one, other in zip(shapes, got, interpret(kernel, inputs), strict=True):
        np.testing.assert_array_equal(np.asarray(one), other, shape)


def test_statements_are_not_rewritten_together() -> None:
    kernel = parse_kernel("""kernel chain(a: float32[4], m: float32[3, 4]) -> (y, rows) {
      buffer t: float32[4]
      buffer y: float32[4]
      buffer rows: float32[3, 4]
      parallel i in 0 .. 4 { t[i] = a[i] / a[3 - i] }
      parallel j in 0 .. 4 { y[j] = t[j] / a[j] }
      parallel k in 0 .. 3 { parallel l in 0 .. 4 { rows[k, l] = m[k, l] / m[k, 0] } }
    }""")
    rows = np.float32([[2e38, 1e38, -2e38, 3e37], [7, 1, 2, 3], [3, 2, 5, 7]])
    inputs = [np.full(4, 1e-30, "float32"), rows]
    chained, divided = (np.asarray(r) for r in jax.jit(build(to_raised(kernel)))(*inputs))
    np.testing.assert_array_equal(chained, np.full(4, 1 / np.float32(1e-30)))
    np.testing.assert_array_equal(divided, rows / rows[:, :1])


@pytest.mark.parametrize(
    "value",
    ["(c[j, i - 1] / a[j, i]) / a[j, i]", "c[j, i - 1] / 10.0", "(c[j, i - 1] + 3e7) - 3e7"],
)
def test_recurrences_are_not_rewritten(value: str) -> None:
    kernel = parse_kernel(
        f"""kernel recurrence(a: float32[3, 9]) -> (c) {{
      buffer c: float32[3, 9]
      parallel k in 0 .. 3 {{ c[k, 0] = a[k, 0] }}
      parallel j in 0 .. 3 {{ serial i in 1 .. 9 {{ c[j, i] = {value} }} }}
    }}""".replace("10.0", "10.0:float32").replace("3e7", "30000000.0:float32")
    )
    a = np.full((3, 9), np.float32([[1e-25], [0.7], [1e20]]))
    with np.errstate(all="ignore"):
        (want,) = interpret(kernel, [a])
    (got,) = jax.jit(build(to_raised(kernel)))(a)
    np.testing.assert_array_equal(np.asarray(got), want)


@pytest.mark.parametrize("dtype", one_in(2, ["bfloat16", "float16", "float32", "float64"]))
def test_a_nan_that_is_known_when_xla_compiles_stays_nan(dtype: str) -> None:
    """XLA's exp of it is what a register holds."""
    functions = [name for name, row in FUNCTIONS.items() if row.domain != "integer"]
    functions = [f for f in functions if len(FUNCTIONS[f].arguments) == 1]
    functions = [f for f in functions if not FUNCTIONS[f].to_bool]
    names = [f"{name}_{way}" for name in functions for way in ("nan", "zero")]
    lines = [f"buffer {name}: {dtype}[40]" for name in names]
    body = [
        f"{name}_nan[i] = {name}(x[i] + nan:{dtype})\n"
        f"{name}_zero[i] = {name}(x[i] + (0.0:{dtype} / 0.0:{dtype}))"
        for name in functions
    ]
    text = "\n".join([*lines, "parallel i in 0 .. 40 {", *body, "}"])
    kernel = parse_kernel(f"kernel k(x: {dtype}[40]) -> ({', '.join(names)}) {{\n{text}\n}}")
    x = np.arange(40).astype(as_dtype(dtype).dtype)
    for name, got in zip(names, jax.jit(build(to_raised(kernel)))(x), strict=True):
        assert np.isnan(np.asarray(got, "float64")).all(), name


def test_a_nan_of_stored_constants_stays_nan() -> None:
    kernel = parse_kernel("""kernel k(x: bfloat16[9]) -> (y) {
      buffer y: bfloat16[9, 1]
      y[0, 0] = y[0, 0]
      y[0, 0] = y[0, 0] + exp(y[0, 0] // -0.0:bfloat16)
    }""")
    y = np.asarray(jax.jit(build(to_raised(kernel)))(np.ones(9, as_dtype("bfloat16").dtype))[0])
    assert np.isnan(y[0, 0])


def test_repeated_terms_are_not_rewritten() -> None:
    kernel = parse_kernel(
        """kernel repeated(a: float32[3]) -> (y) {
      buffer t: float32[3]
      buffer y: float32[3]
      parallel i in 0 .. 3 { reduction j in 0 .. 3 { t[i] = t[i] + (a[i] * 1e30:float32) } }
      parallel k in 0 .. 3 { y[k] = t[k] * 1e-30:float32 }
    }""".replace("1e30", repr(1e30)).replace("1e-30", repr(1e-30))
    )
    a = np.float32([0.5, 1e20, -3.0])
    with np.errstate(over="ignore"):
        (want,) = interpret(kernel, [a])
    np.testing.assert_allclose(jax.jit(build(to_raised(kernel)))(a)[0], want, 1e-6)


def test_gradients_pass_through() -> None:
    kernel = parse_kernel("""kernel slopes(x: float64[3], s: float64[]) -> (y) {
      buffer y: float64[3]
      parallel i in 0 .. 3 {
        y[i] = ((x[i] / s[]) / 7.0:float64) + ((exp(x[i]) * exp(s[]))
                + (log(pow(x[i], s[])) + 0.0:float64))
      }
    }""")
    function = build(to_raised(kernel))
    x, s = np.array([0.5, 1.5, 2.0]), np.array(3.0)
    by_x, by_s = jax.jit(jax.grad(lambda x, s: function(x, s)[0].sum(), (0, 1)))(x, s)
    np.testing.assert_allclose(by_x, 1 / s / 7 + np.exp(x + s) + s / x, 1e-12)
    want = (-x / s**2 / 7 + np.exp(x + s) + np.log(x)).sum()
    np.testing.assert_allclose(by_s, want, 1e-12)


def test_a_product_and_a_sum_are_rounded_once_at_most() -> None:
    inputs = ", ".join(f"{name}: float32[999]" for name in "xyz")
    kernel = parse_kernel(f"""kernel scaled({inputs}) -> (r) {{
  buffer r: float32[999]
  parallel i in 0 .. 999 {{
    r[i] = (x[i] * y[i]) + z[i]
  }}
}}""")
    x, y, z = np.random.default_rng(0).normal(size=(3, 999)).astype("float32")
    # What LLVM makes one instruction of: 1e38, where the product alone is infinite.
    x[0], y[0], z[0] = 1e10, 4e28, -3e38
    (twice,) = interpret(kernel, [x, y, z])
    once = (x.astype("float64") * y + z).astype("float32")
    got = np.asarray(jax.jit(build(to_raised(kernel)))(x, y, z)[0])
    assert ((got == once) | (got == twice)).all()
    assert np.isinf(twice[0])
    assert np.isclose(once[0], 1e38)
