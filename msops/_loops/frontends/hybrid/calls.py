"""The form of a call: its name, its dialect, its arguments."""

from __future__ import annotations

import ast
import difflib
import functools
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, TypeGuard

from msops._loops.frontends.hybrid.language import INTRINSICS, Intrinsic, Role
from msops._loops.frontends.reporting import Reporter

# What Python and C call the functions of the language.
_SPELLED = {
    **{"int": "int32", "float": "float32", "pow": "power", "ln": "log", "fabs": "abs"},
    **{"fmin": "min", "fmax": "max"},
    # Arrays start at zero, so these two are all that is needed.
    **{f"{name}{like}": "output_tensor, allocate"
       for name in ("zeros", "empty", "ones", "full") for like in ("", "_like")},
}  # fmt: skip


@dataclass(frozen=True)
class Rules:
    """The rules that a kernel is checked against.

    Attributes:
      dialect: "akg", or "hybrid", which has fewer functions.
      report: makes the errors.
      outside: what the function sees outside itself, by name.
    """

    dialect: str
    report: Reporter
    outside: Mapping[str, Any] = field(default_factory=dict)


# What functions of Python and C are here.
_ADVICE = {
    "asin": "Write atan2(x, sqrt(1.0 - x * x)).",
    "acos": "Write atan2(sqrt(1.0 - x * x), x).",
    "hypot": "Write sqrt(x * x + y * y).",
    "tan": "Write sin(x) / cos(x).",
    "sinh": "Write 0.5 * (exp(x) - exp(-x)).",
    "cosh": "Write 0.5 * (exp(x) + exp(-x)).",
    "exp2": "Write 2.0 ** x.",
    "log2": "Write log(x) / log(2.0).",
    "log10": "Write log(x) / log(10.0).",
    "log1p": "Write log(1.0 + x).",
    "cbrt": "Write sign(x) * abs(x) ** (1.0 / 3.0).",
    "fmod": "Write x - y * trunc(x / y).",
    "print": "To print, run the kernel as Python, on numpy arrays: op.__wrapped__(np.ones(3)).",
    "sum": "Add up in a loop: s = 0.0, then s += x[i] for each i in range(x.shape[0]).",
}
# What methods of arrays are here.
_METHODS = {
    "sum": _ADVICE["sum"],
    "mean": "Add up in a loop, s += x[i], and divide by the number of elements, float32(n).",
    "prod": "Multiply in a loop: p = 1.0, then p *= x[i] for each i in range(x.shape[0]).",
    **dict.fromkeys(
        ("max", "argmax"), "Search in a loop: m = x[0], then m = max(m, x[i]) for each i."
    ),
    **dict.fromkeys(
        ("min", "argmin"), "Search in a loop: m = x[0], then m = min(m, x[i]) for each i."
    ),
    "astype": "Convert an element: float32(x[i]).",
    "copy": "Copy in a loop: y[i] = x[i].",
}


def is_declaration(value: ast.expr) -> bool:
    """Returns whether an assigned value makes a tensor."""
    row = row_of(value)
    return row is not None and row.role == "buffer"


def converts_to_dtype(node: ast.expr) -> TypeGuard[ast.Call]:
    """Returns whether a call has the form ``x.dtype.type(value)``."""
    match node:
        case ast.Call(func=ast.Attribute(attr="type", value=ast.Attribute(attr="dtype"))):
            return len(node.args) == 1 and not node.keywords
    return False


