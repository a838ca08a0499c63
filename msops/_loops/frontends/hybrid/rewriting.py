"""Kernels with all that Python has for them, as kernels of few forms.

The steps, in order, each on a copy of the author's syntax tree:

1. `plain`: a bounded `while` is a `for`, one assignment has one target, a loop has one variable.
2. `jumps.without_jumps`: `continue`, `break` and early `return` are conditions.
3. `inlining.Inliner`: helper functions are written out.
"""

from __future__ import annotations

import ast
import dataclasses
import re
import types
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from msops._loops.frontends.hybrid.calls import Rules
from msops._loops.frontends.hybrid.counting import as_for
from msops._loops.frontends.hybrid.grammar import check_helper_grammar
from msops._loops.frontends.hybrid.helpers import (
    Helper,
    assigns_elements,
    called_helper,
    defaults_of,
    outside_of,
)
from msops._loops.frontends.hybrid.inlining import Inliner
from msops._loops.frontends.hybrid.jumps import always_jumps, without_jumps
from msops._loops.frontends.hybrid.language import INTRINSICS
from msops._loops.frontends.hybrid.statement_forms import no_return, parameter_names
from msops._loops.frontends.hybrid.syntax import EarlyName, copied, load, placed, read_names, store
from msops._loops.frontends.references import as_constant, assigned_names, read_with_own_names
from msops._loops.frontends.reporting import Reporter
from msops._loops.frontends.source import Source, unwrap

# The name of a conversion is also that of its dtype.
_DTYPES = {name: name for name, row in INTRINSICS.items() if row.role == "cast"}
_NUMBER = re.compile(r"_\d+$")


@dataclass(frozen=True)
class Rewritten:
    """A kernel in few forms.

    Attributes:
      source: its text, and the new definition.
      captured: the constants it names.
      from_others: what it has of helpers and of objects outside, as text; these may change while
        the function and the names it sees stay the same.
    """

    source: Source
    captured: Mapping[str, Any]
    from_others: str


def rewrite(source: Source, rules: Rules) -> Rewritten:
    """Returns a kernel that passed `check_grammar` in few forms."""
    definition = source.definition
    rewriting = _Rewriting(rules, read_names(definition))
    own = frozenset(parameter_names(definition)) | assigned_names(definition)
    inliner = Inliner(rules.report, rewriting.fresh, rewriting.helper, own)
    statements = [inliner.own_statement(each, rules.outside) for each in definition.body]
    ends = statements[-1:] if isinstance(statements[-1], ast.Return) else []
    body = rewriting.structured(statements[: len(statements) - len(ends)], lambda node: [])
    body = inliner.body(body, rules.outside)
    body += ends or [_implied_return(body, definition, rules)]
    new = ast.FunctionDef(definition.name, definition.args, body, [])
    ast.copy_location(new, definition)
    constants = {name: as_constant(value) for name, value in rules.outside.items()}
    captured = dict(_DTYPES)
    captured |= {name: value for name, value in constants.items() if value is not None}
    depends = bool(rewriting.helpers or inliner.captured)
    from_others = f"{ast.unparse(new)}\n{inliner.captured}" if depends else ""
    return Rewritten(
        dataclasses.replace(source, definition=new), captured | inliner.captured, from_others
    )


@dataclass
class _Rewriting:
    rules: Rules
    used: set[str]
    helpers: dict[types.FunctionType, Helper] = field(default_factory=dict)
    reading: list[types.FunctionType] = field(default_factory=list)

    def fresh(self, name: str) -> str:
        """Returns a name like one of the author's that is not in use."""
        found, count = name, 0
        while found in self.used:
            count += 1
            found = f"{_NUMBER.sub('', name)}_{count}"
        self.used.add(found)
        return found

    def structured(
        self, body: list[ast.stmt], results: Callable[[ast.Return], list[ast.stmt]]
    ) -> list[ast.stmt]:
        return without_jumps(plain(body, self.fresh), self.fresh, results)

    def helper(self, function: types.FunctionType) -> Helper:
        """Returns a helper, checked, its statements in few forms."""
        if function not in self.helpers:
            self.helpers[function] = self.read(function)
        return self.helpers[function]

    def read(self, function: types.FunctionType) -> Helper:
        who = f"{self.rules.report.who}: helper '{function.__name__}'"
        inner = unwrap(function, who)
        source = read_with_own_names(inner, who)
        outside = outside_of(inner)
        rules = Rules(self.rules.dialect, Reporter(who, source), outside)
        check_helper_grammar(source.definition, rules)
        body = [copied(each, source=source) for each in source.definition.body]
        body = [each for each in body if not _is_text(each)]
        value = _as_value(body)
        if value is not None:
            body = []
        elif body and isinstance(last := body[-1], ast.Return) and not _returns(body[:-1]):
            value = last.value
            body = self.structured(body[:-1], lambda node: [])
        else:
            names, value = self.results(body)
            body = self.structured(body, lambda node: _kept(node, names))
            body = [_declared(names, source.definition), *body]
        self.reading.append(function)
        has_effect = assigns_elements(body) or any(
            self.helper(found).has_effect
            for statement in body
            for node in ast.walk(statement)
            if isinstance(node, ast.Call)
            and (found := called_helper(node, outside))
            and found not in self.reading
        )
        self.reading.pop()
        return Helper(source, outside, defaults_of(inner), body, value, has_effect)

    def results(self, body: list[ast.stmt]) -> tuple[list[str], ast.expr | None]:
        """Returns names for the results of a helper with several returns, and its value by them."""
        value = next((each.value for each in _returns(body) if each.value), None)
        if value is None:
            return [], None
        count = len(value.elts) if isinstance(value, ast.Tuple) else 1
        names = [self.fresh("result") for _ in range(count)]
        if not isinstance(value, ast.Tuple):
            return names, placed(load(names[0]), value)
        return names, placed(ast.Tuple([load(name) for name in names], ast.Load()), value)


