"""The names of a kernel, resolved: the meaning and scope of each.

As in AKG the first assignment of a name declares it, for the rest of the enclosing loop's or
function's body; an if opens no scope. A name whose scope has ended may be declared again, which
is an error in MindSpore. Numbers and tuples from outside the function are captured; that is an
error there, too. So is a scalar that a loop reads above its first assignment, and that has a value
of an earlier iteration: it is declared where it is read. So is one that is read after the loop that
assigns it: all scalars of that name are one.
"""

from __future__ import annotations

import ast
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, Literal, TypeAlias

from msops._loops.frontends.hybrid.calls import Rules, is_declaration
from msops._loops.frontends.hybrid.statement_forms import parameter_names, returned_names
from msops._loops.frontends.hybrid.syntax import EarlyName, OwnNames
from msops._loops.frontends.references import assigned_names
from msops._loops.frontends.reporting import Reporter

Path: TypeAlias = tuple[int, ...]
"""A block of statements: the numbers of the blocks around it and its own, outermost first."""

NameKind: TypeAlias = Literal["parameter", "captured", "loop", "scalar", "output", "temporary"]

TENSORS = ("output", "temporary")


@dataclass(eq=False)
class ScopedName:
    """The meaning of a name in one scope.

    Attributes:
      name: the author's name.
      kind: what it is.
      scope: the loop's or function's body it lives in.
      home: the smallest block that holds every use.
      frame: the block in which the function that it belongs to starts.
      stores: how often it is assigned.
      is_result: it holds what a helper returns, which each way through the helper assigns.
    """

    name: str
    kind: NameKind
    scope: Path = ()
    home: Path = ()
    frame: Path = ()
    stores: int = 0
    is_result: bool = False


@dataclass(frozen=True)
class ResolvedNames:
    """The result: every `ast.Name` and loop resolved.

    Attributes:
      symbols: by the name's node; for a loop's variable the node of the target.
      blocks: the path of each body, by the id of its list of statements.
      results: the symbols returned.
      early: the scalars that are read where no assignment is in scope: in a loop above the first
        one, or after the loop that has it.
    """

    symbols: Mapping[ast.Name, ScopedName]
    blocks: Mapping[int, Path]
    results: tuple[ScopedName, ...]
    early: tuple[ScopedName, ...]

    def namesakes(self, symbol: ScopedName) -> list[ScopedName]:
        """Returns the symbols of a name in all scopes, which are one variable in Python."""
        return [each for each in self.symbols.values() if each.name == symbol.name]


def resolve_names(
    definition: ast.FunctionDef, captured: Mapping[str, Any], rules: Rules
) -> ResolvedNames:
    """Finds what each name of a kernel means.

    Args:
      definition: a kernel that passed `check_grammar`.
      captured: constants from outside the function, by name.
      rules: what it is checked against; the dialect "hybrid" wants every output returned.

    Raises:
      ArgumentValueError, ArgumentTypeError: a name is not declared, is used out of its scope, or
        is not one that may be assigned or returned.
    """
    local_names = assigned_names(definition)
    resolver = _Resolver(rules.report, captured, rules.outside, local_names)
    return resolver.function(definition, rules.dialect)


def _assigned_scalars(body: list[ast.stmt]) -> set[str]:
    """Returns the names that statements assign a value to, those of loops' variables left out."""
    found: set[str] = set()
    for node in (part for statement in body for part in ast.walk(statement)):
        match node:
            case ast.Assign(targets=[target], value=value) if not is_declaration(value):
                parts = target.elts if isinstance(target, ast.Tuple) else [target]
                found |= {part.id for part in parts if isinstance(part, ast.Name)}
    return found


