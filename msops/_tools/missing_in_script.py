"""Names of MindSpore in a script that msops does not have, for the report of `msops run`."""

from __future__ import annotations

import ast
import importlib
import sys
import types
from collections.abc import Iterable

from msops._base.missing_names import ASKED_IN_VAIN


def report(script: str, source: bytes) -> str:
    """Returns what `msops run` says at the end of a script, "" if nothing is missing.

    Names that the script asked for in vain while it ran are among them.

    Args:
      script: how the script is called.
      source: its text, which is read for names whether or not they were reached.
    """
    found = missing_names_of(source)
    for name in sorted(ASKED_IN_VAIN):
        found.setdefault("mindspore" + name.removeprefix("msops"), [])
    if not found:
        return ""
    rows = [f"  {name}{_where(lines)}" for name, lines in found.items()]
    return "\n".join([f"msops run: {script} asks for names that msops does not have:", *rows])


def _where(lines: Iterable[int]) -> str:
    numbers = ", ".join(map(str, sorted(set(lines))))
    return f" (line {numbers})" if numbers else ""


def missing_names_of(source: bytes) -> dict[str, list[int]]:
    """Returns the names of MindSpore in a source that msops lacks, with the lines they are in."""
    tree = ast.parse(source)
    names = _Names(tree)
    names.visit(tree)
    return names.missing


class _Names(ast.NodeVisitor):
    """Follows attributes of the names that imports bind to modules.

    A name that the script assigns to, too, may be another thing, and is left alone.
    """

    def __init__(self, tree: ast.AST):
        self.missing: dict[str, list[int]] = {}
        self._modules: dict[str, types.ModuleType] = {}
        self._assigned = {
            node.id if isinstance(node, ast.Name) else node.arg
            for node in ast.walk(tree)
            if isinstance(node, ast.arg)
            or (isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store))
        }

    def visit_Import(self, node: ast.Import) -> None:
        for alias in node.names:
            root, _, below = alias.name.partition(".")
            if root == "mindspore":
                module = self._follow(importlib.import_module("msops"), below, node.lineno)
                if alias.asname is None:
                    self._bind(root, sys.modules["msops"])
                elif module is not None:
                    self._bind(alias.asname, module)

    def visit_ImportFrom(self, node: ast.ImportFrom) -> None:
        root, _, below = (node.module or "").partition(".")
        if node.level or root != "mindspore":
            return
        module = self._follow(importlib.import_module("msops"), below, node.lineno)
        for alias in node.names:
            if module is not None and alias.name != "*":
                found = self._follow(module, alias.name, node.lineno)
                if found is not None:
                    self._bind(alias.asname or alias.name, found)

    def visit_Attribute(self, node: ast.Attribute) -> None:
        parts: list[str] = []
        inner: ast.expr = node
        while isinstance(inner, ast.Attribute):
            parts.insert(0, inner.attr)
            inner = inner.value
        if not isinstance(inner, ast.Name):
            self.visit(inner)
        elif inner.id in self._modules:
            self._follow(self._modules[inner.id], ".".join(parts), node.lineno)

    def _bind(self, name: str, value: object) -> None:
        if isinstance(value, types.ModuleType) and name not in self._assigned:
            self._modules[name] = value

    def _follow(self, module: types.ModuleType, path: str, line: int) -> types.ModuleType | None:
        """Returns the module at a dotted path, None if it is none; notes a name that is missing."""
        for part in path.split(".") if path else ():
            value = _member(module, part)
            if value is None:
                name = f"mindspore{module.__name__.removeprefix('msops')}.{part}"
                self.missing.setdefault(name, []).append(line)
            if not isinstance(value, types.ModuleType):
                return None
            module = value
        return module


def _member(module: types.ModuleType, name: str) -> object:
    """Returns a member of a namespace, or the module of that name in it; None if there is none."""
    asked = set(ASKED_IN_VAIN)
    try:
        return getattr(module, name)
    except AttributeError:
        pass
    try:
        return importlib.import_module(f"{module.__name__}.{name}")
    except ModuleNotFoundError:
        return None
    finally:
        ASKED_IN_VAIN.intersection_update(asked)