def check_call_form(node: ast.Call, rules: Rules) -> Intrinsic:
    """Checks name, dialect and number of arguments of a call; returns the row of its function."""
    if not isinstance(node.func, ast.Name):
        raise rules.report.value_error(node.func, *_no_plain_name(node.func, rules))
    name = node.func.id
    row = INTRINSICS.get(name)
    if row is None:
        raise rules.report.value_error(node.func, *_no_function(name, rules))
    if row.akg_only and rules.dialect != "akg":
        raise rules.report.value_error(
            node.func,
            f"function call id '{name}' is not in the intrinsics list of @kernel functions",
            "Pass func_type='akg', whose dialect has it.",
        )
    if node.keywords or any(isinstance(arg, ast.Starred) for arg in node.args):
        raise rules.report.value_error(
            node, f"'{name}' takes plain arguments only", "Pass them by position, one by one."
        )
    arities = row.arities + (row.akg_arities if rules.dialect == "akg" else ())
    if len(node.args) not in arities:
        expected = " or ".join(map(str, sorted(arities))) + " input" + "s" * (arities != (1,))
        extra = len(node.args) in row.akg_arities
        raise rules.report.type_error(
            node,
            f"function '{name}' expects {expected}, but gets {len(node.args)}",
            "Pass func_type='akg', whose dialect takes them." if extra else _nested(node),
        )
    return row


def _no_plain_name(function: ast.expr, rules: Rules) -> tuple[str, str]:
    """Returns what is wrong with a call of something without a plain name, and what to write."""
    text = ast.unparse(function)
    name = function.attr if isinstance(function, ast.Attribute) else ""
    problem = f"'{text}' cannot be called in a kernel"
    if name == "dtype":
        return (
            problem,
            f"Write {text}.type(value), as with numpy, or name the dtype: float32(value).",
        )
    if name == "shape":
        problem = f"'{text}' is a tuple, and cannot be called"
        return problem, f"Write {text}, or {text}[0] for an extent."
    if _is_method(function, rules):
        problem = f"'{text}' is a method, and tensors have none in a kernel"
        return problem, _METHODS.get(name, "Write a loop over its elements.")
    if name in _METHODS and name not in INTRINSICS:
        return problem, _METHODS[name]
    known = name if name in INTRINSICS else ", ".join(_near(name)) or "sqrt, exp, tanh"
    return problem, f"Functions are called by plain names, without a module: {known}."


def _is_method(function: ast.expr, rules: Rules) -> bool:
    """Returns whether what is called is a method of a tensor, and no function of a module."""
    match function:
        case ast.Attribute(value=ast.Name(id=owner), attr=name):
            return name in _METHODS and owner not in rules.outside
        case ast.Attribute(value=ast.Subscript()):
            return True
    return False


def _no_function(name: str, rules: Rules) -> tuple[str, str]:
    """Returns what is wrong with the name of no function, and what to write for it."""
    near = _near(name)
    if name in rules.outside and not near:
        return (
            f"'{name}' is a {type(rules.outside[name]).__name__}, which a kernel cannot call",
            "Kernels call the functions of the language, and functions of yours made by def.",
        )
    problem = f"'{name}' is no function of the loop language"
    if name in _ADVICE:
        return problem, _ADVICE[name]
    if name in _SPELLED:
        return problem, f"Did you mean {_SPELLED[name]}?"
    if near:
        meant = " or ".join(near)
        return problem, f"Did you mean {meant}? A function of yours must stand above the kernel."
    listed = ", ".join(names_of(rules))
    return problem, f"There are {listed}; and functions of yours that stand above the kernel."


def _nested(node: ast.Call) -> str:
    """Returns what to write for a function of two arguments that is given more or fewer."""
    name, args = ast.unparse(node.func), [ast.unparse(arg) for arg in node.args]
    if name not in ("min", "max") or not args:
        return "Pass as many as it expects."
    if len(args) == 1:
        return f"Of all elements it is found in a loop: m = {name}(m, x[i])."
    return f"Write {functools.reduce(lambda one, other: f'{name}({one}, {other})', args)}."


def row_of(node: ast.expr) -> Intrinsic | None:
    """Returns the row of a call by plain name."""
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Name):
        return INTRINSICS.get(node.func.id)
    return None


def _near(name: str) -> list[str]:
    if name in _SPELLED:
        return [_SPELLED[name]]
    return difflib.get_close_matches(name, INTRINSICS, n=2, cutoff=0.7)


def names_of(rules: Rules, *roles: Role) -> list[str]:
    """Returns the names of a dialect, of some roles or all."""
    return [
        name
        for name, row in INTRINSICS.items()
        if (rules.dialect == "akg" or not row.akg_only) and (not roles or row.role in roles)
    ]
