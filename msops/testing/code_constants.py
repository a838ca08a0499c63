"""Words and whole numbers that the code of a kernel names: what its author thought of.

A branch on a text, or on one number, is entered by that value alone. Fuzzers take such values from
the program (libFuzzer's dictionaries); so does this.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from types import CodeType
from typing import Any

from msops._op.identity import ByValue
from msops.testing.subject import Subject

# More are a table of something else.
_MOST = 12
_WORD = re.compile(r"[A-Za-z][\w+-]{0,23}")
_IN_QUOTES = re.compile(r'"((?:[^"\\\n]|\\.)*)"')
_BETWEEN_ZEROS = re.compile(rb"(?<=\0)[A-Za-z][\w+-]{1,23}(?=\0)")
_NUMBER = re.compile(r"(?<![\w.])\d{1,5}(?![\w.])")
# Whose elements, or keys, are constants, too.
_TABLES = (tuple, list, dict, set, frozenset)
_COMMENT = re.compile(r"//[^\n]*|/\*.*?\*/", re.DOTALL)


def words_of(subject: Subject) -> list[str]:
    """Returns texts of one word in the code of the kernel, and of `out`, the first ones."""
    words: list[Any] = list(_constants(subject))
    for half in vars(subject.definition.inference).values():
        if isinstance(half, ByValue):
            words += _of_function(half.function)
    for text in subject.source_texts():
        words += _IN_QUOTES.findall(_COMMENT.sub("", text))
    if not words and subject.library is not None:
        words += [
            word.decode() for word in _BETWEEN_ZEROS.findall(subject.library.path.read_bytes())
        ]
    known = {word for word in words if isinstance(word, str) and _WORD.fullmatch(word)}
    return [word for word in dict.fromkeys(words) if word in known][:_MOST]


def whole_numbers_of(subject: Subject) -> list[int]:
    """Returns whole numbers in the code of the kernel, the first ones."""
    numbers: list[Any] = list(_constants(subject))
    for text in subject.source_texts():
        numbers += map(int, _NUMBER.findall(_IN_QUOTES.sub("", _COMMENT.sub("", text))))
    whole = [n for n in numbers if isinstance(n, int) and not isinstance(n, bool)]
    return list(dict.fromkeys(whole))[:_MOST]


def _constants(subject: Subject) -> Iterator[Any]:
    """Yields what a Python function names, also in tables of its module."""
    function = subject.host_function()
    yield from _of_function(None if function is None else function.function)


def _of_function(own: Any) -> Iterator[Any]:
    while own is not None and not hasattr(own, "__code__"):
        own = getattr(own, "func", getattr(own, "py_func", getattr(own, "__wrapped__", None)))
    if own is not None:
        names = getattr(own, "__globals__", {})
        yield from _of_code(own.__code__, names)


def _of_code(code: CodeType, names: dict[str, Any]) -> Iterator[Any]:
    tables = [names[name] for name in code.co_names if isinstance(names.get(name), _TABLES)]
    for constant in (*code.co_consts, *tables):
        if isinstance(constant, CodeType):
            yield from _of_code(constant, names)
        elif isinstance(constant, _TABLES):
            yield from constant
        else:
            yield constant
