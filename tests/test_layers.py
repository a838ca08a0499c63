"""Imports point strictly down, the JAX seam is one package, and `import msops` is light."""

from __future__ import annotations

import ast
import json
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from conftest import ROOT

# The layers of the package, from the top; in a layer, from the top again. A module imports only
# from rows below its own, a name standing for the package's submodules too unless they have a row.
LAYERS: dict[int, tuple[str, ...]] = {
    7: (
        "msops __main__",
        "_run",
        "_doctor testing",
        "_cache_command",
        "common context extension nn ops tbe",
        "_names",
        "_notebook",
    ),
    6: (
        "_gradients _jit",
        "_differentiation",
        "_cell_containers",
        "_cell",
        "_cell_bprop",
        "_compiled",
        "_extension",
        "_custom",
        "_custom_options",
        "_inspection",
        "_kernel_decorator",
        "_numpy_intrinsics",
    ),
    5: ("_backends",),
    4: ("_backends.aicpu _backends.aot _backends.loops _backends.pyfunc _backends.tbe",),
    3: (
        "_programs",
        "_operator _explicit_mesh",
        "_partitioning",
        "_loop_kernels",
        "_host_round_trip",
        "_host_call",
        "_host_function",
        "_backend",
        "_forward_mode",
        "_autodiff",
        "_batching",
        "_traced",
        "_host_callback",
        "_inference",
        "_call",
        "_fingerprint",
        "_parameter",
        "_tensor",
        "_tensor_hooks _tensor_views",
        "_tensor_operators",
        "_tensor_methods",
        "_array_math",
        "_tensor_data",
        "_tensor_text",
        "_leaves",
    ),
    2: (
        "_aicpu_call _aicpu_libraries _cuda_call",
        "_native_call _process_objects",
        "_tbe",
        "_loops",
        "_aclnn",
        "_jax_seam _native _op_info _toolchain",
        "_tiling",
        "_sharding_rule",
    ),
    1: ("_context", "_config _dtypes _logging _host_memory _paths _version"),
    0: ("errors",),
}
ROWS = [row.split() for layer in sorted(LAYERS, reverse=True) for row in LAYERS[layer]]
HEIGHT = {name: len(ROWS) - index for index, row in enumerate(ROWS) for name in row}


def module_name(path: Path) -> str:
    parts = path.relative_to(ROOT).with_suffix("").parts
    return ".".join(parts).removesuffix(".__init__")


SOURCES = {module_name(path): path for path in sorted((ROOT / "msops").rglob("*.py"))}


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
    for name in imported_names(ast.parse(SOURCES[module].read_text())):
        if name == "msops" or name.startswith("msops."):
            while name not in SOURCES and name != "msops._native":
                name = name.rpartition(".")[0]
            found.add(name)
    return found - {module}


def row_name(module: str) -> str | None:
    """Returns the name under which the table of layers has a module."""
    name = module.removeprefix("msops.")
    while name not in HEIGHT and "." in name:
        name = name.rpartition(".")[0]
    return name if name in HEIGHT else None


IMPORTS = {module: own_imports(module) for module in SOURCES}


def test_every_module_has_a_layer() -> None:
    homeless = [module for module in SOURCES if row_name(module) is None]
    assert homeless == [], "give them a row in LAYERS"
    modules = {row_name(module) for module in SOURCES} | {"_native"}
    assert set(HEIGHT) <= modules, "LAYERS has rows for what is not there"


def test_imports_point_strictly_down() -> None:
    wrong = [
        f"{module} imports {imported}"
        for module, names in IMPORTS.items()
        for imported in names
        if row_name(module) != row_name(imported)
        and HEIGHT[row_name(module) or ""] <= HEIGHT[row_name(imported) or ""]
    ]
    assert wrong == []


def test_no_imports_form_a_cycle() -> None:
    # A package names what its modules define, so it imports them and they must not import it.
    done: set[str] = set()

    def visit(module: str, path: tuple[str, ...]) -> None:
        assert module not in path, " -> ".join([*path, module])
        if module in done or module not in IMPORTS:
            return
        for imported in sorted(IMPORTS[module]):
            visit(imported, (*path, module))
        done.add(module)

    for module in IMPORTS:
        visit(module, ())


def test_the_backends_do_not_know_one_another() -> None:
    backends = {module for module in SOURCES if module.startswith("msops._backends.")}
    assert len(backends) >= 2
    for module in backends:
        assert IMPORTS[module].isdisjoint(backends | {"msops._backends"})


def seam_names(text: str) -> set[str]:
    """Returns the names in a source that only `_jax_seam` may use."""
    tree = ast.parse(text)
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
    assert {row_name(module) for module, names in users.items() if names} == {"_jax_seam"}


@pytest.mark.parametrize("package", ["_toolchain", "errors", "_config"])
def test_what_needs_no_jax_imports_none(package: str) -> None:
    modules = [module for module in SOURCES if row_name(module) == package]
    assert modules
    for module in modules:
        names = imported_names(ast.parse(SOURCES[module].read_text()))
        assert not [name for name in names if name.split(".")[0] in ("jax", "jaxlib")], module


INCLUDE = ROOT / "xla_kernels" / "include"


def includes(path: Path) -> set[str]:
    return set(re.findall(r'^#include ["<](\S+)[">]', path.read_text(), re.MULTILINE))


def test_headers_for_kernel_authors_include_only_the_standard_library() -> None:
    # Those of extension modules use pybind11, as the modules do.
    headers = {"custom_aot_extra.h", "msops_parallel_for.h"}
    assert headers == {path.name for path in INCLUDE.glob("*.h")} - {"ms_extension.h"}
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
                "python_attributes.cc",
                "python_attributes.h",
                "python_calls.cc",
                "python_calls.h",
                "python_functions.h",
                "python_log.cc",
            },
        ),
        (
            "xla/",
            {
                "ffi_attributes.cc",
                "ffi_attributes.h",
                "ffi_handlers.h",
                "late_binding.h",
                "frame_check.h",
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
    assert "msops._custom" in loaded
    assert loaded.isdisjoint({"msops._native", "pybind11", "islpy", "IPython"})


def test_import_brings_in_little_besides_msops(imports: list[dict]) -> None:
    foreign = [name for name in imports[0]["new"] if name.split(".")[0] != "msops"]
    assert len(foreign) <= 60, foreign


def test_import_takes_little_time_over_jax(imports: list[dict]) -> None:
    # 100 ms are meant; a slow machine is told by the time it takes for jax itself.
    spent_s = min(run["msops_s"] for run in imports)
    assert spent_s <= max(0.1, 0.25 * min(run["jax_s"] for run in imports))
