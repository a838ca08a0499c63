"""The page of the loop language has what the compiler's tables have, and what errors say."""

from __future__ import annotations

import ast
import re
import textwrap

import numpy as np
import pytest
from conftest import ROOT
from loop_ir import ACCEPTED_SYNTAX, DTYPES, FUNCTIONS, INTRINSICS, PYTHON_SIGNS, SYNTAX
from loop_source import define, read

from msops.errors import MsopsError

PAGE = (ROOT / "docs" / "reference" / "loop_language.md").read_text()


def table(heading: str) -> list[list[str]]:
    """Returns the rows of the table under a heading, without its head."""
    text = PAGE.partition(f"\n## {heading}\n")[2].partition("\n## ")[0]
    rows = [line for line in text.splitlines() if line.startswith("|")][2:]
    return [[cell.strip() for cell in re.split(r"(?<!\\)\|", row)[1:-1]] for row in rows]


def codes(cell: str) -> list[str]:
    """Returns the pieces of code in a cell."""
    return [code.replace("\\|", "|") for code in re.findall(r"`([^`]+)`", cell)]


def calls() -> dict[str, tuple[set[int], str, str]]:
    """Returns of each function on the page the numbers of arguments, its domain and its meaning."""
    found: dict[str, tuple[set[int], str, str]] = {}
    for heading in ("Functions", "Tensors", "Loops"):
        for row in table(heading):
            for code in codes(row[0]):
                tree = ast.parse(code).body[0]
                assert isinstance(tree, (ast.Expr, ast.Assign))
                call = tree.value
                assert isinstance(call, ast.Call)
                name = ast.unparse(call.func)
                counts = found[name][0] if name in found else set()
                found[name] = counts | {len(call.args)}, row[1], row[-1]
    return found


def test_every_function_is_on_the_page_with_its_arguments() -> None:
    shown = calls()
    contexts = {name for name, row in INTRINSICS.items() if row.role == "scope"}
    assert shown.keys() | contexts == INTRINSICS.keys()
    assert all(f"`{name}(" in PAGE for name in contexts)
    for name, (counts, _, meaning) in shown.items():
        row = INTRINSICS[name]
        # Ranges take a begin and a step, which the row of `range` shows.
        assert counts <= {*row.arities, *row.akg_arities}, name
        assert ("*akg*" in meaning) is (row.akg_only or 3 in row.akg_arities), name
    assert shown["range"][0] == set(INTRINSICS["range"].arities)


def test_the_dtypes_that_a_function_takes() -> None:
    shown = calls()
    for name, row in FUNCTIONS.items():
        if row.hybrid:
            assert shown[name][1] == f"{row.domain}s", name
            assert shown[name][2].startswith("a bool") is row.to_bool, name


def test_the_operators_and_dtypes() -> None:
    shown = {code for row in table("Operators") for code in codes(row[0])}
    signs = {PYTHON_SIGNS[op] for op in SYNTAX.values()}
    others = {"and", "or", "not", "x if c else y", "-x", "+x", "~x"}
    assert shown == signs | others
    assert set(codes(table("Types")[0][1])) == set(DTYPES)


def test_every_statement_is_on_the_page() -> None:
    shown = {
        type(node)
        for row in table("Statements")
        for code in codes(row[0])
        for node in ast.walk(ast.parse(wrapped(code)).body[0])
        if isinstance(node, ast.stmt)
    } - {ast.FunctionDef}
    assert shown == {kind for kind in ACCEPTED_SYNTAX if issubclass(kind, ast.stmt)}


def wrapped(code: str) -> str:
    """Returns a statement where it may stand: inside a function, and a loop."""
    return f"def f():\n    for i in range(1):\n{textwrap.indent(code, ' ' * 8)}\n"


@pytest.mark.parametrize("code", [code for row in table("Statements") for code in codes(row[0])])
def test_a_statement_of_the_page_is_accepted(code: str) -> None:
    head = "def k(y, n, m, value, c):\n    t = value\n    i = j = 0\n    x = y0 = value\n"
    code = code.replace("x, y = y, x", "x, y0 = y0, x").replace("x = y =", "x = y0 =")
    jump = code in ("break", "continue")
    body = f"for k in range(n):\n    {code}" if jump else code
    if body.startswith("for"):
        body = body.replace("i in", "i1 in").replace("i, j in", "i1, j1 in")
    read(define(f"{head}{textwrap.indent(body, '    ')}\n    return y\n"), "akg")


@pytest.mark.parametrize(("cell", "advice"), table("What is refused"))
def test_what_is_refused_and_its_advice(cell: str, advice: str) -> None:
    (code,) = codes(cell)
    code = code.replace(" ; ", "\n").replace(" else: y[1]", "\nelse: y[1]")
    text = "def k(x, n, low, high):\n    y = output_tensor(x.shape, x.dtype)\n"
    text += f"{textwrap.indent(code, '    ')}\n    return y\n"
    with pytest.raises(MsopsError) as error:
        read(define(text, np=np), "akg")
    assert str(error.value).splitlines()[-1] == advice.replace("\\|", "|")
