"""The Hybrid DSL becomes loop IR that computes what the kernel says."""

from __future__ import annotations

import numpy as np
import pytest
from loop_corpus import CORPUS, Case, specialised
from loop_ir import Spec, interpret, kernel_text, verify
from loop_source import body, define, matrix, run, specialise, vector

from msops import Custom
from msops.errors import BuildError


@pytest.mark.parametrize("size", [5, 8])
@pytest.mark.parametrize("case", CORPUS, ids=lambda case: case.name)
def test_the_corpus_agrees_with_numpy(case: Case, size: int) -> None:
    inputs = case.inputs(np.random.default_rng(size), size)
    kernel = specialised(case, inputs)
    verify(kernel)
    case.check(inputs, interpret(kernel, inputs))


def test_the_corpus_is_broad() -> None:
    assert len({case.func for case in CORPUS}) >= 45
    assert len({case.name for case in CORPUS}) == len(CORPUS)


def test_a_kernel_is_named_and_typed_as_written() -> None:
    func = define(
        """
        def k(a, b):
            '''Adds.'''
            c = output_tensor(a.shape, a.dtype)
            "the loop"
            for i in range(a.shape[0]):
                c[i] = a[i] + b[i]
            return c, b
        """
    )
    assert kernel_text(specialise(func, vector(), vector())) == (
        "kernel k(a: float32[8], b: float32[8]) -> (c, b) {\n"
        "  buffer c: float32[8]\n"
        "  serial i in 0 .. 8 {\n"
        "    c[i] = a[i] + b[i]\n"
        "  }\n"
        "}"
    )


@pytest.mark.parametrize(
    ("head", "loop", "index"),
    [
        ("range(8)", "serial i in 0 .. 8 {", "i"),
        ("range(2, 8)", "serial i in 2 .. 8 {", "i"),
        ("range(2, 8, 1)", "serial i in 2 .. 8 {", "i"),
        ("serial(8)", "serial i in 0 .. 8 @serial {", "i"),
        ("parallel(8)", "serial i in 0 .. 8 @parallel {", "i"),
        ("vectorize(8)", "serial i in 0 .. 8 @vectorize {", "i"),
        ("reduce(8)", "serial i in 0 .. 8 @reduce {", "i"),
        ("unroll(8)", "serial i in 0 .. 8 @unroll {", "i"),
        ("bind('threadIdx.x', 8)", "serial i in 0 .. 8 @parallel {", "i"),
        ("range(7, -1, -1)", "serial i in 0 .. 8 {", "7 - i"),
        ("range(7, 0, -2)", "serial i in 0 .. 4 {", "7 - (2 * i)"),
        ("range(0, 8, 3)", "serial i in 0 .. 3 {", "3 * i"),
        ("range(1, 8, 3)", "serial i in 0 .. 3 {", "1 + (3 * i)"),
        ("range(n[0], 8)", "serial i in n[0] .. 8 {", "i"),
        ("range(n[0], 8, 2)",
         "serial i in 0 .. int32(((8:int64 - int64(i_begin[])) + 1:int64) // 2:int64) {",
         "i_begin[] + (2 * i)"),
    ],
)  # fmt: skip
def test_ranges_ascend_by_one(head: str, loop: str, index: str) -> None:
    func = define(f"def k(a, n):\n    for i in {head}:\n        a[i] = 1.0\n    return a")
    lines = [line.strip() for line in body(func, vector(), vector(dtype="int32")).splitlines()]
    assert loop in lines
    assert f"a[{index}] = 1.0:float32" in lines


@pytest.mark.parametrize(
    "bounds", [(8,), (3, 8), (8, 3), (0, 9, 2), (9, 0, -3), (9, 0, 2), (0, 9, -1), (-4, 5, 4)]
)
def test_ranges_count_as_in_python(bounds: tuple[int, ...]) -> None:
    text = ", ".join(map(str, bounds))
    func = define(
        f"""
        def k(a):
            for i in range({text}):
                a[0] = a[0] * 10 + int64(i)
            return a
        """
    )
    total = 0
    for i in range(*bounds):
        total = total * 10 + i
    assert run(func, np.int64([0])).tolist() == [total]


