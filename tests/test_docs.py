"""The documents are true: their code runs and prints what they say; docstring examples too."""

from __future__ import annotations

import doctest
import importlib
import importlib.util
import os
import pkgutil
import re
from collections.abc import Iterator
from pathlib import Path
from unittest import mock

import jax
import jax.numpy as jnp
import pytest
from conftest import ROOT
from documents import blocks_of, run_document

import msops

PAGES = [ROOT / "README.md", ROOT / "BUILD_NOTES.md"]
PAGES += sorted((ROOT / "docs").glob("[!c]*/**/*.md"))
PAGES += sorted((ROOT / "docs").glob("*.md"))
each_page = pytest.mark.parametrize(
    "page", PAGES, ids=lambda page: str(page.relative_to(ROOT).with_suffix(""))
)
# Each builds several libraries, compiles many programs or starts processes.
SLOW_PAGES = {
    *("aicpu.md", "cuda.md", "extension.md", "gradients.md", "graph_operators.md", "jax_users.md"),
    *("kernel_interface.md", "opcheck.md", "porting.md", "sharding.md"),
}
each_page_in_time = pytest.mark.parametrize(
    "page",
    [pytest.param(page, marks=[pytest.mark.slow] * (page.name in SLOW_PAGES)) for page in PAGES],
    ids=lambda page: str(page.relative_to(ROOT).with_suffix("")),
)


def promises(text: str) -> int:
    """Returns how many blocks of a document say what is printed."""
    return sum(block.language in ("text", "console") for block in blocks_of(text))


