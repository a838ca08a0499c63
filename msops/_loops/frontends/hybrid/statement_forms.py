"""The form of each statement, of a kernel's signature and of its return.

Each check of a statement returns the parts of it that are left to check.
"""

from __future__ import annotations

import ast
from typing import Any

from msops._loops.frontends.hybrid.calls import (
    Rules,
    check_call_form,
    is_declaration,
    names_of,
    row_of,
)

_WITH_FORMS = 'Write with attr("key", value): or with block_realize(tensor):.'


def check_assign(node: ast.Assign, rules: Rules) -> list[ast.AST]:
    """Checks an assignment, or the declaration of a tensor."""
    if len(node.targets) > 1:
        raise rules.report.value_error(
            node,
            "one statement with multiple assignments is not allowed",
            "Write one assignment for each name.",
        )
    target = node.targets[0]
    if not is_declaration(node.value):
        return [*_targets(target, rules), node.value]
    if not isinstance(target, ast.Name):
        raise rules.report.value_error(
            target, "a tensor is declared under a plain name", "Write name = allocate(...)."
        )
    assert isinstance(node.value, ast.Call)
    check_call_form(node.value, rules)
    return list(node.value.args)


def check_aug_assign(node: ast.AugAssign, rules: Rules) -> list[ast.AST]:
    """Checks ``x += value`` and the like."""
    check_operator(node, node.op, rules)
    return [*_targets(node.target, rules), node.value]


def _targets(target: ast.expr, rules: Rules) -> list[ast.AST]:
    """Returns the parts to check of what is assigned to."""
    if isinstance(target, ast.Tuple):
        return [part for element in target.elts for part in _targets(element, rules)]
    if isinstance(target, ast.Subscript):
        return [target]
    if isinstance(target, ast.Name):
        return []
    raise rules.report.value_error(
        target,
        "an assignment goes to a name or to an element of a tensor",
        "Write name = value, or t[i, j] = value.",
    )


def check_for(node: ast.For, rules: Rules) -> list[ast.AST]:
    """Checks the head of a loop."""
    if not isinstance(node.target, ast.Name):
        raise rules.report.value_error(
            node.target,
            "a loop has one variable",
            "Write for t in grid((n, m)) and use t[0], t[1], or nest two loops.",
        )
    row = row_of(node.iter)
    if row is None or row.role != "loop":
        raise rules.report.value_error(
            node.iter,
            "a loop runs over one of the language's ranges",
            f"Write for i in range(n); there are {', '.join(names_of(rules, 'loop'))}.",
        )
    if node.orelse:
        raise rules.report.value_error(
            node.orelse[0], "a loop has no else", "Write the statements after the loop."
        )
    assert isinstance(node.iter, ast.Call)
    check_call_form(node.iter, rules)
    return [*node.iter.args, *node.body]


def check_with(node: ast.With, rules: Rules) -> list[ast.AST]:
    """Checks ``with attr("key", value):`` and ``with block_realize(tensor):``."""
    call = node.items[0].context_expr
    row = row_of(call)
    if len(node.items) > 1 or node.items[0].optional_vars or row is None or row.role != "scope":
        raise rules.report.value_error(node, "unsupported function in with scope", _WITH_FORMS)
    assert isinstance(call, ast.Call)
    assert isinstance(call.func, ast.Name)
    if len(call.args) not in row.arities:
        expected = "one input" if row.arities == (1,) else "two inputs"
        raise rules.report.value_error(
            call, f"'{call.func.id}' expects {expected}, but gets {len(call.args)}", _WITH_FORMS
        )
    if call.func.id == "attr":
        _check_attr(call, rules)
        return list(node.body)
    if not isinstance(call.args[0], ast.Name):
        raise rules.report.value_error(
            call.args[0], "the input of 'block_realize' should be a tensor name", _WITH_FORMS
        )
    return [*call.args, *node.body]


def _check_attr(call: ast.Call, rules: Rules) -> None:
    key, value = call.args
    if not (isinstance(key, ast.Constant) and isinstance(key.value, str)):
        raise rules.report.value_error(
            key, "the first input of 'attr' should be a string", _WITH_FORMS
        )
    if not (isinstance(value, ast.Constant) and isinstance(value.value, (str, int, float))):
        raise rules.report.value_error(
            value,
            "the second input of 'attr' should be a string, number or bool value",
            _WITH_FORMS,
        )


def check_expression_statement(node: ast.Expr, rules: Rules) -> list[ast.AST]:
    """Lets docstrings and strings used as comments through."""
    if isinstance(node.value, ast.Constant):
        return []  # a docstring, or a string used as a comment
    row = row_of(node.value)
    if row is None and isinstance(node.value, ast.Call):
        return [node.value]
    raise rules.report.value_error(
        node, "a statement that only computes a value has no effect", "Assign the value."
    )


def check_operator(node: ast.AST, operator: ast.operator, rules: Rules) -> None:
    """Raises for the operator of whole matrices."""
    if isinstance(operator, ast.MatMult):
        raise rules.report.value_error(
            node, "'@' is not in the Hybrid DSL", "Write the three loops of the product."
        )


def check_signature(definition: ast.FunctionDef, rules: Rules) -> None:
    """Checks that all parameters are positional."""
    arguments = definition.args
    for extra in (arguments.vararg, arguments.kwarg, *arguments.kwonlyargs):
        if extra is not None:
            raise rules.report.value_error(
                extra,
                f"parameter '{extra.arg}' is not positional",
                "List the tensors, then the attributes, as plain parameters.",
            )


def check_returns(definition: ast.FunctionDef, rules: Rules) -> None:
    """Checks that a kernel ends with its one return, of tensors by their names."""
    returns = [node for node in ast.walk(definition) if isinstance(node, ast.Return)]
    if not returns:
        raise rules.report.value_error(
            definition,
            "no valid return found in the function body",
            "End it with return c, where c is an output_tensor or an argument.",
        )
    for extra in [node for node in returns if node is not definition.body[-1]]:
        raise rules.report.value_error(
            extra,
            "return is allowed once, as the last statement of the function",
            "Assign to the output inside loops and branches, and return it at the end.",
        )
    value = returns[0].value
    if not isinstance(value, (ast.Name, ast.Tuple)):
        raise rules.report.type_error(
            value or returns[0],
            "the return value should be either a single tensor or a tuple of tensors, "
            f"but gets '{ast.unparse(value) if value else 'nothing'}'",
            "Assign to an output_tensor and return its name.",
        )
    for element in value.elts if isinstance(value, ast.Tuple) else []:
        if not isinstance(element, ast.Name):
            raise rules.report.type_error(
                element,
                "the element in the return value should be the name of a tensor, "
                f"but gets '{ast.unparse(element)}'",
                "Assign to an output_tensor and return its name.",
            )


def returned_names(definition: ast.FunctionDef) -> list[ast.Name]:
    """Returns the names in the return statement of a kernel that passed the check."""
    value: Any = next(node for node in definition.body if isinstance(node, ast.Return)).value
    return [value] if isinstance(value, ast.Name) else value.elts


def parameter_names(definition: ast.FunctionDef) -> list[str]:
    """Returns the names of a kernel's parameters."""
    return [argument.arg for argument in (*definition.args.posonlyargs, *definition.args.args)]