# What wraps to a small int32 must not count as that.
WIDE_BOUNDS = [
    ("uint32", 2**31 - 3, 2**31 + 2, 5),
    ("uint32", 2**32 - 1, 3, 0),
    ("int64", 2**32 - 3, 2**32 + 2, 5),
    ("int64", 0, -(2**32) + 2, 0),
    ("int64", 1, 3, 2),
    ("uint64", 2**64 - 3, 2**64 - 1, 2),
    ("uint64", 2**63, 3, 0),
]


@pytest.mark.parametrize(("dtype", "begin", "end", "count"), WIDE_BOUNDS)
def test_wide_bounds_count_as_in_python(dtype: str, begin: int, end: int, count: int) -> None:
    func = define(
        """
        def k(n, c):
            for i in range(n[0], n[1]):
                c[0] += 1
            return c
        """
    )
    assert run(func, np.array([begin, end], dtype), np.int32([0])).tolist() == [count]


def test_bounds_are_those_at_the_start_of_the_loop() -> None:
    func = define(
        """
        def k(n):
            for i in range(n[0], 0, -2):
                n[0] = 100
                n[1] += i
            return n
        """
    )
    assert run(func, np.int32([5, 0])).tolist() == [100, 5 + 3 + 1]


def test_loop_variables_get_names_of_their_own() -> None:
    func = define(
        """
        def k(a, j):
            for i in range(2):
                a[i] = j
            for i in range(2):
                for t in grid((2, 3)):
                    a[t[0] + i] = a[t[1]]
            return a
        """
    )
    text = body(func, vector(), j=3)
    assert text.count("serial i in") == 1
    assert "serial i_1 in" in text
    assert "a[t_0 + i_1] = a[t_1]" in text


@pytest.mark.parametrize(
    ("subscript", "expected"),
    [
        ("t", "t_0, t_1, t_2"),
        ("t[0], t[1], t[2]", "t_0, t_1, t_2"),
        ("t[-1], t[0], t[-2]", "t_2, t_0, t_1"),
        ("t[:1] + t[2:] + t[1:2]", "t_0, t_2, t_1"),
        ("t[0:2], 1", "t_0, t_1, 1"),
        ("t[0], t[1:]", "t_0, t_1, t_2"),
        ("t[2] - 1, t[:2]", "t_2 - 1, t_0, t_1"),
    ],
)
def test_index_tuples(subscript: str, expected: str) -> None:
    func = define(
        f"def k(a):\n    for t in grid(a.shape):\n        a[{subscript}] = 1\n    return a"
    )
    assert f"a[{expected}] = 1.0:float32" in body(func, Spec((2, 2, 2), "float32"))


SCALARS = {
    # A constant, or an integer of loop variables, is no memory.
    "n = len(a)\nm = n * 2 - 1\na[m - n] = 2 * n": "a[7] = 16.0:float32",
    "for i in range(4):\n    j = 2 * i + 1\n    a[j] = 0": "a[(2 * i) + 1] = 0.0:float32",
    "for i in range(4):\n    x = i > 2 and i < 3\n    a[i] = 1 if x else 2": (
        "a[i] = ((i > 2) && (i < 3)) ? 1.0:float32 : 2.0:float32"
    ),
    # What is loaded stays what it was.
    "x = a[0]\na[0] = 1\na[1] = x": "x[] = a[0]\n  a[0] = 1.0:float32\n  a[1] = x[]",
    "for i in range(4):\n    x = sqrt(float32(i))\n    a[i] = x": "x[] = sqrt(float32(i))",
    # Assigned again: memory around the rest of its scope.
    "s = 0.0\ns = s + a[0]\na[1] = s": "local s: float32[] {\n  s[] = 0.0:float32\n",
}


@pytest.mark.parametrize("statements", SCALARS)
def test_scalars(statements: str) -> None:
    lines = statements.replace("\n", "\n    ")
    func = define(f"def k(a):\n    {lines}\n    return a")
    assert SCALARS[statements] in body(func, vector())


