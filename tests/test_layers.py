"""The rooms of the package: docs/architecture.md says what each may import, and its docstring too.

Also: the seam is the only package that knows private JAX, and `import msops` is light.
"""

from __future__ import annotations

import ast
import functools
import graphlib
import json
import re
import runpy
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from conftest import ROOT

from msops._loops.pipeline import STAGES_TO_C

PAGE = ROOT / "docs" / "architecture.md"
PUBLIC = {
    *("_checkparam", "common", "context", "errors", "extension", "lang", "nn", "ops", "tbe"),
    "testing",
}
"""The names that users import. They may import every room; of them rooms import only `errors`."""


def read_rooms() -> dict[str, set[str]]:
    """Returns the rooms in the page's table from top to bottom, and what each may import."""
    rows = re.findall(r"^\| `(_\w+)` \|.*\|(.*)\|$", PAGE.read_text(), re.MULTILINE)
    return {room: set(re.findall(r"`(\w+)`", may)) for room, may in rows}


ROOMS = read_rooms()


def module_name(path: Path) -> str:
    parts = path.relative_to(ROOT).with_suffix("").parts
    return ".".join(parts).removesuffix(".__init__")


SOURCES = {module_name(path): path for path in sorted((ROOT / "msops").rglob("*.py"))}


@functools.cache
def parsed(text: str) -> ast.Module:
    """Returns the tree of a source, which several tests walk."""
    return ast.parse(text)


def imported_names(tree: ast.AST) -> Iterator[str]:
    """Yields the absolute name of everything a module imports, also inside functions."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, "relative import"
            yield from (f"{node.module}.{alias.name}" for alias in node.names)


def own_imports(module: str) -> set[str]:
    """Returns the modules of the package that `module` imports."""
    found = set()
    for name in imported_names(parsed(SOURCES[module].read_text())):
        if name == "msops" or name.startswith("msops."):
            while name not in SOURCES and name != "msops._native":
                name = name.rpartition(".")[0]
            found.add(name)
    return found - {module}


@pytest.fixture(scope="module")
def graph() -> dict[str, set[str]]:
    """The modules of the package that each of them imports."""
    return {module: own_imports(module) for module in SOURCES}


def room_of(module: str) -> str:
    """Returns the first part of a module's name below `msops`; "" for `msops` itself."""
    return module.removeprefix("msops").removeprefix(".").partition(".")[0]


def test_the_house_has_the_rooms_of_its_page() -> None:
    rooms = {room_of(module) for module in SOURCES} - PUBLIC - {"", "__main__"}
    assert set(ROOMS) == rooms
    assert len(rooms) <= 16


def test_rooms_import_what_the_page_lets_them(graph: dict[str, set[str]]) -> None:
    wrong = {
        f"{module} imports {imported}"
        for module, names in graph.items()
        for imported in names
        if room_of(module) in ROOMS
        and room_of(imported) not in {room_of(module), "errors", "_native", *ROOMS[room_of(module)]}
    }
    assert wrong == set()


def test_the_page_lists_no_import_that_is_not_there(graph: dict[str, set[str]]) -> None:
    for room, may in ROOMS.items():
        used = {
            room_of(imported)
            for module, names in graph.items()
            if room_of(module) == room
            for imported in names
        }
        assert may <= used, room


def test_the_picture_is_drawn_from_the_table() -> None:
    drawn = runpy.run_path(str(ROOT / "tools" / "draw_rooms.py"))
    assert drawn["PICTURE"].read_text() == drawn["draw"](PAGE.read_text()), (
        "run python tools/draw_rooms.py"
    )


def test_rooms_stand_above_what_they_import() -> None:
    rooms = list(ROOMS)
    for room, may in ROOMS.items():
        below = set(rooms[rooms.index(room) + 1 :])
        assert may <= below | PUBLIC, room


def test_the_packages_in_a_room_form_no_circle(graph: dict[str, set[str]]) -> None:
    packages = {module for module, path in SOURCES.items() if path.name == "__init__.py"}
    for package in packages - {"msops"}:

        def part(module: str, package: str = package) -> str | None:
            """Returns the child of the package that a module belongs to."""
            rest = module.removeprefix(f"{package}.")
            return rest.partition(".")[0] if rest != module else None

        uses: dict[str, set[str]] = {}
        for module, names in graph.items():
            if own := part(module):
                uses.setdefault(own, set()).update({part(name) or own for name in names} - {own})
        try:
            graphlib.TopologicalSorter(uses).prepare()
        except graphlib.CycleError as error:
            pytest.fail(f"{package}: {' -> '.join(error.args[1])}")