def plain(body: list[ast.stmt], fresh: Callable[[str], str]) -> list[ast.stmt]:
    """Returns statements of which each has one target, and each loop is a `for` of one variable."""
    made: list[ast.stmt] = []
    for statement in body:
        made += _plain(statement, made, fresh)
    return made


def _plain(node: ast.stmt, before: list[ast.stmt], fresh: Callable[[str], str]) -> list[ast.stmt]:
    for part in ("body", "orelse"):
        if hasattr(node, part):
            setattr(node, part, plain(getattr(node, part), fresh))
    if isinstance(node, ast.While):
        return [as_for(node, before, fresh)]
    if isinstance(node, ast.For) and isinstance(node.target, ast.Tuple):
        name = fresh("index")
        parts = placed(ast.Assign([node.target], load(name)), node.target)
        target = ast.Name(name, ast.Store())
        return [placed(ast.For(target, node.iter, [parts, *node.body], []), node)]
    if isinstance(node, ast.Assign) and len(node.targets) > 1:
        value = node.value
        made: list[ast.stmt] = []
        if not isinstance(value, (ast.Name, ast.Constant)):
            made.append(store(fresh("value"), value, value))
            value = placed(load(made[0].targets[0].id), value)  # type: ignore[attr-defined]
        made += [placed(ast.Assign([each], copied(value)), node) for each in node.targets]
        return made
    return [node]


def _implied_return(body: list[ast.stmt], definition: ast.FunctionDef, rules: Rules) -> ast.Return:
    """Returns the return of a kernel without one: of the arguments to whose elements it assigns."""
    assigned = {
        ast.unparse(node.value)
        for statement in body
        for node in ast.walk(statement)
        if isinstance(node, ast.Subscript) and isinstance(node.ctx, ast.Store)
    }
    names = [name for name in parameter_names(definition) if name in assigned]
    if not names:
        raise no_return(definition, rules)
    value = load(names[0]) if len(names) == 1 else ast.Tuple([*map(load, names)], ast.Load())
    return placed(ast.Return(value), definition.body[-1])


def _is_text(node: ast.stmt) -> bool:
    """Returns whether a statement is a docstring, or a string used as a comment."""
    return isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)


def _returns(body: list[ast.stmt]) -> list[ast.Return]:
    return [
        node for statement in body for node in ast.walk(statement) if isinstance(node, ast.Return)
    ]


def _as_value(body: list[ast.stmt]) -> ast.expr | None:
    """Returns a body that only decides what to return as an expression; None for others."""
    match body:
        case [ast.Return(value=ast.expr() as value), *_] if not isinstance(value, ast.Tuple):
            return value
        case [ast.If(test=test, body=then, orelse=otherwise) as node, *rest]:
            if not always_jumps(then):
                return None
            one, other = _as_value(then), _as_value([*otherwise, *rest])
            if one is not None and other is not None:
                return placed(ast.IfExp(test, one, other), node)
    return None


def _declared(names: list[str], like: ast.AST) -> EarlyName:
    """Returns the declaration of names whose first assignment may be inside a loop."""
    return placed(EarlyName([ast.Name(name, ast.Store()) for name in names]), like)


def _kept(node: ast.Return, names: list[str]) -> list[ast.stmt]:
    """Returns the assignment of what a helper returns to names."""
    if node.value is None:
        return []
    if not isinstance(node.value, ast.Tuple):
        return [store(names[0], node.value, node)]
    targets = ast.Tuple([ast.Name(name, ast.Store()) for name in names], ast.Store())
    return [placed(ast.Assign([targets], node.value), node)]