def test_a_scalar_lives_in_the_smallest_block_of_its_uses() -> None:
    func = define(
        """
        def k(a):
            for i in range(4):
                if a[i] > 0.0:
                    x = a[i]
                    x = x * x
                    a[i] = x
                if a[i] > 1.0:
                    y = a[i]
                else:
                    y = 3.0
                a[i] = y
            return a
        """
    )
    assert body(func, vector()) == (
        "serial i in 0 .. 4 {\n"
        "  if (a[i] > 0.0:float32) {\n"
        "    local x: float32[] {\n"
        "      x[] = a[i]\n"
        "      x[] = x[] * x[]\n"
        "      a[i] = x[]\n"
        "    }\n"
        "  }\n"
        "  local y: float32[] {\n"
        "    if (a[i] > 1.0:float32) {\n"
        "      y[] = a[i]\n"
        "    } else {\n"
        "      y[] = 3.0:float32\n"
        "    }\n"
        "    a[i] = y[]\n"
        "  }\n"
        "}"
    )


def test_a_constant_assigned_in_a_branch_is_not_one_outside() -> None:
    """MindSpore 2.0.0's AKG takes it for a constant of the whole scope, and fails to compile."""
    func = define(
        """
        def k(a):
            for i in range(2):
                if a[i] > 0.0:
                    x = 7.0
                else:
                    x = 0.0
                a[i] = x
            return a
        """
    )
    assert run(func, np.float32([-1, 1])).tolist() == [0, 7]


def test_a_name_may_be_declared_again_in_another_loop() -> None:
    """MindSpore 2.0.0 refuses this: 's is used out of the scope it is defined'."""
    func = define(
        """
        def k(a):
            for i in range(2):
                s = a[i] * 2
                a[i] = s
            for i in range(2):
                s = a[i] + 1
                s += 1
                a[i] = s
            return a
        """
    )
    assert run(func, np.float32([1, 2])).tolist() == [4, 6]


def test_a_temporary_is_zero_each_time_its_body_is_entered() -> None:
    func = define(
        """
        def k(a):
            outer = allocate((2,), "float32")
            for i in range(3):
                inner = allocate((2,), "float32")
                inner[0] += 1
                outer[0] += inner[0]
                a[i] = outer[0]
            return a
        """
    )
    assert run(func, np.zeros(3, np.float32)).tolist() == [1, 2, 3]
    text = body(func, vector())
    assert text.startswith("buffer outer: float32[2]\n")
    assert "  local inner: float32[2] {" in text


def test_tuples_swap() -> None:
    """MindSpore 2.0.0's AKG assigns one after the other, so that a swap copies."""
    func = define(
        """
        def k(a):
            n = a.shape[0]
            for i in range(n // 2):
                a[i], a[n - 1 - i] = a[n - 1 - i], a[i]
            return a
        """
    )
    assert run(func, np.arange(5.0)).tolist() == [4, 3, 2, 1, 0]


def test_shapes_unpack() -> None:
    func = define(
        """
        def k(a):
            n, m = a.shape
            size = (m, n)
            c = output_tensor(size + (1,), a.dtype)
            for i in range(n):
                for j in range(m):
                    c[j, i, 0] = a[i, j]
            return c
        """
    )
    a = np.arange(6.0).reshape(2, 3)
    np.testing.assert_array_equal(run(func, a), a.T[:, :, None])


def test_a_condition_of_constants_is_decided_at_once() -> None:
    func = define(
        """
        def k(a, mode):
            if a.dtype == "float32" and len(a.shape) == 1:
                step = 2
            elif mode > 3:
                a[9, 9] = 1
            for i in range(a.shape[0]):
                x = 1 if mode == 1 else a[0, 0, 0]
                a[i] = step * x
            return a
        """
    )
    assert body(func, vector(), mode=1) == "serial i in 0 .. 8 {\n  a[i] = 2.0:float32\n}"


