"""Finding kernels in C++ text: functions with the parameters of an aot kernel.

A library says which functions it exports, not what parameters they take; calling one that takes
others terminates the process. The text says so, as far as it is not made by macros.
"""

from __future__ import annotations

import re

# MindSpore's aot ABI, 2.0 to 2.7.2: ``mindspore.ops.Custom``, func_type "aot".
KERNEL_PARAMETERS = (
    "int nparam, void **params, int *ndims, int64_t **shapes, const char **dtypes, "
    "void *stream, void *extra"
)

_TYPES = (
    r"int\b",
    r"void \* \*",
    r"int \*",
    r"(?:(?:std)? :: )?int64_t \* \*",
    r"(?:const char|char const) \* \*",
    r"void \*",
    r"void \*",
)
_KERNEL = re.compile(
    " , ".join(f"{kind} (?:[A-Za-z_]\\w*)?" for kind in _TYPES).replace(" ", r"\s*")
)
# Comments and preprocessor lines hide code that is not there; the text of a literal is no code.
_HIDDEN = re.compile(
    r"//[^\n]*|/\*.*?\*/|\"(?:\\.|[^\"\\\n])*\"|'(?:\\.|[^'\\\n])+'|^[ \t]*#(?:\\\n|[^\n])*",
    re.DOTALL | re.MULTILINE,
)
_DEFINITION = re.compile(r"\b([A-Za-z_]\w*)\s*\(([^(){};]*)\)\s*(?:noexcept\s*)?\{")
_ARRAY = re.compile(r"(\w+)\s*\[\s*\]")
_MACRO = re.compile(r"\b[A-Z][A-Z0-9_]+\b")


def find_kernels(source: str) -> tuple[str, ...]:
    """Returns the names of the functions defined with a kernel's parameters, in order."""
    kernels = (name for name, parameters in _definitions(source) if _is_kernel(parameters))
    return tuple(dict.fromkeys(kernels))


def other_parameters(source: str, name: str) -> str | None:
    """Returns the parameters that `name` is defined with, if they are certainly no kernel's.

    None also if `source` does not define it, or a macro makes parameters.
    """
    found = [parameters for other, parameters in _definitions(source) if other == name]
    if not found or any(map(_may_be_kernel, found)):
        return None
    return " ".join(found[0].split())


def _definitions(source: str) -> list[tuple[str, str]]:
    """Returns name and parameters of everything that looks like a function's definition."""
    visible = _HIDDEN.sub(" ", source)
    return [(match[1], match[2]) for match in _DEFINITION.finditer(visible)]


def _is_kernel(parameters: str) -> bool:
    return _KERNEL.fullmatch(_ARRAY.sub(r"*\1", parameters).strip()) is not None


def _may_be_kernel(parameters: str) -> bool:
    # Seven parameters may be a kernel's under other names of the types.
    return parameters.count(",") == 6 or _MACRO.search(parameters) is not None
