"""The form of the Hybrid DSL: what may stand where, whatever the names mean.

Where MindSpore's checker of `@kernel` functions refuses something, the error here is of the same
builtin type; what it lets through to fail in AKG is refused here too.

Source: MindSpore 2.0.0, ``mindspore.ops.operations._ms_kernel.VariableUsage``.
"""

from __future__ import annotations

import ast
import difflib
from collections.abc import Callable, Iterator
from typing import Any

from msops._loops.frontends.hybrid.language import INTRINSICS, Intrinsic
from msops._loops.frontends.reporting import Reporter

_USE_LOOPS = "Write it as loops over range() or grid() with an assignment to each element."
_USE_RANGE = "Loop with for ... in range(...), and guard statements with if."

# What Python has and the language has not: how to call it, and what to write instead.
_REFUSED: dict[type[ast.AST], tuple[str, str]] = {
    **dict.fromkeys(
        (ast.ListComp, ast.SetComp, ast.DictComp, ast.GeneratorExp),
        ("a comprehension", _USE_LOOPS),
    ),
    **dict.fromkeys(
        (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda, ast.ClassDef),
        ("a definition inside a kernel", "Write its body where it is called."),
    ),
    **dict.fromkeys(
        (ast.Import, ast.ImportFrom),
        ("an import", "The functions of the language need none; capture numbers from outside."),
    ),
    ast.List: ("a list", "Write a tuple: (n, m)."),
    ast.AnnAssign: ("an annotated assignment", "Leave the annotation out: x = value."),
    ast.NamedExpr: ("':='", "Assign in a statement of its own."),
    ast.Starred: ("'*' unpacking", "Write the elements one by one."),
    ast.JoinedStr: ("an f-string", "Write a plain string."),
}
_PLAIN = (
    ast.Assign, ast.AugAssign, ast.For, ast.With, ast.If, ast.Return, ast.Assert, ast.Expr,
    ast.Pass, ast.BinOp, ast.UnaryOp, ast.BoolOp, ast.Compare, ast.IfExp, ast.Constant, ast.Name,
    ast.Subscript, ast.Slice, ast.Tuple, ast.Attribute, ast.Call,
)  # fmt: skip


def check_grammar(definition: ast.FunctionDef, dialect: str, report: Reporter) -> None:
    """Raises if a kernel is not of the language's form.

    Args:
      definition: the kernel.
      dialect: "akg" or "hybrid"; the latter has fewer functions.
      report: makes the errors.
    """
    _check_signature(definition, report)
    _check_returns(definition, report)
    for statement in definition.body:
        _check(statement, dialect, report)


def returned_names(definition: ast.FunctionDef) -> list[ast.Name]:
    """Returns the names in the return statement of a kernel that passed the check."""
    value: Any = next(node for node in definition.body if isinstance(node, ast.Return)).value
    return [value] if isinstance(value, ast.Name) else value.elts


def is_declaration(value: ast.expr) -> bool:
    """Tells whether an assigned value makes a tensor."""
    row = _row(value)
    return row is not None and row.role == "buffer"


def _check(node: ast.AST, dialect: str, report: Reporter) -> None:
    """Checks a statement or expression and all in it."""
    if type(node) in _REFUSED:
        what, remedy = _REFUSED[type(node)]
        raise report.value_error(node, f"{what} is not in the Hybrid DSL", remedy)
    if isinstance(node, (ast.While, ast.Break, ast.Continue)):
        keyword = type(node).__name__.lower()
        raise report.type_error(
            node, f"keyword '{keyword}' is not accepted in the Hybrid DSL", _USE_RANGE
        )
    if not isinstance(node, _PLAIN):
        what = type(node).__name__
        raise report.value_error(
            node,
            f"Python's {what} is not in the Hybrid DSL",
            "A kernel is made of assignments, for, if, with attr() and arithmetic on elements.",
        )
    check = _CHECKS.get(type(node))
    parts = _children(node) if check is None else check(node, dialect, report)
    for part in parts:
        _check(part, dialect, report)