@pytest.mark.parametrize(
    ("expression", "text"),
    [
        ("a[0] < a[1] < a[2]", "(a[0] < a[1]) && (a[1] < a[2])"),
        ("a[0] > 0 and not a[1] > 0 or a[2] == 1",
         "((a[0] > 0.0:float32) && !(a[1] > 0.0:float32)) || (a[2] == 1.0:float32)"),
        ("a[0] > 0 and True", "a[0] > 0.0:float32"),
        ("False or a[0] != 0", "a[0] != 0.0:float32"),
        ("n[0] < 2.5", "float32(n[0]) < 2.5:float32"),
        ("n[0] > 7", "n[0] > 7"),
        ("a[0] >= n[0]", "a[0] >= float32(n[0])"),
        ("isnan(a[0])", "isnan(a[0])"),
    ],
)  # fmt: skip
def test_conditions(expression: str, text: str) -> None:
    func = define(f"def k(a, n):\n    if {expression}:\n        a[0] = 1\n    return a")
    assert body(func, vector(), vector(dtype="int32")).startswith(f"if ({text}) {{")


EXPRESSIONS = {
    # Constants take the other operand's type; two of them compute as in Python.
    "2 * a[0]": "2.0:float32 * a[0]",
    "a[0] * (1 + 0.5)": "a[0] * 1.5:float32",
    "a[0] / len(a)": "a[0] / 8.0:float32",
    "a[0] * float32(n[0])": "a[0] * float32(n[0])",
    "-a[0] + +a[1]": "-(a[0]) + a[1]",
    "max(a[0], 3)": "max(a[0], 3.0:float32)",
    "min(a[0], a[1])": "min(a[0], a[1])",
    "a[0] ** 2": "pow(a[0], 2.0:float32)",
    "power(a[0], 2.0)": "pow(a[0], 2.0:float32)",
    "atan2(a[0], 1)": "atan2(a[0], 1.0:float32)",
    "a[0] % 2": "a[0] % 2.0:float32",
    "a[0] // 2": "a[0] // 2.0:float32",
    "abs(a[0])": "abs(a[0])",
    "round(a[0])": "nearbyint(a[0])",
    "round(2.5)": "2.0:float32",
    "exp(1)": "2.718281828459045:float32",
    "float32(int32(ceil(len(a) / 4.0)) + abs(-3))": "5.0:float32",
    "log(0.0)": "log(0.0:float32)",
    "(-8.0) ** 0.5": "pow(-8.0:float32, 0.5:float32)",
    "likely(a[0])": "a[0]",
    "float32(ceil_div(n[0], 4))": "float32((n[0] // 4) + (((n[0] % 4) != 0) ? 1 : 0))",
    "float32(int32(a[0]) << 2 >> 1 & 7 | 8 ^ 3)": ("float32((((int32(a[0]) << 2) >> 1) & 7) | 11)"),
    "float32(~n[0])": "float32(~(n[0]))",
    "float32(ceil_div(len(a), 3))": "3.0:float32",
    "a[1] * (1 if n[0] > 0 else 0)": "a[1] * ((n[0] > 0) ? 1.0:float32 : 0.0:float32)",
    "1.0 if n[0] > 0 else a[0]": "(n[0] > 0) ? 1.0:float32 : a[0]",
    "float32(float16(0.1))": "0.0999755859375:float32",
    "sigmoid(a[0]) + rsqrt(a[1])": "sigmoid(a[0]) + rsqrt(a[1])",
    "a[n[0] + 1]": "a[n[0] + 1]",
}


@pytest.mark.parametrize("expression", EXPRESSIONS)
def test_expressions(expression: str) -> None:
    func = define(f"def k(a, n):\n    a[0] = {expression}\n    return a")
    assert body(func, vector(), vector(dtype="int32")) == f"a[0] = {EXPRESSIONS[expression]}"


