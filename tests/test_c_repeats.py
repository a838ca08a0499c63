"""Values of rows that several loops compute are computed once."""

from __future__ import annotations

import os
import subprocess
import sys
import textwrap
from pathlib import Path
from random import Random

import numpy as np
import pytest
from loop_ir import Kernel, parse_kernel, tabulate_values
from random_examples import examples
from test_c_arrangement import arranged, body_of

from msops import Custom

ROWS = """kernel rows(x: float32[3, {size}], n: int32[3], m: int32[12]) -> (y, z, x) {{
  buffer y: float32[3, {size}]
  buffer z: float32[3]
  parallel i in 0 .. 3 {{
    {before}
    reduction j in {first} {{
      z[i] = z[i] + {one}
    }}
    {between}
    {kind} j_1 in {second} {{
      {body}
    }}
  }}
}}"""
VALUE = "exp(x[i, j] * 0.5:float32)"
PARTS = {
    "size": 12, "before": "", "first": "0 .. 12", "one": VALUE, "between": "", "kind": "parallel",
    "second": "0 .. 12", "body": f"y[i, j_1] = {VALUE.replace('j', 'j_1')} / z[i]",
}  # fmt: skip


def rows(**parts: object) -> Kernel:
    return parse_kernel(ROWS.format(**{**PARTS, **parts}))


def text_of(kernel: Kernel) -> str:
    return body_of(arranged(tabulate_values, kernel))


def test_a_value_of_two_loops_is_computed_in_a_loop_before_them() -> None:
    assert text_of(rows()) == textwrap.dedent("""\
        buffer y: float32[3, 12]
        buffer z: float32[3]
        parallel i in 0 .. 3 {
          local row: float32[12] {
            parallel j_2 in 0 .. 12 {
              row[j_2] = exp(x[i, j_2] * 0.5:float32)
            }
            reduction j in 0 .. 12 {
              z[i] = z[i] + row[j]
            }
            parallel j_1 in 0 .. 12 {
              y[i, j_1] = row[j_1] / z[i]
            }
          }
        }""")


def test_the_longest_value_is_taken_first() -> None:
    kernel = rows(one=f"({VALUE} + {VALUE})", body=PARTS["body"].replace("/", "*"))
    assert text_of(kernel).count("exp(") == 1
    sums = f"({VALUE.replace('j', 'j_1')} + {VALUE.replace('j', 'j_1')})"
    text = text_of(rows(one=f"({VALUE} + {VALUE})", body=f"y[i, j_1] = {sums} / z[i]"))
    assert "y[i, j_1] = row[j_1] / z[i]" in text


def test_loops_may_be_inside_of_locals() -> None:
    body = "local t: float32[] { t[] = 1.0:float32 } } parallel k in 0 .. 12 { y[i, k] = "
    text = text_of(rows(body=f"{body}{VALUE.replace('j', 'k')}"))
    assert text.count("exp(") == 1


END = "min(max((n[i] + 8), 0), 24)"


@pytest.mark.parametrize(
    ("first", "second", "filled"),
    [
        ("1 .. 12", "0 .. 12", "0 .. 12 { row[j_2] "),
        ("3 .. 11", "2 .. 12", "2 .. 12 { row[j_2 - 2] "),
        ("i .. 12", "i .. 12", "i .. 12 { row[j_2] "),
        (f"0 .. {END}", f"0 .. {END}", "24) { row[j_2] "),
    ],
)
def test_the_loop_before_goes_over_all_iterations(first: str, second: str, filled: str) -> None:
    text = text_of(rows(size=24, first=first, second=second))
    assert filled in " ".join(text.split())


def test_values_are_followed_through_variables() -> None:
    body = "local t: float32[] { t[] = x[i, j_1] y[i, j_1] = exp(t[] * 0.5:float32) / z[i] }"
    assert "y[i, j_1] = row[j_1] / z[i]" in text_of(rows(body=body))


@pytest.mark.parametrize(
    "parts",
    [
        {"one": "(x[i, j] * 0.5:float32)", "body": "y[i, j_1] = x[i, j_1] * 0.5:float32"},
        {"body": "y[i, j_1] = exp(x[i, j_1] * 2.0:float32)"},
        {"first": "0 .. 4", "second": "0 .. 4"},
        {"size": 5000, "first": "0 .. 5000", "second": "0 .. 5000"},
        {"size": 24, "first": "0 .. 12", "second": "12 .. 24"},
        {"second": "i .. 12"},
        {"between": "x[i, 3] = 0.0:float32"},
        {"between": "parallel k in 0 .. 12 { x[i, k] = 0.0:float32 }"},
        {"kind": "serial", "body": PARTS["body"].replace("y[i, j_1] =", "x[i, j_1] =")},
        {"body": "x[i, j_1] = 1.0:float32 " + PARTS["body"]},
        {"body": f"{PARTS['body'].replace('y[', 'x[')} {PARTS['body']}"},
        {
            "body": f"{PARTS['body'].replace('y[', 'x[')} "
            f"serial l in 0 .. 2 {{ {PARTS['body'].replace('j_1] =', 'l] =')} }}"
        },
        {"body": PARTS["body"].replace("y[i, j_1] =", "x[i, j_1] =")},
        {
            "one": VALUE.replace("i, j", "i, j + 1"),
            "body": PARTS["body"].replace("x[i, j_1]", "x[i, j_1 + 1]"),
        },
        {"size": 24, "first": f"0 .. {END}", "second": f"0 .. {END}", "between": "n[i] = 2"},
        {"first": "0 .. (n[i] + 8)", "second": "0 .. (n[i] + 8)"},
    ],
    ids=[
        "quick", "different", "few iterations", "a long row", "different iterations",
        "another begin", "one changes between", "all change between", "in order",
        "changed before", "read after it", "read after it inside", "overwritten", "out of range",
        "an end that changes", "any end",
    ],
)  # fmt: skip
def test_other_values_stay(parts: dict[str, object]) -> None:
    kernel = rows(**parts)
    assert tabulate_values(kernel) is kernel


