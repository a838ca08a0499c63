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
from msops._loops.frontends.hybrid.counting import iterations
from msops._loops.frontends.hybrid.jumps import always_jumps
from msops.errors import ArgumentValueError

_WITH_FORMS = 'Write with attr("key", value): or with block_realize(tensor):.'


def check_assign(node: ast.Assign, rules: Rules) -> list[ast.AST]:
    """Checks an assignment, or the declaration of a tensor."""
    if not is_declaration(node.value):
        parts = [part for target in node.targets for part in _targets(target, rules)]
        return [*parts, node.value]
    target = node.targets[0]
    if len(node.targets) > 1:
        raise rules.report.value_error(
            node,
            "one statement with multiple assignments is not allowed for a tensor",
            "Declare each tensor by its own call: "
            + "; ".join(f"{ast.unparse(each)} = {ast.unparse(node.value)}" for each in node.targets)
            + ".",
        )
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
    row = row_of(node.iter)
    if row is None or row.role != "loop":
        raise rules.report.value_error(node.iter, *_no_range(node, rules))
    assert isinstance(node.iter, ast.Call)
    variables = node.target.elts if isinstance(node.target, ast.Tuple) else [node.target]
    is_grid = ast.unparse(node.iter.func) == "grid"
    if not all(isinstance(each, ast.Name) for each in variables) or (
        len(variables) != 1 and not is_grid
    ):
        raise rules.report.value_error(
            node.target,
            "a loop has one variable",
            "Write for i, j in grid((n, m)), or nest two loops.",
        )
    _check_no_else(node, rules)
    check_call_form(node.iter, rules)
    return [*node.iter.args, *node.body]


def _no_range(node: ast.For, rules: Rules) -> tuple[str, str]:
    """Returns what is wrong with what a loop runs over, and what to write."""
    problem, call = "a loop runs over one of the language's ranges", node.iter
    name = ast.unparse(call.func) if isinstance(call, ast.Call) else ""
    if isinstance(call, ast.Call) and name in ("enumerate", "zip"):
        items = next((arg.id for arg in call.args if isinstance(arg, ast.Name)), "x")
        remedy = f"Write for i in range(len({items})), and {items}[i] for its element."
        return f"{problem}, not over {name}", remedy
    if name == "reversed":
        remedy = "Write a range with a negative step: range(n - 1, -1, -1)."
        return f"{problem}, not over {name}", remedy
    if isinstance(call, ast.Name) and isinstance(node.target, ast.Name):
        return problem, f"Write for i in range(len({call.id})): {node.target.id} = {call.id}[i]."
    return problem, f"Write for i in range(n); there are {', '.join(names_of(rules, 'loop'))}."


def check_while(node: ast.While, rules: Rules) -> list[ast.AST]:
    """Checks that the number of iterations of a `while` has a bound."""
    if iterations(node) is None:
        # Of `while True`, the breaks in the body are all that ends it.
        test = ast.unparse(node.test) if not isinstance(node.test, ast.Constant) else None
        ends = f", and as its first line if not ({test}): break" if test else ""
        raise rules.report.value_error(
            node,
            "the number of iterations of this 'while' has no bound that can be read off it",
            f"Give it one: write for _ in range(1000){ends}. A while is bounded by i < n if its "
            "body changes n nowhere, and i by one i += 1.",
        )
    _check_no_else(node, rules)
    return [node.test, *node.body]


def _check_no_else(node: ast.For | ast.While, rules: Rules) -> None:
    if node.orelse:
        raise rules.report.value_error(
            node.orelse[0], "a loop has no else", "Write the statements after the loop."
        )


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
        node,
        "a statement that only computes a value has no effect",
        f"Assign the value: value = {ast.unparse(node.value)}.",
    )


