"""Formulas as MathML, which browsers show by themselves: no script, and nothing from elsewhere."""

from __future__ import annotations

from typing import Any

from docutils import nodes
from latex2mathml.converter import convert

NAME = "mathml"


def _visitor(display: str) -> Any:
    def visit(translator: Any, node: Any) -> None:
        translator.body.append(convert(node.astext(), display=display))
        raise nodes.SkipNode

    return visit


INLINE = (_visitor("inline"), None)
BLOCK = (_visitor("block"), None)