def test_no_imports_form_a_cycle(graph: dict[str, set[str]]) -> None:
    # A package names what its modules define, so it imports them and they must not import it.
    done: set[str] = set()

    def visit(module: str, path: tuple[str, ...]) -> None:
        assert module not in path, " -> ".join([*path, module])
        if module in done or module not in graph:
            return
        for imported in sorted(graph[module]):
            visit(imported, (*path, module))
        done.add(module)

    for module in graph:
        visit(module, ())


def docstring(package: str) -> str:
    return ast.get_docstring(ast.parse(SOURCES[package].read_text())) or ""


PACKAGES = [name for name, path in SOURCES.items() if path.name == "__init__.py"]


@pytest.mark.parametrize("package", [name for name in PACKAGES if room_of(name) in ROOMS])
def test_a_package_lists_its_modules(package: str) -> None:
    folder = SOURCES[package].parent
    inside = {path.stem for path in folder.glob("*.py")} - {"__init__"}
    inside |= {path.parent.name for path in folder.glob("*/__init__.py")}
    text = docstring(package)
    if listed := re.search(r"Modules: ([\w\s,]+)\.", text):
        assert set(re.split(r",\s+", listed[1])) == inside
    else:
        named = {name.rstrip("/") for name in re.findall(r"\b(\w+)(?=\.py\b|/)", text)}
        assert named >= inside
        assert set(re.findall(r"\b(\w+)\.py\b", text)) <= inside


MECHANISMS = ("clean", "reduce", "materialise", "ranges", "order", "lanes")


def test_a_stage_to_c_is_a_mechanism_with_passes_of_its_own() -> None:
    package = "msops._loops.to_c"
    assert {name for name, _ in STAGES_TO_C} == {*MECHANISMS}
    for mechanism, passes in STAGES_TO_C:
        modules = {getattr(change, "func", change).__module__ for _, change in passes}
        of_c = {name for name in modules if not name.startswith("msops._loops.passes.")}
        assert {name.rpartition(".")[0] for name in of_c} <= {f"{package}.{mechanism}"}


@pytest.mark.parametrize("mechanism", MECHANISMS)
def test_a_mechanism_says_what_it_decides_from_what_facts(mechanism: str) -> None:
    text = docstring(f"msops._loops.to_c.{mechanism}")
    for part in ("Decides: ", "From: ", "Literature: "):
        assert f"\n{part}" in text


@pytest.mark.parametrize("room", ROOMS)
def test_a_room_says_what_it_may_import(room: str) -> None:
    text = docstring(f"msops.{room}")
    assert len(text.splitlines()) <= 10
    stated = re.search(r"May import: (.+?)\.\n", text + "\n", re.DOTALL)
    assert stated is not None
    assert set(re.findall(r"`(\w+)`", stated[1])) == ROOMS[room]


def test_a_class_name_has_one_meaning() -> None:
    # A private name is known in its package, a public one everywhere.
    homes: dict[tuple[str, str], list[str]] = {}
    for module, path in SOURCES.items():
        for node in parsed(path.read_text()).body:
            if isinstance(node, ast.ClassDef):
                reach = str(path.parent) if node.name.startswith("_") else "msops"
                homes.setdefault((reach, node.name), []).append(module)
    # TVM's compute has a class `Tensor`, which its error texts show, and so has MindSpore.
    # `_Thread` always holds what a module keeps for each thread.
    allowed = ("Tensor", "_Thread")
    shared = {key: found for key, found in homes.items() if len(found) > 1}
    assert {key: found for key, found in shared.items() if key[1] not in allowed} == {}


def test_the_func_types_do_not_know_one_another(graph: dict[str, set[str]]) -> None:
    folders = {m: m.split(".")[2] for m in SOURCES if m.startswith("msops._backends.")}
    assert len(set(folders.values())) >= 2
    for module, folder in folders.items():
        others = {other for other in graph[module] if folders.get(other, folder) != folder}
        assert others | (graph[module] & {"msops._backends"}) == set(), module