@pytest.mark.usefixtures("quick_builds")
@each_page_in_time
def test_a_page_runs_and_prints_what_it_says(
    page: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    text = page.read_text()
    unchecked = text.count("<!-- needs: ")
    # What a page sets is for it alone.
    with mock.patch.dict(os.environ):
        assert promises(text) - unchecked <= run_document(text, tmp_path) <= promises(text)


def test_a_wrong_promise_is_noticed(tmp_path: Path) -> None:
    for wrong in (
        "```python\nprint(1)\n```\n```text\n2\n```\n",
        "```console\n$ echo 1\n2\n```\n",
        "```console\n$ false\n```\n",
    ):
        with pytest.raises(AssertionError):
            run_document(wrong, tmp_path)


def test_notes_say_what_becomes_of_a_block(tmp_path: Path) -> None:
    saved = (
        "<!-- save -->\n```python\n# later.py\nprint(7)\n```\n```console\n$ python later.py\n7\n"
    )
    assert run_document(f"{saved}```\n", tmp_path) == 1
    needs = "<!-- needs: {} -->\n```python\n{}\n```\n```text\n1\n```\n"
    assert run_document(needs.format("gpu, no gpu", "raise RuntimeError"), tmp_path) == 0
    with pytest.raises(SyntaxError):
        run_document(needs.format("gpu, no gpu", "print("), tmp_path)


@pytest.mark.parametrize("inputs", [(jnp.zeros(2, jnp.int32),), (jnp.zeros(2), jnp.zeros(2))])
def test_the_kernel_in_the_readme_says_what_it_does_not_take(inputs: tuple[jax.Array, ...]) -> None:
    readme = (ROOT / "README.md").read_text()
    text = next(block.code for block in blocks_of(readme) if block.language == "cpp")
    swish = msops.cpp(msops.source(text, "Swish"), out=lambda x, *_: x)
    with pytest.raises(msops.errors.KernelError, match="Swish takes one array of float32\n"):
        swish(*inputs)


@each_page
def test_links_lead_to_files_and_headings(page: Path) -> None:
    prose = re.sub(r"(?ms)^```.*?^```$", "", page.read_text())
    for link in re.findall(r"\]\(([^)\s]+)\)", prose):
        target, _, anchor = link.partition("#")
        file = (page.parent / target).resolve() if target else page
        assert file.exists(), link
        assert not anchor or anchor in anchors(file), link


def anchors(file: Path) -> set[str]:
    """Returns what the headings of a document are called in links."""
    headings = re.findall(r"^#+ (.*)$", file.read_text(), re.MULTILINE)
    return {re.sub(r"[^\w-]", "", heading.lower().replace(" ", "-")) for heading in headings}


@each_page
def test_make_targets_that_are_named_exist(page: Path) -> None:
    makefile = (ROOT / "Makefile").read_text()
    for target in re.findall(r"`make (\w[\w-]*)", page.read_text()):
        assert re.search(rf"^{target}:", makefile, re.MULTILINE), target


def test_signatures_in_the_guide_are_those_of_the_header() -> None:
    header = (ROOT / "xla_kernels" / "include" / "custom_aot_extra.h").read_text()
    page = (ROOT / "docs" / "guides" / "kernel_interface.md").read_text()

    def normalise(text: str) -> str:
        return re.sub(r"\s+", "", text.replace("//", ""))

    declared = re.findall(r'^extern "C" ([^;{]*\bName\w*\([^;{]*\));', page, re.MULTILINE)
    assert len(declared) == 4
    for signature in declared:
        assert normalise(signature) in normalise(header)


def test_the_guide_lists_every_environment_variable() -> None:
    page = (ROOT / "docs" / "guides" / "environment.md").read_text()
    sources = (ROOT / "msops").rglob("*.py")
    read = {name for path in sources for name in re.findall(r'"(MS\w*_[A-Z_]+)"', path.read_text())}
    assert read == set(re.findall(r"^\| `(MS\w+)` \|", page, re.MULTILINE))


def modules() -> Iterator[str]:
    yield "msops"
    for module in pkgutil.walk_packages(msops.__path__, "msops."):
        if not module.name.endswith("__main__") and not module.name.startswith("msops._native."):
            yield module.name


# Compiles an extension, as docs/guides/extension.md does at every run.
SLOW_MODULES = {"msops._extension.builder"}


def modules_with_examples() -> Iterator[str]:
    for name in sorted(set(modules())):
        if b">>>" in Path(importlib.util.find_spec(name).origin).read_bytes():
            yield name


def test_every_module_can_be_imported() -> None:
    for name in modules():
        importlib.import_module(name)


@pytest.mark.parametrize(
    "name",
    [
        pytest.param(name, marks=pytest.mark.slow) if name in SLOW_MODULES else name
        for name in modules_with_examples()
    ],
)
def test_docstring_examples_run(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    result = doctest.testmod(
        importlib.import_module(name), optionflags=doctest.NORMALIZE_WHITESPACE
    )
    assert result.failed == 0
    assert os.getcwd() == str(tmp_path)


def test_the_readme_is_short_and_says_first_how_to_try_it() -> None:
    lines = (ROOT / "README.md").read_text().splitlines()
    assert len(lines) <= 150
    assert lines.index("## In a checkout") <= 10
    reasons = [line for line in lines[:10] if line.startswith("- **")]
    assert [len(re.findall(r"[\d.]+ ", re.sub(r"\(.*?\)", "", one))) for one in reasons] == [1] * 3


@pytest.mark.parametrize("name", ["README", "CONTRIBUTING", "SECURITY", "BUILD_NOTES", "CHANGELOG"])
def test_links_of_a_document_lead_to_files(name: str) -> None:
    text = (ROOT / f"{name}.md").read_text()
    targets = re.findall(r"\]\(([^)#:\s]+)(?:#[^)]*)?\)", re.sub("```.*?```", "", text, flags=re.S))
    assert [target for target in targets if not (ROOT / target).exists()] == []


def test_the_citation_is_of_this_version() -> None:
    text = (ROOT / "CITATION.cff").read_text()
    assert f"\nversion: {msops.__version__}\n" in text
    assert "\nlicense: Apache-2.0\n" in text


def test_no_repository_is_named_before_there_is_one() -> None:
    pages = [
        *PAGES,
        *ROOT.glob("*.md"),
        *ROOT.glob("*.toml"),
        *ROOT.glob("*.cff"),
        ROOT / "docs" / "conf.py",
    ]
    assert not [page for page in pages if "github.com/msops" in page.read_text()]
