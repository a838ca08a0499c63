"""Helper functions of a kernel, written where they are called.

A helper is a plain Python function outside the kernel. One that only decides what to return becomes
an expression; of any other the statements come before the one with the call, under fresh names:

    def clip(v, most):                   if x[i] > 3.0:
        if v > most:                         kept = 3.0
            return most            ->    else:
        return v                             kept = x[i]
    y[i] = 2.0 * clip(x[i], 3.0)         y[i] = 2.0 * kept
"""

from __future__ import annotations

import ast
import types
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from msops._loops.frontends.hybrid.helpers import Helper, called_helper, constant_of
from msops._loops.frontends.hybrid.statement_forms import parameter_names
from msops._loops.frontends.hybrid.syntax import OwnNames, copied, load, placed, read_names, store
from msops._loops.frontends.references import as_constant
from msops._loops.frontends.reporting import Reporter

MOST_STATEMENTS = 20_000
"""How many statements helpers may add: each call writes its helper out again."""


@dataclass
class Inliner:
    """Writes helpers out, of one kernel.

    Attributes:
      report: makes the errors.
      fresh: returns a name that is not in use.
      read: returns the checked and simplified form of a helper.
      own: the kernel's parameters and variables, which no helper sees.
      captured: constants from outside the helpers, by their fresh names; filled here.
      active: the helpers being written out.
      count: statements written so far.
    """

    report: Reporter
    fresh: Callable[[str], str]
    read: Callable[[types.FunctionType], Helper]
    own: frozenset[str]
    captured: dict[str, Any] = field(default_factory=dict)
    active: tuple[Any, ...] = ()
    count: int = 0

    def body(self, statements: list[ast.stmt], outside: Mapping[str, Any]) -> list[ast.stmt]:
        """Returns statements without calls of helpers.

        Args:
          statements: those of a function, without jumps; they are changed.
          outside: what the function sees outside itself.
        """
        return [made for statement in statements for made in self._statement(statement, outside)]

    def _statement(self, node: ast.stmt, outside: Mapping[str, Any]) -> list[ast.stmt]:
        before: list[ast.stmt] = []
        match node:
            case ast.Expr(value=ast.Call() as call) if called_helper(call, outside):
                self._call(call, outside, before, is_whole=True)
                return before
            case ast.Assign(value=ast.Call() as call) if called_helper(call, outside):
                node.value = self._value(call, outside, before, is_whole=True)
            case ast.Assign() | ast.AugAssign():
                node.value = self._expression(node.value, outside, before)
            case ast.For():
                node.iter = self._expression(node.iter, outside, before)
            case ast.If() | ast.Assert():
                node.test = self._expression(node.test, outside, before)
        for target in _targets(node):
            if isinstance(target, ast.Subscript):
                target.slice = self._expression(target.slice, outside, before)
        for part in ("body", "orelse"):
            if hasattr(node, part):
                setattr(node, part, self.body(getattr(node, part), outside))
        return [*before, node]

    def _expression(
        self, node: ast.expr, outside: Mapping[str, Any], before: list[ast.stmt]
    ) -> ast.expr:
        """Returns an expression without calls of helpers; what they do first goes to `before`."""
        match node:
            case ast.IfExp():
                return self._conditional(node, outside, before)
            case ast.BoolOp():
                return self._joined(node, outside, before)
            case ast.Call() if called_helper(node, outside):
                return self._value(node, outside, before)
        for name, value in ast.iter_fields(node):
            if isinstance(value, ast.expr):
                setattr(node, name, self._expression(value, outside, before))
            elif isinstance(value, list):
                parts = [
                    self._expression(each, outside, before) if isinstance(each, ast.expr) else each
                    for each in value
                ]
                setattr(node, name, parts)
        return node

    # What Python computes only under a condition is computed only under it.

    def _conditional(
        self, node: ast.IfExp, outside: Mapping[str, Any], before: list[ast.stmt]
    ) -> ast.expr:
        node.test = self._expression(node.test, outside, before)
        arms: tuple[list[ast.stmt], list[ast.stmt]] = [], []
        node.body = self._expression(node.body, outside, arms[0])
        node.orelse = self._expression(node.orelse, outside, arms[1])
        if not any(arms):
            return node
        name = self.fresh("chosen")
        arms[0].append(store(name, node.body, node.body))
        arms[1].append(store(name, node.orelse, node.orelse))
        before.append(placed(ast.If(node.test, *arms), node))
        return placed(load(name), node)

    def _joined(
        self, node: ast.BoolOp, outside: Mapping[str, Any], before: list[ast.stmt]
    ) -> ast.expr:
        whole, *rest = node.values
        whole = self._expression(whole, outside, before)
        for value in rest:
            first: list[ast.stmt] = []
            value = self._expression(value, outside, first)
            if not first:
                whole = placed(ast.BoolOp(node.op, [whole, value]), node)
                continue
            name = self.fresh("holds")
            before.append(store(name, whole, node))
            test: ast.expr = load(name)
            if isinstance(node.op, ast.Or):
                test = ast.UnaryOp(ast.Not(), test)
            first.append(store(name, value, value))
            before.append(placed(ast.If(test, first, []), node))
            whole = placed(load(name), node)
        return whole

    def _value(
        self,
        node: ast.Call,
        outside: Mapping[str, Any],
        before: list[ast.stmt],
        is_whole: bool = False,
    ) -> ast.expr:
        value = self._call(node, outside, before, is_whole)
        if value is None:
            raise self.report.value_error(
                node,
                f"'{ast.unparse(node.func)}' returns nothing",
                "End it with return value, or call it in a statement of its own.",
            )
        return value

    def _call(
        self,
        node: ast.Call,
        outside: Mapping[str, Any],
        before: list[ast.stmt],
        is_whole: bool = False,
    ) -> ast.expr | None:
        """Returns the value of a helper's call; its statements go to `before`."""
        function = called_helper(node, outside)
        assert function is not None
        name = ast.unparse(node.func)
        if function in self.active:
            raise self.report.value_error(
                node, f"'{name}' calls itself", "Write a loop: a kernel has no recursion."
            )
        helper = self.read(function)
        if helper.has_effect and not is_whole:
            raise self.report.value_error(
                node,
                f"'{name}' assigns to elements of a tensor, and is called within an expression",
                f"Call it in a statement of its own first: value = {ast.unparse(node)}.",
            )
        given = self._arguments(helper, node)
        names = {
            parameter: self._argument(helper, parameter, value, outside, before)
            for parameter, value in given.items()
        }
        own = {local: self.fresh(local) for local in helper.locals if local not in names}
        names |= {local: load(fresh) for local, fresh in own.items()}
        statements = [self._instance(statement, helper, names) for statement in helper.body]
        self.count += sum(1 for each in statements for _ in ast.walk(each))
        if self.count > MOST_STATEMENTS:
            raise self.report.value_error(
                node,
                "the helpers of this kernel, written out at each call, have more than "
                f"{MOST_STATEMENTS} parts",
                "Call them in a loop, or fewer times.",
            )
        active, self.active = self.active, (*self.active, function)
        before += [placed(OwnNames([*own.values()]), node), *self.body(statements, helper.outside)]
        value = None
        if helper.value is not None:
            value = self._expression(
                self._instance(helper.value, helper, names), helper.outside, before
            )
        self.active = active
        return value

    def _arguments(self, helper: Helper, node: ast.Call) -> dict[str, ast.expr]:
        """Returns the argument of each parameter that has one in a call."""
        parameters = parameter_names(helper.source.definition)
        given = dict(zip(parameters, node.args, strict=False))
        named = {str(keyword.arg): keyword.value for keyword in node.keywords}
        wrong = len(node.args) > len(parameters) or set(named) - set(parameters[len(node.args) :])
        given |= named
        missing = [each for each in parameters if each not in given | dict(helper.defaults)]
        if wrong or missing:
            raise self.report.type_error(
                node,
                f"'{ast.unparse(node.func)}' has the parameters ({', '.join(parameters)}); the "
                f"call does not fit them",
                "Give each parameter one argument, by position or by name.",
            )
        for name, default in helper.defaults.items():
            if name not in given:
                given[name] = placed(self._captured(name, default), node)
        return given

    def _argument(
        self,
        helper: Helper,
        parameter: str,
        value: ast.expr,
        outside: Mapping[str, Any],
        before: list[ast.stmt],
    ) -> ast.expr:
        """Returns what a parameter is in the body: its argument, or a name for its value."""
        value = self._expression(value, outside, before)
        uses = helper.uses.get(parameter, 0)
        is_direct = _is_plain(value) or (uses <= 1 and helper.is_expression)
        if is_direct and parameter not in helper.stored:
            return value
        name = self.fresh(parameter)
        before.append(store(name, value, value))
        return placed(load(name), value)

    def _instance(self, node: Any, helper: Helper, names: Mapping[str, ast.expr]) -> Any:
        """Returns a copy of a part of a helper, under the names of a call."""
        kinds = (ast.Call, ast.Name, ast.Attribute)

        def replace(part: ast.AST) -> ast.AST | None:
            if isinstance(part, ast.Call) and isinstance(part.func, ast.Name):
                # A function's name stays as it is.
                call = ast.Call(
                    ast.Name(part.func.id, ast.Load()),
                    [copied(arg, replace, kinds, helper.source) for arg in part.args],
                    [
                        ast.keyword(each.arg, copied(each.value, replace, kinds, helper.source))
                        for each in part.keywords
                    ],
                )
                ast.copy_location(call, part)
                call.origin = helper.source  # type: ignore[attr-defined]
                return placed(call, part)
            if isinstance(part, ast.Name) and part.id in names:
                given = names[part.id]
                if isinstance(part.ctx, ast.Load):
                    return placed(copied(given), part)
                assert isinstance(given, ast.Name)
                name = copied(part, source=helper.source)
                name.id = given.id
                return name
            constant = constant_of(part, helper.outside)
            if constant is not None:
                return placed(self._captured(ast.unparse(part).rpartition(".")[2], constant), part)
            if isinstance(part, ast.Name) and part.id in self.own:
                raise self.report.value_error(
                    copied(part, source=helper.source),
                    f"'{helper.source.definition.name}' reads '{part.id}', a name of the kernel "
                    "that calls it, which Python does not find there",
                    "Pass it as an argument.",
                )
            return None

        return copied(node, replace, kinds, helper.source)

    def own_statement(self, node: ast.stmt, outside: Mapping[str, Any]) -> ast.stmt:
        """Returns a copy of a kernel's statement in which dotted constants have a name."""

        def replace(part: Any) -> ast.AST | None:
            constant = constant_of(part, outside)
            return None if constant is None else placed(self._captured(part.attr, constant), part)

        return copied(node, replace, (ast.Attribute,))

    def _captured(self, name: str, constant: Any) -> ast.Name:
        """Returns the name of a constant from outside."""
        fresh = self.fresh(name)
        self.captured[fresh] = as_constant(constant)
        return load(fresh)


def _targets(node: ast.stmt) -> list[ast.expr]:
    """Returns what a statement assigns to, each part of a tuple."""
    if isinstance(node, ast.AugAssign):
        return [node.target]
    waiting = list(node.targets) if isinstance(node, ast.Assign) else []
    found: list[ast.expr] = []
    while waiting:
        target = waiting.pop()
        waiting += target.elts if isinstance(target, ast.Tuple) else []
        found.append(target)
    return found


def _is_plain(value: ast.expr) -> bool:
    """Returns whether an argument can be written wherever its parameter is read.

    So can names, of tensors too, constants, and what is known of a shape.
    """
    match value:
        case ast.Name() | ast.Constant():
            return True
        case ast.UnaryOp(operand=operand):
            return isinstance(operand, ast.Constant)
        case ast.Attribute(value=ast.Name()):
            return True
        case ast.Subscript(value=ast.Attribute(), slice=index):
            return _is_plain(index) and not read_names(index)
    return False