TWO = """
import sys
sys.path.insert(0, sys.argv[1])
from test_c_repeats import PARTS, VALUE, body_of, tabulate_values, rows
one = f"({VALUE} + tanh(x[i, j] * 0.5:float32))"
body = PARTS["body"].replace(VALUE.replace("j", "j_1"), one.replace("j", "j_1"))
body = body.replace("+", "-")
print(body_of(tabulate_values(rows(one=one, body=body))))
"""


def test_values_of_one_size_have_one_order_in_all_processes() -> None:
    texts = {
        subprocess.run(
            [sys.executable, "-c", TWO, str(Path(__file__).parent)],
            env={**os.environ, "PYTHONHASHSEED": str(seed)},
            check=True, capture_output=True, text=True,
        ).stdout
        for seed in range(3)
    }  # fmt: skip
    (text,) = texts
    assert text.count("exp(") == text.count("tanh(") == 1


def log_softmax(x):
    n, m = x.shape
    y = output_tensor(x.shape, x.dtype)  # noqa: F821
    for i in range(n):
        total = 0.0
        for j in range(m):
            total += exp(x[i, j])  # noqa: F821
        for j in range(m):
            x[i, j] = exp(x[i, j]) / total  # noqa: F821
        for j in range(m):
            y[i, j] = log(x[i, j])  # noqa: F821
    return y


def test_a_softmax_in_its_own_memory() -> None:
    x = np.random.default_rng(0).normal(size=(5, 40)).astype("float32")
    got = Custom(log_softmax, func_type="akg", compile_attrs={"lower": "native"})(x)
    want = x - np.log(np.exp(x).sum(1, keepdims=True))
    np.testing.assert_allclose(got, want, rtol=1e-5, atol=1e-5)


def random_rows(random: Random) -> Kernel:
    """Returns loops over values from a few, with stores to what these read in between."""

    def value(var: str) -> str:
        inner = random.choice(
            [f"x[{var}]", f"x[{var}] * t[]", f"(x[{var}] + u[])", f"x[{var} + 1]"]
        )
        return random.choice([f"exp({inner})", f"(exp({inner}) * tanh(x[{var}]))"])

    def statement(depth: int) -> str:
        kind = random.choice(["sum", "map", "map", "two", "meet", "store", "local", "if", "around"])
        var = f"j{random.randrange(10**9)}"
        loop = f"{var} in {random.choice(['0 .. 10', '0 .. 10', '1 .. 10', '2 .. 9', '0 .. m[]'])}"
        if kind == "sum":
            return f"reduction {loop} {{ s[] = s[] + {value(var)} }}"
        if kind == "map":
            target = random.choice(["y", "y", "z", "x"])
            return f"parallel {loop} {{ {target}[{var}] = {value(var)} }}"
        if kind == "two":
            return (
                f"serial {loop} {{ local v: float64[] {{ v[] = x[{var}] * t[] "
                f"z[{var}] = exp(v[]) y[{var}] = {value(var)} v[] = u[] s[] = s[] + exp(v[]) }} }}"
            )
        if kind == "meet":
            return f"reduction {loop} {{ z[n[{var}] % 3] = z[n[{var}] % 3] + {value(var)} }}"
        if kind == "store" or not depth:
            return random.choice(["t[] = s[]", "u[] = y[2]", "x[3] = u[]", "m[] = n[0] % 11"])
        if kind == "around":
            return f"serial {loop} {{ {statement(0)} {statement(0)} }}"
        body = " ".join(statement(depth - 1) for _ in range(2))
        return f"if (n[{random.randrange(9)}] > 1) {{ {body} }}" if kind == "if" else body

    body = " ".join(statement(2) for _ in range(random.randint(3, 7)))
    return parse_kernel(f"""kernel rows(x: float64[12], n: int32[12]) -> (y, z, x) {{
      buffer y: float64[12]
      buffer z: float64[12]
      local s: float64[] {{ local t: float64[] {{ local u: float64[] {{ local m: int32[] {{
        m[] = 10
        {body}
        y[11] = s[]
      }} }} }} }}
    }}""")


def test_random_loops_one_after_another_mean_the_same() -> None:
    random, changed = Random(3), 0
    for _ in range(examples(200)):
        kernel = random_rows(random)
        changed += "row" in body_of(arranged(tabulate_values, kernel))
    assert changed > examples(200) // 10
