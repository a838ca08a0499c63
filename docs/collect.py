"""Documents from elsewhere in the repository that are pages of the site.

`collect` copies them to docs/collected, which git ignores, before Sphinx looks for pages. All pages
link to files of the repository, so that links work for readers of the sources too; `link_to_pages`
turns them into links between pages.
"""

from __future__ import annotations

import ast
import os
import re
import shutil
from pathlib import Path

DOCS = Path(__file__).resolve().parent
ROOT = DOCS.parent
COLLECTED = DOCS / "collected"

RESULTS = ROOT / "benchmarks" / "results"

# Pages that the site's search leaves out: their words are everybody's, and guides explain them.
UNSEARCHED = {ROOT / "BUILD_NOTES.md", ROOT / "CHANGELOG.md"}

_FENCE = re.compile(r"(^```.*?^```$)", re.MULTILINE | re.DOTALL)
_LINK = re.compile(r"(?<!!)\[((?:[^\]\[]|\[[^\]]*\])*)\]\(([^)\s:#]+)(#[^)\s]*)?\)")


def sources() -> dict[Path, Path]:
    """Returns the page of each document that lies outside docs."""
    pages = {
        ROOT / "BUILD_NOTES.md": COLLECTED / "BUILD_NOTES.md",
        ROOT / "CHANGELOG.md": COLLECTED / "CHANGELOG.md",
        ROOT / "msops" / "_loops" / "README.md": COLLECTED / "loop_compiler.md",
    }
    notebooks = sorted((ROOT / "notebooks").glob("*.ipynb"))
    pages |= {path: COLLECTED / "notebooks" / path.name for path in notebooks}
    examples = sorted((ROOT / "examples").glob("*.py"))
    return pages | {path: COLLECTED / "examples" / f"{path.stem}.md" for path in examples}


def collect() -> None:
    """Writes docs/collected, from nothing."""
    shutil.rmtree(COLLECTED, ignore_errors=True)
    for source, page in sources().items():
        page.parent.mkdir(parents=True, exist_ok=True)
        if source.suffix == ".py":
            page.write_text(_page_of_example(source))
        elif source in UNSEARCHED:
            page.write_text(f"---\nno-search: true\n---\n{source.read_text()}")
        else:
            shutil.copyfile(source, page)
    shutil.copytree(
        RESULTS, COLLECTED / "benchmarks", ignore=lambda _, names: {*names} - _shown(names)
    )


def _page_of_example(path: Path) -> str:
    """Returns a page with an example and the kernels that it names."""
    text = path.read_text()
    parts = [path, *sorted(other for other in path.parent.glob("*.c*") if other.name in text)]
    blocks = [
        f"## {part.name}\n\n```{'python' if part.suffix == '.py' else 'cpp'}\n"
        f"{part.read_text().strip()}\n```"
        for part in parts
    ]
    summary = ast.get_docstring(ast.parse(text)) or ""
    return "\n\n".join([f"# Example: {path.stem}", summary.splitlines()[0], *blocks]) + "\n"


def _shown(names: list[str]) -> set[str]:
    return {name for name in names if name == "README.md" or name.endswith(".png")}


def link_to_pages(text: str, page: Path) -> str:
    """Returns the text of a page with its links to repository files leading to pages.

    Args:
      text: Markdown; code blocks are left alone.
      page: its path, in docs.

    A link to a file that is no page becomes its text.
    """
    pages = sources()
    origin = next((source for source, copy in pages.items() if copy == page), page)

    def relink(link: re.Match[str]) -> str:
        shown, target, anchor = link.groups(default="")
        file = (origin.parent / target).resolve()
        if file not in pages and not file.is_relative_to(DOCS):
            return shown
        found = pages.get(file, file)
        return f"[{shown}]({os.path.relpath(found, page.parent)}{anchor})"

    parts = _FENCE.split(text)
    parts[::2] = [_LINK.sub(relink, part) for part in parts[::2]]
    return "".join(parts)