# Scripts import these by the names that MindSpore gave them.
NAMES_OF_MINDSPORE = (
    "msops._checkparam",
    "msops.ops._grad_experimental",
    "msops.ops._primitive_cache",
)
PRIVATE_IMPORT = re.compile(
    r"""^\s*["']?(?:from\ (msops[\w.]*\._\w+)[\w.]*\ import|import\ (msops[\w.]*\._\w+)|
    from\ (msops)\ import\ (?:\w+,\ )*(_[a-z]\w*))""",
    re.MULTILINE | re.VERBOSE,
)


def private_imports(text: str) -> set[str]:
    """Returns the private modules that a test imports, in programs that it runs, too."""
    found = {".".join(filter(None, match.groups())) for match in PRIVATE_IMPORT.finditer(text)}
    return {name for name in found if not name.startswith(NAMES_OF_MINDSPORE)}


@pytest.mark.parametrize(
    ("text", "names"),
    [
        ("from msops._loops.ir import nodes", {"msops._loops"}),
        ("    from msops._op import call as c", {"msops._op"}),
        ("import msops._native", {"msops._native"}),
        ("from msops import Custom, _native", {"msops._native"}),
        ('"from msops._base import config"', {"msops._base"}),
        ("from msops.ops._table import names", {"msops.ops._table"}),
        ("import msops\nfrom msops import ops\nfrom msops.testing import opcheck", set()),
        ("from msops._checkparam import check", set()),
    ],
)
def test_an_import_of_a_private_module_is_seen(text: str, names: set[str]) -> None:
    assert private_imports(text) == names


def test_few_tests_know_private_modules() -> None:
    # Tests hold what a user can see. Those of the loop compiler's passes use tests/loop_ir.py.
    tests = ROOT / "tests"
    users = {
        path.name: found
        for path in tests.rglob("*.py")
        if path.name != "test_layers.py" and (found := private_imports(path.read_text()))
        # The meaning of the IR is stated in its terms, and reaches tests by tests/loop_ir.py.
        if path.parent != tests / "loop_oracle"
    }
    assert len(users) <= MOST_USERS_OF_PRIVATE_MODULES, users
    loops = {name for name, found in users.items() if "msops._loops" in found}
    # The second adds rows to the table of functions, before anything reads it.
    assert loops == {"loop_ir.py", "test_function_table.py"}


MOST_USERS_OF_PRIVATE_MODULES = 25


def seam_names(text: str) -> set[str]:
    """Returns the names in a source that only `_jax_seam` may use."""
    if "jax" not in text:
        return set()
    tree = parsed(text)
    used = set(imported_names(tree))
    used |= {ast.unparse(node) for node in ast.walk(tree) if isinstance(node, ast.Attribute)}
    return {name for name in used if is_seam_name(name)}


def is_seam_name(name: str) -> bool:
    root, *rest = name.split(".")
    if root == "jaxlib":
        return True
    private = any(re.match(r"_(?!_)", part) for part in rest)
    return root == "jax" and (private or rest[:1] in (["ffi"], ["interpreters"]))


@pytest.mark.parametrize(
    "text",
    [
        "import jax.ffi",
        "from jax import ffi",
        "from jax.interpreters import mlir",
        "from jax._src import core",
        "import jax\ndef f(): jax._src.core.Primitive",
        "import jaxlib",
        "from jaxlib import xla_client",
    ],
)
def test_a_use_of_the_seam_is_seen(text: str) -> None:
    assert seam_names(text)


@pytest.mark.parametrize(
    "text", ["import jax\njax.jit(jax.numpy.add)", "import jax\njax.__version__", "x.ffi._private"]
)
def test_public_jax_is_not_taken_for_the_seam(text: str) -> None:
    assert not seam_names(text)


def test_only_the_seam_uses_ffi_interpreters_and_private_jax() -> None:
    users = {module: seam_names(path.read_text()) for module, path in SOURCES.items()}
    assert {room_of(module) for module, names in users.items() if names} == {"_jax_seam"}