def check_helper_call(node: ast.Call, rules: Rules) -> list[ast.AST]:
    """Checks the call of a helper function."""
    named = [keyword.value for keyword in node.keywords]
    if any(keyword.arg is None for keyword in node.keywords) or any(
        isinstance(arg, ast.Starred) for arg in node.args
    ):
        raise rules.report.value_error(
            node, "'*' unpacking is not in the loop language", "Write the arguments one by one."
        )
    return [*node.args, *named]


def check_operator(node: ast.AST, operator: ast.operator, rules: Rules) -> None:
    """Raises for the operator of whole matrices."""
    if isinstance(operator, ast.MatMult):
        raise rules.report.value_error(
            node, "'@' is not in the loop language", "Write the three loops of the product."
        )


def check_signature(
    definition: ast.FunctionDef, rules: Rules, takes_keyword_only: bool = False
) -> None:
    """Checks the parameters: all are positional, but for attributes where they may be by name."""
    arguments = definition.args
    by_name = [] if takes_keyword_only else arguments.kwonlyargs
    for extra in (arguments.vararg, arguments.kwarg, *by_name):
        if extra is not None:
            raise rules.report.value_error(
                extra,
                f"parameter '{extra.arg}' is not positional",
                "List the tensors, then the attributes, as plain parameters.",
            )


def check_returns(definition: ast.FunctionDef, rules: Rules) -> None:
    """Checks that a kernel ends with a return of tensors by their names, as all its returns do.

    One of func_type "akg" may leave it out, see `rewriting.rewrite`.
    """
    returns = [node for node in ast.walk(definition) if isinstance(node, ast.Return)]
    if not returns and rules.dialect == "akg":
        return
    if not returns:
        raise no_return(definition, rules)
    last = definition.body[-1]
    if not isinstance(last, ast.Return):
        text = ast.unparse(returns[-1])
        raise rules.report.value_error(
            last, "the last statement of a kernel is its return", f"End it with {text}."
        )
    for early in returns:
        if ast.unparse(early) != ast.unparse(last):
            raise rules.report.value_error(
                early,
                "a kernel returns the same tensors everywhere",
                f"Assign to their elements first, then write {ast.unparse(last)}.",
            )
    value = last.value
    if not isinstance(value, (ast.Name, ast.Tuple)):
        raise rules.report.type_error(
            value or last,
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


def no_return(definition: ast.FunctionDef, rules: Rules) -> ArgumentValueError:
    """Returns the error for a kernel that has no results."""
    return rules.report.value_error(
        definition,
        "no valid return found in the function body",
        "End it with return c, where c is an output_tensor or an argument.",
    )


def check_helper_returns(definition: ast.FunctionDef, rules: Rules) -> list[ast.expr]:
    """Checks that a helper returns as many values everywhere; returns them."""
    returns = [node for node in ast.walk(definition) if isinstance(node, ast.Return)]
    values = [node.value for node in returns if node.value is not None]
    counts = {len(each.elts) if isinstance(each, ast.Tuple) else 1 for each in values}
    if len(counts) > 1 or (values and len(values) < len(returns)):
        raise rules.report.value_error(
            returns[-1],
            f"'{definition.name}' returns different numbers of values",
            "Return as many values at each return.",
        )
    if values and not always_jumps(definition.body):
        raise rules.report.value_error(
            definition,
            f"'{definition.name}' returns a value in some cases only",
            "End it with return value.",
        )
    return values


def returned_names(definition: ast.FunctionDef) -> list[ast.Name]:
    """Returns the names in the return statement of a kernel that passed the check."""
    last = definition.body[-1]
    assert isinstance(last, ast.Return)
    value: Any = last.value
    return [value] if isinstance(value, ast.Name) else value.elts


def parameter_names(definition: ast.FunctionDef) -> list[str]:
    """Returns the names of a kernel's parameters."""
    arguments = definition.args
    named = (*arguments.posonlyargs, *arguments.args, *arguments.kwonlyargs)
    return [argument.arg for argument in named]
