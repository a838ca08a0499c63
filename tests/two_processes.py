"""One of the two processes of test_processes.py; prints as JSON what it got.

python two_processes.py HOST:PORT NUMBER STEPS

It trains the example for that many steps first.
"""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from extension_modules import extension
from jax.sharding import AxisType, NamedSharding, PartitionSpec

from msops import Custom

ROWS = PartitionSpec("rows")


def together(function: Callable[..., Any], by_rule: bool = False) -> list[float]:
    """Runs a function of 0, 1, 2, 3, half in each process; returns this one's half."""
    mesh = jax.make_mesh((2,), ("rows",), axis_types=(AxisType.Auto,))
    half = np.arange(2, dtype=np.float32) + 2 * jax.process_index()
    x = jax.make_array_from_process_local_data(NamedSharding(mesh, ROWS), half)
    if not by_rule:
        function = jax.shard_map(function, mesh=mesh, in_specs=ROWS, out_specs=ROWS)
    return jax.jit(function)(x).addressable_data(0).tolist()


def error_of(function: Callable[..., Any], **options: Any) -> str:
    try:
        return f"no error but {together(function, **options)}"
    except RuntimeError as error:  # BackendError, which XLA hands on as its own
        return str(error)


def op(function: Callable[..., Any]) -> Custom:
    return Custom(function, lambda x: x, lambda x: x, sharding="i -> i")


def double(x: Any) -> Any:
    return 2 * x


def triple(x: Any) -> Any:
    return 3 * x


def halve(x: Any) -> Any:
    return x / 2


def negate(x: Any) -> Any:
    return -x


def square(x: Any) -> Any:
    return x * x


def root(x: Any) -> Any:
    return x**0.5


def hurry() -> None:
    """Makes this process wait a second where it would wait ten minutes."""
    clock = time.monotonic
    start = clock()
    time.monotonic = lambda: start + 600 * (clock() - start)


def main(address: str, number: int, steps: int) -> None:
    jax.distributed.initialize(address, 2, number)
    import data_parallel

    axpy = extension("runners").axpy
    report: dict[str, Any] = {
        "processes": jax.process_count(),
        "losses": data_parallel.train(steps),
        "equal functions": together(op(double)),
        "equal runners": together(lambda x: axpy(x, x, 2.0)),
        "different functions": error_of(op((triple, halve)[number])),
        "different functions again": error_of(op((triple, halve)[number])),
        "equal functions by rule": together(op(negate), by_rule=True),
        "different functions by rule": error_of(op((square, root)[number]), by_rule=True),
    }
    if number == 0:  # programs of this process alone ask nobody
        report["own"] = op(np.negative)(jnp.ones(2)).tolist()
        jax.jit(axpy).lower(jnp.ones(2), jnp.ones(2))
    report["different runners"] = error_of(lambda x: axpy(x, x, 2.0))
    report["equal again"] = together(lambda x: op(double)(x) + 1)
    if number == 0:
        hurry()
        report["alone"] = error_of(op(np.exp))
    else:
        report["alone"] = together(op(double))
    print(json.dumps(report), flush=True)


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]), int(sys.argv[3]))
