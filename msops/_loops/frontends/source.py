"""The source of a function, as a syntax tree that is known to be the function's own.

Kernels are compiled from their source, so a wrong source is a wrong kernel: a file may have been
edited since its import, a name in a session's history may have been defined twice. What is found is
therefore compiled again, and taken only if it gives the function's own bytecode.
"""

from __future__ import annotations

import ast
import inspect
import linecache
import re
import sys
import types
from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

from msops._loops.ir.nodes import Location
from msops.errors import ArgumentTypeError, ArgumentValueError


@dataclass(frozen=True, eq=False)
class Source:
    """A function's definition.

    Attributes:
      definition: the ``def``; its decorators are not looked at.
      file: how messages name the file, notebook cell or session.
      lines: the lines of the file.
    """

    definition: ast.FunctionDef
    file: str
    lines: tuple[str, ...]

    def location(self, node: ast.AST) -> Location:
        """Returns the location of a node; its first line, if it has several."""
        # What a helper brought into a kernel is in the helper's file.
        source = getattr(node, "origin", self)
        first, last = _extent(node)
        text = source.lines[first.lineno - 1].rstrip("\n")
        start = _column(text, first.col_offset)
        one_line = last.end_lineno == first.lineno and last.end_col_offset is not None
        end = _column(text, last.end_col_offset) if one_line else len(text)
        return Location(source.file, first.lineno, start, end, text)


def unwrap(func: Any, who: str) -> types.FunctionType:
    """Returns the function that decorators wrapped, by ``__wrapped__`` as MindSpore does."""
    try:
        inner = inspect.unwrap(func)
    except ValueError:  # It wraps itself.
        inner = func
    what = _what_is_no_kernel(inner)
    if what is None:
        assert isinstance(inner, types.FunctionType)
        return inner
    raise ArgumentTypeError.explained(
        who,
        f"expected a kernel that is a function made by def; got {what}",
        "Kernels are compiled from the source of a def: write one.",
    )


def _what_is_no_kernel(value: Any) -> str | None:
    """Returns what something is that is no function made by a plain ``def``."""
    if not isinstance(value, types.FunctionType):
        return type(value).__name__
    if value.__name__ == "<lambda>":
        return "a lambda"
    if inspect.iscoroutinefunction(value) or inspect.isasyncgenfunction(value):
        return "an async def"
    return "a generator" if inspect.isgeneratorfunction(value) else None


def read_source(function: types.FunctionType, who: str) -> Source:
    """Returns the source of a function.

    Args:
      function: made by ``def``: in a file, a notebook cell, a doctest or an interactive session.
      who: names the op in messages.

    Raises:
      ArgumentValueError: the source is nowhere, or is not that of the function any more.
    """
    code = function.__code__
    for text in _candidates(function):
        definition = _find(text, code)
        if definition is not None:
            return Source(definition, _shown_name(code.co_filename), tuple(text))
    if linecache.getlines(code.co_filename, function.__globals__):
        raise ArgumentValueError.explained(
            who,
            f"{code.co_filename}:{code.co_firstlineno} no longer holds the function that "
            "was defined there",
            "The file was edited after its import, or the function was changed by a tool: "
            "import the module again, or restart Python.",
        )
    raise ArgumentValueError.explained(
        who,
        f"the source of the function cannot be read; it was defined in {code.co_filename}",
        "Kernels are compiled from their source: define it in a file, a notebook cell, or an "
        "interactive session whose history Python keeps (readline).",
    )


def _shown_name(file: str) -> str:
    """Returns what IPython calls a notebook cell, ``Cell In[3]``; other files as they are."""
    ipython = sys.modules.get("IPython")
    shell = ipython.get_ipython() if ipython else None
    cell = shell.compile.format_code_name(file) if shell else None
    return " ".join(cell) if cell else file


def _candidates(function: types.FunctionType) -> Iterator[list[str]]:
    """Yields texts that may hold a function: its file, as first read and as it is now."""
    name = function.__code__.co_filename
    lines = linecache.getlines(name, function.__globals__)
    if not lines:
        yield from history_candidates(function.__name__)
        return
    yield lines
    linecache.checkcache(name)
    yield linecache.getlines(name, function.__globals__)


