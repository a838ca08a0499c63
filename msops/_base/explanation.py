"""Explanations of a call, as text and, in a notebook, as HTML."""

from __future__ import annotations

import html
import re
from collections.abc import Iterable, Sequence
from typing import TypeAlias

Seconds: TypeAlias = tuple[tuple[str, float], ...]

_BADGE = '<span style="color:{colour};font-weight:600">{word}</span>'
_COLOURS = {"parallel": "#2e9e5b", "reduction": "#3b82c4", "serial": "#d9822b"}
_KIND = re.compile(rf"(?<=: )({'|'.join(_COLOURS)})\b")
_MOST_PERCENT = 60


class Explanation(str):
    """The text of `Custom.explain`; a notebook shows it with colours, bars and sections.

    Attributes:
      seconds: each form that a call may have, and its time, estimated or measured; empty where
        nothing was compared.
    """

    seconds: Seconds

    def __new__(cls, text: str, seconds: Seconds = ()) -> Explanation:
        """Returns the text, with the times that it speaks of."""
        made = super().__new__(cls, text)
        made.seconds = seconds
        return made

    def _repr_html_(self) -> str:
        first, *rest = self.splitlines() or [""]
        sections = "".join(_section(title, lines) for title, lines in _sections(rest))
        return (
            f'<div style="max-width:60em"><p style="margin:0 0 .5em"><b>{html.escape(first)}</b>'
            f"</p>{_bars(self.seconds)}{sections}</div>"
        )


def _sections(lines: Iterable[str]) -> list[tuple[str, list[str]]]:
    """Returns the lines that begin at the margin, each with the indented ones below it."""
    sections: list[tuple[str, list[str]]] = []
    for line in lines:
        if line.startswith(" ") and sections:
            sections[-1][1].append(line)
        else:
            sections.append((line, []))
    return sections


def _section(title: str, lines: Sequence[str]) -> str:
    if not lines:
        return f"<p>{html.escape(title)}</p>"
    text = "\n".join(html.escape(line, quote=False) for line in lines)
    coloured = _KIND.sub(lambda found: _badge(found[0]), text)
    return (
        f'<details open=""><summary>{html.escape(title)}</summary>'
        f'<pre style="white-space:pre-wrap;margin:.2em 0 .6em">{coloured}</pre></details>'
    )


def _badge(word: str) -> str:
    return _BADGE.format(colour=_COLOURS[word], word=word)


def _bars(seconds: Seconds) -> str:
    if not seconds:
        return ""
    longest = max(value for _, value in seconds)
    rows = "".join(
        f'<div style="display:flex;gap:.6em;align-items:center"><span style="width:9em">'
        f'{html.escape(form)}</span><span style="background:#3b82c4;height:.8em;'
        f'width:{_MOST_PERCENT * value / longest:.1f}%"></span><span>{show_seconds(value)}</span>'
        "</div>"
        for form, value in seconds
    )
    return f'<div style="margin:0 0 .5em">{rows}</div>'


def show_seconds(seconds: float) -> str:
    """Returns seconds as text, to two digits: "1.5 ms"."""
    for unit, name in ((1.0, "s"), (1e-3, "ms")):
        if seconds >= unit:
            return f"{float(f'{seconds / unit:.2g}'):g} {name}"
    return f"{float(f'{seconds / 1e-6:.2g}'):g} us"
