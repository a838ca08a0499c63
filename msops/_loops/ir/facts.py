"""Facts of a node, found once: nodes never change, so what is known of one stays with it.

Passes leave what they do not change the same object. So dozens of them ask the same questions of
the same statements, and all but the first get an answer that is already there.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any, TypeVar

N = TypeVar("N")
R = TypeVar("R")


class KeepsFacts:
    """What holds the facts of a node. They are no part of its value, nor of its copies."""

    __slots__ = ("_facts",)


def kept(find: Callable[[N], R]) -> Callable[[N], R]:
    """Returns a function of a node that finds each answer once.

    Args:
      find: what it returns depends on the node alone, and nobody changes it.
    """

    @functools.wraps(find)
    def known(node: Any) -> R:
        try:
            facts = node._facts
        except AttributeError:
            facts = {}
            # The node is frozen, for all but this.
            object.__setattr__(node, "_facts", facts)
        if find not in facts:
            facts[find] = find(node)
        found: R = facts[find]
        return found

    return known
