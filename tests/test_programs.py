"""Programs that leave the process: exported ones, and those in JAX's persistent cache."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import jax
import jax.numpy as jnp
import pytest
from custom_ops import FLOAT_OPS, aot, loops, multiply, solve_lower

X = jnp.array([1.0, 2.0, 4.0])

RUN_EXPORTED = """
import sys
import jax, jax.numpy as jnp
if "register" in sys.argv:
    import msops
    msops.register_ffi_targets()
with open(sys.argv[1], "rb") as file:
    program = jax.export.deserialize(bytearray(file.read()))
x = jnp.array([1.0, 2.0, 4.0])
print(program.call(x, x).tolist())
"""

RUN_EXPORTED_LOOPS = """
import sys
import jax, jax.numpy as jnp
if "register" in sys.argv:
    import msops
    msops.register_ffi_targets()
with open(sys.argv[1], "rb") as file:
    program = jax.export.deserialize(bytearray(file.read()))
print(*(array.tolist() for array in program.call(jnp.ones((3, 3)), jnp.array([1.0, 2.0, 4.0]))))
assert "register" in sys.argv or "msops" not in sys.modules
"""

CACHED = """
import logging, sys
import jax, jax.numpy as jnp, msops
logging.getLogger("jax._src.compiler").setLevel(logging.DEBUG)
logging.basicConfig(stream=sys.stderr)
jax.config.update("jax_persistent_cache_min_compile_time_secs", 0)
jax.config.update("jax_persistent_cache_min_entry_size_bytes", -1)
op = msops.Custom(sys.argv[1] + ":F", [1], jnp.float32)
print(jax.jit(lambda x: op(x) * 10)(jnp.zeros(1)).tolist())
"""


def run(script: str, *args: str, **environment: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-c", script, *args],
        env={**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path)), **environment},
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )


@pytest.fixture(scope="module")
def exported(tmp_path_factory: pytest.TempPathFactory) -> Path:
    pytest.importorskip("flatbuffers")
    checks = [jax.export.DisabledSafetyCheck.custom_call("msops_aot")]
    program = jax.export.export(jax.jit(aot("Multiply")), disabled_checks=checks)(X, X)
    path = tmp_path_factory.mktemp("exported") / "program.bin"
    path.write_bytes(program.serialize())
    return path


def library_of(symbol: str) -> Path:
    op = aot(symbol)
    op(X, X)
    return op._resolve().operator.definition.kernel.library.path


def test_exported_program_finds_its_library_by_content(exported: Path, tmp_path: Path) -> None:
    shutil.copy(library_of("Multiply"), tmp_path / "renamed.so")
    done = run(RUN_EXPORTED, str(exported), "register", MSOPS_LIBRARY_PATH=str(tmp_path))
    assert done.stdout.strip() == "[1.0, 4.0, 16.0]", done.stderr


def test_exported_program_without_its_library_says_where_it_looked(
    exported: Path, tmp_path: Path
) -> None:
    (tmp_path / "broken.so").write_bytes(b"no library")
    done = run(RUN_EXPORTED, str(exported), "register", MSOPS_LIBRARY_PATH=str(tmp_path))
    assert done.returncode != 0
    assert "float_ops.cc" in done.stderr
    assert "MSOPS_LIBRARY_PATH" in done.stderr
    assert "msops.register_ffi_targets()" in done.stderr


def test_exported_program_without_registration_is_xlas_own_error(exported: Path) -> None:
    done = run(RUN_EXPORTED, str(exported))
    assert done.returncode != 0
    assert "msops_aot" in done.stderr


def export_loops(lower: str, path: Path) -> None:
    """Exports a program of loops and their gradient."""
    pytest.importorskip("flatbuffers")
    op = loops(solve_lower, lower)

    def program(a: jax.Array, b: jax.Array) -> tuple[jax.Array, jax.Array]:
        return op(a, b), jax.grad(lambda b: op(a, b).sum())(b)

    checks = [jax.export.DisabledSafetyCheck.custom_call("msops_aot")] if lower == "native" else []
    exported = jax.export.export(jax.jit(program), disabled_checks=checks)(jnp.ones((3, 3)), X)
    assert ("custom_call" in exported.mlir_module()) == (lower == "native")
    path.write_bytes(exported.serialize())


# x = (1, 2 - 1, 4 - 1 - 1), and each element of b counts once and is taken off all later ones.
LOOPS_PRINT = "[1.0, 1.0, 2.0] [0.0, 0.0, 1.0]"


def test_loops_as_operations_are_exported_to_processes_without_msops(tmp_path: Path) -> None:
    export_loops("xla", tmp_path / "program.bin")
    done = run(RUN_EXPORTED_LOOPS, str(tmp_path / "program.bin"))
    assert done.stdout.strip() == LOOPS_PRINT, done.stderr


def test_loops_that_would_be_native_code_are_exported_as_operations() -> None:
    op, x = loops(multiply), jnp.arange(4096.0)

    def program(x: jax.Array) -> tuple[jax.Array, jax.Array]:
        return op(x, x), jax.grad(lambda x: op(x, x).sum())(x)

    assert "msops_aot" in jax.jit(program).lower(x).as_text()
    exported = jax.export.export(jax.jit(program))(x)
    assert "custom_call" not in exported.mlir_module()
    for got, expected in zip(exported.call(x), (x * x, 2 * x), strict=True):
        assert jnp.array_equal(got, expected)


def test_exported_native_loops_find_their_library_by_content(tmp_path: Path) -> None:
    pytest.importorskip("flatbuffers")
    built, elsewhere = tmp_path / "built", tmp_path / "elsewhere"
    # In a process of its own: another test of this one may have built the same loops elsewhere.
    script = "import sys, test_programs as t; t.export_loops('native', t.Path(sys.argv[1]))"
    done = run(script, str(tmp_path / "program.bin"), MSOPS_TEST_CACHE_DIR=str(built))
    assert done.returncode == 0, done.stderr
    elsewhere.mkdir()
    for number, library in enumerate(sorted(built.glob("objects/*/*/*.so"))):
        shutil.copy(library, elsewhere / f"{number}.so")
    done = run(
        RUN_EXPORTED_LOOPS,
        str(tmp_path / "program.bin"),
        "register",
        MSOPS_LIBRARY_PATH=str(elsewhere),
        MSOPS_CACHE_DIR=str(tmp_path / "empty"),
    )
    assert done.stdout.strip() == LOOPS_PRINT, done.stderr


def test_targets_register_before_and_after_the_backend_starts() -> None:
    script = (
        "import jax, msops; from jax._src import xla_bridge as b\n"
        "assert msops.register_ffi_targets() is True\n"
        "assert not b.backends_are_initialized()\n"
        "assert msops.register_ffi_targets('cuda') is False\n"
        "import jax.numpy as jnp; jnp.ones(1) + 1\n"
        "assert msops.register_ffi_targets() is True\n"
        f"op = msops.Custom('{FLOAT_OPS}:Multiply', lambda x, _: x, lambda x, _: x)\n"
        "print(op(jnp.ones(1), jnp.ones(1)))"
    )
    done = run(script)
    assert done.stdout.strip() == "[1.]", done.stderr


def test_program_lowered_before_the_backend_starts_runs_in_the_same_process() -> None:
    script = (
        "import jax, msops, numpy as np; from jax._src import xla_bridge as b\n"
        f"op = msops.Custom('{FLOAT_OPS}:Multiply', lambda x, _: x, lambda x, _: x)\n"
        "spec = jax.ShapeDtypeStruct((3,), np.float32)\n"
        "lowered = jax.jit(op).trace(spec, spec).lower(lowering_platforms=('cpu',))\n"
        "x = np.ones(3, np.float32)\n"
        "print(lowered.compile()(x, x))"
    )
    done = run(script)
    assert done.stdout.strip() == "[1. 1. 1.]", done.stderr


def test_import_and_op_creation_start_no_backend() -> None:
    script = (
        "import msops, sys, numpy as np; from jax._src import xla_bridge as b\n"
        f"msops.Custom('{FLOAT_OPS}:Multiply', [3], np.float32)\n"
        "msops.Custom(np.sin, [3], np.float32)\n"
        "sys.path.insert(0, sys.argv[1]); import custom_ops\n"
        "custom_ops.loops(custom_ops.multiply)\n"
        "print(b.backends_are_initialized())"
    )
    done = run(script, str(Path(__file__).parent))
    assert done.stdout.strip() == "False", done.stderr


def test_persistent_cache_hits_and_never_runs_stale_code(tmp_path: Path) -> None:
    source = tmp_path / "value.cc"
    template = (
        'extern "C" int F(int, void **p, int *, long **, const char **, void *, void *) '
        "{{ static_cast<float *>(p[1])[0] = {}; return 0; }}"
    )
    cache = tmp_path / "cache"
    hits = []
    for value in (1, 1, 2):
        source.write_text(template.format(value))
        done = run(CACHED, str(source), JAX_COMPILATION_CACHE_DIR=str(cache))
        assert done.stdout.strip() == f"[{value * 10}.0]", done.stderr
        hits.append("Persistent compilation cache hit" in done.stderr)
    assert not hits[0]
    assert hits[1]


def test_equal_programs_of_two_processes_are_equal_text() -> None:
    script = (
        "import jax, msops, jax.numpy as jnp\n"
        f"op = msops.Custom('{FLOAT_OPS}:Multiply', lambda x, _: x, lambda x, _: x)\n"
        "print(jax.jit(op).lower(jnp.ones(3), jnp.ones(3)).as_text())"
    )
    first, second = run(script), run(script)
    assert first.stdout == second.stdout
    assert "custom_call @msops_aot" in first.stdout


def test_equal_native_loops_of_two_processes_are_equal_text() -> None:
    script = (
        "import sys, jax, jax.numpy as jnp\n"
        "sys.path.insert(0, sys.argv[1]); from custom_ops import loops, solve_lower\n"
        "op = loops(solve_lower, 'native')\n"
        "f = jax.value_and_grad(lambda a, b: op(a, b).sum())\n"
        "print(jax.jit(f).lower(jnp.ones((99, 99)), jnp.ones(99)).as_text())"
    )
    first, second = (
        run(script, str(Path(__file__).parent), PYTHONHASHSEED=seed) for seed in ("1", "2")
    )
    assert first.stdout == second.stdout
    assert first.stdout.count("custom_call @msops_aot") == 2, first.stderr
