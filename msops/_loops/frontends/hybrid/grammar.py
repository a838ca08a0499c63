"""The syntax of the loop language, whatever the names mean.

Where MindSpore's checker of `@kernel` functions raises an error, that here is of the same builtin
type; what it accepts and AKG then rejects is an error here, too.

Source: MindSpore 2.0.0, ``mindspore.ops.operations._ms_kernel.VariableUsage``.
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterator
from typing import Any

from msops._loops.frontends.hybrid.calls import Rules, check_call_form, converts_to_dtype
from msops._loops.frontends.hybrid.helpers import called_helper, constant_of
from msops._loops.frontends.hybrid.statement_forms import (
    check_assign,
    check_aug_assign,
    check_expression_statement,
    check_for,
    check_helper_call,
    check_helper_returns,
    check_operator,
    check_returns,
    check_signature,
    check_while,
    check_with,
)

_USE_LOOPS = "Write it as loops over range() or grid() with an assignment to each element."

_ATTRIBUTES = (
    "There are .shape and .dtype of a tensor, and numbers, strings and tuples of what is outside."
)
_INSTEAD = {
    "ndim": "Write len({name}.shape).",
    "size": "Multiply the extents: {name}.shape[0] * {name}.shape[1].",
    "T": "Swap the indices where you read an element: {name}[j, i].",
}

# What Python has and the language has not: how to call it, and what to write instead.
REFUSED: dict[type[ast.AST], tuple[str, str]] = {
    **dict.fromkeys(
        (ast.ListComp, ast.SetComp, ast.DictComp, ast.GeneratorExp),
        ("a comprehension", _USE_LOOPS),
    ),
    **dict.fromkeys(
        (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda, ast.ClassDef),
        ("a definition inside a kernel", "Define the function outside, by def, and call it here."),
    ),
    **dict.fromkeys(
        (ast.Import, ast.ImportFrom),
        ("an import", "The functions of the language need none; capture numbers from outside."),
    ),
    ast.List: ("a list", "Write a tuple: (n, m). For an array: allocate((n,), dtype)."),
    ast.AnnAssign: ("an annotated assignment", "Leave the annotation out: x = value."),
    ast.NamedExpr: ("':='", "Assign in a statement of its own."),
    ast.Starred: ("'*' unpacking", "Write the elements one by one."),
    ast.JoinedStr: ("an f-string", "Write a plain string."),
}
ACCEPTED = (
    ast.Assign, ast.AugAssign, ast.For, ast.While, ast.Break, ast.Continue, ast.With, ast.If,
    ast.Return, ast.Assert, ast.Expr, ast.Pass, ast.BinOp, ast.UnaryOp, ast.BoolOp, ast.Compare,
    ast.IfExp, ast.Constant, ast.Name, ast.Subscript, ast.Slice, ast.Tuple, ast.Attribute, ast.Call,
)  # fmt: skip


def check_grammar(definition: ast.FunctionDef, rules: Rules) -> None:
    """Raises if a kernel is not of the language's form.

    Args:
      definition: the kernel.
      rules: what it is checked against.

    Raises:
      ArgumentValueError, ArgumentTypeError: it is not; which of them, as in MindSpore.
    """
    check_signature(definition, rules, takes_keyword_only=rules.dialect == "akg")
    for statement in definition.body:
        _check(statement, rules)
    check_returns(definition, rules)


def check_helper_grammar(definition: ast.FunctionDef, rules: Rules) -> None:
    """Raises if a helper function is not of the language's form; see `check_grammar`."""
    check_signature(definition, rules)
    for value in check_helper_returns(definition, rules):
        _check(value, rules)
    for statement in definition.body:
        _check(statement, rules)


def _check(node: ast.AST, rules: Rules) -> None:
    """Checks a statement or expression and all in it."""
    if type(node) in REFUSED:
        what, remedy = REFUSED[type(node)]
        raise rules.report.value_error(node, f"{what} is not in the loop language", remedy)
    if not isinstance(node, ACCEPTED):
        what = type(node).__name__
        raise rules.report.value_error(
            node,
            f"Python's {what} is not in the loop language",
            "A kernel is made of assignments, for, while, if, with attr() and arithmetic on "
            "elements.",
        )
    check = _CHECKS.get(type(node))
    parts = _children(node) if check is None else check(node, rules)
    for part in parts:
        _check(part, rules)


