"""What programs say of their kernels is the same in every process, and is known in time."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest
from custom_ops import FLOAT_OPS


def run(script: str, *args: str, **environment: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-c", script, *args],
        env={**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path)), **environment},
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )


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


@pytest.mark.slow
def test_equal_programs_of_two_processes_are_equal_text() -> None:
    script = (
        "import sys, jax, msops, jax.numpy as jnp\n"
        "sys.path.insert(0, sys.argv[1]); from custom_ops import loops, solve_lower\n"
        f"op = msops.Custom('{FLOAT_OPS}:Multiply', lambda x, _: x, lambda x, _: x)\n"
        "print(jax.jit(op).lower(jnp.ones(3), jnp.ones(3)).as_text())\n"
        "op = loops(solve_lower, 'native')\n"
        "f = jax.value_and_grad(lambda a, b: op(a, b).sum())\n"
        "print(jax.jit(f).lower(jnp.ones((99, 99)), jnp.ones(99)).as_text())"
    )
    first, second = (
        run(script, str(Path(__file__).parent), PYTHONHASHSEED=seed) for seed in ("1", "2")
    )
    assert first.stdout == second.stdout
    assert first.stdout.count("custom_call @msops_aot") == 3, first.stderr
