"""How many lines of the loop compiler only one pass needs."""

from __future__ import annotations

import ast
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import msops
from msops._loops.pipeline import STAGES_TO_C

_ROOT = Path(msops.__file__).parent
_PARTS = ("msops._loops.to_c.", "msops._loops.passes.")
_COMMON = ("msops._loops.pipeline", "PASSES_COMMON")
_MECHANISMS = {f"msops._loops.to_c.{name}" for name, _ in STAGES_TO_C}
Name = tuple[str, str]


@dataclass(frozen=True)
class _Definition:
    """A function, a class or a constant of a module: its lines, and the names in it."""

    lines: int
    uses: frozenset[Name]


def lines_only_for(module: str, function: str) -> int:
    """Returns the lines of modules and definitions that nothing else than a pass needs.

    Of a module that nothing else needs all lines count, of others those of its definitions.
    """
    kept = _reached(None), _reached((module, function))
    lost = kept[0] - kept[1]
    used_modules = {name for name, _ in kept[1]}
    whole = {name for name, _ in lost} - used_modules
    alone = sum(_definitions()[each].lines for each in lost if each[0] not in whole)
    return alone + sum(len(_sources()[name].splitlines()) for name in whole)


def _reached(without: Name | None) -> set[Name]:
    """Returns what is needed by anything outside of the passes, but not through `without`."""
    found: set[Name] = set()
    todo = [name for name in _definitions() if not f"{name[0]}.".startswith(_PARTS)]
    while todo:
        name = todo.pop()
        if name in found:
            continue
        found.add(name)
        uses = _definitions()[name].uses
        todo += uses - {without} if _is_list(name) else uses
    return found


def _is_list(name: Name) -> bool:
    """Returns whether a name is a list of passes: that of all ways out, or one of a mechanism."""
    return name == _COMMON or (name[0] in _MECHANISMS and name[1].isupper())


@cache
def _sources() -> Mapping[str, str]:
    paths = {path: path.relative_to(_ROOT.parent).with_suffix("") for path in _ROOT.rglob("*.py")}
    return {
        ".".join(name.parts).removesuffix(".__init__"): path.read_text()
        for path, name in paths.items()
    }


@cache
def _definitions() -> Mapping[Name, _Definition]:
    trees = {module: ast.parse(source) for module, source in _sources().items()}
    imported = {module: _imports(tree) for module, tree in trees.items()}
    owned = {
        (module, name): node
        for module, tree in trees.items()
        for node in tree.body
        for name in _names(node)
    }

    def origin(name: Name) -> Name | None:
        """Returns where a name is defined, which packages import from their modules."""
        while name not in owned:
            known = imported.get(name[0], {})
            if known.get(name[1], name) == name:
                return None
            name = known[name[1]]
        return name

    found: dict[Name, _Definition] = {}
    for (module, name), node in owned.items():
        words = {each.id for each in ast.walk(node) if isinstance(each, ast.Name)}
        used = {imported[module].get(word, (module, word)) for word in words}
        used |= {
            (".".join(imported[module][each.value.id]), each.attr)
            for each in ast.walk(node)
            if isinstance(each, ast.Attribute)
            and isinstance(each.value, ast.Name)
            and each.value.id in imported[module]
        }
        origins = {origin(each) for each in (*used, *_imports(node).values())}
        found[module, name] = _Definition(
            _length(node), frozenset(origins - {None, (module, name)})
        )
    return found


def _names(node: ast.stmt) -> Iterator[str]:
    match node:
        case ast.FunctionDef(name=name) | ast.ClassDef(name=name):
            yield name
        case ast.Assign(targets=targets):
            yield from (each.id for each in targets if isinstance(each, ast.Name))
        case ast.AnnAssign(target=ast.Name(id=name)):
            yield name


def _imports(tree: ast.AST) -> dict[str, Name]:
    return {
        alias.asname or alias.name: (node.module, alias.name)
        for node in ast.walk(tree)
        if isinstance(node, ast.ImportFrom) and node.module
        for alias in node.names
    }


def _length(node: ast.stmt) -> int:
    decorators = getattr(node, "decorator_list", [])
    first = min([node.lineno, *(each.lineno for each in decorators)])
    return (node.end_lineno or first) - first + 1