def _children(node: ast.AST) -> Iterator[ast.AST]:
    return (part for part in ast.iter_child_nodes(node) if isinstance(part, (ast.expr, ast.stmt)))


# Each check returns the parts that are left to check.


def _check_assign(node: ast.Assign, dialect: str, report: Reporter) -> list[ast.AST]:
    if len(node.targets) > 1:
        raise report.value_error(
            node,
            "one statement with multiple assignments is not allowed",
            "Write one assignment for each name.",
        )
    target = node.targets[0]
    if not is_declaration(node.value):
        return [*_targets(target, report), node.value]
    if not isinstance(target, ast.Name):
        raise report.value_error(
            target, "a tensor is declared under a plain name", "Write name = allocate(...)."
        )
    assert isinstance(node.value, ast.Call)
    _check_call_form(node.value, dialect, report)
    return list(node.value.args)


def _check_aug_assign(node: ast.AugAssign, dialect: str, report: Reporter) -> list[ast.AST]:
    _check_operator(node, node.op, report)
    return [*_targets(node.target, report), node.value]


def _targets(target: ast.expr, report: Reporter) -> list[ast.AST]:
    """Returns the parts to check of what is assigned to."""
    if isinstance(target, ast.Tuple):
        return [part for element in target.elts for part in _targets(element, report)]
    if isinstance(target, ast.Subscript):
        return [target]
    if isinstance(target, ast.Name):
        return []
    raise report.value_error(
        target,
        "an assignment goes to a name or to an element of a tensor",
        "Write name = value, or t[i, j] = value.",
    )


def _check_for(node: ast.For, dialect: str, report: Reporter) -> list[ast.AST]:
    if not isinstance(node.target, ast.Name):
        raise report.value_error(
            node.target,
            "a loop has one variable",
            "Write for t in grid((n, m)) and use t[0], t[1], or nest two loops.",
        )
    row = _row(node.iter)
    if row is None or row.role != "loop":
        loops = ", ".join(name for name, row in INTRINSICS.items() if row.role == "loop")
        raise report.value_error(
            node.iter,
            "a loop runs over one of the language's ranges",
            f"Write for i in range(n); there are {loops}.",
        )
    if node.orelse:
        raise report.value_error(
            node.orelse[0], "a loop has no else", "Write the statements after the loop."
        )
    assert isinstance(node.iter, ast.Call)
    _check_call_form(node.iter, dialect, report)
    return [*node.iter.args, *node.body]


def _check_with(node: ast.With, dialect: str, report: Reporter) -> list[ast.AST]:
    call = node.items[0].context_expr
    row = _row(call)
    if len(node.items) > 1 or node.items[0].optional_vars or row is None or row.role != "scope":
        raise report.value_error(
            node,
            "unsupported function in with scope",
            'Write with attr("key", value): or with block_realize(tensor):.',
        )
    assert isinstance(call, ast.Call)
    assert isinstance(call.func, ast.Name)
    if len(call.args) not in row.arities:
        raise report.value_error(
            call,
            f"'{call.func.id}' expects {_count(row.arities[0])}, but gets {len(call.args)}",
            'Write with attr("key", value): or with block_realize(tensor):.',
        )
    if call.func.id == "block_realize":
        if not isinstance(call.args[0], ast.Name):
            raise report.value_error(
                call.args[0],
                "the input of 'block_realize' should be a tensor name",
                "Write with block_realize(c): for a tensor c.",
            )
        return [*call.args, *node.body]
    key, value = call.args
    if not (isinstance(key, ast.Constant) and isinstance(key.value, str)):
        raise report.value_error(
            key, "the first input of 'attr' should be a string", 'Write attr("key", value).'
        )
    if not (isinstance(value, ast.Constant) and isinstance(value.value, (str, int, float))):
        raise report.value_error(
            value,
            "the second input of 'attr' should be a string, number or bool value",
            'Write attr("key", value) with a literal.',
        )
    return list(node.body)