def _find(lines: list[str], code: types.CodeType) -> ast.FunctionDef | None:
    """Returns the definition that compiles to `code`; of several, the one at its line."""
    definitions, codes = _functions("".join(lines), code.co_filename)
    rewritten = _is_rewritten(code)
    first_lines = {
        found.co_firstlineno
        for found in codes
        if found.co_name == code.co_name and (rewritten or same_code(found, code))
    }
    return min(
        (
            node
            for node in definitions
            if node.name == code.co_name and _first_line(node) in first_lines
        ),
        key=lambda node: abs(_first_line(node) - code.co_firstlineno),
        default=None,
    )


# A network may make an op a layer, all from kernels of one file.
@lru_cache(maxsize=32)
def _functions(
    text: str, file: str
) -> tuple[tuple[ast.FunctionDef, ...], tuple[types.CodeType, ...]]:
    """Returns the definitions in a text, and what it compiles to; nothing if it is no Python."""
    try:
        tree = ast.parse(text)
        module = compile(tree, file, "exec", dont_inherit=True)
    except (SyntaxError, ValueError):
        return (), ()
    definitions = (node for node in ast.walk(tree) if isinstance(node, ast.FunctionDef))
    return tuple(definitions), tuple(_codes(module))


def same_code(one: types.CodeType, other: types.CodeType) -> bool:
    """Returns whether two code objects do the same, wherever they are."""
    return _meaning(one) == _meaning(other)


def _meaning(code: types.CodeType) -> tuple[Any, ...]:
    # Constants by type too: 1 == 1.0 == True, and 0.0 == -0.0.
    consts = tuple(
        _meaning(const) if isinstance(const, types.CodeType) else (type(const), repr(const))
        for const in code.co_consts
    )
    return (
        code.co_code,
        consts,
        code.co_names,
        code.co_varnames,
        code.co_freevars,
        code.co_argcount,
        code.co_kwonlyargcount,
        code.co_flags & (0x04 | 0x08),  # *args, **kwargs
    )


def _is_rewritten(code: types.CodeType) -> bool:
    """Returns whether pytest rewrote the function's assert statements; its names show it."""
    return any(name.startswith("@py") for name in (*code.co_varnames, *code.co_names))


def _codes(code: types.CodeType) -> Iterator[types.CodeType]:
    yield code
    for const in code.co_consts:
        if isinstance(const, types.CodeType):
            yield from _codes(const)


def _first_line(node: ast.FunctionDef) -> int:
    """Returns what Python takes for the first line: that of the first decorator."""
    return min([node.lineno, *(decorator.lineno for decorator in node.decorator_list)])


def _extent(node: Any) -> tuple[Any, Any]:
    """Returns the parts where a node's text starts and ends: for a compound one, its head."""
    if isinstance(node, ast.FunctionDef):
        return node, node
    if isinstance(node, ast.For):
        return node, node.iter
    if isinstance(node, ast.With):
        return node, node.items[-1].context_expr
    if isinstance(node, (ast.If, ast.While)):
        return node, node.test
    if isinstance(node, ast.Slice):
        parts = [part for part in (node.lower, node.upper, node.step) if part is not None]
        return (parts[0], parts[-1]) if parts else (node, node)
    return node, node


def _column(text: str, offset: int) -> int:
    """Returns a column in characters; syntax trees count bytes of UTF-8."""
    return len(text.encode()[:offset].decode())


def history_candidates(name: str) -> Iterator[list[str]]:
    """Yields the lines of each definition of a function in the session, the latest first.

    Python before 3.13 keeps no source of what is typed at its prompt; readline has its history.
    """
    lines = _history()
    head = re.compile(rf"\s*def\s+{re.escape(name)}\b")
    for start in reversed([index for index, line in enumerate(lines) if head.match(line)]):
        indent = len(lines[start]) - len(lines[start].lstrip())
        end = start + 1
        while end < len(lines) and _continues(lines[end], indent):
            end += 1
        yield [f"{line[indent:]}\n" for line in lines[start:end]]


def _continues(line: str, indent: int) -> bool:
    """Returns whether a line belongs to the block that a line of some indent opened."""
    text = line.lstrip()
    return not text or len(line) - len(text) > indent or text.startswith(("#", ")"))


def _history() -> list[str]:
    # Only a session has the module loaded; importing it elsewhere may touch the terminal.
    readline = sys.modules.get("readline")
    if readline is None:
        return []
    count: int = readline.get_current_history_length()
    return [readline.get_history_item(index + 1) or "" for index in range(count)]
