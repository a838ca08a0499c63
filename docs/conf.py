"""Sphinx's configuration of the site; `make docs` builds it."""

from __future__ import annotations

import re
import sys
from pathlib import Path
from typing import Any

from docutils import nodes

DOCS = Path(__file__).resolve().parent
sys.path.insert(0, str(DOCS))

import mathml  # noqa: E402
from collect import collect, link_to_pages  # noqa: E402

import msops  # noqa: E402

project = "msops"
copyright = "the authors of msops; Apache-2.0"
version = release = msops.__version__

extensions = [
    "myst_nb",
    "sphinx.ext.autodoc",
    "sphinx.ext.intersphinx",
    "sphinx.ext.napoleon",
    "sphinx.ext.viewcode",
    "sphinx_copybutton",
]
# The documents that others include, and notebooks' folders.
exclude_patterns = ["collected/benchmarks/README.md"]
templates_path: list[str] = []

# Docstrings name objects in single backticks.
default_role = "py:obj"
add_module_names = False
autodoc_typehints_format = "short"
python_use_unqualified_type_names = True
python_maximum_signature_line_length = 90
# Names of JAX that pages and docstrings mention; a build fetches nothing.
intersphinx_mapping = {"jax": ("https://docs.jax.dev/en/latest/", "jax.inv")}
autodoc_member_order = "bysource"
autodoc_preserve_defaults = True
napoleon_numpy_docstring = False

myst_enable_extensions = ["dollarmath"]
myst_heading_anchors = 3
# Notebooks are committed with their outputs, which tests compare with a run.
nb_execution_mode = "off"

html_theme = "furo"
html_title = f"msops {release}"
html_logo = html_favicon = "_static/logo.svg"
html_math_renderer = mathml.NAME
html_static_path = ["_static"]
html_css_files = ["site.css"]
html_search_scorer = str(DOCS / "scorer.js")  # Sphinx looks in the working directory.
html_copy_source = False
html_show_sphinx = False
copybutton_exclude = ".linenos, .gp, .go"


# The kinds of object that a name in backticks may be if its own module has no such name.
LINKED = ("class", "exception", "function")
FILE_IN_CPP = re.compile(r"%%writefile \S+\.cc\n")


def setup(app: Any) -> None:
    """Collects pages, links them and names of JAX, and colours cells of C++ as C++."""
    collect()
    app.add_html_math_renderer(mathml.NAME, mathml.INLINE, mathml.BLOCK)

    def relink(_: Any, name: str, source: list[str]) -> None:
        page = DOCS / f"{name}.md"
        if page.exists():
            source[0] = link_to_pages(source[0], page)

    def tell_cpp_from_python(_: Any, document: Any) -> None:
        for block in document.findall(nodes.literal_block):
            if block.astext().startswith("%%aot") or FILE_IN_CPP.match(block.astext()):
                block["language"] = "cpp"

    def link_names_of_jax(app: Any, document: Any) -> None:
        inventory = app.env.intersphinx_named_inventory["jax"]
        found = {name: item.uri for kind in inventory.values() for name, item in kind.items()}
        for literal in list(document.findall(nodes.literal)):
            if literal.astext() in found and not isinstance(literal.parent, nodes.reference):
                link = nodes.reference("", "", refuri=found[literal.astext()], internal=False)
                literal.replace_self(link)
                link += literal

    def find_in_any_module(app: Any, env: Any, node: Any, shown: Any) -> Any:
        python = env.get_domain("py")
        names = [
            name
            for name, entry in python.objects.items()
            if entry.objtype in LINKED and name.rpartition(".")[2] == node["reftarget"]
        ]
        if node.get("reftype") != "obj" or len(names) != 1:
            return None
        document = node["refdoc"]
        return python.resolve_xref(env, document, app.builder, "obj", names[0], node, shown)

    app.connect("source-read", relink)
    app.connect("missing-reference", find_in_any_module)
    app.connect("doctree-read", tell_cpp_from_python)
    app.connect("doctree-read", link_names_of_jax)