def _children(node: ast.AST) -> Iterator[ast.AST]:
    return (part for part in ast.iter_child_nodes(node) if isinstance(part, (ast.expr, ast.stmt)))


# Each check returns the parts that are left to check.


def _check_call(node: ast.Call, rules: Rules) -> list[ast.AST]:
    if called_helper(node, rules.outside):
        return check_helper_call(node, rules)
    if converts_to_dtype(node):
        assert isinstance(node.func, ast.Attribute)
        return [node.func.value, *node.args]
    row = check_call_form(node, rules)
    uses = {
        "loop": "is a range to loop over; write for i in {name}(...)",
        "scope": "opens a scope; write with {name}(...):",
        "buffer": "declares a tensor; write t = {name}(shape, dtype)",
    }
    if row.role in uses:
        name = ast.unparse(node.func)
        raise rules.report.value_error(
            node,
            f"'{name}' is not a value",
            f"It {uses[row.role].format(name=name)}.",
        )
    return list(node.args)


def _check_attribute(node: ast.Attribute, rules: Rules) -> list[ast.AST]:
    if constant_of(node, rules.outside) is not None:
        return []
    if not isinstance(node.value, ast.Name):
        raise rules.report.value_error(
            node,
            "an attribute is only supported for a tensor",
            "A kernel takes no list of tensors: give it a parameter for each."
            if isinstance(node.value, ast.Subscript)
            else "Write name.shape or name.dtype, with the name of a tensor.",
        )
    if node.attr not in ("shape", "dtype"):
        raise rules.report.value_error(
            node,
            f"a tensor has no attribute called '{node.attr}'",
            _INSTEAD.get(node.attr, _ATTRIBUTES).format(name=node.value.id),
        )
    return []


def _check_subscript(node: ast.Subscript, rules: Rules) -> list[ast.AST]:
    if isinstance(node.value, ast.Subscript):
        inner = ast.unparse(node.value)
        raise rules.report.value_error(
            node,
            f"'{ast.unparse(node)}' indexes '{inner}', which is one element already",
            f"Write all indices at once: {inner[:-1]}, {ast.unparse(node.slice)}].",
        )
    if not isinstance(node.value, (ast.Name, ast.Attribute)):
        raise rules.report.value_error(
            node, "only tensors and tuples with a name have elements", "Assign it to a name first."
        )
    return [node.value, node.slice]


def _check_constant(node: ast.Constant, rules: Rules) -> list[ast.AST]:
    if not isinstance(node.value, (bool, int, float, str)):
        raise rules.report.value_error(
            node,
            f"{node.value!r} is not a value of the loop language",
            "Compute with the real and the imaginary part as two numbers."
            if isinstance(node.value, complex)
            else "There are numbers, True and False, and strings for dtypes.",
        )
    return []


def _check_binary(node: ast.BinOp, rules: Rules) -> list[ast.AST]:
    check_operator(node, node.op, rules)
    return [node.left, node.right]


def _check_compare(node: ast.Compare, rules: Rules) -> list[ast.AST]:
    if any(isinstance(op, (ast.Is, ast.IsNot, ast.In, ast.NotIn)) for op in node.ops):
        raise rules.report.value_error(
            node, "'is' and 'in' are not in the loop language", "Compare with == and !=."
        )
    return [node.left, *node.comparators]


_CHECKS: dict[type[ast.AST], Callable[[Any, Rules], list[ast.AST]]] = {
    ast.Assign: check_assign,
    ast.AugAssign: check_aug_assign,
    ast.For: check_for,
    ast.With: check_with,
    ast.Expr: check_expression_statement,
    ast.Assert: lambda node, rules: [node.test],
    ast.Return: lambda node, rules: [],  # by check_returns, check_helper_returns
    ast.While: check_while,
    ast.Call: _check_call,
    ast.Attribute: _check_attribute,
    ast.Subscript: _check_subscript,
    ast.Constant: _check_constant,
    ast.BinOp: _check_binary,
    ast.Compare: _check_compare,
}