def _check_expression_statement(node: ast.Expr, dialect: str, report: Reporter) -> list[ast.AST]:
    if isinstance(node.value, ast.Constant):
        return []  # a docstring, or a string used as a comment
    row = _row(node.value)
    if row is None and isinstance(node.value, ast.Call):
        return [node.value]
    raise report.value_error(
        node, "a statement that only computes a value has no effect", "Assign the value."
    )


def _check_call(node: ast.Call, dialect: str, report: Reporter) -> list[ast.AST]:
    row = _check_call_form(node, dialect, report)
    places = {
        "loop": "is a range to loop over; write for i in {name}(...)",
        "scope": "opens a scope; write with {name}(...):",
        "buffer": "declares a tensor; write t = {name}(shape, dtype)",
    }
    if row.role in places:
        name = ast.unparse(node.func)
        raise report.value_error(
            node,
            f"'{name}' is not a value",
            f"It {places[row.role].format(name=name)}.",
        )
    return list(node.args)


def _check_call_form(node: ast.Call, dialect: str, report: Reporter) -> Intrinsic:
    """Checks name, arity and dialect of a call."""
    if not isinstance(node.func, ast.Name):
        name = node.func.attr if isinstance(node.func, ast.Attribute) else ""
        known = name if name in INTRINSICS else ", ".join(_near(name)) or "sqrt, exp, tanh"
        raise report.value_error(
            node.func,
            f"'{ast.unparse(node.func)}' cannot be called in the Hybrid DSL",
            f"Functions are called by plain names, without a module: {known}.",
        )
    name = node.func.id
    row = INTRINSICS.get(name)
    if row is None:
        near = _near(name)
        raise report.value_error(
            node.func,
            f"function call id '{name}' is not in the intrinsics list of the Hybrid DSL",
            f"Did you mean {' or '.join(near)}?" if near else _all_names(dialect),
        )
    if row.akg_only and dialect != "akg":
        raise report.value_error(
            node.func,
            f"function call id '{name}' is not in the intrinsics list of @kernel functions",
            "Pass func_type='akg', whose dialect has it.",
        )
    if node.keywords or any(isinstance(arg, ast.Starred) for arg in node.args):
        raise report.value_error(
            node, f"'{name}' takes plain arguments only", "Pass them by position, one by one."
        )
    arities = row.arities + (row.akg_arities if dialect == "akg" else ())
    if len(node.args) not in arities:
        expected = " or ".join(map(str, sorted(arities))) + " input" + "s" * (arities != (1,))
        extra = len(node.args) in row.akg_arities
        raise report.type_error(
            node,
            f"function '{name}' expects {expected}, but gets {len(node.args)}",
            "Pass func_type='akg', whose dialect takes them."
            if extra
            else "Pass as many as it expects.",
        )
    return row


def _check_attribute(node: ast.Attribute, dialect: str, report: Reporter) -> list[ast.AST]:
    if not isinstance(node.value, ast.Name):
        raise report.value_error(
            node,
            "an attribute is only supported for a tensor",
            "Write name.shape or name.dtype, with the name of a tensor.",
        )
    if node.attr not in ("shape", "dtype"):
        raise report.value_error(
            node,
            f"a tensor has no attribute called '{node.attr}'",
            "There are .shape and .dtype; len(a.shape) is the number of dimensions.",
        )
    return []


def _check_subscript(node: ast.Subscript, dialect: str, report: Reporter) -> list[ast.AST]:
    if isinstance(node.value, ast.Subscript):
        inner = ast.unparse(node.value)
        raise report.value_error(
            node,
            f"'{ast.unparse(node)}' indexes '{inner}', which is one element already",
            f"Write all indices at once: {inner[:-1]}, {ast.unparse(node.slice)}].",
        )
    if not isinstance(node.value, (ast.Name, ast.Attribute)):
        raise report.value_error(
            node, "only tensors and tuples with a name have elements", "Assign it to a name first."
        )
    return [node.value, node.slice]


def _check_constant(node: ast.Constant, dialect: str, report: Reporter) -> list[ast.AST]:
    if not isinstance(node.value, (bool, int, float, str)):
        raise report.value_error(
            node,
            f"{node.value!r} is not a value of the Hybrid DSL",
            "There are numbers, True and False, and strings for dtypes.",
        )
    return []


