"""What a namespace says when asked for a name it does not have."""

from __future__ import annotations

import difflib
import sys
from collections.abc import Callable, Iterable
from typing import Any


def near_names(name: str, names: Iterable[str]) -> list[str]:
    """Returns the public names that `name` may have been meant as."""
    return difflib.get_close_matches(name, [n for n in names if not n.startswith("_")], n=3)


def describe_missing(module: str, name: str, names: Iterable[str]) -> str:
    """Returns the message for a missing attribute: that msops lacks it, and what is near."""
    near = near_names(name, names)
    hint = f" Near names: {', '.join(near)}." if near else ""
    return (
        f"msops does not have {module}.{name}.{hint} "
        "It implements MindSpore's custom operators and what scripts around them use."
    )


def missing_names(module: str) -> Callable[[str], Any]:
    """Returns the ``__getattr__`` of a namespace of msops."""

    def missing(name: str) -> Any:
        raise AttributeError(describe_missing(module, name, vars(sys.modules[module])))

    return missing