# Of a: float64 and n: int64.
LITERALS = {
    "a[0] = 2.0 * (1.0 if n[0] > 0 else 0.0)": (
        "2.0:float64 * ((n[0] > 0:int64) ? 1.0:float64 : 0.0:float64)"
    ),
    "a[0] = max(1 if n[0] > 0 else 2, 3)": (
        "max((n[0] > 0:int64) ? 1.0:float64 : 2.0:float64, 3.0:float64)"
    ),
    "n[0] = 1 - (1 if a[0] > 0.0 else 0)": "1:int64 - ((a[0] > 0.0:float64) ? 1:int64 : 0:int64)",
    "n[0] = n[0] + -(1 if n[0] == 2 else 4)": "n[0] + -((n[0] == 2:int64) ? 1:int64 : 4:int64)",
}


@pytest.mark.parametrize("statement", LITERALS)
def test_arithmetic_on_choices_of_constants_takes_a_wider_dtype(statement: str) -> None:
    func = define(f"def k(a, n):\n    {statement}\n    return a, n")
    text = body(func, vector(dtype="float64"), vector(dtype="int64"))
    assert text == f"{statement[:4]} = {LITERALS[statement]}"


@pytest.mark.parametrize(
    "statement",
    [
        "n[0] = 100 * (1 if a[0] > 0.0 else 2)",  # it would wrap
        "n[0] = 2.0 * (1.0 if a[0] > 0.0 else 2.0)",
        "a[0] = (1 if a[0] > 0.0 else 2) & 1",
    ],
)
def test_arithmetic_on_choices_of_constants_takes_no_narrower_dtype(statement: str) -> None:
    func = define(f"def k(a, n):\n    {statement}\n    return a, n")
    with pytest.raises(BuildError, match="cannot be stored in"):
        body(func, vector(dtype="float64"), vector(dtype="int8"))


@pytest.mark.parametrize("lower", ["xla", "native"])
def test_halves_are_rounded_as_python_rounds_them(lower: str) -> None:
    """MindSpore 2.0.0 compiles `round` to C's, which rounds halves away from zero."""
    func = define(
        "def k(a):\n    for i in range(len(a)):\n        a[i] = round(a[i])\n    return a"
    )
    halves = np.float32([-2.5, -1.5, -0.5, 0.5, 1.5, 2.5, 2.4])
    expected = [float(round(float(half))) for half in halves]
    assert run(func, halves).tolist() == expected
    attrs = {"lower": lower}
    assert Custom(func, func_type="akg", compile_attrs=attrs)(halves).tolist() == expected


def test_division_of_integers_floors() -> None:
    func = define(
        """
        def k(a):
            for i in range(len(a)):
                a[i] = (a[i] // 3) * 100 + a[i] % 3
            return a
        """
    )
    # MindSpore 2.0.0, func_type="akg" on CPU, prints these for these inputs.
    values = np.int32([-7, -3, -1, 0, 1, 2, 7, 9])
    assert run(func, values).tolist() == [-298, -100, -98, 0, 1, 2, 201, 300]


def test_augmented_assignment_converts_integers() -> None:
    func = define(
        """
        def k(a, n):
            for i in range(3):
                a[i] += i
                a[i] *= n[i]
            return a
        """
    )
    # MindSpore 2.0.0 adds a loop variable to a float here, though not in a[i] + i.
    assert run(func, np.float32([0.5, 1, 1]), np.int16([1, 2, 3])).tolist() == [0.5, 4, 9]


@pytest.mark.parametrize("dtype", ["float16", "bfloat16", "float64", "int64", "int8"])
def test_scalars_that_start_as_constants_take_the_type_they_meet(dtype: str) -> None:
    """AKG keeps them float32 or int32, and refuses the others."""
    func = define(
        """
        def k(a):
            c = output_tensor((1,), a.dtype)
            total = 0
            largest = 0
            twice = total + largest
            for i in range(a.shape[0]):
                total += a[i]
                largest = max(a[i], largest)
                twice = total * 2
            c[0] = total + largest - twice
            return c
        """
    )
    text = body(func, vector(dtype=dtype))
    assert f"local total: {dtype}[]" in text
    assert f"local twice: {dtype}[]" in text
    if dtype != "bfloat16":
        assert run(func, np.array([1, 5, 2], dtype)).tolist() == [8 + 5 - 16]