def _check_binary(node: ast.BinOp, dialect: str, report: Reporter) -> list[ast.AST]:
    _check_operator(node, node.op, report)
    return [node.left, node.right]


def _check_operator(node: ast.AST, operator: ast.operator, report: Reporter) -> None:
    if isinstance(operator, ast.MatMult):
        raise report.value_error(
            node, "'@' is not in the Hybrid DSL", "Write the three loops of the product."
        )


def _check_compare(node: ast.Compare, dialect: str, report: Reporter) -> list[ast.AST]:
    if any(isinstance(op, (ast.Is, ast.IsNot, ast.In, ast.NotIn)) for op in node.ops):
        raise report.value_error(
            node, "'is' and 'in' are not in the Hybrid DSL", "Compare with == and !=."
        )
    return [node.left, *node.comparators]


def _check_assert(node: ast.Assert, dialect: str, report: Reporter) -> list[ast.AST]:
    return [node.test]


def _check_return(node: ast.Return, dialect: str, report: Reporter) -> list[ast.AST]:
    return []


_CHECKS: dict[type[ast.AST], Callable[[Any, str, Reporter], list[ast.AST]]] = {
    ast.Assign: _check_assign,
    ast.AugAssign: _check_aug_assign,
    ast.For: _check_for,
    ast.With: _check_with,
    ast.Expr: _check_expression_statement,
    ast.Assert: _check_assert,
    ast.Return: _check_return,
    ast.Call: _check_call,
    ast.Attribute: _check_attribute,
    ast.Subscript: _check_subscript,
    ast.Constant: _check_constant,
    ast.BinOp: _check_binary,
    ast.Compare: _check_compare,
}


def _check_signature(definition: ast.FunctionDef, report: Reporter) -> None:
    arguments = definition.args
    for extra in (arguments.vararg, arguments.kwarg, *arguments.kwonlyargs):
        if extra is not None:
            raise report.value_error(
                extra,
                f"parameter '{extra.arg}' is not positional",
                "List the tensors, then the attributes, as plain parameters.",
            )


def _check_returns(definition: ast.FunctionDef, report: Reporter) -> None:
    """A kernel ends with its one return, of tensors by their names."""
    returns = [node for node in ast.walk(definition) if isinstance(node, ast.Return)]
    if not returns:
        raise report.value_error(
            definition,
            "no valid return found in the function body",
            "End it with return c, where c is an output_tensor or an argument.",
        )
    for extra in [node for node in returns if node is not definition.body[-1]]:
        raise report.value_error(
            extra,
            "return stands once, as the last statement of the function",
            "Assign to the output inside loops and branches, and return it at the end.",
        )
    value = returns[0].value
    if not isinstance(value, (ast.Name, ast.Tuple)):
        raise report.type_error(
            value or returns[0],
            "the return value should be either a single tensor or a tuple of tensors, "
            f"but gets '{ast.unparse(value) if value else 'nothing'}'",
            "Assign to an output_tensor and return its name.",
        )
    for element in value.elts if isinstance(value, ast.Tuple) else []:
        if not isinstance(element, ast.Name):
            raise report.type_error(
                element,
                "the element in the return value should be the name of a tensor, "
                f"but gets '{ast.unparse(element)}'",
                "Assign to an output_tensor and return its name.",
            )


def _row(node: ast.expr) -> Intrinsic | None:
    """Returns the row of a call by plain name."""
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Name):
        return INTRINSICS.get(node.func.id)
    return None


def _near(name: str) -> list[str]:
    spelled = {"int": "int32", "float": "float32", "pow": "power", "ln": "log", "fabs": "abs"}
    found = difflib.get_close_matches(name, INTRINSICS, n=2, cutoff=0.7)
    return [spelled[name]] if name in spelled else found


def _all_names(dialect: str) -> str:
    names = [name for name, row in INTRINSICS.items() if dialect == "akg" or not row.akg_only]
    return f"There are {', '.join(names)}."


def _count(arity: int) -> str:
    return "one input" if arity == 1 else f"{arity} inputs"
