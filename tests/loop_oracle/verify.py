"""Checks that a kernel is legal, by the table in rules.py.

Tests run it on what front ends make and between every two passes; printers rely on it.
"""

from __future__ import annotations

from typing import Any

from loop_oracle.rules import RULES, Rule
from msops._loops.ir.names import declared_names
from msops._loops.ir.nodes import Buffer, Expr, For, If, Kernel, Local, Store
from msops._loops.ir.text import body_text, buffer_text, expr_text, point
from msops._loops.ir.walk import Scope, operands, own_expressions, visit
from msops.errors import MsopsError


class IRError(MsopsError, ValueError):
    """A kernel breaks a rule of the loop IR: a fault of the compiler, not of the author."""


def verify(kernel: Kernel) -> None:
    """Checks that a kernel is legal.

    Raises:
      IRError: it is not; the message names the rule and shows the node.
    """
    top = (*kernel.parameters, *kernel.buffers)
    scope = Scope.of(kernel)
    try:
        _check(kernel, scope)
        for buffer in top:
            _check(buffer, scope)
        for stmt, inside in visit(kernel):
            for expr in own_expressions(stmt):
                _check_expr(expr, inside)
            if isinstance(stmt, Local):
                _check(stmt.buffer, inside)
            _check(stmt, inside)
    except _BrokenRule as broken:
        raise IRError.explained(
            f"loop IR of kernel '{kernel.name}'",
            f"a rule is broken: {broken.rule.text}",
            "This is a fault in msops: in the front end or pass that made the kernel.",
            [_node_text(broken.node), *point(getattr(broken.node, "location", None))],
        ) from None


class _BrokenRule(Exception):
    def __init__(self, rule: Rule, node: Any):
        super().__init__(rule.text)
        self.rule = rule
        self.node = node


def _check(node: Any, scope: Scope) -> None:
    for rule in RULES[type(node)]:
        if not rule.holds(node, scope):
            raise _BrokenRule(rule, node)


def _check_expr(expr: Expr, scope: Scope) -> None:
    for operand in operands(expr):
        _check_expr(operand, scope)
    _check(expr, scope)


def _node_text(node: Any) -> str:
    """Returns a node in the text form; of a statement the first line, of a kernel its names."""
    try:
        match node:
            case Kernel():
                names, results = ", ".join(declared_names(node)), ", ".join(node.results)
                return f"kernel {node.name}: {names} -> {results}"
            case Buffer():
                return buffer_text(node)
            case Store() | For() | If() | Local():
                return body_text((node,)).partition("\n")[0]
        return expr_text(node)
    except KeyError:  # an operation without a sign
        return repr(node)