@dataclass
class _Resolver:
    report: Reporter
    captured: Mapping[str, Any]
    outside: Mapping[str, Any]
    local_names: set[str]
    symbols: dict[ast.Name, ScopedName] = field(default_factory=dict)
    blocks: dict[int, Path] = field(default_factory=dict)
    # The latest symbol of each name, and the loop variables in sight.
    latest: dict[str, ScopedName] = field(default_factory=dict)
    loops: dict[str, ScopedName] = field(default_factory=dict)
    # The loops around a statement: the path of each body, and the scalars that it assigns.
    assigned: list[tuple[Path, set[str]]] = field(default_factory=list)
    frames: dict[str, Path] = field(default_factory=dict)
    early: list[ScopedName] = field(default_factory=list)
    scope: Path = ()
    path: Path = ()
    outermost: Path = ()

    def function(self, definition: ast.FunctionDef, dialect: str) -> ResolvedNames:
        for name in parameter_names(definition):
            self.latest[name] = ScopedName(name, "parameter")
        self.block(definition.body, opens_scope=True)
        self.outermost = self.blocks[id(definition.body)]
        results = self.results(definition, dialect)
        return ResolvedNames(self.symbols, self.blocks, results, tuple(self.early))

    def block(self, body: list[ast.stmt], opens_scope: bool) -> None:
        outside = self.path, self.scope
        self.path = self.blocks[id(body)] = (*self.path, len(self.blocks))
        if opens_scope:
            self.scope = self.path
        for statement in body:
            self.statement(statement)
        self.path, self.scope = outside

    def statement(self, statement: ast.stmt) -> None:
        match statement:
            case ast.Assign(targets=[target], value=value):
                self.reads(value)
                self.store(target, value)
            case ast.AugAssign(target=target, value=value):
                self.reads(value)
                self.update(target)
            case ast.For(iter=iterator, body=body):
                self.reads(iterator)
                self.loop(statement, body)
            case ast.If(test=test, body=body, orelse=orelse):
                self.reads(test)
                self.block(body, opens_scope=False)
                self.block(orelse, opens_scope=False)
            case ast.With(items=items, body=body):
                self.reads(items[0].context_expr)
                # No block of its own: its statements are run as part of the one around it.
                for inner in body:
                    self.statement(inner)
            case ast.Assert(test=test):
                self.reads(test)
            case EarlyName(targets=targets):
                for target in targets:
                    self.declared(target.id, "scalar", self.scope, self.path).is_result = True
            case OwnNames(names=names):
                self.frames |= dict.fromkeys(names, self.path)
            case ast.Return(value=ast.expr() as value):
                self.reads(value)

    def loop(self, node: ast.For, body: list[ast.stmt]) -> None:
        target = node.target
        assert isinstance(target, ast.Name)
        if target.id in self.loops:
            raise self.overwritten(target)
        if self.visible(target.id):
            raise self.overwritten(target, f"'{target.id}' is in use: give the loop another name.")
        self.symbols[target] = self.loops[target.id] = ScopedName(target.id, "loop")
        self.assigned.append(((*self.path, len(self.blocks)), _assigned_scalars(body)))
        self.block(body, opens_scope=True)
        self.assigned.pop()
        del self.loops[target.id]

    def store(self, target: ast.expr, value: ast.expr | None) -> None:
        """Resolves what is assigned to; `value` is None in a tuple, which declares no tensor."""
        if isinstance(target, ast.Tuple):
            for element in target.elts:
                self.store(element, None)
            return
        if isinstance(target, ast.Subscript):
            self.reads(target)
            return
        assert isinstance(target, ast.Name)
        if target.id in self.loops:
            raise self.overwritten(target)
        symbol = self.visible(target.id)
        declares = value is not None and is_declaration(value)
        if symbol is None:
            kind: NameKind = "scalar"
            if declares:
                assert isinstance(value, ast.Call)
                is_output = ast.unparse(value.func) == "output_tensor"
                kind = "output" if is_output else "temporary"
            symbol = self.declared(target.id, kind, self.scope, self.path)
        elif symbol.kind == "parameter":
            raise self.report.value_error(
                target,
                f"the argument '{target.id}' cannot be assigned as a whole",
                f"Assign to its elements, {target.id}[i] = value, or use another name.",
            )
        elif declares or symbol.kind in TENSORS:
            raise self.report.value_error(
                target,
                f"the tensor is redefined: {target.id}",
                "Use another name."
                if declares
                else f"Assign to its elements in a loop: {target.id}[i] = value.",
            )
        self.use(target, symbol)
        symbol.stores += 1

    def update(self, target: ast.expr) -> None:
        if isinstance(target, ast.Subscript):
            self.reads(target)
            return
        assert isinstance(target, ast.Name)
        if target.id in self.loops:
            raise self.overwritten(target)
        symbol = self.read(target)
        if symbol.kind != "scalar":
            raise self.report.value_error(
                target,
                f"'{target.id}' cannot be updated as a whole",
                f"Update an element, {target.id}[i] += value, or a scalar of the kernel.",
            )
        symbol.stores += 1

    def reads(self, node: ast.AST) -> None:
        """Resolves every name in an expression; functions are no variables."""
        if isinstance(node, ast.Call):
            if isinstance(node.func, ast.Attribute):
                self.reads(node.func.value)
            for argument in node.args:
                self.reads(argument)
        elif isinstance(node, ast.Name):
            self.read(node)
        elif isinstance(node, ast.Attribute):
            self.attribute(node)
        else:
            for part in ast.iter_child_nodes(node):
                self.reads(part)

    def read(self, node: ast.Name) -> ScopedName:
        name = node.id
        symbol = (
            self.loops.get(name)
            or self.visible(name)
            or self.of_an_earlier_iteration(name)
            or self.of_a_loop_before(name)
        )
        if symbol is None and name in self.latest:
            raise self.report.value_error(
                node,
                f"a variable used out of the scope it is defined: {name}",
                "Declare it before the loop: a tensor lives in the body that declares it.",
            )
        if symbol is None and name in self.captured and name not in self.local_names:
            symbol = self.latest[name] = ScopedName(name, "captured")
        if symbol is None:
            raise self.undeclared(node)
        self.use(node, symbol)
        return symbol

    def of_an_earlier_iteration(self, name: str) -> ScopedName | None:
        """Declares a name that the innermost loop with an assignment of it has further down."""
        scope = next((path for path, names in reversed(self.assigned) if name in names), None)
        if scope is None:
            return None
        last = self.latest.get(name)
        if last is not None and last.scope[: len(scope)] == scope:
            return None  # A loop further up may have assigned it in this iteration.
        self.early.append(self.declared(name, "scalar", scope, scope))
        return self.early[-1]

    def of_a_loop_before(self, name: str) -> ScopedName | None:
        """Returns a scalar that a loop further up has assigned, and that outlives it."""
        symbol = self.latest.get(name)
        if symbol is None or symbol.kind != "scalar":
            return None
        self.early.append(symbol)
        return symbol

    def undeclared(self, node: ast.Name) -> Exception:
        name = node.id
        problem, remedy = f"an undeclared variable: {name}", "Assign it before it is read."
        if any(each.name == name and each.kind == "loop" for each in self.symbols.values()):
            remedy = f"A loop's variable ends with the loop: keep it, last = {name}, in the loop."
        if name not in self.local_names:
            remedy = (
                "Assign it first, or declare a result by output_tensor. From outside, a kernel "
                "takes numbers and tuples of numbers by name; an array is an input."
            )
            if name in self.outside:
                problem, remedy = _unreadable(name, self.outside[name])
        return self.report.value_error(node, problem, remedy)

    def attribute(self, node: ast.Attribute) -> None:
        # The value of a helper's parameter may be any expression.
        symbol = self.read(node.value) if isinstance(node.value, ast.Name) else None
        if symbol is None or symbol.kind in ("loop", "scalar", "captured"):
            raise self.report.value_error(
                node,
                f"'{ast.unparse(node.value)}' is no tensor and has no .{node.attr}",
                "Take it of an argument, or of a tensor after its declaration.",
            )

    def visible(self, name: str) -> ScopedName | None:
        """Returns the symbol of a name if its scope is still open."""
        symbol = self.latest.get(name)
        if symbol is None or self.path[: len(symbol.scope)] != symbol.scope:
            return None
        return symbol

    def declared(self, name: str, kind: NameKind, scope: Path, home: Path) -> ScopedName:
        frame = self.frames.get(name, self.path[:1])
        symbol = self.latest[name] = ScopedName(name, kind, scope, home, frame)
        return symbol

    def use(self, node: ast.Name, symbol: ScopedName) -> None:
        self.symbols[node] = symbol
        symbol.home = _common(symbol.home, self.path)

    def overwritten(self, node: ast.Name, advice: str = "Use another name.") -> Exception:
        return self.report.value_error(node, f"iter var cannot be overwritten: {node.id}", advice)

    def results(self, definition: ast.FunctionDef, dialect: str) -> tuple[ScopedName, ...]:
        names = returned_names(definition)
        results = tuple(self.symbols[node] for node in names)
        for node, symbol in zip(names, results, strict=True):
            if symbol.kind == "temporary" and dialect == "akg" and symbol.scope == self.outermost:
                # TVM returns what is allocated, too.
                symbol.kind = "output"
            if symbol.kind not in ("parameter", "output"):
                raise self.report.type_error(
                    node,
                    "the element in the return value should be either an input tensor or a "
                    f"tensor allocated by output_tensor, but gets name: {node.id}",
                    f"Declare it, {node.id} = output_tensor(shape, dtype), and write its elements, "
                    f"{node.id}[i] = value, in a loop over i.",
                )
            if results.count(symbol) > 1:
                raise self.report.value_error(
                    node, f"'{node.id}' is returned twice", "Return each tensor once."
                )
        if dialect == "hybrid":
            self.check_all_returned(results, names)
        return results

    def check_all_returned(self, results: Iterable[ScopedName], names: list[ast.Name]) -> None:
        for symbol in self.symbols.values():
            if symbol.kind == "output" and symbol not in results:
                raise self.report.type_error(
                    names[-1],
                    "the tensor is allocated as an output tensor but not in the return value: "
                    f"{symbol.name}",
                    "Return it too, or declare it with allocate().",
                )


def _unreadable(name: str, value: Any) -> tuple[str, str]:
    """Returns what is wrong with a value from outside that is no constant, and what to do."""
    if hasattr(value, "shape") and hasattr(value, "dtype"):
        return (
            f"'{name}' is an array from outside, which a kernel cannot read",
            f"Give the kernel a parameter {name}, and pass the array as an input.",
        )
    remedy = "From outside, a kernel takes numbers and tuples of numbers."
    if isinstance(value, complex):
        remedy = "Pass the real and the imaginary part as two numbers."
    what = "None" if value is None else f"of type {type(value).__name__}"
    return f"'{name}' is {what}, which a kernel cannot read from outside", remedy


def _common(one: Path, other: Path) -> Path:
    length = next(
        (index for index, (a, b) in enumerate(zip(one, other, strict=False)) if a != b),
        min(len(one), len(other)),
    )
    return one[:length]
