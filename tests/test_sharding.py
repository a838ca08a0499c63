"""Ops in programs that XLA divides over devices: what a rule allows is local, the rest reported.

One process with eight CPU devices makes the checks of on_eight_devices.py; each is a test here.
"""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

SCRIPT = Path(__file__).with_name("on_eight_devices.py")
KINDS = ("aot", "pyfunc", "aicpu", "akg_native", "hybrid_native", "akg_raised", "tbe")
FAMILIES = {
    **dict.fromkeys(("forward", "gradient", "batched", "mapped_by_hand"), KINDS),
    "unruled": KINDS[:3],
}
EVERY = [
    f"{check} {kind} {mesh}"
    for check, kinds in FAMILIES.items()
    for kind in kinds
    for mesh in ("auto", "explicit")
]
NAMED = re.findall(r'^@check\("(.*)"\)$', SCRIPT.read_text(), re.MULTILINE)
# They compile for long, and others are of the same rules.
LONG = {
    "the gradient of native loops is summed over parts",
    "raised loops of arrays that are whole in an explicit mesh",
    "outputs in another order, and several",
    "devices in any order",
    "loops, conditions and recomputation",
}
QUICK = [
    *(f"forward {kind} auto" for kind in KINDS),
    "forward akg_native explicit",
    "gradient aot auto",
    "batched pyfunc auto",
    "mapped_by_hand aot explicit",
    *(name for name in NAMED if name not in LONG),
]
SLOW = [name for name in (*EVERY, *NAMED) if name not in QUICK]


def run(command: list[str], **environment: str) -> subprocess.CompletedProcess[str]:
    done = subprocess.run(
        [sys.executable, *command],
        env={
            **os.environ,
            "JAX_PLATFORMS": "cpu",
            "XLA_FLAGS": "--xla_force_host_platform_device_count=8",
            "PYTHONPATH": os.pathsep.join([*filter(None, sys.path), str(SCRIPT.parent)]),
            **environment,
        },
        capture_output=True,
        text=True,
        timeout=600,
        check=False,
    )
    assert done.returncode == 0, done.stderr[-4000:]
    return done


def errors_of(names: list[str]) -> dict[str, str]:
    """Returns what each check says is wrong."""
    lines = map(json.loads, run([str(SCRIPT), *names]).stdout.splitlines())
    return {line["name"]: line["error"] for line in lines}


@pytest.fixture(scope="module")
def quick_errors() -> dict[str, str]:
    return errors_of(QUICK)


@pytest.fixture(scope="module")
def slow_errors() -> dict[str, str]:
    return errors_of(SLOW)


@pytest.mark.parametrize("name", QUICK)
def test_on_eight_devices(name: str, quick_errors: dict[str, str]) -> None:
    assert not quick_errors[name], quick_errors[name]


@pytest.mark.slow
@pytest.mark.parametrize("name", SLOW)
def test_more_on_eight_devices(name: str, slow_errors: dict[str, str]) -> None:
    assert not slow_errors[name], slow_errors[name]


@pytest.mark.slow
def test_every_check_is_a_test() -> None:
    listed = run([str(SCRIPT), "--list"]).stdout.splitlines()
    assert sorted(listed) == sorted([*QUICK, *SLOW])


CACHED = """
import logging, sys
import jax, numpy as np
from on_eight_devices import AUTO, X, W, kernel_calls, put, scaling
logging.getLogger("jax._src.compiler").setLevel(logging.DEBUG)
logging.basicConfig(stream=sys.stderr)
jax.config.update("jax_persistent_cache_min_compile_time_secs", 0)
jax.config.update("jax_persistent_cache_min_entry_size_bytes", -1)
op = scaling(sys.argv[1], sharding="i j, j -> i j")
x, w = put(X, AUTO, "a", "b"), put(W, AUTO, "b")
np.testing.assert_allclose(jax.jit(lambda x, w: op(x * 3, w))(x, w), 3 * X * W, rtol=1e-6)
"""


@pytest.mark.slow
def test_divided_programs_in_the_cache_on_disk(tmp_path: Path) -> None:
    """One with a library is found by the next process; one with generated code is not kept."""
    hits = {}
    for kind in ("aot", "akg_native"):
        folder = {"JAX_COMPILATION_CACHE_DIR": str(tmp_path / kind)}
        runs = [run(["-c", CACHED, kind], **folder).stderr for _ in range(2)]
        hit = r"Persistent compilation cache hit for 'jit__lambda"
        hits[kind] = [bool(re.search(hit, text)) for text in runs]
    assert hits == {"aot": [False, True], "akg_native": [False, False]}


NAMES = """
import re, jax
from on_eight_devices import AUTO, TABLES, W, put, recurring
op = recurring()
slope = jax.jit(jax.value_and_grad(lambda x, w: op(x, w).sum(), (0, 1)))
text = slope.lower(put(TABLES, AUTO, "a"), put(W, AUTO)).as_text()
print(*re.findall(r'backend_config = "(recurrence[^"]*)"', text))
"""


@pytest.mark.slow
def test_processes_agree_on_the_names_of_divided_calls() -> None:
    first, second = (run(["-c", NAMES], PYTHONHASHSEED=seed).stdout.split() for seed in "12")
    assert len(first) == 2
    assert first == second