@pytest.mark.parametrize("package", ["_toolchain", "errors", "_base.config"])
def test_what_needs_no_jax_imports_none(package: str) -> None:
    modules = [module for module in SOURCES if f"{module}.".startswith(f"msops.{package}.")]
    assert modules
    for module in modules:
        names = imported_names(parsed(SOURCES[module].read_text()))
        assert not [name for name in names if name.split(".")[0] in ("jax", "jaxlib")], module


INCLUDE = ROOT / "xla_kernels" / "include"


def includes(path: Path) -> set[str]:
    return set(re.findall(r'^#include ["<](\S+)[">]', path.read_text(), re.MULTILINE))


def test_headers_for_kernel_authors_include_only_the_standard_library() -> None:
    # Those of extension modules use pybind11, as the modules do.
    headers = {"custom_aot_extra.h", "msops_parallel_for.h"}
    of_modules = {"custom_op_api.h", "ms_extension.h"}
    assert headers == {path.name for path in INCLUDE.glob("*.h")} - of_modules
    for header in map(INCLUDE.joinpath, headers):
        assert not [name for name in includes(header) if "/" in name or "." in name], header


@pytest.mark.parametrize(
    ("framework", "files"),
    [
        (
            "pybind11/",
            {
                "extension_table.cc",
                "extension_table.h",
                "host_function.cc",
                "module.cc",
                "nested_calls.h",
                "python_attributes.cc",
                "python_attributes.h",
                "python_calls.cc",
                "python_calls.h",
                "python_functions.h",
                "python_log.cc",
                "reachable_objects.cc",
                "reachable_objects.h",
            },
        ),
        (
            "xla/",
            {
                "device_memory.h",
                "ffi_attributes.cc",
                "ffi_attributes.h",
                "ffi_handlers.h",
                "foreign_handler.h",
                "frame_check.h",
                "handler_api.h",
                "late_binding.h",
                "xla_thread_pool.h",
            },
        ),
    ],
)
def test_few_cpp_files_know_a_framework(framework: str, files: set[str]) -> None:
    users = {
        path.name
        for path in (ROOT / "xla_kernels" / "src").iterdir()
        if any(name.startswith(framework) for name in includes(path))
    }
    assert users
    assert users <= files


IMPORT_MSOPS = """
import json, sys, time
start = time.process_time()
import jax
jax_s = time.process_time() - start
before = set(sys.modules)
start = time.process_time()
import msops
msops_s = time.process_time() - start
from jax._src import xla_bridge
print(json.dumps({
    "new": sorted(set(sys.modules) - before),
    "loaded": sorted(sys.modules),
    "started": xla_bridge.backends_are_initialized(),
    "jax_s": jax_s,
    "msops_s": msops_s,
}))
"""


@pytest.fixture(scope="module")
def imports() -> list[dict]:
    """What three fresh processes say of `import msops` after `import jax`."""
    command = [sys.executable, "-c", IMPORT_MSOPS]
    return [
        json.loads(subprocess.run(command, capture_output=True, check=True).stdout)
        for _ in range(3)
    ]


def test_import_starts_no_backend(imports: list[dict]) -> None:
    assert not imports[0]["started"]


def test_import_leaves_out_what_only_some_ops_need(imports: list[dict]) -> None:
    loaded = set(imports[0]["loaded"])
    assert "msops._custom.custom" in loaded
    assert loaded.isdisjoint({"msops._native", "pybind11", "islpy", "yaml", "IPython"})
    assert loaded.isdisjoint(
        {
            "msops._custom.explain",
            "msops._op_info.builders",
            "msops._primitive.batching",
            "msops._primitive.forward_mode",
            "msops._primitive.reverse_mode",
            "msops.ops",
        }
    )


def test_import_brings_in_little_besides_msops(imports: list[dict]) -> None:
    foreign = [name for name in imports[0]["new"] if name.split(".")[0] != "msops"]
    assert len(foreign) <= 60, foreign


def test_import_takes_little_time_over_jax(imports: list[dict]) -> None:
    # 70 ms are meant, also where Python keeps no bytecode and compiles every module each time; a
    # slow machine is recognised by the time that jax itself takes, whose bytecode is installed.
    spent_s = min(run["msops_s"] for run in imports)
    assert spent_s <= max(0.07, 0.18 * min(run["jax_s"] for run in imports))
