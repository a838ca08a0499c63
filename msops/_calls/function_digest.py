"""Digests of Python functions, which processes compare to know that they have the same one."""

from __future__ import annotations

import ast
import dis
import hashlib
import itertools
import linecache
import types
import warnings
from collections.abc import Callable, Iterator
from importlib.machinery import SourceFileLoader
from typing import Any

import numpy as np

from msops._calls.process_objects import describe_code


class FileChangedError(Exception):
    """A file no longer has the function that was imported from it; the message says which."""


def digest(function: Callable[..., Any]) -> str:
    """Returns a digest of a function: its source without comments, its defaults and its closure.

    So the digest of what a decorator made is also of what it decorates. The syntax tree of a source
    is the same in each Python that knows the syntax. A function without a source has a digest of
    its bytecode, which differs from one minor version of Python to another. What a function finds
    in globals is not in it.

    Raises:
      FileChangedError: the source that its file has now is not that of the function.
    """
    return hashlib.sha256("\n".join(_describe(function, set())).encode()).hexdigest()


def _describe(value: Any, seen: set[int]) -> Iterator[str]:
    """Yields what a value is that a function may hold; of what can change, only the type."""
    if isinstance(value, types.FunctionType):
        if id(value) in seen:
            return
        seen.add(id(value))
        yield _code_of(value)
        yield from _describe(value.__defaults__, seen)
        for name, default in sorted((value.__kwdefaults__ or {}).items()):
            yield name
            yield from _describe(default, seen)
        yield from _describe_closure(value, seen)
    elif isinstance(value, np.ufunc):
        yield f"{value.__name__} {value.nin} {value.nout}"
    elif isinstance(value, np.generic):
        yield f"{value.dtype.name} {value.tobytes().hex()}"
    elif isinstance(value, type):
        yield f"{value.__module__} {value.__qualname__}"
    elif type(value) is tuple:
        yield f"tuple {len(value)}"
        for item in value:
            yield from _describe(item, seen)
    elif value is None or type(value) in (bool, int, float, complex, str, bytes):
        yield repr(value)
    else:
        yield type(value).__qualname__


def _describe_closure(function: types.FunctionType, seen: set[int]) -> Iterator[str]:
    # A counter, say, which a call changes, is no part of what the function is.
    stored = {
        instruction.argval
        for instruction in dis.get_instructions(function.__code__)
        if instruction.opname == "STORE_DEREF"
    }
    for name, cell in zip(function.__code__.co_freevars, function.__closure__ or (), strict=True):
        yield name
        if name not in stored:
            try:
                value = cell.cell_contents
            except ValueError:  # an empty cell
                continue
            yield from _describe(value, seen)


def _code_of(function: types.FunctionType) -> str:
    """Returns the source of a function as text, or its bytecode if there is no source."""
    code = function.__code__
    # The file may have changed since. Its time does not show that: nothing keeps the time that it
    # had at the import, and another process may have written the cached bytecode anew. So the code
    # is compared. The whole file is compiled, as classes and __future__ have a part in the code.
    linecache.checkcache(code.co_filename)
    source = "".join(linecache.getlines(code.co_filename, function.__globals__))
    bytecode = "\n".join(describe_code(code))
    if text := _source_of(code, bytecode, source):
        return text
    loader = getattr(function.__globals__.get("__spec__"), "loader", None)
    # Other loaders may compile something else than the file: pytest's rewrites assertions.
    if type(loader) is SourceFileLoader and loader.path == code.co_filename:
        raise FileChangedError(f"{code.co_filename} has changed since it was imported")
    return bytecode


def _source_of(code: types.CodeType, bytecode: str, source: str) -> str:
    """Returns the syntax tree of what compiles to the code, as text; empty if nothing does."""
    try:
        tree = ast.parse(source)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # the import has shown them
            module = compile(source, code.co_filename, "exec", dont_inherit=True)
    except (SyntaxError, ValueError):
        return ""
    locations = {
        (inner.co_firstlineno, inner.co_name)
        for inner in _codes_in(module)
        if inner.co_qualname == code.co_qualname and "\n".join(describe_code(inner)) == bytecode
    }
    functions = (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda)
    found = [node for node in ast.walk(tree) if isinstance(node, functions)]
    return "\n".join(_dump(node) for node in found if _location_of(node) in locations)


def _codes_in(code: types.CodeType) -> Iterator[types.CodeType]:
    for value in code.co_consts:
        if isinstance(value, types.CodeType):
            yield value
            yield from _codes_in(value)


def _location_of(node: ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda) -> tuple[int, str]:
    """Returns the line and the name that the code of a function has."""
    if isinstance(node, ast.Lambda):
        return node.lineno, "<lambda>"
    return min(part.lineno for part in (node, *node.decorator_list)), node.name


def _dump(node: Any) -> str:
    """Returns a syntax tree as text.

    `ast.dump` names fields that newer Pythons added, `ast.unparse` quotes otherwise in each, and
    Python 3.12 has empty or divided texts in f-strings.
    """
    if isinstance(node, ast.JoinedStr):
        node = ast.JoinedStr(_join(node.values))
    if isinstance(node, list):
        return f"[{', '.join(map(_dump, node))}]"
    if not isinstance(node, ast.AST):
        return repr(node)
    fields = ((name, value) for name, value in ast.iter_fields(node) if value not in (None, []))
    return f"{type(node).__name__}({', '.join(f'{name}={_dump(value)}' for name, value in fields)})"


def _join(parts: list[ast.expr]) -> list[ast.expr]:
    """Returns the parts of an f-string, neighbouring texts as one."""
    joined: list[ast.expr] = []
    for is_text, group in itertools.groupby(parts, lambda part: isinstance(part, ast.Constant)):
        if not is_text:
            joined += group
        elif text := "".join(str(part.value) for part in group if isinstance(part, ast.Constant)):
            joined.append(ast.Constant(text))
    return joined
