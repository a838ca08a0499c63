"""Formulas: the text in which the table of functions says what a function is in terms of others.

A formula is an expression in Python's syntax, of named values, numbers, `inf`, the operators
``+ - * / **`` and minus, comparisons, ``a if c else b`` and calls of functions of the table. Each
room evaluates it in its own terms: as JAX operations, as C text, as expressions of the IR.
"""

from __future__ import annotations

import ast
import collections
import functools
import math
from collections.abc import Callable, Mapping
from typing import TypeVar

from msops._loops.ir.operators import SYNTAX

_Value = TypeVar("_Value")


def evaluate(
    formula: str,
    values: Mapping[str, _Value],
    number: Callable[[float], _Value],
    apply: Callable[..., _Value],
) -> _Value:
    """Returns the value of a formula.

    Args:
      formula: the text.
      values: what its names mean.
      number: makes a value of a number.
      apply: from the name of an operation of the IR, of a function of the table, "neg" or "select"
        (condition, then, otherwise), and its operands.
    """

    def value(node: ast.expr) -> _Value:
        match node:
            case ast.Name(id="inf"):
                return number(math.inf)
            case ast.Name(id=name):
                return values[name]
            case ast.Constant(value=int() | float() as constant):
                return number(float(constant))
            case ast.UnaryOp(
                op=ast.USub(), operand=ast.Constant(value=int() | float() as constant)
            ):
                return number(-float(constant))
            case ast.UnaryOp(op=ast.USub(), operand=operand):
                return apply("neg", value(operand))
            case (
                ast.BinOp(left=left, op=operator, right=right)
                | ast.Compare(left=left, ops=[operator], comparators=[right])
            ) if type(operator) in SYNTAX:
                return apply(SYNTAX[type(operator)], value(left), value(right))
            case ast.IfExp(test=test, body=then, orelse=otherwise):
                return apply("select", value(test), value(then), value(otherwise))
            case ast.Call(func=ast.Name(id=name), args=args):
                return apply(name, *map(value, args))
        raise ValueError(f"{ast.unparse(node)!r} in the formula {formula!r} is not supported")

    return value(_parsed(formula))


def uses(formula: str, name: str) -> int:
    """Returns how often a name occurs in a formula."""
    names = (node.id for node in ast.walk(_parsed(formula)) if isinstance(node, ast.Name))
    return collections.Counter(names)[name]


def is_name(form: str) -> bool:
    """Reports whether a form is the name of a function, with dots or without, not a formula."""
    return form.replace(".", "").isidentifier()


@functools.cache
def _parsed(formula: str) -> ast.expr:
    return ast.parse(formula, mode="eval").body
