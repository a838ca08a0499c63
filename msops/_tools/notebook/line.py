"""The line of ``%%aot``: which functions it binds, and which option is for which op."""

from __future__ import annotations

import keyword
import re
from collections.abc import Mapping, Sequence

from msops.errors import ArgumentValueError

WHO = "%%aot"
# No expression starts with a name and a single "=".
_FOR_ONE_OP = re.compile(r"\s*([A-Za-z_]\w*)\s*=(?!=)\s*(.*)", re.DOTALL)


def read_names(words: Sequence[str]) -> dict[str, str]:
    """Returns the symbol to bind by Python name."""
    symbols: dict[str, str] = {}
    for word in words:
        name, _, symbol = word.rpartition("=")
        if not (symbol.isascii() and symbol.isidentifier()):
            raise ArgumentValueError.explained(
                WHO,
                f"expected the name of a C function; got {word!r}",
                "Name functions of the cell, e.g. %%aot Add Mul, or NAME=FUNCTION to call one "
                "otherwise in Python; put option values with spaces in quotes.",
            )
        symbols[check_python_name(name or symbol)] = symbol
    return symbols


def check_python_name(name: str) -> str:
    if name.isidentifier() and not keyword.iskeyword(name):
        return name
    raise ArgumentValueError.explained(
        WHO,
        f"expected a name that Python can bind; got {name!r}",
        "Give it another one in Python: %%aot NAME=FUNCTION.",
    )


def per_op(option: str, texts: Sequence[str], symbols: Mapping[str, str]) -> dict[str, str]:
    """Returns an option's expression by Python name: those for one op outrank those for all."""
    for_all: dict[str, str] = {}
    for_one: dict[str, str] = {}
    for text in texts:
        match = _FOR_ONE_OP.fullmatch(text)
        if match is None:
            for_all = dict.fromkeys(symbols, text)
        elif match[1] in symbols:
            for_one[match[1]] = match[2]
        else:
            raise ArgumentValueError.explained(
                WHO,
                f"{option} is for {match[1]!r}, which is no kernel of the line",
                f"Its kernels are {', '.join(symbols)}: write {option} {next(iter(symbols))}=EXPR.",
            )
    if option == "--bprop" and for_all and len(symbols) > 1:
        raise ArgumentValueError.explained(
            WHO,
            f"expected the kernel that {texts[-1]!r} is the gradient of; the line makes "
            f"operators of {', '.join(symbols)}",
            f"Write --bprop {next(iter(symbols))}={texts[-1]}.",
        )
    return for_all | for_one


def expression_of(text: str) -> str:
    """Returns an option's value without the ``OP=`` in front."""
    match = _FOR_ONE_OP.fullmatch(text)
    return text if match is None else match[2]