def test_what_swaps_with_an_untyped_scalar_takes_its_type() -> None:
    func = define(
        """
        def k(a):
            x, y = 0, 1
            for i in range(len(a)):
                a[i] = x
                x, y = y, x + y if y < 5 else -y
            return a
        """
    )
    assert "local y: float64[]" in body(func, vector(dtype="float64"))
    assert run(func, np.zeros(7)).tolist() == [0, 1, 1, 2, 3, 5, -5]


@pytest.mark.parametrize("dtype", ["float16", "float64"])
@pytest.mark.parametrize("order", [(0, 1, 2, 3), (3, 2, 1, 0), (2, 0, 3, 1)])
def test_a_scalar_that_starts_as_a_constant_is_copied_from_another(
    dtype: str, order: tuple[int, ...]
) -> None:
    steps = ["s = 0.5 * s + a[i]", "copy = s", "half = copy / 2.0 if i > 0 else s", "count = half"]
    loop = "".join(f"\n                {steps[step]}" for step in order)
    func = define(
        f"""
        def k(a):
            c = output_tensor((4,), a.dtype)
            s = 0.0
            copy = -1e4
            half = 1.0
            count = 0
            for i in range(a.shape[0]):{loop}
            c[0], c[1], c[2], c[3] = s, copy, half, count
            return c
        """
    )
    text = body(func, vector(dtype=dtype))
    assert all(f"local {name}: {dtype}[]" in text for name in ("s", "copy", "half", "count"))
    a = np.array([1, 5, 2], dtype)
    values = {"s": 0.0, "copy": -1e4, "half": 1.0, "count": 0, "a": a.tolist()}
    for i in range(3):
        for step in order:
            name, value = steps[step].split(" = ")
            values[name] = eval(value, {}, values | {"i": i})
    wanted = [values[name] for name in ("s", "copy", "half", "count")]
    assert run(func, a).tolist() == wanted


def test_a_scalar_that_starts_as_a_conversion_has_its_type() -> None:
    for statement in ("s = a[i]", "s = s + a[i]"):
        func = define(
            f"""
            def k(a):
                s = float32(0)
                for i in range(a.shape[0]):
                    {statement}
                a[0] = float16(s)
                return a
            """
        )
        with pytest.raises(BuildError, match=r"float16 cannot be stored in 's'|are float32 and"):
            body(func, vector(dtype="float16"))


def test_a_count_beside_floats_stays_an_integer() -> None:
    func = define(
        """
        def k(a, n):
            count = 0
            for i in range(a.shape[0]):
                if a[i] > count:
                    count += 1
            n[0] = count
            return n
        """
    )
    assert "local count: int32[]" in body(func, vector(), vector(dtype="int32"))
    assert run(func, np.float32([1, 0.5, 2]), np.int32([0])).tolist() == [2]


def test_attributes_follow_the_tensors() -> None:
    func = define(
        """
        def k(a, scale, shift, axis=0, kind="plain"):
            c = output_tensor((a.shape[axis],), a.dtype)
            for i in range(c.shape[0]):
                c[i] = scale * a[i] + shift[1] if kind == "plain" else 0
            return c
        """
    )
    text = body(func, vector(), scale=3, shift=[np.float64(1.5), 2.5])
    assert "c[i] = (3.0:float32 * a[i]) + 2.5:float32" in text
    assert "c[i] = 0.0:float32" in body(func, vector(), scale=3, shift=(1, 2), kind="none")


WEIGHTS = (0.25, 0.5, 0.25)
SIZE = np.int64(8)


def test_numbers_and_tuples_from_outside_are_captured() -> None:
    offset = 1

    def k(a):
        c = output_tensor((SIZE,), a.dtype)  # noqa: F821
        for i in range(1, SIZE - 1):
            for j in const_range(3):  # noqa: F821
                c[i] += WEIGHTS[j] * a[i + j - offset]
        return c

    a = np.arange(8.0) ** 2
    expected = np.convolve(a, WEIGHTS, "same")
    expected[[0, -1]] = 0
    np.testing.assert_allclose(run(k, a), expected)


