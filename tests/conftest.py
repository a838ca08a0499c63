"""Fixtures for all tests."""

from __future__ import annotations

import gc
import os
import runpy
import sys
from collections.abc import Iterator
from pathlib import Path
from unittest import mock

import pytest
from hypothesis import HealthCheck, settings

# What these helpers assert is explained as in tests.
pytest.register_assert_rewrite("documents")

ROOT = Path(__file__).resolve().parents[1]

DTYPE_NAMES = (
    "bool",
    *("int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64"),
    *("float16", "float32", "float64", "bfloat16", "complex64", "complex128"),
)
"""What MindSpore's tensors hold."""

KERNELS = ROOT / "tests" / "kernels"

# One cache for all test processes: content-addressed, so a kernel is built once per edit of it.
os.environ["MSOPS_CACHE_DIR"] = os.environ.get(
    "MSOPS_TEST_CACHE_DIR", str(ROOT / "build" / "test-cache")
)
os.environ.pop("MS_CUSTOM_AOT_WHITE_LIST", None)
# Without bytecode on disk, each process that a test starts compiles all of msops again.
os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
# What a loop kernel becomes must not depend on what else the machine does.
os.environ["MSOPS_LOOPS_TIMING"] = "0"

# The same examples in every run, so that what fails is what changed; `make test-all` draws new
# ones. How long they take depends on what else the machine does.
_PATIENT = settings(deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.register_profile("new", _PATIENT)
settings.register_profile("same", _PATIENT, derandomize=True)
settings.load_profile("same")


def pytest_collection_finish() -> None:
    """Keeps the tests themselves out of garbage collections, which many tests ask for."""
    gc.freeze()


@pytest.fixture(autouse=True)
def say_again() -> None:
    """Has each test hear what is said once in a process."""
    from msops._base.logging import warn_once

    warn_once.cache_clear()


@pytest.fixture(autouse=True, scope="module")
def forget_programs() -> Iterator[None]:
    """Has JAX forget what it compiled for a file: processes would grow to 5 GB, and slow down."""
    yield
    import jax

    jax.clear_caches()


@pytest.fixture(autouse=True, scope="session")
def keep_programs(tmp_path_factory: pytest.TempPathFactory) -> None:
    """Has a process of `make test` compile equal programs once: most are of one operation.

    JAX finds a program by its text and by how it is compiled. Each process has a folder of its own,
    as one could read what another has written in part.
    """
    if "JAX_DISABLE_MOST_OPTIMIZATIONS" not in os.environ:
        return
    import jax
    from jax.experimental.compilation_cache import compilation_cache

    folder = tmp_path_factory.getbasetemp() / "programs"
    jax.config.update("jax_compilation_cache_dir", str(folder))
    jax.config.update("jax_persistent_cache_min_compile_time_secs", 0)
    jax.config.update("jax_persistent_cache_min_entry_size_bytes", -1)
    # JAX has looked for a folder when it compiled for the first time, as a file was imported.
    compilation_cache.reset_cache()


@pytest.fixture(scope="module")
def as_users_compile() -> Iterator[None]:
    """Has XLA optimise a file's programs, as users' are, where `make test` otherwise leaves it out.

    It is for files whose tests are about the values of programs.
    """
    import jax

    left_out = jax.config.read("jax_disable_most_optimizations")
    # JAX keeps one program of a function, with or without: of what it compiled none may be left.
    jax.clear_caches()
    jax.config.update("jax_disable_most_optimizations", False)
    yield
    jax.config.update("jax_disable_most_optimizations", left_out)


@pytest.fixture(scope="module")
def quick_collections() -> None:
    """Keeps what other files left out of the garbage collections that a file asks for."""
    gc.collect()
    gc.freeze()


def run_command(*arguments: object) -> None:
    """Runs ``msops`` with arguments in this process.

    Raises:
      SystemExit: the command ends with a status.
    """
    with mock.patch.object(sys, "argv", ["msops", *map(str, arguments)]):
        runpy.run_module("msops", run_name="__main__")


@pytest.fixture
def kernels() -> Path:
    """The folder of kernel sources that tests share."""
    return KERNELS


@pytest.fixture
def quick_builds(monkeypatch: pytest.MonkeyPatch) -> None:
    """Has kernels built without optimising, for tests that run each of theirs a few times."""
    monkeypatch.setenv("CXX", str(ROOT / "tests" / "compilers" / "g++"))


@pytest.fixture(scope="module")
def avx() -> Iterator[None]:
    """Generates code for a processor whose vectors have 32 bytes, so that texts are the same."""
    from msops._base import processor

    with mock.patch.object(processor, "vector_bytes", return_value=32):
        yield