def test_scopes_for_the_scheduler_are_read_and_left_out() -> None:
    func = define(
        """
        def k(a):
            c = output_tensor(a.shape, a.dtype)
            with block_realize(c):
                with attr("enable_auto_inline", False):
                    for i in range(4):
                        x = a[i]
                        x += 1
                        c[i] = x
            return c
        """
    )
    assert run(func, np.float32([0, 1, 2, 3])).tolist() == [1, 2, 3, 4]


def test_in_place_outputs_are_arguments_returned() -> None:
    func = define(
        """
        def k(a, b):
            d = output_tensor(b.shape, b.dtype)
            for i in range(2):
                d[i] = a[i]
                a[i] += b[i]
            return a, d
        """
    )
    kernel = specialise(func, vector(2), vector(2))
    assert kernel.results == ("a", "d")
    a, b = np.float32([1, 2]), np.float32([10, 20])
    changed, old = interpret(kernel, [a, b])
    assert (changed.tolist(), old.tolist(), a.tolist()) == ([11, 22], [1, 2], [1, 2])


@pytest.mark.parametrize("shape", [(), (1,), (0,), (2, 0, 3)])
def test_small_and_empty_tensors(shape: tuple[int, ...]) -> None:
    func = define(
        """
        def k(a, s):
            c = output_tensor(a.shape, a.dtype)
            for t in grid(a.shape):
                c[t] = a[t] * s
            return c
        """
    )
    a = np.full(shape, 3, np.float32)
    np.testing.assert_array_equal(run(func, a, np.float32(2)), a * 2)


def test_assert_is_about_constants() -> None:
    func = define('def k(a):\n    assert len(a.shape) == 1, "a vector"\n    return a')
    assert run(func, np.float32([1])).tolist() == [1]


def test_unread_declarations_leave_nothing() -> None:
    func = define(
        """
        def k(a):
            for i in range(a.shape[0]):
                unused = allocate((4,), "float32")
                pass
            return a
        """
    )
    assert body(func, vector()) == ""


def test_every_statement_knows_its_place() -> None:
    func = define(
        """
        def k(a):
            for i in range(4):
                if a[i] > 0:
                    a[i] = a[i] - 1
            return a
        """
    )
    loop = specialise(func, vector()).body[0]
    branch = loop.body[0]
    store = branch.then[0]
    lines = [node.location.line for node in (loop, branch, store, store.value.left)]
    assert lines == [2, 3, 4, 4]
    place = store.value.left.location
    assert place.text[place.column : place.end_column] == "a[i]"


def test_matrices_of_other_shapes_are_other_kernels() -> None:
    func = define("def k(a):\n    for t in grid(a.shape):\n        a[t] = 1\n    return a")
    assert "0 .. 4 " in body(func, matrix())
    assert "0 .. 9 " in body(func, matrix(9, 2))


def test_an_expression_of_many_terms_is_an_error_that_says_what_to_do() -> None:
    func = define(f"def k(a):\n    a[0] = {' + '.join(['a[0]'] * 900)}\n    return a")
    with pytest.raises(
        BuildError, match="nested deeper: an expression of several hundred operations"
    ) as error:
        Custom(func, func_type="akg")
    assert "Split the expression over several statements, or write a loop" in str(error.value)


def test_a_loop_of_many_variables_is_an_error_that_says_what_to_do() -> None:
    lines = "".join(f"        t{n} = t{n - 1} + a[0]\n" for n in range(1, 400))
    head = "def k(a):\n    for i in range(4):\n        t0 = a[i]\n"
    func = define(f"{head}{lines}        a[i] = t399\n    return a")
    with pytest.raises(BuildError, match="a loop with more than a hundred variables") as error:
        Custom(func, func_type="akg")(np.ones(4, np.float32))
    assert "keep variables that are alike in an array" in str(error.value)
